"""What is to be simulated, and what came of it.

Use::

    scenario = Scenario(
        seed=7,
        machines=(MachineSpec("m0", central=True, submits=True, executes=False),
                  *(MachineSpec(f"m{n}") for n in range(1, 4))),
        submissions=(Submission(when_s=60.0, owner="alice", machine="m0", count=10, cpu_s=300.0),),
        span_s=3600.0,
    )
    result = run(scenario)
    assert not result.violations

A scenario is a value; the same scenario gives the same trace to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.messages.flock_terms import FlockTerms

if TYPE_CHECKING:
    from condor_actors.simulation.world.pool import Pool

__all__ = ["JobRecord", "MachineSpec", "Result", "Scenario", "Submission", "Wish", "Workflow", "run"]


@attrs.frozen
class MachineSpec:
    """One machine.

    Attributes:
        name: of the host.
        cpus, memory_mib, disk_kib: its size; speed: 1 computes a second of demand in a second.
        central: collector and negotiator run there; submits: a schedd; executes: a startd; kbdd: someone watches its
            keyboard; web: the page's daemon, with a page that is always open; gateway: the pool's gateway, which must
            not be where jobs run; rooster: it wakes machines that sleep.
        drift: how much faster its clock runs (0.0001: 100 ppm); offset_s: how wrong it is at the start.
        config: parameters of this machine; pool: which one it is of, where there are several.
    """

    name: str
    cpus: int = 1
    memory_mib: int = 1024
    disk_kib: int = 10_000_000
    speed: float = 1.0
    central: bool = False
    submits: bool = False
    executes: bool = True
    kbdd: bool = False
    web: bool = False
    gateway: bool = False
    rooster: bool = False
    drift: float = 0.0
    offset_s: float = 0.0
    config: Mapping[str, str] = attrs.field(factory=dict)
    pool: str = ""


@attrs.frozen(kw_only=True)
class Submission:
    """One ``condor_submit``.

    Attributes:
        when_s: simulated seconds.
        owner: the user; machine: whose schedd.
        count: jobs in the cluster; cpu_s: what each needs (see :mod:`condor_actors.simulation.world.jobs`).
        program: further arguments of the program.
        ad: further attributes: name to the text of an expression.
        each: by proc, further arguments of its program (a demand of its own).
    """

    when_s: float
    owner: str
    machine: str
    count: int = 1
    cpu_s: float = 60.0
    program: Mapping[str, float] = attrs.field(factory=dict)
    ad: Mapping[str, str] = attrs.field(factory=dict)
    each: tuple[Mapping[str, float], ...] = ()


LATE = "JobMaterializeMaxIdle"
"""Jobs of a submission with this attribute are made as they are needed."""


@attrs.frozen(kw_only=True)
class Wish:
    """What a user does to jobs: ``action`` is one of :class:`~condor_actors.messages.queue.JobAction`'s.

    Attributes:
        constraint: which of the user's jobs at that schedd.
    """

    when_s: float
    owner: str
    machine: str
    action: str
    constraint: str = "true"


@attrs.frozen(kw_only=True)
class Workflow:
    """One ``condor_submit_dag``, and another one from the rescue file as often as it fails.

    Attributes:
        when_s, owner, machine: as of a submission.
        files: its DAG files by name, the first one first.
        seed: says what each try of each node comes to; after the second rescue file all of them succeed.
        jobs, idle, pre, post: limits, as of condor_submit_dag; 0: none.
    """

    when_s: float
    owner: str
    machine: str
    files: Mapping[str, str]
    seed: int = 1
    jobs: int = 0
    idle: int = 0
    pre: int = 0
    post: int = 0


@attrs.frozen(kw_only=True)
class Scenario:
    """What is to be simulated.

    Attributes:
        seed: of every chance in it.
        machines: the first with ``central`` is the central manager.
        submissions: what users submit; wishes: what they do to their jobs later; workflows: their DAGs.
        release_s: users release what is held and continue what is suspended this often; 0: never.
        span_s: how long; with ``drain`` it ends earlier, as soon as all jobs are done, and not before ``quiet_s``.
        delay_s: how long a word takes from one machine to another.
        faults: the schedule, in the language of :mod:`condor_actors.simulation.faults.faults`.
        config: parameters of every machine.
        terms: by (pool, partner), the terms on which the pool lends to that partner and sends it jobs.
        delays: seconds one way between the gateways of two pools, by (pool, pool); ``delay_s`` where there is none.
        hidden: pools whose gateways cannot be dialled: they dial those of their partners.
        checks: whether the checkers look after each step.
        prepare: called with the pool before it starts (owners, workloads, probes).
        trace: called with each line of the trace.
    """

    seed: int = 1
    machines: tuple[MachineSpec, ...] = ()
    submissions: tuple[Submission, ...] = ()
    wishes: tuple[Wish, ...] = ()
    workflows: tuple[Workflow, ...] = ()
    release_s: float = 0.0
    span_s: float = 3600.0
    drain: bool = True
    quiet_s: float = 0.0
    delay_s: float = 0.0005
    faults: str = ""
    config: Mapping[str, str] = attrs.field(factory=dict)
    terms: Mapping[tuple[str, str], FlockTerms] = attrs.field(factory=dict)
    delays: Mapping[tuple[str, str], float] = attrs.field(factory=dict)
    hidden: frozenset[str] = frozenset()
    checks: bool = True
    prepare: Callable[[Pool], Any] | None = None
    trace: Callable[[str], None] | None = None


@attrs.define(kw_only=True)
class JobRecord:
    """What became of one job; all times are simulated seconds.

    Attributes:
        submitted_s, first_start_s, completed_s: None: not yet.
        starts: how many times a program began; evictions: how many of them did not end by themselves.
        cpu_s: what its programs used in all; wasted_s: of it, by runs that were lost.
    """

    job: str
    owner: str
    machine: str
    demand_s: float
    submitted_s: float
    first_start_s: float | None = None
    completed_s: float | None = None
    starts: int = 0
    evictions: int = 0
    cpu_s: float = 0.0
    wasted_s: float = 0.0


@attrs.frozen(kw_only=True)
class Result:
    """What came of a scenario.

    Attributes:
        jobs: every job that was submitted, by ``machine/cluster.proc``.
        violations: what the checkers found; the first one ends the run.
        digest: of the trace, SHA-256 in hexadecimal.
        events, simulated_s, wall_s: how much happened, in how long, and what it cost.
        pool: the pool as it was at the end.
    """

    scenario: Scenario
    jobs: Mapping[str, JobRecord]
    violations: tuple[str, ...]
    digest: str
    events: int
    simulated_s: float
    wall_s: float
    pool: Pool

    @property
    def completed(self) -> int:
        """How many jobs are done."""
        return sum(1 for job in self.jobs.values() if job.completed_s is not None)


def run(scenario: Scenario) -> Result:
    """Simulate."""
    from condor_actors.simulation.world.pool import Pool

    return Pool(scenario).run()
