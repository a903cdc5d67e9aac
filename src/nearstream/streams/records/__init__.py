"""Packs signatures for an index: the identity of a document, then a text part."""
