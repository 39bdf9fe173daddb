"""Jobs that are handed to other batch systems: who follows them, and their files there."""
