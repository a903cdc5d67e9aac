"""From signatures to decisions: which earlier documents count, and which family a document joins."""
