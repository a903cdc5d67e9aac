"""What operators read of an index."""
