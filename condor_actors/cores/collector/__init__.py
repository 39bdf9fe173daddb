"""The decisions of a collector: the pool's current ads."""
