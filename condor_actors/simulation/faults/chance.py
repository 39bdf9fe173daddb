"""Scenarios made by chance: a pool, its users and its faults from one number.

Theory: what a seed does is drawn once, as a value (:class:`Scenario`), before anything runs; so a failing seed can be
shown, changed and made smaller (:func:`shrink`), and a change of the simulation does not change what a seed means more
than it must.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

import attrs

from condor_actors.messages.codes import JobStatus
from condor_actors.simulation.faults.fault_chances import random_schedule
from condor_actors.simulation.faults.faults import Fault, parse_schedule
from condor_actors.simulation.world.scenario import LATE, MachineSpec, Result, Scenario, Submission, Wish, run

__all__ = ["random_scenario", "shrink"]

_T = TypeVar("_T")

DESKTOP = {
    "KEYBOARD_BUSY": "KeyboardIdle < 60", "START": "KeyboardIdle > 120", "WANT_SUSPEND": "true",
    "SUSPEND": "KeyboardIdle < 60", "CONTINUE": "KeyboardIdle > 90",
    "PREEMPT": '(Activity == "Suspended") && (time() - EnteredCurrentActivity) > 120', "WANT_VACATE": "true",
    "KILL": '(Activity == "Vacating") && (time() - EnteredCurrentActivity) > 60',
}
"""A desktop's policy, faster than the usual one, so that a short run sees all of it."""

QUICK = {
    "JOB_DEFAULT_LEASE_DURATION": "300", "UPDATE_INTERVAL": "60", "SCHEDD_INTERVAL": "60",
    "MASTER_UPDATE_INTERVAL": "300",
    "MASTER_BACKOFF_CEILING": "60", "POLLING_INTERVAL": "15", "NEGOTIATOR_INTERVAL": "30", "CLASSAD_LIFETIME": "300",
}
"""Times of a pool in a hurry."""


def random_scenario(seed: int, machines: int = 20, faults: int | None = None, raises: bool = False) -> Scenario:
    """A pool of so many machines with everything on.

    Args:
        faults: how many; None: chance says.
        raises: whether turns and edges of actors may raise as well.
    """
    random = Random(seed)
    submitting = random.choice((1, 2, 2, 3))
    specs = []
    for number in range(machines):
        central, submits = number == 0, number < submitting
        executes = number >= submitting or random.random() < 0.3
        desk = executes and random.random() < 0.4
        specs.append(MachineSpec(
            f"m{number}", central=central, submits=submits, executes=executes, kbdd=desk,
            web=central and seed % 4 == 3,
            cpus=random.choice((1, 1, 1, 2, 4)) if executes else 1, memory_mib=4096,
            drift=random.choice((0.0, 0.0, random.uniform(-2e-4, 2e-4))),
            offset_s=random.choice((0.0, 0.0, random.uniform(-30.0, 30.0))), config=DESKTOP if desk else {}))
    times = Random(f"times of {seed}")  # a source of its own, so that all else of a known seed stays the same
    submissions = tuple(
        Submission(
            when_s=round(random.uniform(5.0, 400.0), 3), owner=random.choice(("alice", "bob", "carol")),
            machine=f"m{random.randrange(submitting)}", count=random.choice((1, 1, 2, 3, 5, 10)),
            cpu_s=round(random.choice((5.0, 60.0, 300.0, 600.0)) * random.uniform(0.5, 1.5), 3),
            program=_program(random), ad=_time(times))
        for _ in range(random.randrange(3, 8)))
    wishes = tuple(_wish(random, submissions) for _ in range(random.choice((0, 0, 2, 5))))
    end_s = round(random.uniform(300.0, 1200.0), 3)
    count = random.randrange(0, 4 * machines) if faults is None else faults
    schedule = random_schedule(random, specs, 1.0, end_s, count, raises)
    if any(fault.kind == "clock" for fault in schedule):  # hours apart, machines never agree when a job's time is
        submissions = tuple(attrs.evolve(each, ad={}) for each in submissions)
    if not wishes:  # who holds jobs by what they are does not hold those to come
        factories = Random(f"factories of {seed}")
        submissions = tuple(
            attrs.evolve(each, ad={**each.ad, LATE: str(factories.choice((1, 2, 5)))})
            if factories.random() < 0.3 else each for each in submissions)
    config = dict(QUICK)
    if random.random() < 0.3:
        config["CLAIM_WORKLIFE"] = "100"
    config["JOB_DEFAULT_LEASE_DURATION"] = str(random.choice((60, 120, 300, 900)))
    return Scenario(
        seed=seed, machines=tuple(specs), submissions=submissions, wishes=wishes, release_s=97.0,
        faults="\n".join(map(str, schedule)),
        span_s=end_s + _enough_s(specs, submissions), config=config,
        delay_s=random.choice((0.0002, 0.0002, 0.005, 0.05)))


