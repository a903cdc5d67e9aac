"""The HTTP API of `nearstream serve`, which a mail filter or a crawler asks about single documents."""
