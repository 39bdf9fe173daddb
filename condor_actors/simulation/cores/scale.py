"""How a pool behaves as it grows: events per second, memory, and the length of a negotiation cycle.

Theory: two measurements of the production's cores.

* :func:`measure` runs a whole pool (:mod:`pool`) of dedicated machines for a day, ten jobs each, and takes the
  processor time of every part: negotiator, schedds, startds.  It begins with the worst moment there is: every machine
  free and every job idle.
* :func:`measure_cycle` has the negotiator alone decide on so many machines' ads, which goes further with the same
  patience.

Times are processor seconds of this process, so other load on the machine does not count.  Kinds are distinct
``Requirements`` among the jobs: each is an autocluster, and the negotiator looks for candidates once for each.
"""

from __future__ import annotations

import gc
import json
import resource
import time
from collections.abc import Callable
from random import Random
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.cycle_settings import CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.negotiator_core import NegotiatorCore
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.startd.slot_resources import Share
from condor_actors.cores.startd.slots import SlotSettings, parse_policy
from condor_actors.effects import Answer, Ask, Send
from condor_actors.messages.advertise import AdChange, AdKind, AdsChanged
from condor_actors.messages.codes import Universe
from condor_actors.messages.negotiate import MatchesMade, NegotiateRequests, ResourceRequest, ResourceRequests
from condor_actors.simulation.cores.nodes import Node
from condor_actors.simulation.cores.pool import CorePool, PoolSettings
from condor_actors.simulation.report.recorder import Recorder
from condor_actors.simulation.world.memory import unhurried_collector

__all__ = ["CycleCost", "Scale", "header", "line", "machine_facts", "measure", "measure_cycle"]

MACHINES_PER_USER = 1000
FULLNESS = 0.9
MEMORIES = (2048, 4096, 8192, 16384)
MATCHES_SHOWN = 1000
DEDICATED = {"START": "true", "SUSPEND": "false", "CONTINUE": "true", "PREEMPT": "false", "KILL": "false",
             "WANT_SUSPEND": "false", "WANT_VACATE": "true", "RANK": "0.0", "IS_OWNER": "false"}


@attrs.frozen(kw_only=True)
class Scale:
    """What one pool took.

    Attributes:
        machines, jobs, kinds: its size; simulated_h: how far the time reached.
        completed: jobs done; events, messages: of the simulation.
        setup_s, run_s: processor time to build the pool and to run it.
        memory_mib: the most that the process has had.
        cycles: negotiation cycles; first_cycle_s, cycle_s: processor time of the first one and the mean of the others.
        negotiator_s, schedd_s, startd_s: processor time of the cores; ads: slot and submitter ads told.
    """

    machines: int
    jobs: int
    kinds: int
    simulated_h: float
    completed: int
    events: int
    messages: int
    ads: int
    setup_s: float
    run_s: float
    memory_mib: float
    cycles: int
    first_cycle_s: float
    cycle_s: float
    negotiator_s: float
    schedd_s: float
    startd_s: float

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(attrs.asdict(self))


@attrs.frozen(kw_only=True)
class CycleCost:
    """What the negotiator alone took.

    Attributes:
        machines, kinds: slots, and distinct requirements among as many jobs.
        learn_s: to take the ads of all; cycle_s: to decide about a pool that is wholly free; matches: of that.
        again_s: to decide when a hundred slots are free again; memory_mib: the most that the process has had.
    """

    machines: int
    kinds: int
    learn_s: float
    cycle_s: float
    matches: int
    again_s: float
    memory_mib: float

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(attrs.asdict(self))


