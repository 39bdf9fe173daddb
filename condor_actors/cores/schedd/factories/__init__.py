"""Clusters whose jobs are made as they are needed (late materialization)."""
