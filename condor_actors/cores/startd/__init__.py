"""The decisions of a startd: slots, claims, and the owner's policy."""