def _enough_s(machines: Sequence[MachineSpec], submissions: Sequence[Submission]) -> float:
    """How long all jobs may take when the faults are over: twice their work on all cores, and four hours at least."""
    cores = sum(spec.cpus for spec in machines if spec.executes)
    return max(4 * 3600.0, 2.0 * sum(each.count * each.cpu_s for each in submissions) / max(cores, 1))


def _time(random: Random) -> dict[str, str]:
    """When jobs begin: at once, at a time, or by a cron schedule."""
    kind = random.random()
    if kind < 0.7:
        return {}
    if kind < 0.85:
        return {"DeferralTime": f"QDate + {random.randrange(10, 900)}", "DeferralWindow": "1000000",
                "DeferralPrepTime": str(random.choice((0, 60, 300)))}
    return {"CronMinute": random.choice(('"*/5"', '"*"', '"1-59/7"')), "DeferralWindow": "60",
            "DeferralPrepTime": str(random.choice((30, 60, 300)))}


def _wish(random: Random, submissions: Sequence[Submission]) -> Wish:
    about = random.choice(submissions)
    action = random.choice(("hold", "release", "vacate", "vacate-fast", "suspend", "continue", "remove", "hold"))
    constraint = random.choice(("true", "ProcId % 2 == 0", "ProcId == 0", f"JobStatus == {JobStatus.RUNNING}"))
    return Wish(when_s=round(about.when_s + random.uniform(1.0, 500.0), 3), owner=about.owner, machine=about.machine,
                action=action, constraint=constraint)


def _program(random: Random) -> dict[str, float]:
    program: dict[str, float] = {}
    chance = random.random()
    if chance < 0.15:
        program["exit"] = 1.0
    elif chance < 0.25:
        program["stubborn"] = 1.0
    elif chance < 0.3:
        program["signal"] = 11.0
    return program


def shrink(scenario: Scenario, fails: Callable[[Result], bool] | None = None, tries: int = 200) -> Scenario:
    """A scenario with fewer faults and submissions that still fails.

    Args:
        fails: what counts; by default any violation.
        tries: how many runs it may take.
    """
    judge = fails or (lambda result: bool(result.violations))
    names = [spec.name for spec in scenario.machines]

    def still(candidate: Scenario) -> bool:
        nonlocal tries
        tries -= 1
        return tries >= 0 and judge(run(candidate))

    def fewer(items: list[_T], rebuild: Callable[[list[_T]], Scenario]) -> list[_T]:
        """Leave out halves, quarters … single items (delta debugging)."""
        size = max(1, len(items) // 2)
        while items and tries > 0:
            at, shorter = 0, False
            while at < len(items):
                rest = items[:at] + items[at + size:]
                if still(rebuild(rest)):
                    items, shorter = rest, True
                else:
                    at += size
            if size == 1 and not shorter:
                break
            size = max(1, size // 2)
        return items

    def with_faults(faults: list[Fault]) -> Scenario:
        return attrs.evolve(scenario, faults="\n".join(map(str, faults)))

    scenario = with_faults(fewer(list(parse_schedule(scenario.faults, names)), with_faults))

    def with_submissions(submissions: list[Submission]) -> Scenario:
        return attrs.evolve(scenario, submissions=tuple(submissions))

    scenario = with_submissions(fewer(list(scenario.submissions), with_submissions))

    def with_wishes(wishes: list[Wish]) -> Scenario:
        return attrs.evolve(scenario, wishes=tuple(wishes))

    return with_wishes(fewer(list(scenario.wishes), with_wishes))
