"""From a Kafka record to a complete document, or to a removal."""
