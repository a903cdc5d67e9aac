"""The way of a record: take a batch, decide, deliver, acknowledge.

No other wing imports Faust.
"""
