"""Pure decisions: same input, same output."""
