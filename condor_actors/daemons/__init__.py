"""The daemons: cores and actors wired to I/O."""
