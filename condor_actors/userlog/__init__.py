"""The user log of jobs: its writer and all its readers."""
