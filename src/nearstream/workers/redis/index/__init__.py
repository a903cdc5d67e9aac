"""Opens an index, makes it anew, and chooses its scheme."""
