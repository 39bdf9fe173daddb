"""A schedd, a shadow host and an execute side that is only played, on the in-memory network.

Use::

    pool = SubmitPool(tmp_path)
    cluster = pool.submit(b'Cmd = "/bin/true"\n', procs=3)
    pool.match()                       # what the negotiator would do
    pool.run()
    pool.execute.finish("1.0#1", exit_code=0)
"""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor
from condor_actors.actors.workers import at_once
from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.daemons.schedd.completion_mail import CompletionMail
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.daemons.schedd.job_accounts import User
from condor_actors.daemons.schedd.schedd import ScheddDaemon
from condor_actors.daemons.schedd.schedd_edges import ScheddEdges
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.daemons.shadow.checkpoints.removal import CheckpointRemover, removal_settings
from condor_actors.daemons.shadow.host_daemon import ShadowHostDaemon
from condor_actors.daemons.shadow.input_files import FileCache
from condor_actors.daemons.shadow.shadow_host import HostEdges
from condor_actors.messages.claim import ClaimGranted, ClaimsRenewed, ReleaseClaim, RenewClaims, RequestClaim
from condor_actors.messages.envelope import Address, Delivery, Done, Identity, Refused
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.negotiate import Match, MatchesMade, NegotiateRequests
from condor_actors.messages.queue import ActOnJobs, JobAction, QueryJobs
from condor_actors.messages.run import (
    ActivateClaim,
    Activated,
    OutputsReceived,
    Reattached,
    ReattachRun,
    RunBegan,
    RunExited,
    StopRun,
    Usage,
)
from condor_actors.messages.submission import ReserveCluster, SubmitPage
from condor_actors.store.queue_store import QueueStore
from condor_actors.userlog.writer import UserLogs
from tests.harness.local_post import LocalNetwork, Probe

SCHEDD = "<schedd:1>"
EXECUTE = "<execute:1>"
USER = pwd.getpwuid(os.getuid()).pw_name
PEOPLE = Identity(name=f"{USER}@test", method="local", uid=os.getuid())
CENTRAL = Identity(name="condor@pool", roles=frozenset({"negotiator"}), method="tls")
SLOT_AD = b'Name = "slot1@execute"\nRequirements = true\nCpus = 1\nMemory = 1024\nDisk = 100000\nArch = "X86_64"\n'


def short(run_id: str) -> str:
    """A run's name in its own queue."""
    return run_id.partition("@")[0]


class PlayedExecute(Actor):
    """A startd and a starter host in one, which do what the test says.

    Attributes:
        runs: what was activated and not yet freed, with where its shadow is; by run id without the schedd's name
            (``1.0#1``), as tests say it everywhere here.
        granted, released: claim ids.
        lies: fields of a grant that are to be others than they are.
        forget: answer reattachment with "not found".
    """

    def __init__(self) -> None:
        self.runs: dict[str, tuple[ActivateClaim | ReattachRun, Address]] = {}
        self.log: list[Any] = []
        self.granted: list[str] = []
        self.released: list[str] = []
        self.activations: list[ActivateClaim] = []
        self.forget = False
        self.lies: dict[str, Any] = {}
        self.exits: dict[str, RunExited] = {}
        self.began: dict[str, float] = {}

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        self.log.append(message)
        if isinstance(message, RequestClaim):
            claim_id = f"{EXECUTE}#1#{len(self.granted) + 1}"
            self.granted.append(claim_id)
            self.context.reply(delivery, attrs.evolve(ClaimGranted(
                claim_id=claim_id, secret="s" + claim_id, slot_name=message.slot_name, slot_ad=SLOT_AD,
                starter_node=EXECUTE, lease_s=2400.0), **self.lies))
        elif isinstance(message, ReleaseClaim):
            self.released.append(message.claim_id)
            self.context.reply(delivery, Done())
        elif isinstance(message, RenewClaims):
            self.context.reply(delivery, ClaimsRenewed())
        elif isinstance(message, ActivateClaim):
            self.activations.append(message)
            self._adopt(message, delivery)
            self.context.reply(delivery, Activated(run_id=message.run_id))
        elif isinstance(message, ReattachRun):
            if short(message.run_id) not in self.runs:
                self.context.reply(delivery, Refused(code="not-found", text="no such run"))
                return
            self._adopt(message, delivery)
            exited = self.exits.get(short(message.run_id))
            self.context.reply(delivery, Reattached(run_id=message.run_id, pid=1, ended=exited is not None,
                                                    began_s=self.began.get(short(message.run_id), 0.0)))
            if exited is not None:
                self.tell_shadow(short(message.run_id), exited)

    def _adopt(self, message: ActivateClaim | ReattachRun, delivery: Delivery) -> None:
        self.runs[short(message.run_id)] = (message, delivery.sender)
        name = f"starter/{message.run_id}"
        if self.context.system.actor(name) is None:
            self.context.system.spawn(name, lambda: _PlayedStarter(self, message.run_id))

    def tell_shadow(self, run_id: str, message: Any) -> None:
        self.context.tell(self.runs[run_id][1], message)

    def begin(self, run_id: str) -> None:
        when_s = self.began[run_id] = self.context.now_s()
        self.tell_shadow(run_id, RunBegan(run_id=self.runs[run_id][0].run_id, when_s=when_s, pid=7,
                                          scratch_dir="/scratch"))

    def finish(self, run_id: str, *, exit_code: int = 0, exit_signal: int = -1, cause: str = "exited",
               outputs: tuple[FileEntry, ...] = (), **more: Any) -> None:
        now_s = self.context.now_s()
        exited = RunExited(run_id=self.runs[run_id][0].run_id, cause=cause, when_s=now_s,
                           usage=Usage(user_cpu_s=1.5, wall_s=2.0, memory_kib=2048),
                           began_s=self.began.pop(run_id, now_s - 2.0 if exit_code >= 0 else 0.0),
                           exit_code=exit_code, exit_signal=exit_signal, outputs=outputs, **more)
        self.exits[run_id] = exited
        self.tell_shadow(run_id, exited)


