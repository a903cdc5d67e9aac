"""Fingerprints of a text: normal form, shingles, sketch, LD signature, anchors."""
