"""Gangs in the world of whole daemons: all or none, no deadlock, whatever the owners and the faults do."""

from __future__ import annotations

import attrs
import pytest

from condor_actors.cores.schedd.gangs.gathering import Gathering
from condor_actors.simulation.faults import gang_checker
from condor_actors.simulation.faults.gang_checker import use_of
from condor_actors.simulation.faults.gangs import gangs_among_owners, random_gangs
from condor_actors.simulation.world.scenario import Scenario, run
from tests.harness.seeds import some_of


def all_done(scenario: Scenario) -> None:
    result = run(scenario)
    assert result.violations == ()
    left = sorted(name for name, job in result.jobs.items() if job.completed_s is None)
    assert left == [], f"seed {scenario.seed}: {left} after {result.simulated_s} s"


@pytest.mark.parametrize("seed", some_of(range(1, 4)))
def test_all_gangs_of_one_schedd_complete_while_owners_come_and_go(seed: int) -> None:
    all_done(gangs_among_owners(seed, 15))


@pytest.mark.parametrize("seed", some_of(range(11, 14)))
def test_two_schedds_whose_gangs_want_the_same_machines_do_not_wait_for_ever(seed: int) -> None:
    all_done(gangs_among_owners(seed, 12, schedds=2))


FAULTS = """\
at 100s crash m0/schedd
at 160s crash m0/shadow-host
at 220s crash m3/starter-host
at 280s power m5 for 60s
at 340s die m0/schedd before commit
at 400s cut m0 m7 for 90s
at 500s crash m0/schedd
at 520s crash m2/startd
at 600s die m0/schedd after commit
"""


@pytest.mark.parametrize("seed", some_of(range(21, 24)))
def test_gangs_stay_whole_whatever_dies(seed: int) -> None:
    all_done(gangs_among_owners(seed, 10, faults=FAULTS))


@pytest.mark.parametrize("seed", some_of(range(1, 7)))
def test_gangs_of_chance(seed: int) -> None:
    all_done(random_gangs(seed))


def test_gangs_that_never_give_way_wait_for_each_other_and_that_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Gathering, "timeout", lambda self, serial: None)
    monkeypatch.setattr(gang_checker, "LONGEST_S", 1200.0)
    found = [run(attrs.evolve(gangs_among_owners(seed, 6, machines=8, schedds=2, owners=0), span_s=6000.0)).violations
             for seed in (1, 2, 3)]
    assert any("gangs wait for each other" in text for violations in found for text in violations), found


def test_machines_are_used_nearly_as_well_as_they_could_be() -> None:
    result = run(gangs_among_owners(1, 30, owners=30))
    use = use_of(result)
    assert use.took_s >= use.best_s, "the bound is none"
    assert use.use >= 0.55 * use.best_use, use
