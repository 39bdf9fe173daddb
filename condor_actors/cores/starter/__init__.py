"""The decisions of a starter: one run as its execute machine sees it."""
