"""Faust's usual idioms lose, repeat or block records, as each trap shows on a real broker."""
