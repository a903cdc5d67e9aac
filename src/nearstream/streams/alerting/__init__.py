"""From verdicts and dead letters to alerts about what happens too often."""
