"""Directed acyclic graphs of jobs: their language, and what a run of one decides; pure, no I/O."""
