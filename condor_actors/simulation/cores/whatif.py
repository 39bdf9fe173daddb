"""What would another configuration have done to last month's jobs and owners?

Theory: a real pool's ads say what machines there are and for which part of their time they were their owners'; its
history says who submitted what, when, and how much work it was.  The pool of production cores (:mod:`pool`) is
run with the configuration in question on these machines, owners and jobs, and the waits of the same jobs are counted
again.

What is not known is modelled: an owner's part of the time (``TotalTimeOwnerIdle`` of the time its slot has existed) is
cut into visits as in :mod:`owners`; placing a job takes what it took on average (``JobCurrentStartExecutingDate`` less
``JobCurrentStartDate``).  So the fair comparison is between two
configurations in the simulation (``--against``); how far the present one is from what really happened says how good
the model of this pool is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr
from condor_actors.classads.forms.long_form import iter_long
from condor_actors.config import Config, load_config
from condor_actors.cores.negotiator.negotiator_settings import (
    cycle_rules,
    cycle_settings,
    match_settings,
    priority_policy,
)
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.cores.startd.slot_resources import Custom, Share, SlotPlan
from condor_actors.daemons.startd_settings import slot_settings
from condor_actors.messages.codes import JobStatus, Universe
from condor_actors.simulation.cores.owners import Visit, mean_use, visits
from condor_actors.simulation.cores.pool import CorePool, PoolSettings
from condor_actors.simulation.cores.workload import DAY_S
from condor_actors.simulation.report.measures import quantile
from condor_actors.simulation.report.recorder import Record, Recorder

__all__ = ["PastMachine", "PastJob", "answer", "read_history", "read_machines"]

PLACEMENT_S = 2.0
"""Where the history does not tell."""
CHECKPOINT_S = 5.0
POLL_S = 60.0
SETTLED_S = 1260.0
SLOW_POLL_S = 900.0
OWN_FACTS = frozenset({
    "name", "mytype", "targettype", "machine", "myaddress", "startdname", "state", "activity", "requirements", "start",
    "rank", "currentrank", "isowner", "slotid", "slottype", "slottypeid", "partitionableslot", "dynamicslot",
    "withinresourcelimits", "slotweight", "keyboardidle", "consoleidle", "loadavg", "condorloadavg", "totalloadavg",
    "totalcondorloadavg", "enteredcurrentstate", "enteredcurrentactivity", "mycurrenttime", "lastheardfrom", "cpus",
    "memory", "disk", "virtualmemory", "machineresources", "childname", "numdynamicslots", "draining",
    "maxjobretirementtime", "machinemaxvacatetime", "jobid", "globaljobid", "jobstart", "publicclaimid",
})
"""What the simulated startd writes itself."""
JOB_ATTRIBUTES = ("Requirements", "Rank", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "JobPrio",
                  "AcctGroup", "AccountingGroup", "NiceUser", "ConcurrencyLimits", "JobUniverse", "ImageSize",
                  "MaxJobRetirementTime")
FOUND_BY_RUNNING = frozenset({"memoryusage", "residentsetsize", "resident_set_size", "proportionalsetsizekb"})
"""What nobody knew of a job before it ran, so that its default requests did not depend on it."""


@attrs.frozen(kw_only=True)
class PastMachine:
    """One slot of a real pool.

    Attributes:
        name: of the slot; plan: what it can be divided into; facts: what its ad says.
        owners_part: of its time, 0 to 1, that its owner had it.
    """

    name: str
    plan: SlotPlan
    facts: Mapping[str, Any]
    owners_part: float


@attrs.frozen(kw_only=True)
class PastJob:
    """One job of the history.

    Attributes:
        name: its id; user: whose, as priorities count it (the accounting group, else the owner).
        submitted_s: seconds since 1970; demand_s: work.
        wait_s: how long it really waited in all; ad: what the schedd needs of it.
        saves: whether it kept its work when it was evicted.
        placement_s: from the start of its last run to that of its program, which is no work; None: nobody knows.
    """

    name: str
    user: str
    submitted_s: float
    demand_s: float
    wait_s: float
    ad: str
    saves: bool
    placement_s: float | None = None


def _ads(path: Path) -> Iterable[ClassAd]:
    """The ads of a file in long form.

    Raises:
        ValueError: one cannot be read; says where. OSError: the file cannot.
    """
    with path.open(encoding="utf-8", errors="replace") as file:
        number = 0
        ads = iter_long(file)
        while True:
            try:
                ad = next(ads)
            except StopIteration:
                return
            except ClassAdSyntaxError as error:
                raise ValueError(f"{path}: ad {number + 1} cannot be read: {error}") from None
            number += 1
            if ad.own:
                yield ad


def read_machines(path: Path) -> list[PastMachine]:
    """The slots of ``condor_status -long``; dynamic slots belong to their partitionable ones.

    Raises:
        ValueError: there are none, or one cannot be read. OSError: the file cannot.
    """
    found: list[PastMachine] = []
    for ad in _ads(path):
        if ad.get_str("MyType", "Machine") != "Machine" or ad.get_bool("DynamicSlot"):
            continue
        names = [name for name in ad.get_str("MachineResources", "Cpus Memory Disk").split()
                 if name.lower() not in ("cpus", "memory", "disk", "swap")]
        share = Share(
            cpus=ad.get_int("TotalSlotCpus", ad.get_int("Cpus", 1)),
            memory_mib=ad.get_int("TotalSlotMemory", ad.get_int("Memory", 1024)),
            disk_kib=ad.get_int("TotalSlotDisk", ad.get_int("Disk", 1_000_000)), swap_mib=0,
            custom={name: Custom(ad.get_int(f"TotalSlot{name}", ad.get_int(name))) for name in names})
        facts = {name: value for name, value in ad.stored_items()
                 if name.lower() not in OWN_FACTS and not name.lower().startswith(("total", "remote"))}
        plan = SlotPlan(number=1, type_id=0, partitionable=ad.get_bool("PartitionableSlot"), share=share)
        found.append(PastMachine(name=ad.get_str("Name", f"slot{len(found) + 1}"), plan=plan, facts=facts,
                             owners_part=_owners_part(ad)))
    if not found:
        raise ValueError(f"{path} has no slot ads; make it with: condor_status -long > {path.name}")
    return found


def _owners_part(ad: ClassAd) -> float:
    """What part of its known time the slot was its owner's, or suspended for it."""
    spent = {name.lower(): ad.get_float(name) for name in ad.own if name.lower().startswith("totaltime")}
    whole = sum(spent.values())
    owners = sum(value for name, value in spent.items() if "owner" in name or name.endswith("suspended"))
    return owners / whole if whole > 0.0 else 0.0


