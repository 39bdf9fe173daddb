"""Sets of jobs: clusters of one owner that were submitted under one name."""
