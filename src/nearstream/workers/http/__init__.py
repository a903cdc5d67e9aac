"""The HTTP API of `nearstream serve`, and its live page."""
