"""The gateway of a pool."""
