"""Numbers that others wrote: in messages, files and ads.

Theory: what looks like a number may have five thousand digits, which Python refuses to read, or digits of another
script; and a real may be infinite, which is no integer.  All numbers from outside are read by these functions.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime

__all__ = ["INT64", "job_numbers", "moment", "numeral", "whole"]

INT64 = (1 << 63) - 1
MOST_DIGITS = 18
LAST_S = 253_402_214_400
"""The last day of the year 9999, after which no date can be written."""


def numeral(text: str, most_digits: int = MOST_DIGITS) -> int | None:
    """The number that a text is, written with the digits 0 to 9; None: it is none, or has too many of them.

    Args:
        text: the text to read, from any source.
        most_digits: how long it may be; 18 of them fit 64 bits.
    """
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= most_digits else None


def job_numbers(text: str) -> tuple[int, int] | None:
    """Cluster and proc of ``12.0``; None: it is no job's id."""
    cluster, _, proc = text.partition(".")
    numbers = numeral(cluster), numeral(proc)
    return (numbers[0], numbers[1]) if numbers[0] is not None and numbers[1] is not None else None


def whole(value: object, default: int = 0) -> int:
    """The integer of a value of an ad: a real is truncated, and what is beyond 64 bits becomes the last that is not.

    Args:
        value: any.
        default: given for what is no number, or none that is finite.
    """
    if not isinstance(value, (int, float)) or value - value != 0:
        return default
    return max(-INT64 - 1, min(INT64, int(value)))


def moment(when_s: float, *, utc: bool = False) -> datetime:
    """The date of a number of seconds since 1970; one that no calendar has is the first or the last that there is.

    Args:
        when_s: what an ad or a file says.
        utc: by the clock of Greenwich, not by the one on the wall.
    """
    known_s = max(0.0, min(float(LAST_S), when_s)) if not math.isnan(when_s) else 0.0
    return datetime.fromtimestamp(known_s, UTC if utc else None)
