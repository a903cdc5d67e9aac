"""The server: its address, its client, its errors, and the functions and the layout of an index on it."""
