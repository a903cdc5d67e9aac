"""Documents, their records and signatures, and how a relation between two is known."""
