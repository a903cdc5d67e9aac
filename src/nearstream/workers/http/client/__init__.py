"""Ask the HTTP API: its client, and the tools of agents."""
