"""Play the fetches of a log again under decisions, and count."""
