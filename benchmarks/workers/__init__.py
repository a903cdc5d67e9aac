"""Cost of a worker: CPU per document, latency, idle load."""
