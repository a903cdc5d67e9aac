"""The index of one machine in a file of SQLite, without a server."""
