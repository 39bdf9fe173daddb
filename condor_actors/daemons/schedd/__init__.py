"""The schedd as a daemon: its actor, its records, its spool."""
