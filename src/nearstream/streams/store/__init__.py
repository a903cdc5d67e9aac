"""The thin store of an index, and the messages between it and the matcher."""
