"""Times: the clock, absolute and relative times, and their text."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.builtins.conversions import real_of, truncated
from condor_actors.classads.builtins.registry import eager, inside
from condor_actors.classads.evaluation.state import State
from condor_actors.classads.language.times import c_strftime, date_of, days_from_1970, local_offset_s
from condor_actors.classads.values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, Value


@inside("time", least=0)
def _time(ad: Any, state: State) -> Value:
    return state.now()


@inside("currentTime", least=0)
def _current_time(ad: Any, state: State) -> Value:
    return AbsoluteTime(state.now(), local_offset_s(state.now()))


@inside("timeZoneOffset", least=0)
def _zone_offset(ad: Any, state: State) -> Value:
    return RelativeTime(float(local_offset_s(state.now())))


@inside("dayTime", least=0)
def _day_time(ad: Any, state: State) -> Value:
    now = state.now()
    return RelativeTime(float((now + local_offset_s(now)) % 86400))


@inside("absTime", least=0, most=2)
def _abs_time(ad: Any, state: State, instant: Value = None, offset: Value = None) -> Value:
    if instant is None:
        return AbsoluteTime(state.now(), local_offset_s(state.now()))
    if isinstance(offset, RelativeTime) or type(offset) in (int, float):
        whole = offset if type(offset) is int else truncated(_seconds(offset))
        offset_s: int | None = (whole + 2**31) % 2**32 - 2**31
    elif offset is None:
        offset_s = None
    else:
        return ERROR
    if isinstance(instant, str):
        return instant
    if offset_s == -1:
        return ERROR
    if instant is UNDEFINED:
        return instant
    if type(instant) not in (int, float) and not isinstance(instant, (AbsoluteTime, RelativeTime)):
        return ERROR
    seconds = instant if type(instant) is int else truncated(_seconds(instant))
    if isinstance(instant, AbsoluteTime):
        offset_s = instant.offset_s
    elif offset_s is None:
        offset_s = local_offset_s(seconds)
    return AbsoluteTime(seconds, offset_s)


def _seconds(value: Value) -> float:
    if isinstance(value, RelativeTime):
        return float(value.span_s)
    return float(value.epoch_s if isinstance(value, AbsoluteTime) else value)


@eager("relTime", least=1)
def _rel_time(span: Value) -> Value:
    if isinstance(span, str):
        return RelativeTime(0.0)
    if type(span) in (int, float) or isinstance(span, (RelativeTime, AbsoluteTime)):
        return RelativeTime(_seconds(span))
    return UNDEFINED if span is UNDEFINED else ERROR


@eager("interval", least=1)
def _interval(value: Value) -> Value:
    number = real_of(value)
    if not isinstance(number, float):
        return ERROR
    whole = value if type(value) is int else truncated(number)
    whole = (whole + 2**31) % 2**32 - 2**31
    sign = "-" if whole < 0 else ""
    minutes, seconds = divmod(abs(whole), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{sign}{days}+{hours:02d}:{minutes:02d}:{seconds:02d}"
    if hours:
        return f"{sign}{hours}:{minutes:02d}:{seconds:02d}"
    if minutes:
        return f"{sign}{minutes}:{seconds:02d}"
    return f"{sign}{seconds}"


@inside("formatTime", least=0, most=2)
def _format_time(ad: Any, state: State, instant: Value = None, layout: Value = "%c") -> Value:
    parts = instant if isinstance(instant, ClassAd) else _split_time(state.now() if instant is None else instant)
    if isinstance(instant, RelativeTime) or not isinstance(parts, ClassAd) or not isinstance(layout, str):
        return ERROR
    year, month = _field(parts, "Year", 1900), _field(parts, "Month", 1)
    day = _field(parts, "Day", 0)
    fields = [_field(parts, name, 0) for name in ("Seconds", "Minutes", "Hours")]
    first, start = days_from_1970(year, month), days_from_1970(year, 1)
    in_week, in_year = (first + day - 1 + 4) % 7, first - start + day - 1
    return c_strftime(layout, (*fields, day, month - 1, year - 1900, in_week, in_year))


def _field(parts: ClassAd, name: str, default: int) -> int:
    value = parts.evaluate(name)
    return value if type(value) is int and abs(value) < 2**31 - 2000 else default


@eager("splitTime", least=1)
def _split_time(value: Value) -> Value:
    if isinstance(value, RelativeTime):
        return _split_span(value.span_s)
    if type(value) in (int, float):
        seconds = value if type(value) is int else truncated(value)
        value = AbsoluteTime(seconds, local_offset_s(seconds))
    if not isinstance(value, AbsoluteTime):
        return UNDEFINED if value is UNDEFINED else ERROR
    days, left = divmod(value.epoch_s + value.offset_s, 86400)
    year, month, day = date_of(days)
    return ClassAd(
        {
            "Type": "AbsoluteTime",
            "Year": year,
            "Month": month,
            "Day": day,
            "Hours": left // 3600,
            "Minutes": left // 60 % 60,
            "Seconds": left % 60,
            "Offset": value.offset_s,
        }
    )


def _split_span(span_s: float) -> ClassAd:
    """The parts of a span of time; of a negative one, the first part that is not 0 has the sign."""
    size = abs(span_s)
    whole = int(size)
    parts: dict[str, Value] = {
        "Days": whole // 86400,
        "Hours": whole // 3600 % 24,
        "Minutes": whole // 60 % 60,
        "Seconds": whole % 60 + (size - whole),
    }
    if span_s < 0:
        first = next(name for name, part in parts.items() if part)
        parts[first] = -parts[first]
    return ClassAd({"Type": "RelativeTime"} | parts)


_OF_INSTANT: Final[dict[str, Callable[[time.struct_time], int]]] = {
    "getYear": lambda parts: parts.tm_year,
    "getMonth": lambda parts: parts.tm_mon,
    "getDayOfYear": lambda parts: parts.tm_yday - 1,
    "getDayOfMonth": lambda parts: parts.tm_mday,
    "getDayOfWeek": lambda parts: (parts.tm_wday + 1) % 7,
    "getHours": lambda parts: parts.tm_hour,
    "getMinutes": lambda parts: parts.tm_min,
    "getSeconds": lambda parts: parts.tm_sec,
}
_OF_SPAN: Final[dict[str, tuple[int, int]]] = {
    "getDays": (86400, 0),
    "getHours": (3600, 24),
    "getMinutes": (60, 60),
    "getSeconds": (1, 60),
}


def _part(name: str) -> None:
    """Declare the function that takes one part of a time: of an instant in local time, of a span with its sign."""
    of_instant = _OF_INSTANT.get(name)
    unit, modulus = _OF_SPAN.get(name, (0, 0))

    @eager(name, least=1)
    def part(value: Value) -> Value:
        if isinstance(value, AbsoluteTime) and of_instant is not None:
            try:
                return of_instant(time.localtime(value.epoch_s))
            except (OverflowError, ValueError, OSError):
                return ERROR
        if isinstance(value, RelativeTime) and unit:
            count = abs(int(value.span_s)) // unit
            count = count % modulus if modulus else count
            return -count if value.span_s < 0 else count
        return ERROR


for _name in sorted(_OF_INSTANT.keys() | _OF_SPAN.keys()):
    _part(_name)