def memory_mib() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def machine_facts(number: int) -> dict[str, Any]:
    """What the ad of a machine of today says beside what the cores write: about forty attributes."""
    flags = {f"has_{name}": True for name in ("avx", "avx2", "sse4_1", "sse4_2", "ssse3")}
    abilities = {f"Has{name}": True for name in ("FileTransfer", "JobDeferral", "Reconnect", "StandardUniverse",
                                                 "TransferInputRemaps", "SelfCheckpointTransfers")}
    return {
        "Arch": "X86_64", "OpSys": "LINUX", "OpSysAndVer": f"Debian{11 + number % 2}", "OpSysName": "Debian",
        "OpSysMajorVer": 11 + number % 2, "UidDomain": "example.org", "FileSystemDomain": f"m{number}.example.org",
        "DetectedCpus": 1, "DetectedMemory": MEMORIES[number % len(MEMORIES)], "TotalCpus": 1, "KFlops": 1_000_000,
        "Mips": 20_000 + number % 7, "CondorVersion": "$CondorVersion: simulated $", "TimeToLive": 2147483647,
        "UtsnameRelease": "6.1.0", "UtsnameMachine": "x86_64", "CpuModelName": "model", "Microarch": "x86_64-v3",
        "CpuFamily": 6, "CpuModelNumber": 85, "TotalVirtualMemory": 0, "SubnetMask": "", "IsWakeAble": False,
        "StarterAbilityList": "HasFileTransfer,HasJobDeferral", **flags, **abilities,
    }


def _settings() -> PoolSettings:
    return PoolSettings(
        slot=SlotSettings(host="", policy=parse_policy(DEDICATED)), schedd=ScheddSettings(
            spare_hosts=0, policy_interval_s=0.0, advertise_interval_s=86400.0, max_jobs_running=1_000_000,
            max_jobs_per_submission=1_000_000),
        cycle=CycleSettings(interval_s=60.0), match=MatchSettings(), policy=lambda: FairShare(FairShareSettings()),
        share=Share(cpus=1, memory_mib=16384, disk_kib=100_000_000), poll_s=300.0, settled_s=0.0, update_s=86400.0,
        placement_s=1.0, checkpoint_s=1.0,
        job=f"RequestCpus = 1\nRequestMemory = 1024\nRequestDisk = 1024\nJobUniverse = {Universe.VANILLA}\n")


class Account:
    """Processor time by part of the pool; cycles apart.

    The clock of the processor is asked for each step of a negotiation.  For everything else that would cost as much as
    many of the events: they are timed by the wall, to get their share of the processor's time in the end.
    """

    def __init__(self) -> None:
        self.wall_s = {"ads": 0.0, "schedd": 0.0, "startd": 0.0}
        self.cycles_s: dict[int, float] = {}

    def negotiator(self, event: Any, act: Callable[[], None], cycle: Callable[[], int]) -> None:
        """An event of the negotiator."""
        if isinstance(event, AdsChanged):
            began_s = time.perf_counter()
            act()
            self.wall_s["ads"] += time.perf_counter() - began_s
        else:
            began_s = time.process_time()
            act()
            self.cycles_s[cycle()] = self.cycles_s.get(cycle(), 0.0) + time.process_time() - began_s

    def watch(self, part: str, node: Node) -> None:
        """Take the time of a node's core."""
        handle, wall_s, now_s = node.core.handle, self.wall_s, time.perf_counter

        def watched(event: Any, at_s: float) -> Any:
            began_s = now_s()
            effects = handle(event, at_s)
            wall_s[part] += now_s() - began_s
            return effects

        node.core.handle = watched


def measure(machines: int, *, jobs_per_machine: int = 10, hours: float = 24.0, kinds: int = 1, budget_s: float = 600.0,
            seed: int = 1, progress: Callable[[float], None] | None = None) -> Scale:
    """Run a pool of dedicated machines.

    Args:
        machines: one slot each; jobs_per_machine: queued at the beginning, enough to fill most of the time.
        hours: how long; kinds: distinct requirements among the jobs.
        budget_s: processor time after which the run ends early.
        seed: of the jobs' demands.
        progress: told the part that is done.

    Raises:
        ValueError: a size is below 1.
    """
    if machines < 1 or kinds < 1 or jobs_per_machine < 1 or not hours > 0.0:
        raise ValueError("machines, jobs, kinds and hours are at least 1")
    with unhurried_collector():
        return _measure(machines, jobs_per_machine, hours, kinds, budget_s, seed, progress or (lambda part: None))


