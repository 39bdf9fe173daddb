"""A real startd and its starter host, with a test in the place of everybody who talks to them.

The test speaks as negotiator, schedd and shadow over the real sockets and over TLS, runs real programs, rewrites the
policy, stops and kills the processes.  What became of the slots is read in the startd's own log, where each change of
place is a line.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from contextlib import suppress
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.messages.admin import CancelDrain, Drain, Reconfigure, Shutdown, VacateSlots
from condor_actors.messages.advertise import AdKind, AdsChanged, SubscribeAds
from condor_actors.messages.claim import ClaimActivity, ClaimGranted, ReleaseClaim, RequestClaim
from condor_actors.messages.negotiate import MatchNotice
from condor_actors.messages.run import ActivateClaim, ContinueRun, OutputsReceived, RunBegan, StopRun, SuspendRun
from condor_actors.wire.blocking import Client, LinkLost, RequestRefused, TimedOut, WireError, connect
from condor_actors.wire.certificates.authority import PoolFiles, lend_proxy
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from tests.pool_fixture import PersonalPool, until

__all__ = ["CONFIG", "Record", "SlotBench"]

CONFIG = """
DAEMON_LIST = MASTER COLLECTOR STARTD
STARTD_DEBUG = D_FULLDEBUG
MASTER_BACKOFF_CONSTANT = 0
POLLING_INTERVAL = 100000
OWNER_SENSORS =
RANK = TARGET.Better ?: 0
"""
"""Nothing but the test makes the startd look at its policy, and nobody else gives its slots away."""

POLICY = {
    "START": "True", "IS_OWNER": "False", "RUNBENCHMARKS": "False", "WANT_SUSPEND": "True", "SUSPEND": "False",
    "CONTINUE": "False", "PREEMPT": "False", "KILL": "False", "WANT_VACATE": "True", "MAXJOBRETIREMENTTIME": "0",
    "MACHINEMAXVACATETIME": "1000", "MATCH_TIMEOUT": "1000", "KILLING_TIMEOUT": "1000",
}
LINE = re.compile(r"slot(\d+)@\S+: (\w+/\w+)(?: -> (\w+/\w+))? \((\w+)")
PATIENT = ": > {mark}; exec sleep 1000"
STUBBORN = 'trap "" TERM; : > {mark}; while :; do sleep 0.1; done'
LEASE_S = 100_000.0
PATIENCE_S = 60.0


@attrs.frozen
class Record:
    """What a slot did: where it was, what happened, where it is."""

    slot: int
    before: str
    event: str
    after: str


class SlotBench:
    """Drives one real startd through the transitions of its slots.

    Args:
        pool: of :data:`CONFIG`.
        slots: how many it has.
    """

    def __init__(self, pool: PersonalPool, slots: int) -> None:
        self.pool = pool
        self.slots = range(1, slots + 1)
        self.records: list[Record] = []
        self._log = pool.dir / "log" / "StartdLog"
        self._offset = 0
        config = load_config(environ={"CONDOR_CONFIG": pool.environment["CONDOR_CONFIG"]})
        self._credentials = self._shadow_of_ann(PoolFiles.of(config))
        self._collector = connect(f"unix:{pool.dir}/run/collector.sock")
        self._collector.ask("collector", SubscribeAds(ad_kinds=(AdKind.SLOT,), subscriber="tool"))
        self._capabilities: dict[int, str] = {}
        self._names: dict[int, str] = {}
        self._claims: dict[int, ClaimGranted] = {}
        self._runs: dict[int, str] = {}
        self._count = 0
        self._started: list[str] = []
        self._policy = dict(POLICY)
        self._before: Counter[tuple[int, str]] = Counter()
        self._startd_line: Client | None = None
        self._host_line: tuple[str, Client] | None = None
        self.rest()

    def _shadow_of_ann(self, files: PoolFiles) -> ToolCredentials:
        """What the schedd of this machine lends to the shadows of the owner of the bench's claims."""
        own = files.credentials()
        assert own is not None
        lent = lend_proxy(own, f"shadow:ann@{own.identity().host}")
        paths = {name: self.pool.work / f"ann.{name}" for name in ("certificate", "key")}
        paths["certificate"].write_bytes(lent.chain)
        paths["key"].write_bytes(lent.key)
        return ToolCredentials(certificate=str(paths["certificate"]), key=str(paths["key"]), ca=str(files.ca))

    # ---- what happened

    def read(self) -> list[Record]:
        """Everything so far."""
        with self._log.open() as file:
            file.seek(self._offset)
            text = file.read()
        text = text[:text.rfind("\n") + 1]
        self._offset += len(text.encode())
        self.records += [Record(int(number), before, event, after or before)
                         for number, before, after, event in LINE.findall(text)]
        return self.records

    def place(self, slot: int) -> str:
        """Where a slot is."""
        return next((each.after for each in reversed(self.read()) if each.slot == slot), "Owner/Idle")

    def _happened(self) -> Counter[tuple[int, str]]:
        return Counter((each.slot, each.event) for each in self.read())

    def _times(self, slot: int, event: str) -> int:
        return self._happened()[slot, event]

    def until(self, event: str, slot: int, times: int) -> None:
        """Until an event has happened to a slot more than ``times`` times."""
        until(lambda: self._times(slot, event) > times or None, f"{event} at slot {slot}: {self.records[-9:]}")

    # ---- lines

    @property
    def startd(self) -> Client:
        """A line to the startd that lives now."""
        if self._startd_line is None:
            self._startd_line = until(self._dial_startd, "the startd listens")
        return self._startd_line

    def _dial_startd(self) -> Client | None:
        try:
            return connect(f"unix:{self.pool.dir}/run/startd.sock")
        except WireError:
            return None

    def host(self, node: str) -> Client:
        """A line to the starter host there, as shadows have it."""
        if self._host_line is None or self._host_line[0] != node:
            if self._host_line is not None:
                self._host_line[1].close()
            self._host_line = (node, connect(node, self._credentials))
        return self._host_line[1]

    def _hear_capabilities(self) -> None:
        try:
            while True:
                news = self._collector.receive(0.05)
                for change in news.changes if isinstance(news, AdsChanged) else ():
                    number = re.match(r"slot(\d+)@", change.name)
                    if number and change.private:
                        self._names[int(number[1])] = change.name
                        secret = ClassAd.from_bytes(change.private).get_str("Capability")
                        self._capabilities[int(number[1])] = secret
        except TimedOut:
            return

    def close(self) -> None:
        """Hang up."""
        for line in (self._collector, self._startd_line, self._host_line[1] if self._host_line else None):
            if line is not None:
                line.close()

    def _ask(self, actor: str, message: Any) -> Any:
        return self.startd.ask(actor, message, PATIENCE_S)

    # ---- actions: each returns when it is done

    def policy(self, **changes: str) -> None:
        """Other expressions, at once."""
        self._policy |= changes
        path = self.pool.dir / "config.d" / "20-policy"
        path.write_text("".join(f"{name} = {value}\n" for name, value in self._policy.items()))
        self._ask("admin", Reconfigure())

    def name(self, slot: int) -> str:
        """Its full name."""
        until(lambda: self._hear_capabilities() or self._names.get(slot), f"slot {slot} in the collector")
        return self._names[slot]

    def match(self, slot: int) -> None:
        """As the negotiator does."""
        self._ask("startd", MatchNotice(slot_name=self.name(slot), submitter="ann@x", schedd_address=""))

    def _wish(self, slot: int, job: str) -> RequestClaim:
        return RequestClaim(slot_name=self.name(slot), capability=self._capabilities[slot], job_ad=job.encode(),
                            owner="ann@x", submitter="ann@x", schedd_name="bench", lease_s=LEASE_S)

    def claim(self, slot: int) -> None:
        """As a schedd does; again when what it was told of the slot is out of date."""
        def granted() -> ClaimGranted | None:
            answer = self._ask("startd", self._wish(slot, self._job("")))
            return answer if isinstance(answer, ClaimGranted) else None

        self._claims[slot] = until(granted, f"slot {slot} is claimed")

    def better(self, slot: int) -> None:
        """Another schedd comes with a job that the machine likes better."""
        before = self._times(slot, "EvictRequested")

        def seen() -> bool:
            self.startd.tell("startd", self._wish(slot, self._job("") + "Better = 1\n"))
            return self._times(slot, "EvictRequested") > before

        until(lambda: seen() or None, "someone better has come")

    def _job(self, code: str) -> str:
        words = code.replace("\\", "\\\\").replace('"', '\\"')
        return (f'ClusterId = {self._count}\nProcId = 0\nCmd = "/bin/sh"\nArguments = "-c \'{words}\'"\n'
                'Owner = "ann"\nUser = "ann@x"\nIwd = "/"\nTransferExecutable = false\nShouldTransferFiles = "YES"\n'
                "JobUniverse = 5\nRequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\nRequirements = true\n")

    def run(self, slot: int, program: str = PATIENT) -> None:
        """As a shadow does, until the program has begun."""
        self._count += 1
        claim, run_id = self._claims[slot], f"{self._count}.0#1"
        mark = self.pool.work / f"began.{self._count}"
        times = self._times(slot, "RunStarted")
        line = self.host(claim.starter_node)
        line.ask("starter-host", ActivateClaim(
            claim_id=claim.claim_id, secret=claim.secret, run_id=run_id, lease_s=LEASE_S,
            job_ad=self._job(program.format(mark=mark)).encode()), PATIENCE_S)
        while not isinstance(word := line.receive(PATIENCE_S), RunBegan) or word.run_id != run_id:
            pass
        self._runs[slot] = run_id
        self._started.append(run_id)
        until(lambda: mark.exists() or None, f"{run_id} runs")
        self.until("RunStarted", slot, times)

    def stubborn(self, slot: int) -> None:
        """Run a program that does not go when it is asked to."""
        self.run(slot, STUBBORN)

    def _tell_run(self, slot: int, message: object) -> None:
        self.host(self._claims[slot].starter_node).tell(f"starter/{self._runs[slot]}", message)

    def stop(self, slot: int) -> None:
        """The shadow ends the run."""
        times = self._times(slot, "RunFinished")
        self._tell_run(slot, StopRun(run_id=self._runs[slot], how="fast"))
        self.until("RunFinished", slot, times)

    def halt(self, slot: int) -> None:
        """condor_suspend."""
        times = self._times(slot, "UserSuspended")
        self._tell_run(slot, SuspendRun(run_id=self._runs[slot]))
        self.until("UserSuspended", slot, times)

    def unhalt(self, slot: int) -> None:
        """condor_continue."""
        times = self._times(slot, "UserSuspended")
        self._tell_run(slot, ContinueRun(run_id=self._runs[slot]))
        self.until("UserSuspended", slot, times)

    def release(self, slot: int) -> None:
        """The schedd gives the claim up."""
        claim = self._claims[slot]
        self._ask("startd", ReleaseClaim(claim_id=claim.claim_id, secret=claim.secret))

    def vacate(self, slot: int) -> None:
        """condor_vacate."""
        self._ask("startd", VacateSlots(slots=(self.name(slot),)))

    def fast(self, slot: int) -> None:
        """condor_vacate -fast."""
        self._ask("startd", VacateSlots(slots=(self.name(slot),), fast=True))

    def graceful(self, slot: int) -> None:
        """condor_drain -graceful; all slots."""
        self._ask("startd", Drain(how="graceful"))

    def quick(self, slot: int) -> None:
        """condor_drain -quick; all slots."""
        self._ask("startd", Drain(how="quick"))

    def drainfast(self, slot: int) -> None:
        """condor_drain -fast; all slots."""
        self._ask("startd", Drain(how="fast"))

    def peaceful(self, slot: int) -> None:
        """A drain that lets everything finish; all slots."""
        self._ask("startd", Drain(how="peaceful"))

    def drainstart(self, slot: int) -> None:
        """condor_drain -start: what is free takes jobs meanwhile."""
        self._ask("startd", Drain(how="graceful", start_expr="True"))

    def undrain(self, slot: int) -> None:
        """condor_drain -cancel."""
        self._ask("startd", CancelDrain())

    def off(self, slot: int) -> None:
        """condor_off -peaceful; all slots."""
        times = self._times(slot, "DrainRequested")
        with suppress(LinkLost):  # a startd with nothing to wait for may be gone before it has answered
            self._ask("admin", Shutdown(how="peaceful"))
        self.until("DrainRequested", slot, times)

    def late(self, slot: int) -> None:
        """Words of the starter host that crossed an order on their way: a run begins, and ends."""
        claim = self._claims[slot].claim_id
        for event, activity in (("RunStarted", "busy"), ("RunFinished", "idle")):
            times = self._times(slot, event)
            self.startd.tell("startd", ClaimActivity(claim_id=claim, activity=activity, job_id="0.0"))
            self.until(event, slot, times)

    # ---- processes

    def hold(self, slot: int) -> None:
        """The starter host stands still."""
        self.pool.kill("starter-host", signal.SIGSTOP)

    def unhold(self, slot: int) -> None:
        """It goes on."""
        self.pool.kill("starter-host", signal.SIGCONT)

    def killhost(self, slot: int) -> None:
        """The starter host dies, with all it had; until the startd has drawn its conclusions."""
        claimed = [each for each in self.slots if self.place(each).startswith("Claimed")]
        times = {each: self._times(each, "ClaimCleared") for each in claimed}
        self.pool.kill("starter-host")
        if self._host_line is not None:
            self._host_line[1].close()
        self._host_line, self._started = None, []
        for each in claimed:
            self.until("ClaimCleared", each, times[each])

    def killstartd(self, slot: int) -> None:
        """The startd dies, and is started again."""
        old = self.pool.kill("startd")
        self.startd.close()
        self._startd_line = None
        self.pool.until_restarted("startd", old)
        assert self.startd

    # ---- sequences

    def go(self, way: str) -> None:
        """Do one thing after the other.

        ``2:claim``: at another slot than the first; ``NAME=value,…``: a policy; ``~Event``: until it has happened
        since the last action began.
        """
        for word in way.split():
            number, colon, rest = word.partition(":")
            slot, action = (int(number), rest) if colon and number.isdigit() else (1, word)
            if action.startswith("~"):
                self.until(action[1:], slot, self._before[slot, action[1:]])
                self._before[slot, action[1:]] = self._times(slot, action[1:])
                continue
            self._before = self._happened()
            if "=" in action:
                self.policy(**dict(pair.split("=", 1) for pair in action.split(",")))
            else:
                getattr(self, action)(slot)

    def rest(self) -> None:
        """Everything is free, in service and as it was at first."""
        if "starter-host" in self.pool.daemons():
            self.unhold(1)
        try:
            self._ask("startd", CancelDrain())
        except RequestRefused:
            pass
        self._ask("startd", VacateSlots(fast=True))
        if any(self.place(slot) == "Matched/Idle" for slot in self.slots):
            self.policy(IS_OWNER="True")
        self.policy(**POLICY)
        for slot in self.slots:
            until(lambda slot=slot: self.place(slot) == "Unclaimed/Idle" or None,
                  f"slot {slot} is free, not {self.place(slot)}")
        for run_id in self._started:
            if self._host_line is not None:
                self._host_line[1].tell(f"starter/{run_id}", OutputsReceived(run_id=run_id))
        self._started.clear()
