"""One month of the 1988 pool under one policy.

Theory: 23 workstations, owners (:mod:`owners`), users (:mod:`workload`), and the production cores
(:mod:`pool`) with the configuration ``templates/pool-1988.config``.  Policies differ in PRIORITY_POLICY and in who
may be preempted:

==============  ===================================================================================================
policy          preemption
==============  ===================================================================================================
``UP_DOWN``     for any user of a lower index (the paper's)
``UPDATE_PRIO`` for any user of a higher Prio (1989)
``FAIR_SHARE``  for a user whose effective priority is better by a fifth
``FIFO``        never; the user whose oldest waiting job is the oldest gets the next station, and a station goes back to
                the pool after each job
==============  ===================================================================================================

Source: "Condor - A Hunter of Idle Workstations" (1988); "Condor Technical Summary" (1989), section 9.3.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import attrs

from condor_actors.config import Config, load_config
from condor_actors.cores.negotiator.negotiator_settings import (
    cycle_rules,
    cycle_settings,
    match_settings,
    priority_policy,
)
from condor_actors.cores.negotiator.user_priority import PriorityPolicy
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.daemons.startd_settings import slot_settings
from condor_actors.simulation.cores.owners import Visit, visits_of_all
from condor_actors.simulation.cores.pool import CorePool, PoolSettings
from condor_actors.simulation.cores.workload import DAY_S, MONTH_S, PAPER_USERS, Batch, User, month_of_work
from condor_actors.simulation.report.recorder import Record, Recorder
from condor_actors.simulation.world.memory import unhurried_collector

__all__ = ["IMAGE_MIB", "POLICIES", "STATIONS", "FirstCome", "MonthResult", "describe", "paper_config",
           "pool_settings", "run_month", "run_pool", "users_for"]

POLICIES = ("UP_DOWN", "UPDATE_PRIO", "FAIR_SHARE", "FIFO")
STATIONS = 23
IMAGE_MIB = 0.5
SETTLED_S = 61.0
FAIR_SHARE_PREEMPTS = "RemoteUserPrio > SubmitterUserPrio * 1.2"


@attrs.frozen(kw_only=True)
class MonthResult:
    """What a month gave, and what it took to compute.

    Attributes:
        record: the measures; cycles: negotiation cycles; events, messages, polls: of the simulation.
    """

    record: Record
    cycles: int
    events: int
    messages: int
    polls: int


class FirstCome(PriorityPolicy):
    """First come, first served; nobody makes room.

    Args:
        oldest: when a user's oldest waiting job came; infinite when there is none.
    """

    NAME = "FIFO"
    step = 0.0

    def __init__(self, oldest: Callable[[str], float]) -> None:
        super().__init__()
        self._oldest = oldest

    def effective(self, name: str, now_s: float) -> float:
        """The oldest is served first."""
        return self._oldest(name)

    def beats(self, wanting: float, holding: float) -> bool:
        """Nobody."""
        return False


def template(name: str) -> Path:
    """A file that comes with the simulation."""
    return Path(str(files("condor_actors.simulation") / "templates" / name))


def paper_config(policy: str = "UP_DOWN", overrides: Mapping[str, str] | None = None) -> Config:
    """The pool of 1988 under ``policy`` as a configuration.

    Raises:
        ConfigError: an override is wrong.
    """
    changes = {"PRIORITY_POLICY": policy if policy != "FIFO" else "UP_DOWN"}
    if policy == "FAIR_SHARE":
        changes["PREEMPTION_REQUIREMENTS"] = FAIR_SHARE_PREEMPTS
    if policy == "FIFO":
        changes["PREEMPTION_REQUIREMENTS"] = "false"
    with tempfile.TemporaryDirectory() as folder:
        changes["LOCAL_DIR"] = folder
        return load_config(files=[template("pool-1988.config")], environ={}, overrides={**changes, **(overrides or {})})


def pool_settings(config: Config, **more: Any) -> PoolSettings:
    """The settings of all cores from one configuration.

    Raises:
        ConfigError: a value is wrong.
    """
    return PoolSettings(
        slot=slot_settings(config), schedd=attrs.evolve(schedd_settings(config, machine="home"), spare_hosts=0),
        cycle=cycle_settings(config), match=match_settings(config), rules=cycle_rules(config),
        policy=lambda: priority_policy(config, {}), poll_s=config.seconds("POLLING_INTERVAL"),
        update_s=config.seconds("UPDATE_INTERVAL"), **more)


def run_pool(settings: PoolSettings, visits: Sequence[Sequence[Visit]], batches: Sequence[Batch], users: Sequence[str],
             length_s: float, *, fifo: bool = False, progress: Callable[[float], None] | None = None,
             **more: Any) -> MonthResult:
    """Run a pool from an empty beginning.

    Args:
        settings: of the cores; visits: of each station's owner; batches: what is submitted; users: by whom.
        length_s: how long.
        fifo: serve by age instead of by the configured policy.
        progress: told the part that is done, every simulated day.
        more: for :class:`CorePool`.
    """
    recorder = Recorder(len(visits), users)
    homes: dict[str, Any] = {}
    if fifo:
        settings = attrs.evolve(settings, policy=lambda: FirstCome(lambda name: _oldest(homes, name)),
                                keeps_claims=False)
    pool = CorePool(settings, visits, users, recorder, **more)
    homes.update(pool.homes)
    for batch in batches:
        pool.submit_at(batch.when_s, batch.user, batch.demands_s, batch.calls)
    with unhurried_collector():
        while pool.clock.now_s < length_s:
            pool.run_until(min(length_s, pool.clock.now_s + DAY_S))
            if progress is not None:
                progress(pool.clock.now_s / length_s)
    return MonthResult(record=recorder.finish(length_s), cycles=pool.negotiator.core.cycle.cycle,
                       events=pool.clock.events, messages=pool.mesh.messages, polls=pool.polls)


def _oldest(homes: Mapping[str, Any], name: str) -> float:
    home = homes.get(name.partition("@")[0])
    waiting = home.core.context.autoclusters.of_submitter(name) if home is not None else ()
    return min((float(job.ad.get_int("QDate")) for _, job in waiting), default=float("inf"))


def run_month(policy: str, seed: int, users: Sequence[User] = PAPER_USERS, *, stations: int = STATIONS,
              length_s: float = MONTH_S, overrides: Mapping[str, str] | None = None,
              progress: Callable[[float], None] | None = None, **more: Any) -> MonthResult:
    """The 1988 month; the same for equal arguments.

    Args:
        policy: one of :data:`POLICIES`; seed: of owners and users.
        users: who submits; stations: how many workstations; length_s: how long.
        overrides: parameters set differently from the paper's configuration.
        more: for :class:`CorePool`.

    Raises:
        ValueError: there is no such policy.
        ConfigError: an override is wrong.
    """
    if policy not in POLICIES:
        raise ValueError(f"there is no policy {policy!r}; expected one of {', '.join(POLICIES)}")
    settings = pool_settings(paper_config(policy, overrides), settled_s=SETTLED_S)
    return run_pool(settings, visits_of_all(stations, seed, length_s), month_of_work(users, seed, length_s),
                    [user.name for user in users], length_s, fifo=policy == "FIFO", progress=progress, **more)


def users_for(stations: int) -> tuple[User, ...]:
    """As many times the five users of 1988 as there are times their 23 stations, at least once."""
    groups = max(1, round(stations / STATIONS))
    if groups == 1:
        return PAPER_USERS
    return tuple(attrs.evolve(user, name=f"{user.name}{group}") for group in range(1, groups + 1)
                 for user in PAPER_USERS)


def describe(result: MonthResult, users: Sequence[User]) -> str:
    """A month in some lines: hours, jobs, waits, moves, and what was simulated."""
    record = result.record
    done = record.completed
    moves = sum(sum(job.moves.values()) for job in done)
    work_h = sum(job.demand_s for job in done) / 3600.0
    ratios = {heavy: record.open_wait_ratio(user.name for user in users if user.heavy is heavy)
              for heavy in (False, True)}
    return "\n".join((
        f"stations {record.stations:,}, users {len(users):,}, days {record.length_s / DAY_S:g}",
        f"station-hours: owners {record.local_h:,.0f}, available {record.served_h:,.0f}, "
        f"consumed {record.running_h:,.0f}",
        f"jobs: {len(record.jobs):,} submitted, {len(done):,} completed with {work_h:,.0f} h of work",
        f"waiting per service: {ratios[False]:.3f} of light users, {ratios[True]:.3f} of heavy ones",
        f"moves per hour of completed work: {moves / work_h if work_h else 0.0:.3f}",
        f"simulated: {result.events:,} events, {result.messages:,} messages, {result.polls:,} readings, "
        f"{result.cycles:,} negotiation cycles",
    ))
