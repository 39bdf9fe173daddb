"""The commands that look at the pool."""
