"""Kafka clients, topics, offsets and records. Only this wing imports aiokafka."""
