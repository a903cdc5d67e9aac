"""The edge: Kafka, Redis, files, clock, environment."""
