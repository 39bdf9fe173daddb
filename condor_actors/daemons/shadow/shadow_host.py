"""The shadow host: one process per owner of jobs, with a shadow for each of the owner's runs.

Theory: the host runs as the owner and belongs to the schedd only by a link.  When the schedd dies the runs go on; when
it comes back the host says hello with what is alive and what has ended meanwhile.  A host that has nothing to keep ends
with its link.  Ends that nobody has committed are the process's (:class:`HostRecord`), so the host's actor and its
shadows crash each for itself: a rebuilt host goes on with the shadows that live, and in place of a shadow that crashed
another takes the run up as it would a dead host's: its program goes on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import attrs
from twisted.python.failure import Failure

from condor_actors import accounts
from condor_actors.actors import Actor, ChildDown
from condor_actors.actors.workers import InWorker
from condor_actors.actors.world import make_secret
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.chirp_rights import ChirpLimits
from condor_actors.cores.shadow.shadow_events import ScheddBack, Settled
from condor_actors.cores.trace_spans import TellSpan
from condor_actors.daemons.schedd.completion_mail import CompletionMail
from condor_actors.daemons.shadow.become_user import home_environment
from condor_actors.daemons.shadow.checkpoints.kept_lists import lists_of
from condor_actors.daemons.shadow.checkpoints.ordered_removals import OrderedRemovals
from condor_actors.daemons.shadow.checkpoints.removal import CheckpointRemover
from condor_actors.daemons.shadow.gang_hubs import GANGS, AskGang, GangHubs
from condor_actors.daemons.shadow.grid.grid_manager import GridEdges, no_grid
from condor_actors.daemons.shadow.grid.grid_shadow import GridShadow
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, AskSchedd, RunLogged, ShadowReport
from condor_actors.daemons.shadow.input_files import FileCache
from condor_actors.daemons.shadow.local_shadow import LocalShadow
from condor_actors.daemons.shadow.shadow import Shadow
from condor_actors.daemons.shadow.shadow_edges import Bulk, RegistryAccess, ShadowEdges
from condor_actors.daemons.shadow.standard_shadow import StandardEdges, StandardShadow
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.machine.run.launch import Launcher
from condor_actors.machine.run.users import Account
from condor_actors.messages.codes import HoldCode, Universe
from condor_actors.messages.envelope import Address, Delivery, Done, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.interactive import OpenPort, OpenShell, PortData, ReadRunFile, ShellData
from condor_actors.messages.run import CheckpointRun, ContinueRun, OutputsReceived, StopRun, SuspendRun
from condor_actors.messages.shadow_host import (
    REMOVE_CHECKPOINTS,
    BecomeOwner,
    DismissHost,
    HostOrders,
    Notice,
    NoticesWritten,
    RunEnded,
    SayHello,
    ShadowHostHello,
    StartRun,
)
from condor_actors.userlog.paths import log_paths
from condor_actors.userlog.writer import UserLogs

__all__ = ["HostEdges", "HostRecord", "ShadowHostActor"]

UNSETTLED_PATIENCE_S = 2400.0
"""How long a host without a schedd keeps an end that nobody has committed."""

SCHEDD_PATIENCE_S = 30.0
NOTICES_REMEMBERED = 10_000
MAX_CRASHES = 3
"""A run whose shadow has crashed more often is given up."""
BECOME_AGAIN_S = 0.5


@attrs.frozen(kw_only=True)
class HostEdges:
    """What the host touches.

    Attributes:
        schedd: the schedd's actor.
        host_id: what the schedd calls this process.
        logs, cache, bulk: as for shadows.
        domain: the file system domain.
        mail: mails about the ends of jobs.
        launcher: starts the jobs of the local universes.
        become: makes this process the user's, for good.
        use_credential: shows this certificate from now on.
        leave: ends the process.
        pid: of the process.
        new_secret: makes the keys of transfers.
        in_thread: runs what touches the owner's files.
        standard: what jobs of the standard universe need, given the owner's part of SPOOL; None: none run here.
        grid: what jobs need that are handed to other batch systems.
        local_account: as whom jobs of the local universes run; None: as the owner. Root's own run as nobody.
        chirp: what jobs may do here while they run.
        credd: the node of this machine's credential daemon; registries: how they are reached.
        remover: has checkpoints at a URL removed that nobody needs.
        tell_span: takes the spans of jobs' traces; None: there are none.
    """

    schedd: Address
    host_id: str
    logs: UserLogs
    cache: FileCache
    bulk: Bulk
    domain: str
    mail: CompletionMail
    launcher: Launcher
    remover: CheckpointRemover
    become: Callable[[str, int, int], None]
    use_credential: Callable[[bytes], None]
    leave: Callable[[], None]
    pid: int = attrs.field(factory=os.getpid)
    new_secret: Callable[[], str] = make_secret
    in_thread: InWorker
    standard: Callable[[str], StandardEdges] | None = None
    grid: Callable[[], GridEdges] = no_grid
    local_account: Callable[[], Account | None] = lambda: None
    chirp: ChirpLimits = attrs.field(factory=ChirpLimits)
    credd: str = "unix:/nonexistent"
    registries: RegistryAccess = attrs.field(factory=RegistryAccess)
    tell_span: TellSpan | None = None


@attrs.define(eq=False, kw_only=True)
class HostRecord:
    """What the process knows, whatever becomes of its actor.

    Attributes:
        owner, spool: whose it is, and the owner's part of SPOOL; problem: why it could not become the owner's.
        runs: the order of each run by run id; ended: the ends of runs that nobody has committed.
        crashes: how often a run's shadow has crashed.
        shells: run ids by shell id.
        unlogged: those of them whose events are not in the user log yet.
        noticed: events that were written, by notice id.
        log_paths: the user logs of each run.
        removing: orders to remove checkpoints, by notice id.
    """

    owner: str = ""
    spool: str = ""
    problem: str = ""
    runs: dict[str, StartRun] = attrs.field(factory=dict)
    crashes: dict[str, int] = attrs.field(factory=dict)
    ended: dict[str, RunEnded] = attrs.field(factory=dict)
    unlogged: set[str] = attrs.field(factory=set)
    shells: dict[str, str] = attrs.field(factory=dict)
    noticed: dict[str, None] = attrs.field(factory=dict)
    log_paths: dict[str, tuple[str, ...]] = attrs.field(factory=dict)
    removing: dict[str, Notice] = attrs.field(factory=dict)


class ShadowHostActor(Actor):
    """Takes the schedd's orders and gives each run its shadow."""

    def __init__(self, edges: HostEdges, record: HostRecord) -> None:
        self._edges = edges
        self._record = record
        self._runs, self._ended, self._shells = record.runs, record.ended, record.shells
        self._of_shadows: ShadowEdges | None = None
        self._connected = False
        self._becoming: BecomeOwner | None = None
        self._held: list[Delivery] = []
        self._gangs = GangHubs(lambda: self.context)
        self._removals = OrderedRemovals(self, edges, record)

    def started(self) -> None:
        """Dial the schedd and keep dialling; after a crash of this actor, go on with the shadows that live."""
        living = self.context.children
        for name in living:
            if name.removeprefix("shadow/") not in self._runs:
                self.context.tell(Address("", name), Settled())
        for run_id in tuple(self._record.unlogged):
            self._tell_end_when_logged(run_id)
        self._removals.go_on()
        for run_id in tuple(self._runs):
            if _shadow(run_id).actor not in living:
                self._shadow_crashed(run_id, "its turn raised an error")
        self.context.watch(self._edges.schedd.node)

    def receive(self, delivery: Delivery) -> None:
        """One message of the schedd, or an event."""
        message = delivery.message
        if self._becoming is not None:
            self._held.append(delivery)
            if isinstance(message, TimerFired) and message.key == "become":
                self._go_on_becoming()
        elif delivery.sender.node not in ("", self._edges.schedd.node):
            refuse_stranger(self.context, delivery, "this shadow host")
        elif isinstance(message, HostOrders):
            self._orders(message)
        elif isinstance(message, (StopRun, SuspendRun, ContinueRun, CheckpointRun)):
            self._to_shadow(message.run_id, message)
        elif isinstance(message, (ReadRunFile, OpenShell, OpenPort)):
            self._question(message, delivery)
        elif isinstance(message, (ShellData, PortData)):
            known = self._shells.pop if message.is_last else self._shells.get
            self._to_shadow(known(message.shell_id, ""), message)
        elif isinstance(message, BecomeOwner):
            self._become(message)
        elif isinstance(message, DismissHost):
            self._leave()
        elif isinstance(message, (PeerUp, SayHello)):
            self._hello()
        elif isinstance(message, PeerDown):
            self._connected = False
            self._maybe_leave()
        elif isinstance(message, ShadowReport):
            if not isinstance(message.message, RunEnded) or self._is_news_of(message.run_id):
                self._report(message.run_id, message.message)
        elif isinstance(message, AskSchedd):
            self._ask_schedd(message.message, delivery)
        elif isinstance(message, AskGang):
            self._gangs.receive(delivery)
        elif isinstance(message, TimerFired) and message.key == GANGS:
            self._gangs.timer()
        elif isinstance(message, RunLogged):
            self._logged(message.run_id)
        elif isinstance(message, ChildDown):
            self._shadow_crashed(message.name.removeprefix("shadow/"), message.reason)
        elif isinstance(message, TimerFired) and isinstance(message.key, tuple):
            self._removals.again(message.key)
        elif isinstance(message, TimerFired) and message.key == "alone":
            self.context.log.warn("nobody wanted the ends of {count} runs", count=len(self._ended))
            self._edges.leave()
        else:
            self.context.reply(delivery, Refused(code="unknown-actor", text="a shadow host does not take this"))

    # ---- the schedd

    def _hello(self) -> None:
        self._connected = True
        self.context.cancel_timer("alone")
        self.context.tell(self._edges.schedd, ShadowHostHello(
            host_id=self._edges.host_id, owner=self._record.owner, pid=self._edges.pid,
            runs=tuple([run_id for run_id in self._runs if run_id not in self._ended]), unsettled=tuple(self._ended)))
        for run_id, ended in self._ended.items():
            if run_id not in self._record.unlogged:
                self.context.tell(self._edges.schedd, ended)
        for run_id in self._runs:
            if run_id not in self._ended:
                self.context.tell(_shadow(run_id), ScheddBack())

    def _maybe_leave(self) -> None:
        """Without a schedd, stay only for what would be lost."""
        if self._connected or set(self._runs) - set(self._ended):
            return
        if any(ended.outcome in ("exited", "hold") for ended in self._ended.values()):
            self.context.set_timer("alone", UNSETTLED_PATIENCE_S)
        else:
            self._leave()

    def _leave(self) -> None:
        """End the process when the logs are written."""
        self._edges.logs.flush().addCallback(lambda _: self._edges.leave())

    def _go_on_becoming(self) -> None:
        """Ask once more, and then take what came meanwhile."""
        becoming, self._becoming = self._becoming, None
        assert becoming is not None
        self._become(becoming)
        if self._becoming is None:
            held, self._held = self._held, []
            for delivery in held:
                self.receive(delivery)

    def _become(self, message: BecomeOwner) -> None:
        if message.credential:
            self._edges.use_credential(message.credential)
        record = self._record
        if record.owner:
            return
        try:
            self._edges.become(message.owner, message.uid, message.gid)
        except accounts.NotYet:
            self._becoming = message
            self.context.set_timer("become", BECOME_AGAIN_S)
            return
        except OSError as error:
            record.problem = f"the shadow host cannot become {message.owner}: {error}"
            self.context.log.error("{problem}", problem=record.problem)
            return
        record.owner, record.spool = message.owner, message.spool_dir
        self.context.log.info("shadow host {pid} belongs to {owner}", pid=self._edges.pid, owner=message.owner)

    def _orders(self, orders: HostOrders) -> None:
        for run_id, _ in orders.verdicts:
            self._forget(run_id)
        if orders.notices or orders.verdicts:
            self._notices(orders.notices, [run_id for run_id, _ in orders.verdicts])
        for start in orders.starts:
            self._start(start)

    # ---- runs

    def _start(self, order: StartRun) -> None:
        if order.run_id in self._ended:
            if order.run_id not in self._record.unlogged:
                self.context.tell(self._edges.schedd, self._ended[order.run_id])
            return
        if order.run_id in self._runs:
            return
        if not self._record.owner:  # never run anything with the schedd's rights
            self._report(order.run_id, RunEnded(run_id=order.run_id, outcome="hold", attributes=b"",
                                                hold_code=HoldCode.FAILED_TO_CREATE_PROCESS,
                                                reason=self._record.problem or "the shadow host has no owner"))
            return
        self._runs[order.run_id] = order
        self._begin(order)

    def _begin(self, order: StartRun) -> None:
        try:
            self.context.spawn(_shadow(order.run_id).actor, lambda: self._make_shadow(order), restart="temporary",
                               survives=True)
        except Exception as error:  # noqa: BLE001 - the door: what a job brings is that run's trouble alone
            self.context.log.failure("run {run} has no shadow", failure=Failure(), run=order.run_id)
            self._shadow_crashed(order.run_id, str(error))

    def _make_shadow(self, order: StartRun) -> Actor:
        edges, spool = self._edges, self._record.spool
        job = ClassAd.from_bytes(order.job_ad)
        self._record.log_paths[order.run_id] = log_paths(job)
        universe = job.get_int("JobUniverse", Universe.VANILLA)
        if not order.starter_node and universe == Universe.GRID:
            return GridShadow(order, edges.grid())
        if not order.starter_node:
            return LocalShadow(order, edges.launcher, edges.logs, home_environment(), edges.in_thread,
                               edges.local_account())
        its = self._of_shadows = self._of_shadows or self._make_edges()
        key = edges.new_secret()
        if edges.standard is not None and universe == Universe.STANDARD:
            return StandardShadow(order, job, its, key, edges.standard(spool))
        return Shadow(order, job, its, key)

    def _make_edges(self) -> ShadowEdges:
        """What all shadows share; whose the process is does not change any more."""
        edges, spool = self._edges, self._record.spool
        return ShadowEdges(
            logs=edges.logs, cache=edges.cache, bulk=edges.bulk, domain=edges.domain, in_thread=edges.in_thread,
            owner_uid=0 if _is_root(self._record.owner) else os.getuid(), chirp=edges.chirp, credd=edges.credd,
            tell_span=edges.tell_span, registries=edges.registries,
            kept_folder=lambda job: os.path.join(spool or "/nonexistent", "evicted", job),
            lists=lambda job: lists_of(spool, job), remover=edges.remover)

    def _is_news_of(self, run_id: str) -> bool:
        """Whether the end of a run is not known: a shadow says it again when it is asked."""
        return run_id in self._runs and run_id not in self._ended

    def _report(self, run_id: str, message: Any) -> None:
        """A shadow's word for the schedd; an end is kept until it is committed."""
        if isinstance(message, RunEnded):
            self._ended[run_id] = message
            if run_id in self._runs and not self._edges.logs.is_idle:
                self._record.unlogged.add(run_id)
                self._tell_end_when_logged(run_id)
                return
        elif isinstance(message, (ShellData, PortData)) and message.is_last:
            self._shells.pop(message.shell_id, None)
        if self._connected:
            self.context.tell(self._edges.schedd, message)
        else:
            self._maybe_leave()

    def _tell_end_when_logged(self, run_id: str) -> None:
        """The schedd hears of an end when all that was to be written of the run is: another host, should this one die
        now, would not know of it."""
        if run_id not in self._runs:
            self._record.unlogged.discard(run_id)
            return
        logged = partial(self.context.tell, SHADOW_HOST, RunLogged(run_id))
        self._edges.logs.when_written(self._record.log_paths.get(run_id, ()), logged)

    def _logged(self, run_id: str) -> None:
        """The events of a run that has ended are written."""
        unlogged, ended = self._record.unlogged, self._ended.get(run_id)
        if run_id in unlogged and ended is not None:
            unlogged.discard(run_id)
            if self._connected:
                self.context.tell(self._edges.schedd, ended)
            else:
                self._maybe_leave()

    def _shadow_crashed(self, run_id: str, reason: str) -> None:
        """Another takes the run up, whose program may still run; after some crashes the run is given up."""
        order = self._runs.get(run_id)
        if order is None or run_id in self._ended:
            return
        crashes = self._record.crashes[run_id] = self._record.crashes.get(run_id, 0) + 1
        if crashes <= MAX_CRASHES:
            self._begin(attrs.evolve(order, reattach=True))
            if self._connected:
                self._hello()  # the schedd says again what it wants of the run
        else:
            self._report(run_id, RunEnded(run_id=run_id, outcome="failed", attributes=b"", claim_usable=False,
                                          reason=f"the shadow failed: {reason}"))

    def _to_shadow(self, run_id: str, message: Any) -> None:
        if run_id in self._runs:
            self.context.tell(_shadow(run_id), message)
        elif isinstance(message, StopRun):
            self.context.log.info("run {run} is not here any more", run=run_id)

    def _question(self, message: ReadRunFile | OpenShell | OpenPort, delivery: Delivery) -> None:
        if message.run_id not in self._runs:
            self.context.reply(delivery, Refused(code="not-found", text=f"run {message.run_id} is not here"))
            return
        if isinstance(message, (OpenShell, OpenPort)):
            self._shells[message.shell_id] = message.run_id
        self.context.ask(_shadow(message.run_id), message, timeout_s=28.0,
                         then=lambda answer: self._answered(delivery, answer.message))

    def _ask_schedd(self, message: Any, delivery: Delivery) -> None:
        """A shadow's question; without a schedd it is asked again."""
        if self._connected:
            self.context.ask(self._edges.schedd, message, timeout_s=SCHEDD_PATIENCE_S,
                             then=lambda answer: self._answered(delivery, answer.message))
        else:
            self.context.reply(delivery, Refused(code="busy", text="the schedd is away"))

    def _answered(self, question: Delivery, answer: Any) -> None:
        if not hasattr(answer, "KIND"):
            answer = Refused(code="busy", text="who was asked did not answer")
        if isinstance(question.message, (OpenShell, OpenPort)) and not isinstance(answer, Done):
            self._shells.pop(question.message.shell_id, None)
        self.context.reply(question, answer)

    def _forget(self, run_id: str) -> None:
        """The run's end is committed."""
        self._ended.pop(run_id, None)
        self._record.unlogged.discard(run_id)
        self._record.crashes.pop(run_id, None)
        self._record.log_paths.pop(run_id, None)
        self._gangs.leave(run_id)
        if self._runs.pop(run_id, None) is not None:
            self.context.tell(_shadow(run_id), Settled())

    # ---- logs and mails

    def _notices(self, notices: tuple[Notice, ...], freed: list[str]) -> None:
        """Write events, and confirm those of a log when it is written: none waits for another job's log.

        What needs no log is confirmed along with the first of them.
        """
        known = list(freed)
        by_log: dict[tuple[str, ...], list[str]] = {}
        for notice in notices:
            if notice.event == REMOVE_CHECKPOINTS:
                self._removals.order(notice)
            elif notice.event < 0:
                if self._record.owner:
                    starter = Address(notice.ad.decode(), f"starter/{notice.notice_id}")
                    self.context.tell(starter, OutputsReceived(run_id=notice.notice_id))
                known.append(notice.notice_id)
            else:
                facts = ClassAd.from_bytes(notice.ad)
                by_log.setdefault(log_paths(facts), []).append(notice.notice_id)
                if self._record.owner:
                    self._note(notice, facts)
        if known and not by_log:
            self.context.tell(self._edges.schedd, NoticesWritten(notice_ids=tuple(known)))
        for paths, notice_ids in by_log.items():
            said, known = (*known, *notice_ids), []
            tell = partial(self.context.tell, self._edges.schedd)
            self._edges.logs.when_kept(paths, partial(tell, NoticesWritten(notice_ids=said)),
                                       partial(tell, NoticesWritten(notice_ids=said, waiting=True)))

    def _note(self, notice: Notice, facts: ClassAd) -> None:
        """Write an event, and mail it if its owner wants that."""
        noticed = self._record.noticed
        if notice.notice_id in noticed:
            return
        last = notice.last_proc if notice.last_proc >= 0 else notice.proc
        self._edges.logs.write(notice.event, notice.cluster, range(notice.proc, last + 1), notice.when_s, facts,
                               maybe_written=notice.maybe_written)
        noticed[notice.notice_id] = None
        if len(noticed) > NOTICES_REMEMBERED:
            del noticed[next(iter(noticed))]
        self._edges.mail.consider(notice.event, notice.cluster, notice.proc, notice.when_s, facts)


def _is_root(owner: str) -> bool:
    try:
        found = accounts.named(owner)
    except accounts.NotYet:
        return False  # root is always known
    return found is not None and found.uid == 0


def _shadow(run_id: str) -> Address:
    return Address("", f"shadow/{run_id}")


