"""Races against other libraries and against the sources; each runs alone and prints one JSON object."""
