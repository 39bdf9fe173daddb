"""Commands that show, on a terminal, what goes on now."""
