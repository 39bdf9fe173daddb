"""Sets of jobs."""
