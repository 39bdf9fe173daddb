"""Absolute and relative times: reading and writing.

The text of an instant is ``2020-01-31T23:59:59+01:00``, that of a span ``[-][days+]hh:mm:ss[.fff]``.
"""

from __future__ import annotations

import calendar
import re
import time
from typing import Final

from .values import AbsoluteTime, RelativeTime

_ABSOLUTE: Final = re.compile(
    r"\D*(\d{4})\D?(\d\d)\D?(\d\d)(?:\D?(\d\d)\D?(\d\d)\D?(\d\d))?\s*(?:([-+])(\d\d):?(\d\d)|([zZ]))?\s*\Z"
)
_RELATIVE: Final = re.compile(r"\s*([-+]?)(?:(\d+)\+)?(?:(?:(\d+):)?(\d+):)?(\d+)(\.\d+)?\s*\Z")
_MAX_EPOCH_S: Final = 253402300799


def local_offset_s(epoch_s: float) -> int:
    """The local zone's offset at an instant.

    :param epoch_s: seconds since 1970.
    :returns: seconds east of Greenwich.
    """
    try:
        return time.localtime(epoch_s).tm_gmtoff
    except (OverflowError, ValueError, OSError):
        return 0


def absolute_from_text(text: str) -> AbsoluteTime | None:
    """Read an instant.

    :param text: date, optional time of day, optional zone; separators are free.
    :returns: the instant, None when the text is none.
    """
    match = _ABSOLUTE.match(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), int(match[6] or 0)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 61):
        return None
    local = calendar.timegm((year, month, day, hour, minute, second, 0, 0, 0))
    if match[7]:
        offset = (int(match[8]) * 60 + int(match[9])) * 60
        if match[7] == "-":
            offset = -offset
    elif match[10]:
        offset = 0
    else:
        offset = local_offset_s(local)
    return AbsoluteTime(local - offset, offset)


def absolute_to_text(value: AbsoluteTime) -> str:
    """Write an instant.

    :param value: the instant.
    :returns: ``yyyy-mm-ddThh:mm:ss±hh:mm``.
    """
    at = value.epoch_s + value.offset_s
    if not -62135596800 <= at <= _MAX_EPOCH_S:
        at = _MAX_EPOCH_S if at > 0 else -62135596800
    year, month, day, hour, minute, second = time.gmtime(at)[:6]
    sign = "+" if value.offset_s > 0 else "-"
    zone = abs(value.offset_s) // 60
    return (
        f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}"
        f"{sign}{zone // 60:02d}:{zone % 60:02d}"
    )


def relative_from_text(text: str) -> RelativeTime | None:
    """Read a span.

    :param text: ``[-][days+][[hh:]mm:]ss[.fff]``.
    :returns: the span, None when the text is none.
    """
    match = _RELATIVE.match(text)
    if match is None:
        return None
    span = int(match[2] or 0) * 86400 + int(match[3] or 0) * 3600 + int(match[4] or 0) * 60 + int(match[5])
    seconds = span + float(match[6] or 0)
    return RelativeTime(-seconds if match[1] == "-" else seconds)


def relative_to_text(value: RelativeTime) -> str:
    """Write a span.

    :param value: the span.
    :returns: ``[-][days+]hh:mm:ss[.fff]`` with leading parts left out while they are zero.
    """
    millis = round(abs(value.span_s) * 1000)
    sign = "-" if value.span_s < 0 else ""
    seconds, fraction = divmod(millis, 1000)
    days, rest = divmod(seconds, 86400)
    hours, rest = divmod(rest, 3600)
    minutes, left = divmod(rest, 60)
    tail = f".{fraction:03d}" if fraction else ""
    if days:
        return f"{sign}{days}+{hours:02d}:{minutes:02d}:{left:02d}{tail}"
    if hours:
        return f"{sign}{hours:02d}:{minutes:02d}:{left:02d}{tail}"
    if minutes:
        return f"{sign}{minutes:02d}:{left:02d}{tail}"
    return f"{sign}{left:02d}{tail}"
