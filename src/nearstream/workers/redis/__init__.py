"""The index on Redis or Valkey. No other wing imports redis."""
