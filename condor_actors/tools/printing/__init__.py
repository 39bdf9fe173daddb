"""How the commands print ads and tables."""
