"""The state of a worker: health, probe, watchdog, metrics and status server."""
