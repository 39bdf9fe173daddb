"""The terms for a partner: windows of time, who and what is admitted; what can be none is refused when it is set."""

from __future__ import annotations

import calendar
import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.flock_terms import Judge, TimeWindows, changed_terms, read_terms, terms_entry
from condor_actors.messages.flock_terms import FlockTerms

MONDAY = (2026, 11, 23)


@pytest.fixture(autouse=True)
def greenwich() -> Iterator[None]:
    before = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    yield
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def at(day: int, hour: int, minute: int = 0) -> float:
    """A moment of that week; day 0: Monday."""
    return calendar.timegm((*MONDAY, hour, minute, 0)) + day * 86400.0


def test_a_window_that_crosses_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    windows = TimeWindows.parse("Mon-Fri 19:00-07:00; Sat,Sun")
    assert not windows.holds(at(0, 6))  # the night from Sunday on is no window of Sunday's
    assert not windows.holds(at(0, 18, 59))
    assert windows.holds(at(0, 19))
    assert windows.holds(at(1, 6, 59))
    assert not windows.holds(at(1, 7))
    assert windows.holds(at(5, 3))
    assert windows.holds(at(6, 23, 59))


def test_days_go_round_the_week_and_without_windows_it_is_always() -> None:
    assert TimeWindows.parse("Sat-Mon").holds(at(0, 12))
    assert not TimeWindows.parse("Sat-Mon").holds(at(1, 12))
    assert TimeWindows.parse("").holds(at(2, 3))
    assert TimeWindows.parse("09:00-24:00").holds(at(2, 23, 59))


@given(st.integers(0, 6), st.integers(0, 1439), st.integers(0, 1440))
def test_a_window_holds_for_as_many_minutes_of_the_week_as_it_is_long(day: int, first: int, end: int) -> None:
    if first == end:
        return
    text = f"{('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun')[day]} {first // 60:02}:{first % 60:02}-" \
           f"{end // 60:02}:{end % 60:02}"
    windows = TimeWindows.parse(text)
    start = at(day, 0) + first * 60.0
    minutes = (end - first) % 1440 if end != 1440 else 1440 - first
    assert windows.holds(start)
    assert windows.holds(start + (minutes - 1) * 60.0)
    assert not windows.holds(start + minutes * 60.0)
    assert not windows.holds(start - 60.0)


@pytest.mark.parametrize(("name", "text", "says"), [
    ("times", "Mon-Foo", "foo"), ("times", "25:00-26:00", "25:00"), ("times", "07:00-07:00", "07:00"),
    ("quota", "many", "many"), ("quota", "-3", "-3"), ("quota", "inf", "inf"), ("rank", "above", "above"),
    ("machines", "Memory >", "machines"), ("colour", "red", "colour"), ("jobs", "x" * 5000, "characters"),
])
def test_what_cannot_be_a_term_is_refused(name: str, text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        changed_terms(FlockTerms(), name, text)


def test_terms_survive_the_file() -> None:
    terms = FlockTerms()
    for name, text in (("quota", "8"), ("machines", "Memory > 1000"), ("times", "Sat,Sun"), ("rank", "alike"),
                       ("users", "alice, bob@cs.*"), ("send_refuse", "eve")):
        terms = changed_terms(terms, name, text)
    assert terms.users == ("alice", "bob@cs.*")
    assert read_terms(terms_entry(terms)) == terms
    assert terms_entry(changed_terms(FlockTerms(quota=3.0), "quota", "")) == {}
    with pytest.raises(ValueError, match="object"):
        read_terms([1])


def test_who_and_what_is_admitted() -> None:
    judge = Judge(FlockTerms(users=("alice", "*@cs.example"), refuse=("eve@*",), jobs="ImageSize < 100",
                             machines="Memory > 10", send_jobs='Department == "x"', send_refuse=("bob",)))
    assert judge.admits("alice@anywhere")
    assert judge.admits("carol@cs.example")
    assert not judge.admits("carol@math.example")
    assert not judge.admits("eve@cs.example")
    assert judge.takes(ClassAd({"ImageSize": 5}), 0.0)
    assert not judge.takes(ClassAd({}), 0.0)  # undefined is no
    assert judge.lends(ClassAd({"Memory": 11}), 0.0)
    assert not judge.lends(ClassAd({"Memory": 10}), 0.0)
    assert judge.sends(ClassAd({"Department": "x"}), 0.0)
    assert not judge.sends(ClassAd({}), 0.0)
    assert judge.send_attributes() == {"department"}
    assert judge.sends_of("alice@here")
    assert not judge.sends_of("bob@here")
