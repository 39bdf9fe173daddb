"""Many seeds of the world of whole daemons, in several processes: what a test run and ``make soak`` do.

Theory: a seed is a pool, its users and its faults, and always the same run.  So which seeds pass is known before a
commit is handed in, and a machine that runs them again can find nothing by chance.  A seed that fails is made smaller
where it failed, and the story of the job that suspicion fell on is told.
"""

from __future__ import annotations

import gc
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack
from itertools import count

import attrs

from condor_actors.daemons.schedd.schedd_actor import ScheddActor
from condor_actors.simulation.faults.chance import shrink
from condor_actors.simulation.faults.kept_seeds import KeptSeeds, Outcome
from condor_actors.simulation.faults.kinds import WorldKind
from condor_actors.simulation.faults.replay import report_of, scenario_of
from condor_actors.simulation.world.scenario import Result, Scenario, run

__all__ = ["Sum", "run_seeds", "story_of"]

AT_A_TIME = 4
"""Seeds a worker is given at once."""
SMALLER_TRIES = 60
STORY_LINES = 60
SHRUNK = 3
"""So many failures of one worker are made smaller, which takes some :data:`SMALLER_TRIES` runs each."""

_shrunk = 0
USUAL = WorldKind()


@attrs.define
class Sum:
    """What came of all seeds so far."""

    seeds: int = 0
    events: int = 0
    cpu_s: float = 0.0
    failures: list[tuple[int, str]] = attrs.field(factory=list)

    def add(self, outcome: Outcome) -> None:
        """More of them."""
        self.seeds += outcome.seeds
        self.events += outcome.events
        self.cpu_s += outcome.cpu_s
        self.failures += outcome.failures


def story_of(scenario: Scenario) -> str:
    """What happened to the job on which suspicion fell first: the schedd's story of it, and its lines of the trace."""
    lines: list[str] = []
    result = run(attrs.evolve(scenario, trace=lines.append))
    suspect = next((job for job in result.pool.suspects if job), "")
    if not suspect:
        return ""
    machine, _, number = suspect.partition("/")
    told = [f"the story of job {suspect}:"]
    for process in result.pool.machines[machine].processes.values():
        actor = process.system.actor("schedd") if process.system is not None else None
        if isinstance(actor, ScheddActor):
            told += [f"  {line}" for line in actor.story(number)]
    marks = (f" {number}#", f"/{number}#", f"job {number} ", " fault at ")
    of_it = [line for line in lines if any(mark in line for mark in marks)]
    told += [f"  {line}" for line in of_it[-STORY_LINES:]]
    return "\n".join(told)


def _told(result: Result) -> str:
    """A failure with what is needed to see it again."""
    global _shrunk
    scenario, smaller = result.scenario, None
    if _shrunk < SHRUNK:
        _shrunk += 1
        smaller = shrink(scenario, tries=SMALLER_TRIES)
    return "\n".join(text for text in (report_of(result, smaller), story_of(smaller or scenario)) if text)


def _some(first: int, number: int, machines: Sequence[int], kind: WorldKind) -> Outcome:
    """Run seeds one after another; also what a worker does."""
    began_s, events, failures = time.process_time(), 0, []
    for seed in range(first, first + number):
        size = machines[seed % len(machines)]
        try:
            result = run(scenario_of(seed, size, None, None, None, kind))
            events += result.events
            said = _told(result) if result.violations else ""
            del result
        except Exception:  # noqa: BLE001 - the other seeds go on; this one is told like any that failed
            said = f"seed {seed}: {traceback.format_exc()}"
        if said:
            again = f"condor_simulate --seed {seed} --machines {size}{kind.words()} --smallest --trace"
            failures.append((seed, f"{said}\nagain: {again}"))
    gc.collect()
    return Outcome(number, events, time.process_time() - began_s, tuple(failures))


def _chunks(first: int, number: int | None) -> Iterator[tuple[int, int]]:
    for start in count(first, AT_A_TIME):
        size = AT_A_TIME if number is None else min(AT_A_TIME, first + number - start)
        if size <= 0:
            return
        yield start, size


def run_seeds(first: int, number: int | None, *, machines: Sequence[int] = (20,), workers: int = 1,
              kind: WorldKind = USUAL, seconds: float | None = None, kept: KeptSeeds | None = None,
              progress: Callable[[Sum], None] = lambda so_far: None) -> Sum:
    """Run ``number`` seeds from ``first`` on.

    Args:
        number: None: until the time is over.
        machines: sizes of pools; a seed takes the one at its remainder.
        workers: processes.
        kind: of worlds.
        seconds: begin none after that.
        kept: what is found there is not run again; the rest is added to it.
        progress: told the sum now and then.
    """
    end_s = float("inf") if seconds is None else time.monotonic() + seconds
    chunks, so_far = _chunks(first, number), Sum()
    under_way: deque[tuple[int, Callable[[], Outcome]]] = deque()
    with ExitStack() as stack:
        pool: Executor | None = None
        if workers > 1:
            pool = stack.enter_context(ProcessPoolExecutor(workers, initializer=gc.freeze))
        else:
            gc.freeze()
            stack.callback(gc.unfreeze)
        while True:
            while len(under_way) < (2 * workers if pool else 1) and time.monotonic() < end_s:
                chunk = next(chunks, None)
                if chunk is None:
                    break
                under_way.append((chunk[0], _begin(*chunk, machines, kind, kept, pool)))
            if not under_way:
                return so_far
            start, outcome_of = under_way.popleft()
            outcome = outcome_of()
            if kept is not None:
                kept.add(start, outcome)
            so_far.add(outcome)
            progress(so_far)


def _begin(first: int, number: int, machines: Sequence[int], kind: WorldKind, kept: KeptSeeds | None,
           pool: Executor | None) -> Callable[[], Outcome]:
    """Have some seeds run, in another process if there are any; what is returned waits for them."""
    known = kept.find(first, number) if kept is not None else None
    if known is not None:
        return lambda: known
    if pool is not None:
        return pool.submit(_some, first, number, machines, kind).result
    return lambda: _some(first, number, machines, kind)
