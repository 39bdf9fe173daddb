"""From the owner's expressions to a look at a slot."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.startd.policy_evaluation import OwnerPolicy
from condor_actors.cores.startd.slots import parse_policy

JOB = ClassAd({"JobUniverse": 5, "Owner": "alice"})


def evaluated(job: ClassAd | None = JOB, **policy: str) -> Any:
    return OwnerPolicy(parse_policy(policy), ClassAd({"KeyboardIdle": 3})).evaluation(job, 1000.0)


@pytest.mark.parametrize("text", ["undefined", "error", "NoSuchAttribute > 3", "1 / 0", '"text"', "0", "false"])
def test_what_is_not_true_counts_as_false(text: str) -> None:
    names = ("IS_OWNER", "SUSPEND", "CONTINUE", "PREEMPT", "KILL", "WANT_SUSPEND", "WANT_VACATE", "WANT_HOLD",
             "RUNBENCHMARKS", "LOWER")
    seen = evaluated(**dict.fromkeys(names, text))
    assert not any((seen.is_owner, seen.suspend, seen.preempt, seen.kill, seen.want_suspend, seen.want_vacate,
                    seen.resume, seen.want_hold, seen.benchmark, seen.lower))


def test_what_is_missing_counts_as_false() -> None:
    assert evaluated() == evaluated(PREEMPT="false", WANT_VACATE="undefined")


def test_a_universe_may_have_an_expression_of_its_own() -> None:
    policy = {"SUSPEND": "false", "SUSPEND_VANILLA": "KeyboardIdle < 60"}
    assert evaluated(**policy).suspend
    assert not evaluated(ClassAd({"JobUniverse": 1}), **policy).suspend
    assert not evaluated(None, **policy).suspend


@pytest.mark.parametrize(("wanted_s", "left_s"), [(None, 100.0), (30.0, 30.0), (1e9, 100.0)])
def test_a_job_may_want_less_undisturbed_time_than_it_is_granted_and_not_more(
        wanted_s: float | None, left_s: float) -> None:
    job = JOB.copy()
    if wanted_s is not None:
        job["MaxJobRetirementTime"] = wanted_s
    assert evaluated(job, MAXJOBRETIREMENTTIME="100").retirement_s == left_s


def test_numbers_that_are_none_have_defaults() -> None:
    assert evaluated(MACHINEMAXVACATETIME="undefined").vacate_s == 600.0
    assert evaluated(MACHINEMAXVACATETIME="7").vacate_s == 7.0
