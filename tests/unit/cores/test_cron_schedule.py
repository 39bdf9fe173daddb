"""Cron fields become dates: as the manual has them, in the time of a zone whose clocks are moved twice a year."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.cron_schedule import BadCron, cron_line, next_time_s

BERLIN = ZoneInfo("Europe/Berlin")


def after(when: str, zone: object = BERLIN, **fields: str) -> str:
    """The next time as its zone shows it, with the difference to UTC."""
    line = cron_line(ClassAd({f"Cron{name}": value for name, value in fields.items()}))
    assert line is not None
    start = datetime.fromisoformat(when)
    start_s = (start if start.tzinfo else start.replace(tzinfo=zone)).timestamp()  # type: ignore[arg-type]
    found = next_time_s(line, start_s, zone)  # type: ignore[arg-type]
    assert found > start_s
    return datetime.fromtimestamp(found, zone).isoformat()[:22]  # type: ignore[arg-type]


@pytest.mark.parametrize(("fields", "when", "expected"), [
    ({"Minute": "0,15,30,45"}, "2026-05-04T10:00:00", "2026-05-04T10:15:00+02"),
    ({"Minute": "10-30/5"}, "2026-05-04T10:12:59", "2026-05-04T10:15:00+02"),
    ({"Hour": "*/3"}, "2026-05-04T10:00:00", "2026-05-04T12:00:00+02"),
    ({"Minute": "0", "Hour": "0-3, 9-12, 15"}, "2026-05-04T12:00:00", "2026-05-04T15:00:00+02"),
    ({"Month": "2"}, "2026-05-04T12:00:00", "2027-02-01T00:00:00+01"),
    ({"DayOfMonth": "31"}, "2026-06-04T12:00:00", "2026-07-31T00:00:00+02"),
    ({"DayOfMonth": "29", "Month": "2"}, "2026-06-04T12:00:00", "2028-02-29T00:00:00+01"),
    ({"DayOfWeek": "7"}, "2026-05-04T12:00:00", "2026-05-10T00:00:00+02"),
    ({"DayOfWeek": "0"}, "2026-05-04T12:00:00", "2026-05-10T00:00:00+02"),
    ({"DayOfMonth": "6", "DayOfWeek": "5"}, "2026-05-04T12:00:00", "2026-05-06T00:00:00+02"),  # either of the two
    ({"DayOfMonth": "6", "DayOfWeek": "5"}, "2026-05-06T23:59:00", "2026-05-08T00:00:00+02"),
    ({"DayOfMonth": "*/10", "DayOfWeek": "5"}, "2026-05-04T12:00:00", "2026-05-08T00:00:00+02"),
    ({"DayOfMonth": "1-31", "DayOfWeek": "5"}, "2026-05-04T12:00:00", "2026-05-08T00:00:00+02"),
    ({"DayOfMonth": "6", "DayOfWeek": "0-6"}, "2026-05-04T12:00:00", "2026-05-06T00:00:00+02"),
    ({"Minute": "*"}, "2026-05-04T12:00:30", "2026-05-04T12:01:00+02"),
])
def test_the_next_time(fields: dict[str, str], when: str, expected: str) -> None:
    assert after(when, **fields) == expected


@pytest.mark.parametrize(("fields", "when", "expected"), [
    # clocks go from 02:00 to 03:00 on 29 March 2026: what is missing begins as soon as there is time again
    ({"Minute": "30", "Hour": "2"}, "2026-03-28T12:00:00", "2026-03-29T03:00:00+02"),
    ({"Minute": "30", "Hour": "2"}, "2026-03-29T03:00:00", "2026-03-30T02:30:00+02"),
    ({"Minute": "*/30"}, "2026-03-29T01:30:00", "2026-03-29T03:00:00+02"),
    # and from 03:00 back to 02:00 on 25 October 2026: a fixed hour comes once, each hour twice
    ({"Minute": "30", "Hour": "2"}, "2026-10-24T12:00:00", "2026-10-25T02:30:00+02"),
    ({"Minute": "30", "Hour": "2"}, "2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01"),
    ({"Minute": "50", "Hour": "2"}, "2026-10-25T02:40:00+01:00", "2026-10-26T02:50:00+01"),
    ({"Minute": "30"}, "2026-10-25T02:30:00+02:00", "2026-10-25T02:30:00+01"),
])
def test_clocks_that_are_moved(fields: dict[str, str], when: str, expected: str) -> None:
    assert after(when, **fields) == expected


ZONES = {
    # name: a year in which its clocks are moved: by an hour, by half of one, at midnight
    "Europe/Berlin": 2026, "America/New_York": 2026, "Australia/Lord_Howe": 2026, "Africa/Cairo": 2025,
    "Asia/Beirut": 2025,
}


def times_of_a_year(name: str, **fields: str) -> list[float]:
    """Every time of a schedule in that year of a zone."""
    zone = ZoneInfo(name)
    line = cron_line(ClassAd({f"Cron{field}": value for field, value in fields.items()}))
    assert line is not None
    at_s, end_s = (datetime(year, 1, 1, tzinfo=zone).timestamp() - 1 for year in (ZONES[name], ZONES[name] + 1))
    found: list[float] = []
    while (at_s := next_time_s(line, at_s, zone)) <= end_s:
        assert not found or at_s > found[-1]
        found.append(at_s)
    return found


@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize(("minute", "hour"), [("0", "0"), ("30", "1"), ("15", "2"), ("45", "23")])
def test_a_job_of_every_day_begins_once_on_each_day_that_there_is(name: str, minute: str, hour: str) -> None:
    zone = ZoneInfo(name)
    found = [datetime.fromtimestamp(each, zone) for each in times_of_a_year(name, Minute=minute, Hour=hour)]
    dates = [each.date() for each in found]
    assert len(dates) == len(set(dates)), "never twice on a day"
    day_s, at_s, days = 1800, datetime(ZONES[name], 1, 1, tzinfo=zone).timestamp(), set()
    while (moment := datetime.fromtimestamp(at_s, zone)).year == ZONES[name]:
        days.add(moment.date())
        at_s += day_s
    assert set(dates) == days
    late = [each for each in found if (each.minute, each.hour) != (int(minute), int(hour))]
    assert len(late) <= 1, "only on the day on which that time does not exist"


@pytest.mark.parametrize("name", ZONES)
def test_a_job_of_every_half_hour_begins_as_often_as_half_hours_pass(name: str) -> None:
    found = times_of_a_year(name, Minute="*/30")
    assert {after - before for before, after in pairwise(found)} == {1800}


def test_utc_and_a_zone_are_different_days() -> None:
    assert after("2026-05-04T22:30:00+00:00", UTC, Hour="0") == "2026-05-05T00:00:00+00"
    assert after("2026-05-04T22:30:00+00:00", BERLIN, Hour="0") == "2026-05-05T00:31:00+02"


def test_no_field_is_no_schedule() -> None:
    assert cron_line(ClassAd({"DeferralTime": 5})) is None


@pytest.mark.parametrize("fields", [
    {"Minute": "60"}, {"Minute": "-1"}, {"Hour": "24"}, {"DayOfMonth": "0"}, {"DayOfMonth": "32"}, {"Month": "13"},
    {"DayOfWeek": "8"}, {"Minute": "5/10"}, {"Minute": "5-2"}, {"Minute": "*/0"}, {"Minute": ""}, {"Minute": ","},
    {"Minute": "1,,2"}, {"Month": "jan"}, {"DayOfWeek": "mon#2"}, {"DayOfMonth": "L"}, {"Minute": "٣"},
    {"DayOfMonth": "31", "Month": "2,4"}, {"Minute": "1" * 3}, {"Minute": ",".join("1" * 400)}, {"Minute": "1 * * * *"},
])
def test_what_is_no_time_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(BadCron):
        cron_line(ClassAd({f"Cron{name}": value for name, value in fields.items()}))


def test_a_field_that_is_no_text_is_refused() -> None:
    with pytest.raises(BadCron, match="CronMinute"):
        cron_line(ClassAd.from_text("CronMinute = true\n"))
    assert cron_line(ClassAd.from_text("CronMinute = 5\n")) == "5 * * * *"
