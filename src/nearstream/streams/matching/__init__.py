"""From signatures to verdicts and events, through a store."""
