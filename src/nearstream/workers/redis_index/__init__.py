"""The shared index on Redis or Valkey. No other package imports redis."""
