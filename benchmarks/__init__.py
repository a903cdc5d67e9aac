"""Benchmarks of which each runs alone and prints one JSON object.

Some compare the project with other libraries, some with the figures of its sources.
"""
