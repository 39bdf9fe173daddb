"""The decisions of a shadow: one run as its submit machine sees it."""