def read_history(path: Path, days: float) -> list[PastJob]:
    """The completed jobs of ``condor_history -long`` that were submitted in its last ``days`` days, oldest first.

    Raises:
        ValueError: there are none, or an ad cannot be read. OSError: the file cannot.
    """
    found = []
    for ad in _ads(path):
        submitted_s, completed_s = ad.get_float("QDate"), ad.get_float("CompletionDate")
        if ad.get_int("JobStatus") != JobStatus.COMPLETED or submitted_s <= 0.0 or completed_s < submitted_s:
            continue
        placement_s = _placement(ad)
        ran_s = (ad.get_float("CommittedTime") or ad.get_float("LastRemoteWallClockTime")
                 or ad.get_float("RemoteWallClockTime"))
        demand_s = max(1.0, ran_s - (placement_s or 0.0))
        user = (ad.get_str("AccountingGroup") or ad.get_str("Owner")
                or ad.get_str("User", "nobody").partition("@")[0])
        saves = (ad.get_int("JobUniverse", Universe.VANILLA) == Universe.STANDARD
                 or "SuccessCheckpointExitCode" in ad
                 or ad.get_str("WhenToTransferOutput").upper() == "ON_EXIT_OR_EVICT")
        found.append(PastJob(
            name=f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}", user=user, submitted_s=submitted_s,
            demand_s=demand_s, wait_s=max(0.0, completed_s - submitted_s - demand_s), ad=_job_text(ad), saves=saves,
            placement_s=placement_s))
    if not found:
        raise ValueError(f"{path} has no completed jobs; make it with: condor_history -long > {path.name}")
    last_s = max(job.submitted_s for job in found)
    return sorted((job for job in found if job.submitted_s >= last_s - days * DAY_S),
                  key=lambda job: (job.submitted_s, job.name))


def _placement(ad: ClassAd) -> float | None:
    """How long its last run took to begin."""
    began_s, runs_s = ad.get_float("JobCurrentStartDate"), ad.get_float("JobCurrentStartExecutingDate")
    return runs_s - began_s if 0.0 < began_s <= runs_s else None


