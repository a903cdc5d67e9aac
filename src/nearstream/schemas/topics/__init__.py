"""Topics: their names, the bytes of their records, and what becomes of records that nobody can read."""
