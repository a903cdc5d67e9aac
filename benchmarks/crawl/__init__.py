"""Web pages: what it costs to read them."""
