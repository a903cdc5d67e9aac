"""The way of a record: take a batch, decide, deliver, acknowledge.

Beside it only `workers/worker/topology.py` imports Faust.
"""
