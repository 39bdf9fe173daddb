"""When a job of the ``cron_…`` commands begins: minutes, hours and days as cron(8) has them, in a zone's own time.

Theory: a field is ``*``, a number, a range ``2-6``, a list of these, or a range or ``*`` with a step ``*/15``.  A day
counts when the day of the month *or* the day of the week is named; where only one of the two says anything, that one
decides.  A time is a whole minute that comes after the present one.

When clocks are put forward, a job for a minute of a fixed hour that does not exist that day begins at the first one
that does; when they are put back it begins in the first of the two.  With ``*`` for the hour or the minute (also with a
step) the hours count as they pass, so such a job begins in both.

**Source**: the manual, "CronTab Scheduling"; the fields are parsed and stepped through by cronsim.
"""

from __future__ import annotations

from datetime import datetime, tzinfo

from condor_actors.classads import ClassAd
from condor_actors.patterns import late

TYPE_CHECKING = False  # cronsim is loaded by jobs with a schedule alone
if TYPE_CHECKING:
    from cronsim import CronSim

__all__ = ["CRON_FIELDS", "BadCron", "cron_line", "next_time_s"]

CRON_FIELDS = ("CronMinute", "CronHour", "CronDayOfMonth", "CronMonth", "CronDayOfWeek")
_LIMITS = {"CronMinute": "0 to 59", "CronHour": "0 to 23", "CronDayOfMonth": "1 to 31", "CronMonth": "1 to 12",
           "CronDayOfWeek": "0 to 7"}  # fmt: skip
_TERM = late(r"(?:\*|\d{1,2}-\d{1,2})(?:/\d{1,2})?|\d{1,2}", "a")
_WHOLE = {"CronDayOfMonth": ("*", "1-31"), "CronDayOfWeek": ("*", "0-6", "1-7", "0-7")}
_SPAN = {"CronDayOfMonth": "1-31", "CronDayOfWeek": "0-6"}
LONGEST_FIELD = 500


class BadCron(ValueError):
    """Fields that name no time; the text says which and why."""


def _field(name: str, value: object) -> str:
    """One field as the parser wants it: without blanks, and a ``*`` only where it means every value."""
    text = str(value).replace(" ", "").replace("\t", "") if isinstance(value, (str, int)) else ""
    if isinstance(value, bool) or not text or len(text) > LONGEST_FIELD \
            or not all(_TERM.fullmatch(term) for term in text.split(",")):
        raise BadCron(f"Invalid parameter value '{str(value)[:100]}' for {name}: expected numbers from "
                      f"{_LIMITS[name]}, ranges, lists, * or steps")
    if name in _WHOLE:
        terms = text.split(",")
        if any(term in _WHOLE[name] or term.endswith("*/1") for term in terms):
            return "*"
        text = text.replace("*", _SPAN[name])
    return text


def cron_line(ad: ClassAd) -> str | None:
    """The five fields of a job, those that it does not name as ``*``; None: it names none.

    Raises:
        BadCron: a field is none, or the fields name no time at all.
    """
    given = {name: ad.evaluate(name) for name in CRON_FIELDS if ad.find(name.lower()) is not None}
    if not given:
        return None
    line = " ".join(_field(name, given[name]) if name in given else "*" for name in CRON_FIELDS)
    _parsed(line, datetime(2000, 1, 1))
    return line


def _parsed(line: str, start: datetime) -> CronSim:
    from cronsim import CronSim, CronSimError

    try:
        return CronSim(line, start)
    except CronSimError as error:
        limits = "; ".join(f"{name} has values from {limit}" for name, limit in _LIMITS.items())
        raise BadCron(f"'{line}' (minute, hour, day of month, month, day of week) is no time: {error} ({limits})"
                      ) from None


def next_time_s(line: str, after_s: float, zone: tzinfo) -> int:
    """The first time of a `cron_line` after a date.

    Args:
        after_s: seconds since the epoch.
        zone: whose minutes and days are meant.

    Returns:
        seconds since the epoch, a whole minute.

    Raises:
        BadCron: there is none in the next fifty years.
    """
    for each in _parsed(line, datetime.fromtimestamp(after_s, zone)):
        found_s = int(each.timestamp())
        if found_s > after_s:
            return found_s
    raise BadCron(f"'{line}' (minute, hour, day of month, month, day of week) never comes")
