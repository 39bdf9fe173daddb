"""Totals that come page by page: one line for each group, how far it has come, and what made it long."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.messages.queue import JobsPage
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.printing import history_totals
from condor_actors.tools.printing.history_totals import Progress, added_up, totals_table


def group(name: str, value: str, jobs: int, seconds: float = 1.5) -> ClassAd:
    return ClassAd.from_text(f"{name} = {value}\nJobs = {jobs}\nJobStarts = {jobs}\nWallClockSeconds = {seconds}\n"
                             f"CoreSeconds = {seconds}\nCpuSeconds = {seconds}\n")


def test_pages_are_added_up_and_the_largest_comes_first() -> None:
    ads = [group("P", '"b"', 1), group("P", "undefined", 5), group("P", '"b"', 7), group("P", '"a"', 5),
           group("P", "1.0", 2)]
    found = added_up(("P",), ads)
    lines = [line.split()[:2] for line in totals_table(("P",), found)]
    assert lines == [["P", "JOBS"], ["b", "8"], ["a", "5"], ["undefined", "5"], ["1.0", "2"], ["All", "20"]]
    assert found[0].get_float("CpuSeconds") == 3.0


def test_dates_stay_in_their_order() -> None:
    ads = [group("Day", '"2026-11-30"', 1), group("Day", '"2026-11-29"', 9), group("Day", '"2026-11-30"', 1)]
    assert [ad.get_str("Day") for ad in added_up(("Day",), ads)] == ["2026-11-30", "2026-11-29"]


def test_what_is_kept_in_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_totals, "MOST_GROUPS", 3)
    with pytest.raises(ToolError, match="more than 3 groups"):
        added_up(("P",), (group("P", str(number), 1) for number in range(4)))


def test_progress_and_what_made_it_long_are_said(monkeypatch: pytest.MonkeyPatch,
                                                 capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(history_totals, "PROGRESS_S", -1.0)
    progress = Progress()
    for left in (2_000_000, 1_000_000, 0):
        progress.tell(JobsPage(ads=(), looked=1_000_000, scanned=500_000, left=left, reason="it reads whole ads"))
    assert capsys.readouterr().err == (
        "1,000,000 of 3,000,000 jobs\n2,000,000 of 3,000,000 jobs\n"
        "Note: 1,500,000 of 3,000,000 jobs were looked at one by one: it reads whole ads\n")


def test_of_a_short_history_and_of_other_questions_nothing_is_said(monkeypatch: pytest.MonkeyPatch,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(history_totals, "PROGRESS_S", -1.0)
    progress = Progress()
    progress.tell(JobsPage(ads=(), cursor="x"))
    progress.tell(JobsPage(ads=(), looked=9_000, scanned=9_000, reason="the newest jobs"))
    assert capsys.readouterr().err == ""
