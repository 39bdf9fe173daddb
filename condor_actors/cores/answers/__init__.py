"""Answers in plain words: why a job waits, is held or is moved, why a machine does nothing, when a job begins."""
