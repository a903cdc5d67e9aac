"""What workers keep in Redis beside the index."""
