"""What condor_top makes of two ads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.actors.lanes import Turn
from condor_actors.actors.turn_times import BOUNDS_S, TurnTimes
from condor_actors.classads import ClassAd
from condor_actors.daemons.statistics import statistics_ad
from condor_actors.messages.admin import Ping
from condor_actors.messages.envelope import Address, Delivery
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.live.daemon_statistics import COLUMN_SETS, between, health, process, table

OLD = {"DaemonStartTime": 1000, "StatsLifetime": 10.0, "MyCurrentTime": 1010, "DCSelectWaittime": 9.0,
       "DCPumpCycleSum": 10.0, "DCCommands": 5, "Q": 4, "QRuntime": 0.4, "QRuntimeAvg": 0.1, "QRuntimeMax": 0.2,
       "QRuntimeMin": 0.05, "QRuntimeStd": 0.05, "Jobs": 3, "MyType": "Scheduler", "Name": "here"}
NEW = {**OLD, "StatsLifetime": 20.0, "MyCurrentTime": 1020, "DCSelectWaittime": 16.0, "DCPumpCycleSum": 20.0,
       "DCCommands": 25, "Q": 14, "QRuntime": 2.4, "QRuntimeAvg": 2.4 / 14, "Jobs": 9}


def test_between_two_ads() -> None:
    rows = {row.item: row.values for row in between(ClassAd(OLD), ClassAd(NEW), ["Jobs", "Nothing"])}
    assert set(rows) == {"Q", "Jobs"}
    row = rows["Q"]
    assert row["InstRt"] == pytest.approx(2.0)
    assert row["InstAvg"] == pytest.approx(0.2)
    assert row["InstRate"] == pytest.approx(1.0)
    assert row["RtPctMax"] == pytest.approx(100.0)
    assert row["RtSigmas"] == pytest.approx((0.2 - 2.4 / 14) / 0.05)
    assert rows["Jobs"]["InstCt"] == 6
    assert rows["Jobs"]["InstRt"] is None
    assert "Duty Cycle: 30.00%    Ops/second: 2.000" in list(health(ClassAd(OLD), ClassAd(NEW)))


@pytest.mark.parametrize("columns", sorted(COLUMN_SETS))
def test_every_set_of_columns_is_printed(columns: str) -> None:
    lines = list(table(ClassAd(OLD), ClassAd(NEW), COLUMN_SETS[columns], "Item", ["Jobs"]))
    assert lines[-2].endswith(" Jobs")
    assert lines[-1].endswith(" Q")
    assert lines[4].endswith("----")


@pytest.mark.parametrize(("change", "said"), [({"DaemonStartTime": 999}, "started again"),
                                              ({"StatsLifetime": 10.0}, "same timestamp")])
def test_ads_that_cannot_be_compared(change: dict[str, object], said: str) -> None:
    with pytest.raises(ToolError, match=said):
        between(ClassAd(OLD), ClassAd({**NEW, **change}))


def test_hostile_ads_do_nothing() -> None:
    bad = ClassAd({**NEW, "XRuntime": "x", "X": "y", "BRuntime": True, "B": True, "Name": "a\x1b[2Jb", "Runtime": 1})
    assert {row.item for row in between(ClassAd(OLD), bad)} == {"Q"}
    assert "a\\x1b[2Jb" in next(process("Schedd", "a\x1b[2Jb", bad))


def test_two_files_are_compared(tmp_path: Path) -> None:
    for name, ad in (("old", OLD), ("new", NEW)):
        (tmp_path / name).write_text(ClassAd(ad).to_text() if hasattr(ClassAd, "to_text") else str(ClassAd(ad)))
    command = [sys.executable, "-m", "condor_actors.tools.live.top"]
    done = subprocess.run([*command, "-c", "count", "--attrs=Jobs", str(tmp_path / "new"), str(tmp_path / "old")],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].split() == ["9", "6", "0.6000", "0.4500", "133.33", "Jobs"]
    one = subprocess.run([*command, str(tmp_path / "new")], capture_output=True, text=True, check=False)
    assert (one.returncode, "2 files passed" in one.stderr) == (1, True)
    wrong = subprocess.run([*command, "-s", "Nothing"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "expected one of TotalRt" in wrong.stderr) == (1, True)


def test_turns_are_added_up() -> None:
    times = TurnTimes()
    delivery = Delivery(message=Ping(), sender=Address("", "x"), answerable=False)
    turn: Turn = (None, delivery, 0.0)
    for seconds in (0.001, 0.003, -5.0):
        times.add(TurnTimes, turn, seconds)
    times.add(TurnTimes, (test_turns_are_added_up, None, 0.0), 2.0)
    found = times.by_name()
    assert set(found) == {("TurnTimes", "Ping"), ("TurnTimes", "test_turns_are_added_up")}
    ping = found["TurnTimes", "Ping"]
    assert (ping.count, ping.total_s, ping.least_s, ping.longest_s) == (3, pytest.approx(0.004), 0.0, 0.003)
    assert ping.deviation_s == pytest.approx(0.0015275, rel=1e-3)
    assert (sum(ping.classes), found["TurnTimes", "test_turns_are_added_up"].classes[len(BOUNDS_S)]) == (3, 1)
    ad = statistics_ad(ClassAd({"Name": "x"}), times, 100.0, 110.0)
    assert (ad.get_int("TurnTimes_Ping"), ad.get_float("DCSelectWaittime")) == (3, pytest.approx(7.996))
    assert ad.get_int("MonitorSelfResidentSetSize") > 1000
