"""Tokens of services in a job's scratch directory."""