def _job_text(ad: ClassAd) -> str:
    """What a match depends on, and what that refers to: ``RequestDisk`` is ``DiskUsage`` unless someone said more."""
    names = {name.lower(): None for name in JOB_ATTRIBUTES}
    for name in JOB_ATTRIBUTES:
        value = ad.find(name.lower())
        if isinstance(value, Expr):
            names.update(dict.fromkeys(sorted(value.references(ad)[0])))
    lines = []
    for key in names:
        value = ad.find(key)
        if value is None or key in FOUND_BY_RUNNING:
            continue
        text = str(value) if isinstance(value, Expr) else ClassAd({key: value}).to_bytes().decode().partition("=")[2]
        lines.append(f"{ad.spelling(key)} = {text.strip()}\n")
    return "".join(lines)


# ---- the simulation


def settings_of(path: Path) -> PoolSettings:
    """The cores' settings from one configuration file, read as each daemon reads it.

    Raises:
        ConfigError: it has an error. OSError: it cannot be read.
    """
    def read(subsystem: str) -> Config:
        config = load_config(files=[path], environ={}, subsystem=subsystem)
        for problem in config.problems():
            raise problem
        return config

    if not path.is_file():
        raise ValueError(f"{path}: there is no such file")
    negotiator, startd = read("NEGOTIATOR"), read("STARTD")
    schedd = attrs.evolve(schedd_settings(read("SCHEDD"), machine="home"), spare_hosts=0, policy_interval_s=0.0,
                          advertise_interval_s=DAY_S)
    return PoolSettings(
        slot=slot_settings(startd), schedd=schedd, cycle=cycle_settings(negotiator), match=match_settings(negotiator),
        rules=cycle_rules(negotiator), policy=lambda: priority_policy(negotiator, {}),
        poll_s=max(POLL_S, startd.seconds("POLLING_INTERVAL")), settled_s=SETTLED_S, slow_poll_s=SLOW_POLL_S,
        update_s=DAY_S, placement_s=PLACEMENT_S, checkpoint_s=CHECKPOINT_S, saves=False,
        job="RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\nRequirements = true\n")


def _visits(machine: PastMachine, seed: int, begin_s: float, length_s: float) -> list[Visit]:
    """An owner's visits; the first second of the simulation is that of the first submission."""
    if machine.owners_part <= 0.005:
        return []
    into_week_s = (begin_s + 3 * DAY_S) % (7 * DAY_S)  # 1 January 1970 was a Thursday
    found = visits(machine.owners_part / mean_use(), length_s + into_week_s, Random(f"visits {seed} {machine.name}"))
    return [(max(0.0, came_s - into_week_s), left_s - into_week_s) for came_s, left_s in found if left_s > into_week_s]


def simulate(settings: PoolSettings, machines: Sequence[PastMachine], jobs: Sequence[PastJob], seed: int,
             progress: Callable[[float], None] | None = None) -> Record:
    """Run the jobs on the machines, until all are done or twice the time has passed."""
    begin_s = jobs[0].submitted_s
    span_s = jobs[-1].submitted_s - begin_s + DAY_S
    recorder = Recorder(len(machines))
    known = [job.placement_s for job in jobs if job.placement_s is not None]
    if known:
        settings = attrs.evolve(settings, placement_s=sum(known) / len(known))
    pool = CorePool(settings, [_visits(machine, seed, begin_s, 2.0 * span_s) for machine in machines],
                    sorted({job.user for job in jobs}), recorder, facts=[machine.facts for machine in machines],
                    plans=[machine.plan for machine in machines])
    for job in jobs:
        pool.submit_at(job.submitted_s - begin_s, job.user, (job.demand_s,), ad=job.ad, saves=job.saves)
    while pool.clock.now_s < 2.0 * span_s:
        pool.run_until(pool.clock.now_s + DAY_S / 4.0)
        if progress is not None:
            progress(min(0.99, pool.clock.now_s / span_s))
        if pool.clock.now_s > span_s and all(job.completed_s is not None for job in recorder.jobs.values()):
            break
    if progress is not None:
        progress(1.0)
    return recorder.finish(pool.clock.now_s)


# ---- the answer


