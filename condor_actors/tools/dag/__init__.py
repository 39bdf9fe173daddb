"""Commands for workflows: directed acyclic graphs of jobs."""
