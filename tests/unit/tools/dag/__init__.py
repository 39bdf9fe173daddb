"""The commands for workflows."""
