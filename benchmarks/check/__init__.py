"""How fast the HTTP API answers."""
