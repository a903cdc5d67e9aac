"""What an operator does: check, produce, tail, inspect, rebuild, replay, skip."""
