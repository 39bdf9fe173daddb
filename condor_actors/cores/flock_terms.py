"""The terms of a partner: read, checked, changed, and judged by.

Theory: the terms lie with the partner's name and authority, on every machine of the pool, so each daemon has them
where it decides: the negotiator for what is lent, the schedd for what is sent.  Nothing that the partner says counts.

A window of time is days and hours by the local clock, ``Mon-Fri 19:00-07:00; Sat,Sun``; one that ends before it begins
goes on into the next day.  An expression that is neither true nor false means no.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.messages.flock_terms import ALIKE, BELOW, FlockTerms

__all__ = ["Judge", "TimeWindows", "changed_terms", "read_terms", "terms_entry"]

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
LONGEST_TEXT = 4096
MOST_PATTERNS = 1000
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_LISTS = ("users", "refuse", "send_users", "send_refuse")
_EXPRESSIONS = ("machines", "jobs", "send_jobs")


@attrs.frozen
class TimeWindows:
    """When something is allowed; without a window: always.

    Attributes:
        windows: each the days of the week (0: Monday) on which it begins, and its first minute of the day and the one
            after its last; the latter is the smaller one where it ends on the next day.
    """

    windows: tuple[tuple[frozenset[int], int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> TimeWindows:
        """Read ``Mon-Fri 19:00-07:00; Sat,Sun``.

        Raises:
            ValueError: it cannot be read; says which part.
        """
        return cls(tuple(_window(part.strip()) for part in text.split(";") if part.strip()))

    def holds(self, now_s: float) -> bool:
        """Whether it is allowed at that moment."""
        if not self.windows:
            return True
        local = datetime.fromtimestamp(now_s)  # noqa: DTZ006 - by the clock on the wall, where the pool is
        day, minute = local.weekday(), local.hour * 60 + local.minute
        return any(self._in(window, day, minute) for window in self.windows)

    @staticmethod
    def _in(window: tuple[frozenset[int], int, int], day: int, minute: int) -> bool:
        days, first, end = window
        if first < end:
            return day in days and first <= minute < end
        return (day in days and minute >= first) or ((day - 1) % 7 in days and minute < end)


def _window(text: str) -> tuple[frozenset[int], int, int]:
    days: set[int] = set()
    hours: tuple[int, int] | None = None
    for word in text.replace(", ", ",").lower().split():
        found = _HOURS.fullmatch(word)
        if found is None:
            days |= _days(word, text)
            continue
        numbers = [int(each) for each in found.groups()]
        first, end = numbers[0] * 60 + numbers[1], numbers[2] * 60 + numbers[3]
        if hours is not None or max(numbers[1], numbers[3]) > 59 or first >= DAY_MINUTES or end > DAY_MINUTES \
                or first == end:
            raise ValueError(f"{text!r}: {word!r} is no time from 00:00 to 24:00, or the second one")
        hours = first, end
    return frozenset(days or range(7)), *(hours or (0, DAY_MINUTES))


def _days(word: str, text: str) -> set[int]:
    days: set[int] = set()
    for part in word.split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise ValueError(f"{text!r}: {part!r} is neither a day (Mon … Sun, Mon-Fri) nor hours (19:00-07:00)")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        days |= {(begin + step) % 7 for step in range((end - begin) % 7 + 1)}
    return days


class Judge:
    """Answers by a partner's terms.

    Args:
        terms: the partner's; they were read by :func:`read_terms` or :func:`changed_terms`.
    """

    def __init__(self, terms: FlockTerms) -> None:
        self.terms = terms
        self.times = TimeWindows.parse(terms.times)
        self._machines, self._jobs, self._sent = map(_expression, (terms.machines, terms.jobs, terms.send_jobs))

    @property
    def is_below(self) -> bool:
        """Whether its jobs come after local ones."""
        return self.terms.rank == BELOW

    def lends(self, slot: ClassAd, now_s: float) -> bool:
        """Whether a machine is one of those that are lent."""
        return self._machines is None or is_true(self._machines.evaluate(slot, None, now_s))

    def admits(self, user: str) -> bool:
        """Whether one of its users may have anything here; ``user``: as that pool calls it."""
        return _is_named(user, self.terms.users, self.terms.refuse)

    def takes(self, job: ClassAd, now_s: float) -> bool:
        """Whether one of its jobs is run here."""
        return self._jobs is None or is_true(self._jobs.evaluate(job, None, now_s))

    def sends_of(self, submitter: str) -> bool:
        """Whether jobs of one of our submitters go there."""
        return _is_named(submitter, self.terms.send_users, self.terms.send_refuse)

    def sends(self, job: ClassAd, now_s: float) -> bool:
        """Whether one of our jobs goes there."""
        return self._sent is None or is_true(self._sent.evaluate(job, None, now_s))

    def send_attributes(self) -> frozenset[str]:
        """What of a job decides on that, in small letters."""
        if self._sent is None:
            return frozenset()
        own, other = self._sent.references(ClassAd())
        return frozenset(name.lower() for name in (*own, *other))


def _is_named(user: str, admitted: Iterable[str], refused: Iterable[str]) -> bool:
    name = user.lower()
    if any(_fits(name, pattern) for pattern in refused):
        return False
    patterns = tuple(admitted)
    return not patterns or any(_fits(name, pattern) for pattern in patterns)


def _fits(name: str, pattern: str) -> bool:
    wanted = pattern.lower()
    return fnmatchcase(name if "@" in wanted else name.partition("@")[0], wanted)


def _expression(text: str) -> Expr | None:
    return parse_expression(text) if text else None


# ---- reading and changing


def read_terms(entry: Any) -> FlockTerms:
    """The terms in a list of partners.

    Raises:
        ValueError: they are none; says what is wrong.
    """
    if not isinstance(entry, Mapping):
        raise ValueError("the terms of a partner are an object")
    terms = FlockTerms()
    for name, value in entry.items():
        text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
        terms = changed_terms(terms, str(name), text)
    return terms


def terms_entry(terms: FlockTerms) -> dict[str, Any]:
    """The opposite: what is not as it is without terms."""
    usual = FlockTerms()
    return {name: list(value) if isinstance(value, tuple) else value
            for name, value in attrs.asdict(terms, recurse=False).items() if value != getattr(usual, name)}


def changed_terms(terms: FlockTerms, name: str, text: str) -> FlockTerms:
    """Terms with one of them changed; the empty text takes it back.

    Raises:
        ValueError: there is no such term, or the text is no value of it.
    """
    if name not in {field.name for field in attrs.fields(FlockTerms)}:
        raise ValueError(f"there is no term {name!r}")
    text = text.strip()
    if len(text) > LONGEST_TEXT:
        raise ValueError(f"{name}: more than {LONGEST_TEXT} characters")
    value: Any = getattr(FlockTerms(), name)
    if text and name in _LISTS:
        value = tuple(dict.fromkeys(text.replace(",", " ").split()))
        if len(value) > MOST_PATTERNS:
            raise ValueError(f"{name}: more than {MOST_PATTERNS} patterns")
    elif text:
        value = _checked(name, text)
    return attrs.evolve(terms, **{name: value})


def _checked(name: str, text: str) -> str | float:
    if name in _EXPRESSIONS:
        try:
            parse_expression(text)
        except ClassAdSyntaxError as error:
            raise ValueError(f"{name}: {text!r} is no expression: {error}") from None
    elif name == "times":
        TimeWindows.parse(text)
    elif name == "rank" and text not in (BELOW, ALIKE):
        raise ValueError(f"rank: {text!r} is neither {BELOW} nor {ALIKE}")
    elif name == "quota":
        return _cores(text)
    return text


def _cores(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if (not number >= 0.0 and number != -1.0) or math.isinf(number):
        raise ValueError(f"quota: {text!r} is no number of cores")
    return number
