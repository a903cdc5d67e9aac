"""The store of an index on Redis. Each slot is one hash slot, and each call is one function."""
