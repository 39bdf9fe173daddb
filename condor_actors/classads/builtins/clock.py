"""Times: the clock, absolute and relative times, and their text."""

from __future__ import annotations

import time
from typing import Any

from ..compiler import State
from ..times import absolute_from_text, local_offset_s, relative_from_text
from ..values import ERROR, UNDEFINED, AbsoluteTime, RelativeTime, Value
from .conversions import real_of, truncated
from .registry import eager, inside


@inside("time", least=0)
def _time(ad: Any, state: State) -> Value:
    return state.now()


@inside("absTime", least=0, most=2)
def _abs_time(ad: Any, state: State, instant: Value = None, offset: Value = None) -> Value:
    if instant is None:
        return AbsoluteTime(state.now(), local_offset_s(state.now()))
    if offset is UNDEFINED or instant is UNDEFINED:
        return UNDEFINED
    if isinstance(instant, str):
        if offset is not None:
            return ERROR
        found = absolute_from_text(instant)
        return ERROR if found is None else found
    if not isinstance(instant, (int, float, AbsoluteTime)):
        return ERROR
    seconds = instant.epoch_s if isinstance(instant, AbsoluteTime) else truncated(float(instant))
    if offset is None:
        return AbsoluteTime(seconds, local_offset_s(seconds))
    if isinstance(offset, RelativeTime):
        return AbsoluteTime(seconds, int(offset.span_s))
    if isinstance(offset, (int, float)):
        return AbsoluteTime(seconds, truncated(float(offset)))
    return ERROR


@eager("relTime", least=1)
def _rel_time(span: Value) -> Value:
    if isinstance(span, str):
        found = relative_from_text(span)
        return ERROR if found is None else found
    if isinstance(span, RelativeTime):
        return span
    number = real_of(span) if isinstance(span, (int, float)) else span
    if isinstance(number, float):
        return RelativeTime(number)
    return UNDEFINED if span is UNDEFINED else ERROR


@eager("interval", least=1)
def _interval(value: Value) -> Value:
    number = real_of(value)
    if not isinstance(number, float):
        return ERROR
    whole = value if type(value) is int else truncated(number)
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
    offset = None
    if instant is None:
        seconds: Any = state.now()
    elif isinstance(instant, AbsoluteTime):
        seconds, offset = instant.epoch_s, instant.offset_s
    elif isinstance(instant, (int, float)) and not isinstance(instant, bool):
        seconds = truncated(float(instant)) if isinstance(instant, float) else instant
    else:
        return ERROR
    if not isinstance(layout, str):
        return ERROR
    try:
        parts = time.localtime(seconds) if offset is None else time.gmtime(seconds + offset)
        return time.strftime(layout, parts)
    except (OverflowError, ValueError, OSError):
        return ERROR


def _part(name: str, index: int) -> None:
    @inside(name, least=0, most=1)
    def part(ad: Any, state: State, instant: Value = None) -> Value:
        if instant is None:
            moment = AbsoluteTime(state.now(), local_offset_s(state.now()))
        elif isinstance(instant, AbsoluteTime):
            moment = instant
        else:
            return UNDEFINED if instant is UNDEFINED else ERROR
        return time.gmtime(moment.epoch_s + moment.offset_s)[index]


for _name, _index in (
    ("getYear", 0),
    ("getMonth", 1),
    ("getDayOfMonth", 2),
    ("getHours", 3),
    ("getMinutes", 4),
    ("getSeconds", 5),
):
    _part(_name, _index)
