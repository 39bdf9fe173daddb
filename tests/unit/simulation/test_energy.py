"""What machines save that sleep: hours that add up, and a table."""

from __future__ import annotations

import argparse

import pytest

from condor_actors.simulation import command
from condor_actors.simulation.command import main
from condor_actors.simulation.energy import Energy, Watts

DAY_H = 24.0


def test_energy_is_hours_times_watts() -> None:
    energy = Energy(busy_h=10.0, idle_h=20.0, asleep_h=1000.0, completed=0, wait_s=0.0)
    assert energy.kwh(Watts(busy=100.0, idle=50.0, asleep=1.0)) == 3.0


def test_a_day_of_one_machine_twice(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["energy", "--machines", "1", "--days", "1", "--jobs", "1", "--watts", "100,50,0"]
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1 machines, 1 days, 1 jobs of an hour for each a day, seed 1"
    assert lines[1] == "100 W busy, 50 W idle, 0 W asleep"
    rows = {line[:36].strip(): line[36:].split() for line in lines[4:10]}
    assert rows["jobs done"] == ["1", "1"]
    idle, asleep = rows["hours idle"], rows["hours asleep"]
    assert asleep[0] == "0"
    assert float(asleep[1]) > 3.0
    assert float(idle[1]) < float(idle[0]) / 2
    (busy_on, busy_sleeping) = map(float, rows["hours computing or used by owners"])
    for busy, column in ((busy_on, 0), (busy_sleeping, 1)):
        assert busy + float(idle[column]) + float(asleep[column]) == pytest.approx(DAY_H, abs=1.6)
    assert lines[-1].startswith("saved: ")


@pytest.mark.parametrize("text", ["120", "120,60", "a,b,c", "1,2,-3", "1,2,3,4", ""])
def test_other_watts_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="three numbers"):
        command._watts(text)
