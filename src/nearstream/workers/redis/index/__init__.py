"""Checks an index, fills it again, and chooses its scheme."""
