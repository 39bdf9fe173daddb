"""Checkpoints that jobs have sent to a URL of their own: where each is, and what it consists of."""
