"""How long the negotiator takes for a cycle, from the schedd's answers on the wire to the matches on the wire.

Usage: python benchmarks/negotiation.py [--slots N] [--profile CASE] [CASE...]

One process, no network, processor time: the negotiator's core is given what would arrive, as bytes, and what it would
send is made into bytes.  So the figures hold decoding, matching and encoding, but not the sockets nor the schedd.  The
figures of HTCondor 25.14 beside them are whole cycles of its negotiator on such a machine.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.cycle_settings import CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.negotiator_core import NegotiatorCore
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.effects import Answer, Ask, Send
from condor_actors.messages.advertise import AdChange, AdKind, AdsChanged
from condor_actors.messages.codec import decode, encode
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.negotiate import MatchesMade, ResourceRequest, ResourceRequests

NOW_S = 1.8e9
BASE = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
    "(TARGET.Memory >= RequestMemory) && ((TARGET.FileSystemDomain == MY.FileSystemDomain) || (TARGET.HasFileTransfer))"
)
PEER_S = {"identical": 0.69, "distinct": 3.78, "none": 2.17}
ABILITIES = ("TDP", "IOProxy", "JobDeferral", "Reconnect", "SelfCheckpointTransfers", "StandardUniverse", "VM")
FILLER = {f"Has{name}": True for name in ABILITIES}


def slot_change(number: int, *, cpus: int = 1) -> AdChange:
    """A slot of a machine of its own, as a startd advertises it."""
    node = f"<10.0.{number // 250}.{number % 250}:9618>"
    ad = ClassAd({
        "MyType": "Machine", "TargetType": "Job", "Name": f"slot1@m{number}", "Machine": f"m{number}",
        "MyAddress": node, "StartdIpAddr": node, "State": "Unclaimed", "Activity": "Idle", "Arch": "X86_64",
        "OpSys": "LINUX", "OpSysAndVer": "Debian12", "Cpus": cpus, "Memory": 2000 * cpus, "Disk": 10_000_000,
        "SlotID": 1, "KFlops": 1_000_000, "Mips": 20_000, "LoadAvg": (number % 17) / 10, "CondorLoadAvg": 0.0,
        "KeyboardIdle": 4000 + number, "Rank": 0.0, "CurrentRank": 0.0, "Start": True, "HasFileTransfer": True,
        "FileSystemDomain": "dom", "UidDomain": "dom", "MachineResources": "Cpus Memory Disk Swap",
        "DaemonStartTime": int(NOW_S) - number, "EnteredCurrentState": int(NOW_S) - 10, "MyCurrentTime": int(NOW_S),
        "TotalSlotCpus": cpus, "TotalSlotMemory": 2000 * cpus, "DetectedCpus": cpus, "DetectedMemory": 2000 * cpus,
        "CondorVersion": "$CondorVersion: 1.0.0 $", "UtsnameRelease": "6.18", "CpuModelName": "EPYC", **FILLER,
    })
    ad["SlotType"] = "Partitionable" if cpus > 1 else "Static"
    if cpus > 1:
        ad["PartitionableSlot"] = True
    ad.insert_text("SlotWeight", "Cpus")
    ad.insert_text("IsOwner", "START =?= false")
    ad.insert_text("Requirements", "START && WithinResourceLimits")
    ad.insert_text("WithinResourceLimits", (
        "MY.Cpus > 0 && (TARGET.RequestCpus ?: 1) <= MY.Cpus && MY.Memory > 0 && (TARGET.RequestMemory ?: 1)"
        " <= MY.Memory && MY.Disk > 0 && (TARGET.RequestDisk ?: 1) <= MY.Disk"))
    private = ClassAd({"Name": f"slot1@m{number}", "Capability": f"secret {number}"})
    return AdChange(ad_kind=AdKind.SLOT, name=f"slot1@m{number}", ad=ad.to_bytes(), private=private.to_bytes())


def job_bytes(number: int, requirements: str, **more: Any) -> bytes:
    """A job as the submit command makes it."""
    ad = ClassAd({
        "MyType": "Job", "ClusterId": number, "ProcId": 0, "Owner": "alice", "User": "alice@dom", "JobUniverse": 5,
        "Cmd": "/bin/true", "Iwd": "/home/alice", "Out": "out", "Err": "err", "In": "/dev/null", "JobStatus": 1,
        "QDate": int(NOW_S), "ImageSize": 35, "DiskUsage": 35, "RequestCpus": 1, "FileSystemDomain": "dom",
        "JobPrio": 0, "NumJobStarts": 0, "LeaveJobInQueue": False, "OnExitRemove": True, "PeriodicHold": False,
        "WhenToTransferOutput": "ON_EXIT", "ShouldTransferFiles": "IF_NEEDED", "Rank": 0.0,
        "GlobalJobId": f"s#{number}.0#{int(NOW_S)}", "UserLog": "/home/alice/log", "JobLeaseDuration": 2400, **more,
    })
    ad.insert_text("RequestDisk", "DiskUsage")
    ad.insert_text("RequestMemory", "ifThenElse(MemoryUsage =!= undefined,MemoryUsage,128)")
    ad.insert_text("Requirements", requirements)
    return ad.to_bytes()


def pages_of(requests: list[ResourceRequest], size: int = 200) -> list[bytes]:
    """What a schedd answers, page by page, on the wire."""
    pages = []
    for start in range(0, len(requests), size):
        more = start + size < len(requests)
        pages.append(encode(ResourceRequests(submitter="alice@dom", requests=tuple(requests[start:start + size]),
                                             cursor=str(start + size) if more else "")))
    return pages


def negotiator(changes: list[AdChange], idle: int, settings: MatchSettings | None = None) -> NegotiatorCore:
    """A negotiator that knows these slots and one submitter."""
    view = PoolView()
    policy = FairShare(FairShareSettings())
    core = NegotiatorCore(view, NegotiationCycle(CycleSettings(), settings or MatchSettings(), view, policy),
                          Accountant(policy))
    submitter = ClassAd({"MyType": "Submitter", "Name": "alice@dom", "ScheddName": "s", "MyAddress": "<10.1.0.1:1>",
                         "IdleJobs": idle, "RunningJobs": 0})
    everything = [*changes, AdChange(ad_kind=AdKind.SUBMITTER, name="alice@dom\ns", ad=submitter.to_bytes())]
    core.handle(AdsChanged(sequence=1, changes=tuple(everything), snapshot=True), NOW_S)
    return core


def run_cycle(core: NegotiatorCore, pages: list[bytes]) -> tuple[float, int]:
    """One cycle; its seconds and the number of matches."""
    began = time.process_time()
    effects = core.handle(TimerFired(key="cycle"), NOW_S)
    matches = 0
    for page in pages:
        (ask,) = [each for each in effects if isinstance(each, Ask)]
        encode(ask.message)
        answer = decode(ResourceRequests.KIND, ResourceRequests.VERSION, page)
        effects = core.handle(Answer(ask.tag, answer), NOW_S)
    for effect in effects:
        if isinstance(effect, Send):
            encode(effect.message)
            if isinstance(effect.message, MatchesMade):
                matches += len(effect.message.matches)
    return time.process_time() - began, matches


def identical(slots: int) -> tuple[list[AdChange], list[bytes], int]:
    """Ten times as many equal jobs as slots."""
    request = ResourceRequest(autocluster=1, job_id="1.0", count=10 * slots, job_ad=job_bytes(1, BASE))
    return [slot_change(n) for n in range(slots)], pages_of([request]), 10 * slots


def differing(slots: int, clause: Callable[[int], str]) -> tuple[list[AdChange], list[bytes], int]:
    """As many jobs as slots, each with Requirements of its own."""
    requests = [ResourceRequest(autocluster=n + 1, job_id=f"{n + 1}.0", count=1,
                                job_ad=job_bytes(n + 1, f"{BASE} && ({clause(n)})")) for n in range(slots)]
    return [slot_change(n) for n in range(slots)], pages_of(requests), slots


def partitionable(slots: int) -> tuple[list[AdChange], list[bytes], int]:
    """A tenth as many machines of 16 cpus, fifty kinds of jobs that fill them."""
    machines = max(1, slots // 10)
    requests = [ResourceRequest(autocluster=n + 1, job_id=f"{n + 1}.0", count=machines,
                                job_ad=job_bytes(n + 1, BASE, JobPrio=n)) for n in range(50)]
    return [slot_change(n, cpus=16) for n in range(machines)], pages_of(requests), 50 * machines


def one_job(slots: int) -> tuple[list[AdChange], list[bytes], int]:
    """One job, twenty slots."""
    request = ResourceRequest(autocluster=1, job_id="1.0", count=1, job_ad=job_bytes(1, BASE))
    return [slot_change(n) for n in range(20)], pages_of([request]), 1


CASES: dict[str, Callable[[int], tuple[list[AdChange], list[bytes], int]]] = {
    "identical": identical,
    "distinct": lambda slots: differing(slots, lambda n: f"TARGET.Memory > {n}"),
    "distinct-opaque": lambda slots: differing(slots, lambda n: f"TARGET.Memory * 2 + TARGET.KFlops > {n}"),
    "none": lambda slots: differing(slots, lambda n: f"TARGET.Memory > {10_000_000 + n}"),
    "none-opaque": lambda slots: differing(slots, lambda n: f"TARGET.Memory * 2 < {-n}"),
    "partitionable": partitionable,
    "one-job": one_job,
}


def measure(name: str, slots: int, runs: int) -> None:
    """Run a case several times, each with a fresh negotiator, and print the median."""
    changes, pages, idle = CASES[name](slots)
    times, learning, matches = [], [], 0
    for _ in range(runs):
        began = time.process_time()
        core = negotiator(changes, idle)
        learning.append(time.process_time() - began)
        spent_s, matches = run_cycle(core, pages)
        times.append(spent_s)
    peer = f"HTCondor {PEER_S[name]} s" if name in PEER_S and slots == 1000 else ""
    print(f"{name:16} {statistics.median(times) * 1000:9.2f} ms  {matches:6} matches  "
          f"(and {statistics.median(learning) * 1000:6.1f} ms to learn of all slots)  {peer}", flush=True)


def main() -> None:
    """Measure the cases named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=list(CASES))
    parser.add_argument("--slots", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    profiler = cProfile.Profile()
    for name in options.cases:
        if options.profile:
            changes, pages, idle = CASES[name](options.slots)
            core = negotiator(changes, idle)
            profiler.runcall(run_cycle, core, pages)
        else:
            measure(name, options.slots, options.runs)
    if options.profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
