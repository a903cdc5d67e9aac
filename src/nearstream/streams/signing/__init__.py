"""Schemes and signers: from documents to signatures and index keys."""
