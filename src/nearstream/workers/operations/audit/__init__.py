"""Measure a running deployment against exact methods, on a window of its topics."""
