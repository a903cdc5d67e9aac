"""Settings from the environment, TLS, exit codes."""
