"""Absolute and relative times: reading and writing.

The text of an instant is ``2020-01-31T23:59:59+01:00``, that of a span ``[-][days+][[hh:]mm:]ss[.fff]`` or
``1d2h3m4s``.
"""

from __future__ import annotations

import math
import time

from condor_actors.classads.values import AbsoluteTime, RelativeTime
from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

_DIGIT: Final = late(r"\d", "a")
_NUMBER: Final = late(r"\d+", "a")
_ZONE: Final = late(r"(?<=.)([-+])(\d\d)(\d\d)\Z", "as")
_BLANKS: Final = late(r"\s+", "a")
MOST_SPAN_S: Final = 1e18
"""A text says less: what is more is not written so that it is read again."""
_RELATIVE: Final = late(
    r"\s*(-?)\s*(?:(\d*)\s*\+\s*|(\d*)\s*[dD]\s*)?"
    r"(?:(?:(\d*)\s*:\s*)?(?:(\d*)\s*:\s*)?(\d+|\d*\.\d+)?(?:\s*[sS])?"
    r"|(?:(\d*)\s*[hH]\s*)?(?:(\d*)\s*[mM]\s*)?(?:(\d*)\s*[sS])?)\s*\Z",
    "a",
)


def local_offset_s(epoch_s: float) -> int:
    """The local zone's offset at an instant.

    Args:
        epoch_s: Seconds since 1970.

    Returns:
        Seconds east of Greenwich.
    """
    try:
        return time.localtime(epoch_s).tm_gmtoff
    except (OverflowError, ValueError, OSError):
        return 0


def absolute_from_text(text: str) -> AbsoluteTime | None:
    """Read an instant.

    Args:
        text: Date, optional time of day, optional zone; separators are free, and fields past their end count on.

    Returns:
        The instant, None when the text is none.
    """
    text, offset_s = _without_zone(text)
    first = _DIGIT.search(text)
    if first is None or len(text) - first.start() < 4:
        return None
    at = first.start()
    fields = [_leading(text[at : at + 4])]
    at += 4
    while len(fields) < 6:
        found = _DIGIT.search(text, at)
        if found is None:
            break
        if len(text) - found.start() < 2:
            return None
        fields.append(_leading(text[found.start() : found.start() + 2]))
        at = found.start() + 2
    return None if _DIGIT.search(text, at) else _instant(fields, offset_s)


def _without_zone(text: str) -> tuple[str, int | None]:
    """A text without the zone at its end, and the zone's seconds east of Greenwich; None when there is none."""
    last = len(text.rstrip()) - 1
    if last > 0 and text[last] in "zZ":
        return text[:last] + text[last + 1 :], 0
    if len(text) > 6 and text[-6] in "+-" and text[-3] == ":":
        text = text[:-3] + text[-2:]
    zone = _ZONE.search(text)
    if zone is None:
        return text, None
    offset_s = (int(zone[2]) * 60 + int(zone[3])) * 60
    return text[: zone.start()], -offset_s if zone[1] == "-" else offset_s


def _leading(text: str) -> int:
    match = _NUMBER.match(text)
    return int(match[0]) if match else 0


