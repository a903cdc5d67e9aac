"""How Faust's usual idioms lose, double or block records, each shown on a real broker."""
