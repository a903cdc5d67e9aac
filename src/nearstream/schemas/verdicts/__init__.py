"""Verdicts about documents, events about pairs, and retractions."""