def days_from_1970(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first of a month, in today's calendar, extended back without limit.

    Args:
        year: The year.
        month: From 1; beyond 12 the next years'.

    Returns:
        The days.
    """
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    year -= month <= 2
    era, year = divmod(year, 400)
    day_of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5
    return era * 146097 + year * 365 + year // 4 - year // 100 + day_of_year - 719468


def date_of(days: int) -> tuple[int, int, int]:
    """The date of a day.

    Args:
        days: Counted from 1970-01-01.

    Returns:
        Year, month from 1, day from 1.
    """
    era, day = divmod(days + 719468, 146097)
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (month <= 2), month, day + 1


def _instant(fields: list[int], offset_s: int | None) -> AbsoluteTime:
    year, month, day, hour, minute, second = fields + [1, 0, 0, 0, 0][len(fields) - 1 :]
    days = days_from_1970(year, month) + day - 1
    local = ((days * 24 + hour) * 60 + minute) * 60 + second
    offset = local_offset_s(local) if offset_s is None else offset_s
    return AbsoluteTime(local - offset, offset)


def absolute_to_text(value: AbsoluteTime) -> str:
    """Write an instant.

    Args:
        value: The instant.

    Returns:
        ``yyyy-mm-ddThh:mm:ss±hh:mm``.
    """
    days, left = divmod(value.epoch_s + value.offset_s, 86400)
    year, month, day = date_of(days)
    hour, minute, second = left // 3600, left // 60 % 60, left % 60
    sign = "+" if value.offset_s > 0 else "-"
    zone = abs(value.offset_s) // 60
    return f"{year}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}{sign}{zone // 60:02d}:{zone % 60:02d}"


def relative_from_text(text: str) -> RelativeTime | None:
    """Read a span.

    Args:
        text: ``[-][days+][[hh:]mm:]ss[.fff]`` or ``[-]1d2h3m4s``, every part optional.

    Returns:
        The span, None when the text is none.
    """
    match = _RELATIVE.match(_BLANKS.sub(" ", text))  # one blank at each place: of many it tries all ways to part them
    if match is None:
        return None
    sign, plus, letter, first, second, seconds, hours, minutes, rest = match.groups()
    days = plus or letter
    if first is not None and second is None:
        first, second = None, first
    try:
        whole = int(days or 0) * 86400 + int(first or hours or 0) * 3600 + int(second or minutes or 0) * 60
        span = whole + float(seconds or rest or 0)
    except (OverflowError, ValueError):  # more digits than a number has
        return None
    if span >= MOST_SPAN_S:
        return None
    return RelativeTime(-span if sign == "-" else span)


def _clock(whole: int, seconds: str) -> str:
    """Days, hours and minutes before the seconds, leading ones left out while they are zero."""
    minutes, _ = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}+{hours:02d}:{minutes:02d}:{seconds}"
    if hours:
        return f"{hours:02d}:{minutes:02d}:{seconds}"
    if minutes:
        return f"{minutes:02d}:{seconds}"
    return seconds


def relative_to_text(value: RelativeTime) -> str:
    """Write a computed span, in whole seconds.

    Args:
        value: The span.

    Returns:
        ``[-][days+][[hh:]mm:]ss``.
    """
    whole = _whole(value.span_s)
    text = _clock(whole, f"{whole % 60:02d}")
    return "-" + text if value.span_s <= -1 else text


def span_to_text(value: RelativeTime) -> str:
    """Write a span with its fraction.

    Args:
        value: The span.

    Returns:
        ``[-][days+][[hh:]mm:]ss`` with a fraction where there is one.
    """
    whole = _whole(value.span_s)
    fraction = abs(value.span_s) - whole
    seconds = f"{whole % 60:02d}" if not fraction else f"{whole % 60 + fraction:.6g}"
    text = _clock(whole, seconds)
    return "-" + text if value.span_s < 0 else text


def exact_span_text(value: RelativeTime) -> str:
    """Write a span so that it reads back the same.

    Args:
        value: The span.

    Returns:
        `span_to_text` where that does, else all its seconds in decimal digits.
    """
    text = span_to_text(value)
    if relative_from_text(text) == value:
        return text
    from decimal import Decimal

    return format(Decimal(repr(value.span_s)), "f")


def _whole(span_s: float) -> int:
    return 0 if math.isnan(span_s) else int(min(abs(span_s), 1e18))


def c_strftime(layout: str, fields: tuple[int, ...]) -> str:
    """Write a time by the C library's rules, whatever its fields are: a day 0 is written so.

    Args:
        layout: As strftime takes it.
        fields: Seconds, minutes, hours, day, month from 0, years since 1900, days since Sunday, days of the year.

    Returns:
        The text, at most 1022 bytes; empty beyond.
    """
    import ctypes

    data = (ctypes.c_int * 16)(*fields, 0)
    room = ctypes.create_string_buffer(1023)
    library = ctypes.CDLL(None)
    library.strftime.restype = ctypes.c_size_t
    size = library.strftime(room, ctypes.c_size_t(1023), layout.encode("utf-8", "surrogateescape"), data)
    return room.raw[:size].decode("utf-8", "surrogateescape")
