"""The protocol of matching under an adversary."""
