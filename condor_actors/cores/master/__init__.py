"""The decisions of a master: which daemons run, and when one is started again."""
