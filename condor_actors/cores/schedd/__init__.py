"""The decisions of a schedd: the queue, its claims, its runs."""
