"""A signature as an index stores it: the identity of a document, and a text part that texts alike can share."""