class _PlayedStarter(Actor):
    def __init__(self, execute: PlayedExecute, run_id: str) -> None:
        self._execute = execute
        self._run_id = run_id

    def receive(self, delivery: Delivery) -> None:
        message = delivery.message
        self._execute.log.append(message)
        if isinstance(message, OutputsReceived):
            self._execute.runs.pop(short(self._run_id), None)
            self._execute.exits.pop(short(self._run_id), None)
            self.context.stop_actor(f"starter/{self._run_id}")
        elif isinstance(message, StopRun):
            self._execute.finish(short(self._run_id), cause="killed", exit_code=-1)


class NoBulk:
    """No content travels in bulk here."""

    def put(self, node: str, key: str, digest: str, size_bytes: int, source: str) -> Deferred[None]:
        return succeed(None)

    def fetch_bytes(self, node: str, key: str, digest: str, limit_bytes: int) -> Deferred[bytes]:
        return succeed(b"")

    def fetch_file(self, node: str, key: str, digest: str, size_bytes: int, target: str,
                   mode: int = 0o644) -> Deferred[None]:
        return succeed(None)


class NoLauncher:
    """Nothing starts here."""

    def launch(self, plan: Any, began: Any, failed: Any, ended: Any) -> Any:
        raise OSError("nothing starts here")


