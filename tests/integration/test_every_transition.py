"""Every way of a slot's table is taken by a real startd, with a real starter host and real programs.

What has to be taken is found by walking the table itself: every change of place that can be reached, and every event
that is heard without one.  What was taken is read in the startd's log.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from condor_actors.cores.startd import owner_policy as op
from tests.harness.slot_bench import CONFIG, SlotBench
from tests.pool_fixture import PersonalPool, fresh_folder, until

SLOTS = 4
SOON = "MAXJOBRETIREMENTTIME=time()-EnteredCurrentActivity+6"
"""Some seconds are left, however long the program has run."""

WAYS = [
    # the owner, the benchmarks, matches
    "IS_OWNER=True IS_OWNER=False",
    "RUNBENCHMARKS=True RUNBENCHMARKS=False RUNBENCHMARKS=True IS_OWNER=True",
    "RUNBENCHMARKS=True match match claim release ~ClaimCleared",
    "RUNBENCHMARKS=True claim vacate ~ClaimCleared",
    "RUNBENCHMARKS=True quick undrain",
    "match IS_OWNER=True",
    "match quick",
    "MATCH_TIMEOUT=1 match ~TimerExpired",
    # a claim without a job
    "claim IS_OWNER=True ~ClaimCleared",
    "claim quick ~ClaimCleared",
    # a job runs
    "claim run SUSPEND=True SUSPEND=False,CONTINUE=True vacate ~ClaimCleared",
    "claim run PREEMPT=True ~ClaimCleared",
    "claim run WANT_VACATE=False,PREEMPT=True ~ClaimCleared",
    "claim run fast ~ClaimCleared",
    "claim run MAXJOBRETIREMENTTIME=1000 better fast ~Claimed",
    "claim run release ~ClaimCleared",
    "claim run WANT_VACATE=False release ~ClaimCleared",
    "claim run quick ~ClaimCleared",
    "claim run drainfast ~ClaimCleared",
    # it stands still
    "claim run halt unhalt halt vacate ~ClaimCleared",
    "claim run SUSPEND=True fast ~ClaimCleared",
    "claim run SUSPEND=True release ~ClaimCleared",
    "claim run SUSPEND=True WANT_VACATE=False release ~ClaimCleared",
    "claim run SUSPEND=True quick ~ClaimCleared",
    "claim run SUSPEND=True drainfast ~ClaimCleared",
    "claim run SUSPEND=True PREEMPT=True ~ClaimCleared",
    "claim run SUSPEND=True PREEMPT=True,WANT_VACATE=False ~ClaimCleared",
    "claim run SUSPEND=True stop",
    "claim run SUSPEND=True ~RunStarted killstartd ~RunStarted",
    # it may finish
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 halt unhalt PREEMPT=False,SUSPEND=True "
    "SUSPEND=False,CONTINUE=True stop",
    "claim run MAXJOBRETIREMENTTIME=1000 graceful SUSPEND=True stop",
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 vacate ~ClaimCleared",
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 release ~ClaimCleared",
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 WANT_VACATE=False release ~ClaimCleared",
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 quick ~ClaimCleared",
    "claim run PREEMPT=True,MAXJOBRETIREMENTTIME=1000 drainfast ~ClaimCleared",
    # it is asked to go, and is killed
    "claim stubborn vacate KILL=True ~ClaimCleared",
    "claim stubborn vacate fast ~ClaimCleared",
    "claim stubborn vacate drainfast ~ClaimCleared",
    "claim run IS_OWNER=True vacate ~ClaimCleared",
    "claim run IS_OWNER=True fast ~ClaimCleared",
    "MACHINEMAXVACATETIME=1,KILLING_TIMEOUT=1 claim run hold vacate ~TimerExpired ~TimerExpired unhold ~ClaimCleared",
    "claim run hold fast quick unhold ~ClaimCleared",
    "claim 2:claim run 2:run hold vacate 2:fast late 2:late",
    # the starter host dies
    "claim 2:claim 2:run 3:claim 3:run 4:claim 4:run "
    "SUSPEND=SlotID==3,PREEMPT=SlotID==4,MAXJOBRETIREMENTTIME=1000 killhost",
    "claim run 2:claim 2:run 3:claim 3:run 4:claim 4:run IS_OWNER=True,"
    "SUSPEND=SlotID==3,PREEMPT=SlotID==4,MAXJOBRETIREMENTTIME=1000 stop killhost",
    "3:claim 3:run 4:claim 4:run SUSPEND=SlotID==3 peaceful killhost",
    # out of service and back
    "IS_OWNER=True quick undrain",
    "2:claim 2:stubborn MAXJOBRETIREMENTTIME=1000,IS_OWNER=SlotID==3 graceful undrain",
    "2:claim 2:run MAXJOBRETIREMENTTIME=1000 drainstart IS_OWNER=SlotID==1,RUNBENCHMARKS=SlotID==3 undrain",
    "2:claim 2:run MAXJOBRETIREMENTTIME=1000 drainstart match 3:claim 4:claim 4:run undrain",
    "2:claim 2:run MAXJOBRETIREMENTTIME=1000 drainstart claim stubborn vacate 3:claim 3:run SUSPEND=SlotID==3 "
    "4:claim 4:run hold 4:fast undrain",
    "2:claim 2:stubborn peaceful off killstartd",
]
IN_TIME = (f"claim 2:claim 3:claim 4:claim run 2:run 3:run 4:run {SOON},PREEMPT=True "
           "SUSPEND=SlotID<3,WANT_VACATE=SlotID%2==1 1:~TimerExpired 2:~TimerExpired 3:~TimerExpired 4:~TimerExpired")
"""The time to finish runs out, also of frozen jobs; tried again where the machine took longer to freeze them."""

LAST = "quick off"
"""The startd ends, and leaves it at that."""


def events() -> Iterator[Any]:
    """Everything that can happen to a slot."""
    for owner, suspend, resume, preempt, kill, vacate, benchmark in itertools.product((False, True), repeat=7):
        for retirement_s in (0.0, 600.0):
            yield op.PolicyEvaluation(is_owner=owner, suspend=suspend, resume=resume, preempt=preempt, kill=kill,
                                      want_suspend=True, want_vacate=vacate, benchmark=benchmark,
                                      retirement_s=retirement_s)
    yield from (
        op.Matched("ann"),
        op.Claimed(),
        op.RunStarted(),
        op.RunStarted(owner_suspended=True),
        op.UserSuspended(True),
        op.UserSuspended(False),
        op.RunFinished(),
        op.Released(""),
        op.ClaimCleared(),
        op.MachineEmptied(),
        op.DrainCancelled(),
    )
    yield from (op.EvictRequested("", how) for how in ("retire", "vacate", "kill"))
    yield from (op.DrainRequested(how) for how in ("retire", "vacate", "kill", "finish"))
    yield from (op.TimerExpired(what) for what in ("match", "retire", "vacate", "kill"))


def name(place: op.SlotState) -> str:
    return "/".join(each.value for each in place)


def reachable() -> set[tuple[str, str, str]]:
    """(place, event, place afterwards) of every change that the table can bring about, from where slots begin."""
    def key(machine: op.SlotStateMachine) -> tuple[object, ...]:
        look = machine.evaluation
        return (machine.slot_state, machine.draining, machine.resume_to, machine.owner_suspended,
                machine.user_suspended, look.is_owner, look.want_vacate, look.retirement_s)

    first = op.SlotStateMachine(slot_state=op.OWNER)
    known, new, found = {key(first)}, [first], set()
    samples = list(events())
    while new:
        before = new.pop()
        for event in samples:
            after = copy(before)
            after.spent_s, after.story, after.job_began_s = {}, deque(maxlen=1), 1.0
            after.handle(event, 10.0)
            found.add((name(before.slot_state), type(event).__name__, name(after.slot_state)))
            if key(after) not in known:
                known.add(key(after))
                new.append(after)
    return found


def wanted() -> set[tuple[str, str, str]]:
    """Every change of place, and each event that is heard where it never changes the place."""
    found = reachable()
    changes = {each for each in found if each[0] != each[2]}
    moved = {(before, event) for before, event, _ in changes}
    heard = {(name(place), event.__name__) for (place, event), step in op.table().items()
             if not hasattr(step, "why") and event is not op.PolicyEvaluation}
    return changes | {(before, event, before) for before, event in heard - moved}


@pytest.fixture
def bench() -> Iterator[SlotBench]:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=SLOTS, config=CONFIG)
        made = SlotBench(pool, SLOTS)
        yield made
        made.close()
        pool.stop()


def go(bench: SlotBench, way: str) -> None:
    try:
        bench.go(way)
        bench.rest()
    except Exception as problem:
        said = f"{bench.read()[-20:]}\n{bench.pool.logs()}"
        raise AssertionError(f"on the way {way!r}: {problem}\n{said}") from problem


@pytest.mark.timeout(600)
def test_every_way_of_the_table_is_taken(bench: SlotBench) -> None:
    for way in WAYS:
        go(bench, way)
    for _ in range(6):
        go(bench, IN_TIME)
        late = {each.before for each in bench.read() if each.event == "TimerExpired"}
        if late >= {"Claimed/Suspended", "Claimed/Retiring"}:
            break
    until(lambda: not bench.pool.scratch() or None, "nothing of the jobs is left")
    bench.go(LAST)
    untaken = wanted() - {(each.before, each.event, each.after) for each in bench.read()}
    assert not untaken, "\n".join(map(str, sorted(untaken)))
