"""Cost of the index in time and memory, compared with datasketch."""
