"""Estimates from two signatures: resemblance, containment, distance, passages."""
