"""What the live page costs, and how fast it shows what arrives."""
