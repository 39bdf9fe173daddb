"""Ten thousand running jobs: ``python benchmarks/running.py [--jobs 10000]``.

The submit side is a personal pool's: its collector, negotiator and schedd, and the shadow host of the jobs' owner.  The
execute side is played by one process over real sockets with TLS: it advertises so many slots, grants claims and says
that every job runs.  What is printed: how long it took until all ran, the processor time and the memory of the submit
side for each, and how long a question takes meanwhile.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.negotiation import slot_change
from benchmarks.table import SUBMIT_SIDE, cpu_s, new_pool, resident_bytes
from condor_actors.actors import Actor, ActorSystem
from condor_actors.classads import ClassAd
from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.messages.claim import ClaimGranted, ClaimsRenewed, ReleaseClaim, RenewClaims, RequestClaim
from condor_actors.messages.envelope import Address, Delivery, Done
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    Reattached,
    ReattachRun,
    RunBegan,
    RunExited,
    StopRun,
    Usage,
)
from condor_actors.wire.certificates.authority import PoolFiles
from condor_actors.wire.post_office import PostOffice
from tests.pool_fixture import PersonalPool, until

CONFIG = ("MAX_JOBS_RUNNING = 100000\nMAX_JOBS_PER_OWNER = 1000000\nMAX_JOBS_SUBMITTED = 1000000\n"
          "MAX_JOBS_PER_SUBMISSION = 1000000\nSEC_MAX_LINKS_PER_SOURCE = 100000\n")
MIB = 1024 * 1024
WITHIN_S = 900.0
LEASE_S = 2400.0


class PlayedStarter(Actor):
    """Of one run: it runs until it is told to stop."""

    def __init__(self, run_id: str, shadow: Address) -> None:
        self._run_id, self._shadow = run_id, shadow

    def started(self) -> None:
        """The program executes."""
        now_s = self.context.now_s()
        self.context.tell(self._shadow, RunBegan(run_id=self._run_id, when_s=now_s, pid=7, scratch_dir="/scratch"))

    def receive(self, delivery: Delivery) -> None:
        """It is stopped, or its end is known at home."""
        if isinstance(delivery.message, StopRun):
            self.context.tell(self._shadow, RunExited(
                run_id=self._run_id, cause="killed", usage=Usage(user_cpu_s=1.0, wall_s=1.0, memory_kib=1024),
                when_s=self.context.now_s(), exit_code=-1, exit_signal=9))
        else:
            self.context.stop_actor(self.context.address.actor)


class PlayedExecute(Actor):
    """The startd and the starter host of a machine with so many slots."""

    def __init__(self, node: str, collector: str, machine: str, slots: int) -> None:
        self._node, self._collector, self._machine, self._slots = node, collector, machine, slots
        self._granted = 0

    def started(self) -> None:
        """Advertise all slots; those that are taken do not say so, and are not matched again as nothing is idle."""
        if self.context.address.actor != "startd":
            return
        for number in range(self._slots):
            self.context.tell(Address(self._collector, "collector"), UpdateAd(
                ad_kind=AdKind.SLOT, ad=self._slot_ad(number, f"slot{number}@{self._machine}"),
                private=slot_change(number).private, lifetime_s=86_400))

    def _slot_ad(self, number: int, name: str) -> bytes:
        ad = ClassAd.from_bytes(slot_change(number).ad)
        ad.update({"Name": name, "Machine": self._machine, "MyAddress": self._node, "StartdIpAddr": self._node,
                   "Played": True})
        return ad.to_bytes()

    def receive(self, delivery: Delivery) -> None:
        """Whatever is asked is granted."""
        message, context = delivery.message, self.context
        if isinstance(message, RequestClaim):
            self._granted += 1
            claim_id = f"{self._node}#1#{self._granted}"
            context.reply(delivery, ClaimGranted(
                claim_id=claim_id, secret=f"secret of {claim_id}", slot_name=message.slot_name,
                slot_ad=self._slot_ad(1, message.slot_name), starter_node=self._node, lease_s=LEASE_S))
        elif isinstance(message, RenewClaims):
            context.reply(delivery, ClaimsRenewed())
        elif isinstance(message, ReleaseClaim):
            context.reply(delivery, Done())
        elif isinstance(message, (ActivateClaim, ReattachRun)):
            name, shadow = f"starter/{message.run_id}", delivery.sender
            known = context.system.actor(name) is not None
            if not known:
                context.system.spawn(name, lambda: PlayedStarter(message.run_id, shadow))
            context.reply(delivery, Activated(run_id=message.run_id) if isinstance(message, ActivateClaim)
                          else Reattached(run_id=message.run_id, pid=7, ended=False))


def play(folder: str, slots: int, machine: str) -> None:
    """The process of the execute side, until it is killed."""
    from twisted.internet import reactor

    office = PostOffice(reactor, random=random.Random(os.urandom(8)), process="startd", uid_domain="here",
                        credentials=PoolFiles.below(f"{folder}/pool").credentials())
    system = ActorSystem(clock=reactor, wall_clock=time.time, post=office, authorize=lambda identity, level: True,
                         random=random.Random(os.urandom(8)))
    node = office.listen_tls("127.0.0.1", 0)
    for actor in ("startd", "starter-host"):
        system.spawn(actor, lambda: PlayedExecute(node, f"unix:{folder}/run/collector.sock", machine, slots),
                     inbox_limit=1_000_000)
    reactor.run()  # type: ignore[attr-defined]


def submit_side(pool: PersonalPool) -> list[int]:
    """Its processes."""
    return [pid for pid, command in pool.processes().items()
            if any(f"condor_actors.services {name}" in command for name in SUBMIT_SIDE)]


def measure(pool: PersonalPool, jobs: int) -> None:
    """Have so many run, and print what they cost."""
    machine = pool.run("condor_status", "-af", "Machine").split()[0]
    played = subprocess.Popen([sys.executable, __file__, "--play", str(pool.dir), "--jobs", str(jobs), "--machine",
                               machine])
    try:
        until(lambda: pool.run("condor_status", "-constraint", "Played", "-af", "Name").count("\n") == jobs,
              "all slots in the collector", WITHIN_S)
        before = {pid: (cpu_s(pid), resident_bytes(pid)) for pid in submit_side(pool)}
        began_s = time.monotonic()
        pool.submit("executable = /bin/sleep\narguments = 100000\ntransfer_executable = false\nrequest_memory = 1MB\n"
                    f"requirements = TARGET.Played\nlog = job.log\nqueue {jobs}\n")

        def running() -> int:
            return int(pool.run("condor_q", "-all", "-totals").split(" running")[0].split()[-1])

        last = 0
        while (now := running()) < jobs:
            took_s = time.monotonic() - began_s
            if now != last:
                print(f"{took_s:6.1f} s: {now} running", flush=True)
            last = now
            assert took_s < WITHIN_S, f"{now} of {jobs} jobs run after {took_s:.0f} s"
            time.sleep(2.0)
        took_s = time.monotonic() - began_s
        used_s = sum(cpu_s(pid) - before.get(pid, (0.0, 0))[0] for pid in submit_side(pool))
        memory = {pid: resident_bytes(pid) for pid in submit_side(pool)}
        grown = sum(memory.values()) - sum(size for _, size in before.values())
        asked_s = time.perf_counter()
        pool.run("condor_q", "1.77")
        asked_s = time.perf_counter() - asked_s
        print(f"| {jobs:,} running | after {took_s:.0f} s | {1e3 * used_s / jobs:.2f} ms of CPU each | "
              f"{sum(memory.values()) / MIB:,.0f} MiB, {grown / jobs / 1024:.1f} KiB each | "
              f"condor_q of one: {asked_s:.2f} s |", flush=True)
        began_s = time.monotonic()
        pool.run("condor_rm", "-all")
        until(lambda: "0 jobs" in pool.run("condor_q", "-all", "-totals"), "all jobs gone", WITHIN_S)
        print(f"| all removed | after {time.monotonic() - began_s:.0f} s |", flush=True)
    finally:
        played.kill()
        played.wait()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Many running jobs on one submit side.")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--play", metavar="FOLDER", help="be the execute side of the pool there")
    parser.add_argument("--machine", default="")
    options = parser.parse_args()
    if options.play:
        play(options.play, options.jobs, options.machine)
        return
    with new_pool(1, CONFIG) as pool:
        measure(pool, options.jobs)


if __name__ == "__main__":
    main()
