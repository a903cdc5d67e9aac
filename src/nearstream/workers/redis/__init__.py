"""Redis or Valkey: the index, and what workers keep beside it. No other wing imports redis."""
