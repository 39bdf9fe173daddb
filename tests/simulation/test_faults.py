"""The language of fault schedules: what it says, and what it says when it is wrong."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.simulation.faults.chance import random_scenario
from condor_actors.simulation.faults.fault_chances import random_schedule
from condor_actors.simulation.faults.faults import BadSchedule, parse_schedule


@pytest.mark.parametrize("line", [
    "at 120s crash m3/startd", "at 130s power m2 for 60s", "at 140s freeze m1/schedd for 45s",
    "at 150s cut m0 m3 for 90s", "at 160s cut m0 > m3 for 90s",
    "at 170s slow m1 m2 for 60s delay 0.5s jitter 2s loss 0.3 rate 20000", "at 180s reset m0 m2",
    "at 190s disk-full m1 for 30s", "at 200s disk-sick m1 for 10s", "at 210s die m1/schedd before commit",
    "at 220s clock m2 jump 3600s", "at 230s owner m2 for 600s", "at 240s kill-job m2", "at 250s stop m3/startd",
    "at 255s bad m3 for 300s", "at 260s ambush m0/schedd on shadow_host.RunEnded kill",
])
def test_a_fault_is_written_as_it_is_read(line: str) -> None:
    (fault,) = parse_schedule(line)
    assert str(fault) == line


@pytest.mark.parametrize(("line", "complaint"), [
    ("at 5 crash m1/startd", "the time must look like 90s"),
    ("at 5s crush m1/startd", "no fault is called 'crush'"),
    ("at 5s crash m1", "expected machine/daemon"),
    ("at 5s crash m9/startd", "there is no machine 'm9'"),
    ("at 5s power m1", "'for' is missing"),
    ("at 5s power m1 for 10s more", "'more' is too much"),
    ("at 5s slow m1 m2 for 5s loss much", "loss must be a number"),
    ("at 5s die m1/schedd during commit", "expected before or after"),
    ("at 5s ambush m1/schedd on run.Nothing kill", "there is no message condor.run.Nothing"),
])
def test_a_line_that_is_no_fault_is_refused_with_its_number(line: str, complaint: str) -> None:
    with pytest.raises(BadSchedule) as caught:
        parse_schedule(f"# a comment\n{line}\n", ["m1", "m2"])
    assert "line 2" in str(caught.value)
    assert complaint in str(caught.value)


def test_schedules_of_chance_can_be_written_and_read() -> None:
    machines = random_scenario(1).machines
    for seed in range(20):
        faults = random_schedule(Random(seed), machines, 1.0, 900.0, 50)
        text = "\n".join(map(str, faults))
        assert parse_schedule(text, [spec.name for spec in machines]) == faults
        assert all(fault.end_s <= 900.0 + 0.001 for fault in faults)
