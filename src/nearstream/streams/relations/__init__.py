"""Relations: estimates become a verdict, and a verdict becomes an event."""