def _measure(machines: int, jobs_per_machine: int, hours: float, kinds: int, budget_s: float, seed: int,
             progress: Callable[[float], None]) -> Scale:
    began_s = time.process_time()
    account = Account()
    recorder = Recorder(machines)
    users = [f"user{number}" for number in range(max(1, machines // MACHINES_PER_USER))]
    pools: list[CorePool] = []
    pool = CorePool(_settings(), [()] * machines, users, recorder, facts=[machine_facts(number) for number in
                                                                           range(machines)],
                    watch=lambda event, act: account.negotiator(
                        event, act, lambda: pools[0].negotiator.core.cycle.cycle if pools else 0))
    pools.append(pool)
    for home in pool.homes.values():
        account.watch("schedd", home)
    for station in pool.stations:
        account.watch("startd", station)
    setup_s, set_up_s = time.process_time() - began_s, time.perf_counter()
    pool.run_until(1.0)
    jobs = machines * jobs_per_machine
    _submit(pool, users, jobs, kinds, FULLNESS * hours * 3600.0 / jobs_per_machine, Random(f"scale {seed}"))
    gc.collect()
    gc.freeze()
    end_s, step_s = hours * 3600.0, min(600.0, hours * 36.0)
    while pool.clock.now_s < end_s and time.process_time() - began_s < budget_s:
        pool.run_until(min(end_s, pool.clock.now_s + step_s))
        progress(min(1.0, pool.clock.now_s / end_s))
    run_s = time.process_time() - began_s - setup_s
    busy = run_s / (time.perf_counter() - set_up_s)
    record = recorder.finish(pool.clock.now_s)
    numbers = sorted(number for number in account.cycles_s if number)
    later = [account.cycles_s[number] for number in numbers[1:]]
    gc.unfreeze()
    return Scale(
        machines=machines, jobs=jobs, kinds=kinds, simulated_h=pool.clock.now_s / 3600.0,
        completed=len(record.completed), events=pool.clock.events, messages=pool.mesh.messages,
        ads=pool.collector.updates, setup_s=setup_s, run_s=run_s, memory_mib=memory_mib(), cycles=len(numbers),
        first_cycle_s=account.cycles_s[numbers[0]] if numbers else 0.0,
        cycle_s=sum(later) / len(later) if later else 0.0,
        negotiator_s=sum(account.cycles_s.values()) + account.wall_s["ads"] * busy,
        schedd_s=account.wall_s["schedd"] * busy, startd_s=account.wall_s["startd"] * busy)


def _submit(pool: CorePool, users: list[str], jobs: int, kinds: int, mean_s: float, random: Random) -> None:
    """Each user submits its part, a cluster per kind."""
    per_cluster = max(1, jobs // len(users) // kinds)
    for number, user in enumerate(users):
        for kind in range(kinds):
            demands = [random.expovariate(1.0 / mean_s) + 1.0 for _ in range(per_cluster)]
            pool.homes[user].submit(demands, ad=f"Requirements = {requirements(kind, number)}\n")


def requirements(kind: int, salt: int = 0) -> str:
    """Distinct ones, all of which every machine fulfils."""
    return f'TARGET.Memory >= {1000 + kind} && TARGET.Arch == "X86_64" && TARGET.OpSys == "LINUX"'


def header() -> str:
    """The heading of :func:`line`."""
    return (" machines    jobs kinds  hours   done     events  cpu s  events/s  MiB   cycles  first s   later ms  "
            "negot. schedd startd s")


def line(scale: Scale) -> str:
    """One pool's figures."""
    return (f"{scale.machines:9,} {scale.jobs:7,} {scale.kinds:5,} {scale.simulated_h:6.1f} {scale.completed:6,} "
            f"{scale.events:10,} {scale.run_s:6.0f} {scale.events / max(1e-9, scale.run_s):9,.0f} "
            f"{scale.memory_mib:5,.0f} {scale.cycles:7,} {scale.first_cycle_s:8.2f} {1e3 * scale.cycle_s:10.1f} "
            f"{scale.negotiator_s:7.1f} {scale.schedd_s:6.1f} {scale.startd_s:6.1f}")


# ---- the negotiator alone


def _slot_change(number: int, serial: int = 0, user: str = "") -> AdChange:
    name = f"slot1@m{number}"
    ad = ClassAd({
        "MyType": "Machine", "Name": name, "Machine": f"m{number}", "MyAddress": f"<m{number}:1>", "SlotID": 1,
        "State": "Claimed" if user else "Unclaimed", "Activity": "Busy" if user else "Idle", "Cpus": 1,
        "Memory": 16384, "Disk": 100_000_000, "MachineResources": "Cpus Memory Disk Swap", "CurrentRank": 0.0,
        **machine_facts(number)})
    ad.insert_text("WithinResourceLimits", "MY.Cpus > 0 && (TARGET.RequestCpus ?: 1) <= MY.Cpus && "
                   "(TARGET.RequestMemory ?: 1) <= MY.Memory")
    ad.insert_text("Start", "true")
    ad.insert_text("Rank", "0.0")
    ad.insert_text("Requirements", "START && WithinResourceLimits")
    if user:
        ad["RemoteUser"] = user
    private = f'Capability = "{name} {serial}"\n'.encode()
    return AdChange(ad_kind=AdKind.SLOT, name=name, ad=ad.to_bytes(), private=private)


def measure_cycle(machines: int, kinds: int = 1) -> CycleCost:
    """Let the negotiator decide about a free pool and as many jobs, then about a hundred slots that came free."""
    view = PoolView()
    cycle = NegotiationCycle(CycleSettings(list_size=kinds), MatchSettings(), view, FairShare(FairShareSettings()))
    core = NegotiatorCore(view, cycle, Accountant(cycle.priorities))
    submitter = ClassAd({"Name": "u@pool", "ScheddName": "s", "MyAddress": "<s:1>", "IdleJobs": machines})
    learn_s = 0.0
    for begin in range(0, machines, MATCHES_SHOWN):
        changes = tuple(_slot_change(number) for number in range(begin, min(machines, begin + MATCHES_SHOWN)))
        began_s = time.process_time()
        core.handle(AdsChanged(sequence=1, changes=changes), 0.0)
        learn_s += time.process_time() - began_s
    core.handle(AdsChanged(sequence=2, changes=(
        AdChange(ad_kind=AdKind.SUBMITTER, name="u/s", ad=submitter.to_bytes()),)), 0.0)
    requests = tuple(
        ResourceRequest(autocluster=kind + 1, job_id=f"{kind + 1}.0", count=max(1, machines // kinds),
                        job_ad=(f"RequestCpus = 1\nRequestMemory = 1024\nRequestDisk = 1024\nRank = 0.0\n"
                                f"Requirements = {requirements(kind)}\n").encode())
        for kind in range(kinds))
    cycle_s, matches = _one_cycle(core, requests, 1.0)
    changes = tuple(_slot_change(number, 1, "u@pool") for number in range(100, machines))
    for begin in range(0, len(changes), MATCHES_SHOWN):
        core.handle(AdsChanged(sequence=3, changes=changes[begin:begin + MATCHES_SHOWN]), 2.0)
    core.handle(AdsChanged(sequence=4, changes=tuple(_slot_change(number, 2) for number in range(min(100, machines)))),
                3.0)
    again_s, _ = _one_cycle(core, requests, 4.0)
    return CycleCost(machines=machines, kinds=kinds, learn_s=learn_s, cycle_s=cycle_s, matches=matches,
                     again_s=again_s, memory_mib=memory_mib())


def _one_cycle(core: NegotiatorCore, requests: tuple[ResourceRequest, ...], now_s: float) -> tuple[float, int]:
    """The processor time of a cycle, and its matches."""
    began_s = time.process_time()
    effects = core.cycle.begin(now_s)
    matches = 0
    while True:
        asks = [effect for effect in effects if isinstance(effect, Ask)]
        matches += sum(len(effect.message.matches) for effect in effects
                       if isinstance(effect, Send) and isinstance(effect.message, MatchesMade))
        if not asks:
            return time.process_time() - began_s, matches
        for ask in asks:
            assert isinstance(ask.message, NegotiateRequests)
            answer = ResourceRequests(submitter=ask.message.submitter, requests=requests)
            effects = core.handle(Answer(ask.tag, answer), now_s)
