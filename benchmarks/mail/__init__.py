"""How well copies of mail are found, and how seldom other mail is taken for a copy."""
