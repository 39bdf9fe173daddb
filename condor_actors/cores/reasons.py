"""Reasons of others, as they go into a job's ad, messages and logs: they have an end, and are text."""

from __future__ import annotations

__all__ = ["MOST_REASON", "bounded_reason"]

MOST_REASON = 4096
"""Characters of a reason."""


def bounded_reason(text: str) -> str:
    """A reason that a user's expression, a user or a machine has made up.

    Theory: an expression makes a text of megabytes, which no message takes; and of bytes that are no text, which none
    can have.  A job with such a reason could be neither shown nor stopped.
    """
    return text[:MOST_REASON].encode("utf-8", "replace").decode()
