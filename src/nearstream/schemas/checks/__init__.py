"""Questions about one document, and their answers."""
