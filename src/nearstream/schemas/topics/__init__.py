"""Topics: their table, the bytes of their records, and refused records."""
