"""A worker process: its parts, its topology, and what it waits for at its start."""
