"""Other batch systems, by their own commands."""