class Mails:
    """Keeps what would be sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, str]] = []

    def send(self, to: str, subject: str, body: str) -> None:
        self.sent.append((to, subject, body))


class PlayedProcesses:
    """Shadow host "processes" are actor systems of the same network."""

    def __init__(self, pool: SubmitPool) -> None:
        self._pool = pool
        self._next = 1000
        self.alive: dict[int, str] = {}

    def start(self, host_id: str, owner: str) -> int:
        self._next += 1
        pid = self._next
        self.alive[pid] = f"<host:{pid}>"
        self._pool.start_host(host_id, pid)
        return pid

    def birth(self, pid: int) -> str:
        return f"born-{pid}" if pid in self.alive else ""

    def kill(self, pid: int, birth: str) -> None:
        self._pool.kill_host(pid)

    def find_user(self, name: str) -> User | None:
        return User(name, os.getuid(), os.getgid())


class SubmitPool:
    """A schedd and its shadow hosts on a simulated post."""

    def __init__(self, folder: Path, *, become: Any = lambda name, uid, gid: None, **settings: Any) -> None:
        self.become = become
        self.net = LocalNetwork()
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(exist_ok=True)
        self.settings = ScheddSettings(name="schedd@test", machine="test", uid_domain="test",
                                       spool=str(folder / "spool"), **settings)
        self.processes = PlayedProcesses(self)
        self.mails = Mails()
        self.net.system(EXECUTE)
        self.execute = PlayedExecute()
        self.net.systems[EXECUTE].spawn("startd", lambda: self.execute)
        self.net.systems[EXECUTE].spawn("starter-host", lambda: _Forward(self.execute))
        people = self.net.system("<tool:1>", identity=PEOPLE)
        self.tool = self.net.probe(people)
        central = self.net.system("<central:1>", identity=CENTRAL)
        self.central = self.net.probe(central)
        self.start_schedd()

    # ---- processes

    def start_schedd(self) -> None:
        self.store = QueueStore(self.folder / "spool")
        world = self.net.world(SCHEDD)
        edges = ScheddEdges(
            store=self.store, processes=self.processes, mint=lambda owner: b"", spool=Spool(self.folder / "spool"),
            history=HistoryQuestions(self.store.history, at_once),
        )
        config = load_config(subsystem="SCHEDD", environ={"CONDOR_CONFIG": "ONLY_ENV"})
        self.schedd = ScheddDaemon(self.settings, world, edges, config)
        self.net.adopt(SCHEDD, self.schedd.system)
        self.schedd.start()
        self.net.run(0.1)

    def kill_schedd(self) -> None:
        self.net.crash(SCHEDD)
        self.store.close()

    def start_host(self, host_id: str, pid: int) -> None:
        node = f"<host:{pid}>"
        world = self.net.world(node, identity=attrs.evolve(PEOPLE, pid=pid))
        edges = HostEdges(
            schedd=Address(SCHEDD, "schedd"), host_id=host_id, logs=UserLogs(self.net.clock, sync=False),
            cache=FileCache(), bulk=NoBulk(), launcher=NoLauncher(), domain="test",
            remover=CheckpointRemover(removal_settings(load_config(environ={"CONDOR_CONFIG": "ONLY_ENV"})),
                                      NoLauncher(), at_once, self.net.clock.seconds),
            mail=CompletionMail(self.mails, "test"),
            become=self.become, use_credential=lambda bundle: None, pid=pid,
            in_thread=at_once,
            leave=lambda: (self.net.clock.callLater(0.0, self.kill_host, pid), None)[1],
        )
        host = ShadowHostDaemon(world, edges)
        self.net.adopt(node, host.system)
        host.start()

    def kill_host(self, pid: int) -> None:
        node = self.processes.alive.pop(pid, "")
        if node:
            self.net.crash(node)

    def owner_host_pid(self) -> int:
        """The pid of the user's shadow host."""
        actor = self.schedd.actor
        assert actor is not None
        return actor.core.hosts.by_owner[USER].pid

    # ---- words

    def ask(self, message: Any, probe: Probe | None = None, node: str = SCHEDD) -> Any:
        probe = probe or self.tool
        before = len(probe.answers)
        probe.ask(Address(node, "schedd"), message)
        self.net.run(0.2)
        assert len(probe.answers) == before + 1, f"no answer to {message}"
        return probe.answers[-1]

    def run(self, span_s: float = 1.0) -> None:
        self.net.run(span_s)

    def submit(self, ad: bytes = b"", procs: int = 1, **page: Any) -> int:
        cluster = self.ask(ReserveCluster()).cluster_id
        text = (f'Cmd = "/bin/true"\nIwd = "{self.home}"\nRequirements = true\nShouldTransferFiles = "YES"\n'
                "TransferExecutable = false\nRequestCpus = 1\nRequestMemory = 10\nRequestDisk = 10\n").encode() + ad
        rows = page.pop("proc_ads", (b"",) * procs)
        answer = self.ask(SubmitPage(cluster_id=cluster, page=0, cluster_ad=text, procs=rows, first_proc=0, last=True,
                                     **page))
        assert type(answer).__name__ == "Submitted", answer
        return int(cluster)

    def match(self, count: int = 100) -> int:
        """Give the submitter as many slots as it wants, ``count`` at most."""
        answer = self.ask(NegotiateRequests(cycle=1, submitter=f"{USER}@test"), self.central)
        matches: list[Match] = []
        for request in answer.requests:
            for _ in range(min(request.count, count - len(matches))):
                matches.append(Match(
                    autocluster=request.autocluster, job_id=request.job_id, slot_name=f"slot{len(matches)}@execute",
                    startd_address=EXECUTE, slot_ad=SLOT_AD, capability="c"))
        self.central.tell(Address(SCHEDD, "schedd"),
                          MatchesMade(cycle=1, submitter=f"{USER}@test", matches=tuple(matches)))
        self.run()
        return len(matches)

    def act(self, action: str, cluster: int, proc: int = -1) -> Any:
        return self.ask(ActOnJobs(action=JobAction(action), ids=((cluster, proc),)))

    def jobs(self, **question: Any) -> list[ClassAd]:
        return [ClassAd.from_bytes(ad) for ad in self.ask(QueryJobs(**question)).ads]

    def history(self, **question: Any) -> list[ClassAd]:
        return self.jobs(source="history", **question)

    def status(self, cluster: int, proc: int = 0) -> int:
        """JobStatus in the queue; 0: it is not there."""
        found = self.jobs(ids=((cluster, proc),))
        return found[0].get_int("JobStatus") if found else 0


class _Forward(Actor):
    def __init__(self, execute: PlayedExecute) -> None:
        self._execute = execute

    def receive(self, delivery: Delivery) -> None:
        self._execute.context = self.context
        self._execute.receive(delivery)