@attrs.frozen(kw_only=True)
class Column:
    """One column of the answer: of the same jobs under one configuration.

    Attributes:
        waits: (user, wait in seconds, demand in seconds) of each completed job.
        unfinished: jobs that were not done at the end.
        evictions, lost_h, reaction_s, worst_s: None where nobody knows.
    """

    name: str
    waits: tuple[tuple[str, float, float], ...]
    unfinished: int = 0
    evictions: int | None = None
    lost_h: float | None = None
    reaction_s: float | None = None
    worst_s: float | None = None

    def numbers(self, user: str = "") -> dict[str, float]:
        """Waits in minutes, and their ratio to the work."""
        chosen = [(wait_s, demand_s) for who, wait_s, demand_s in self.waits if not user or who == user]
        waits = [wait_s / 60.0 for wait_s, _ in chosen]
        count = len(chosen)
        return {
            "jobs": float(count), "mean wait, min": sum(waits) / count if count else 0.0,
            "median wait, min": quantile(waits, 0.5) if count else 0.0,
            "90 % waited less than, min": quantile(waits, 0.9) if count else 0.0,
            "mean wait ratio": sum(wait_s / demand_s for wait_s, demand_s in chosen) / count if count else 0.0,
        }


def _column(name: str, record: Record) -> Column:
    reactions = record.reaction_s
    return Column(
        name=name, waits=tuple((job.user, job.wait_s, job.demand_s) for job in record.completed),
        unfinished=len(record.jobs) - len(record.completed),
        evictions=sum(sum(job.moves.values()) for job in record.jobs),
        lost_h=sum(job.lost_s for job in record.jobs) / 3600.0,
        reaction_s=sum(reactions) / len(reactions) if reactions else None, worst_s=max(reactions, default=None))


def answer(*, config: Path, ads: Path, history: Path, against: Path | None = None, days: float = 31.0, seed: int = 1,
           as_json: bool = False, progress: Callable[[float], None] | None = None) -> str:
    """The answer as a table, or as JSON.

    Args:
        config: the configuration in question; against: one to compare it with; None: only with what was.
        ads, history: files of ``condor_status -long`` and ``condor_history -long``.
        days: how much of the history; seed: of the owners' days.
        as_json: what for a program; progress: told the part that is done.

    Raises:
        ConfigError: of the configuration. ValueError: of the files. OSError: one cannot be read.
    """
    machines, jobs = read_machines(ads), read_history(history, days)
    columns = [Column(name="was", waits=tuple((job.user, job.wait_s, job.demand_s) for job in jobs))]
    for path in (against, config):
        if path is not None:
            columns.append(_column(path.name, simulate(settings_of(path), machines, jobs, seed, progress)))
    if as_json:
        return json.dumps({"machines": len(machines), "columns": [
            {**attrs.asdict(column, filter=lambda attribute, _: attribute.name != "waits"), "all": column.numbers(),
             "users": {user: column.numbers(user) for user in sorted({job.user for job in jobs})}}
            for column in columns]}, indent=2)
    return _table(machines, jobs, columns)


def _table(machines: Sequence[PastMachine], jobs: Sequence[PastJob], columns: Sequence[Column]) -> str:
    users = sorted({job.user for job in jobs}, key=lambda user: -sum(job.user == user for job in jobs))
    owned = sum(machine.owners_part > 0.005 for machine in machines)
    lines = [f"{len(machines)} slots ({owned} with owners), {len(jobs)} jobs of {len(users)} users", "",
             _line("", [column.name for column in columns])]
    for user in ("", *users[:20]):
        lines.append(f"{user or 'all users'}")
        numbers = [column.numbers(user) for column in columns]
        lines += [_line(f"  {what}", [f"{each[what]:,.{_digits(what)}f}" for each in numbers]) for what in numbers[0]]
    lines.append("owners and machines")
    for what, values in (("evictions", [each.evictions for each in columns]),
                         ("work lost, h", [each.lost_h for each in columns]),
                         ("owner waits for a job to stop: mean, s", [each.reaction_s for each in columns]),
                         ("at worst, s", [each.worst_s for each in columns]),
                         ("jobs not done at the end", [None, *(each.unfinished for each in columns[1:])])):
        lines.append(_line(f"  {what}", ["?" if value is None else f"{value:,.1f}" if isinstance(value, float)
                                         else f"{value:,}" for value in values]))
    return "\n".join(lines)


def _digits(what: str) -> int:
    return 3 if "ratio" in what else 1 if "min" in what else 0


def _line(what: str, cells: Sequence[str]) -> str:
    return f"{what:42}" + "".join(f"{cell:>18}" for cell in cells)
