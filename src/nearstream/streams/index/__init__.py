"""The contract of an index, and its in-memory implementation."""
