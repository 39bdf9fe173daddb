"""The web page: asks the pool, serves what it knows."""
