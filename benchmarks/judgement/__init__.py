"""What a person calls the same, and what is said of it."""
