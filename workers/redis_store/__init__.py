"""The store of an index on Redis: each slot is one hash slot of the server, and each call is one function there."""
