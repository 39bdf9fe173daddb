"""Numbers, spans of time and lists in sentences."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["counted", "listed", "span_text"]

_SPANS = ((86_400.0, "day"), (3_600.0, "hour"), (60.0, "minute"), (1.0, "second"))


def counted(number: int, what: str) -> str:
    """``1 slot``, ``12 slots``."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(words: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join(words) if len(words) < 3 else f"{', '.join(words[:-1])} and {words[-1]}"


def span_text(span_s: float) -> str:
    """About how long, in the unit that suits: ``3 minutes``, ``2 days``; less than a second is ``a moment``."""
    for unit_s, name in _SPANS:
        if span_s >= unit_s:
            return counted(round(span_s / unit_s), name)
    return "a moment"
