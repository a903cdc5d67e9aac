"""The store of an index: its calls, a slot in memory, and signatures packed for it."""
