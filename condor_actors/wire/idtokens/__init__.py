"""Tokens for people: who has one is known by it where he has no certificate (IDTOKENS)."""
