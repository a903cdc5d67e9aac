"""The edge: Kafka, Redis, HTTP, files, clock, environment, log."""
