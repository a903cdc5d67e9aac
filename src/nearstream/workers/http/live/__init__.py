"""The live page: the newest events, their counts, their sources, and its files."""
