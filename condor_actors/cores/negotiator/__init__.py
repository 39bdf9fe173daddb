"""The decisions of a negotiator: cycles, matches, priorities."""
