"""What the live page shows."""
