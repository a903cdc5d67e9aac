"""What a document is to those before it, and what changed by it."""
