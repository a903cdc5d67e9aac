"""Messages and records: everything that crosses a process boundary."""
