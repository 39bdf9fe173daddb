"""The actor of the schedd: what its core decides, and what only this daemon can do."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from condor_actors.accounts import NotYet
from condor_actors.actors import CoreActor
from condor_actors.actors.supervision import StoreUnavailable
from condor_actors.classads import ClassAd
from condor_actors.cores.rights import is_user
from condor_actors.cores.schedd.factories.factories import ItemsAway
from condor_actors.cores.schedd.job_notices import RecordEpoch, RecordEvent
from condor_actors.cores.schedd.job_transitions import ForgetSpool
from condor_actors.cores.schedd.queue_operations import SaveItems
from condor_actors.cores.schedd.runs.job_spans import JobSpans
from condor_actors.cores.schedd.schedd_core import AtRest, HostHello, ScheddCore, Stop
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.schedd.shadow_host_table import (
    AssignHost,
    CheckHost,
    EndHost,
    HostChecked,
    HostStarted,
    StartHost,
)
from condor_actors.cores.site_programs.programs import SiteAdsTold
from condor_actors.daemons.schedd.epochs import daemon_record, epoch_record
from condor_actors.daemons.schedd.job_story import told, whole_story
from condor_actors.daemons.schedd.outage import StoreOutage
from condor_actors.daemons.schedd.schedd_edges import ScheddEdges
from condor_actors.daemons.schedd.spool import SPOOL_MESSAGES, SPOOL_READS
from condor_actors.effects import Effect
from condor_actors.messages.envelope import Address, Delivery, Identity, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.interactive import ConnectToJob, ConnectToPort
from condor_actors.messages.negotiate import RequestCycle
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.shadow_host import BecomeOwner, SayHello, ShadowHostHello
from condor_actors.messages.spool import FinishSpooling
from condor_actors.messages.submission import ReserveCluster
from condor_actors.messages.watch import QueryStory, Story
from condor_actors.numerals import job_numbers

__all__ = ["NewSettings", "ScheddActor"]

HISTORY_TRIM_S = 3600.0
FIRST_TRIM_S = 10.0
COLUMNS_LOOK_S = 60.0
TRIM_GAP_S = 0.1
"""Between two pieces of the history that are forgotten."""
FROM_FILES = ("history", "totals", "epochs", "transfers", "daemon")
"""Sources of jobs that a worker reads."""
CLOCK_LOOK_S = 10.0
CLOCK_SET_S = 60.0
"""A wall clock that went so far from the boot clock within a look was set."""
USERS_AGAIN_S = 0.5
"""After how long the user database is asked again whose a shadow host is to be."""


@attrs.frozen
class NewSettings:
    """Local event: the configuration was read again."""

    settings: ScheddSettings


class ScheddActor(CoreActor):
    """Feeds the core and performs what only this daemon can."""

    core: ScheddCore

    def __init__(self, make_core: Callable[[], ScheddCore], edges: ScheddEdges, my_address: Callable[[], str],
                 outage: StoreOutage, host_nodes: dict[str, Address], at_rest: list[Callable[[], None]]) -> None:
        self._edges = edges
        self._core_maker = make_core
        super().__init__(self._make_core())
        self._is_ignorant = outage.is_ignorant  # now that the core was made of what could be read
        self._my_address = my_address
        self._outage = outage
        self._host_nodes = host_nodes
        self._at_rest = at_rest
        self._ahead_s: float | None = None

    def _make_core(self) -> ScheddCore:
        core = self._core_maker()
        core.context.has_user = self._has_user
        if self._edges.tell_span is not None:
            core.context.queue.spans = JobSpans(self._edges.tell_span)
        core.factories.read = self._items
        return core

    def _items(self, cluster: int, proc: int) -> SaveItems | None:
        try:
            return self._edges.store.items(cluster, proc)
        except StoreUnavailable as error:
            raise ItemsAway(str(error)) from error

    def _has_user(self, name: str) -> bool:
        """Whether this machine has a user; those of whom nothing is known yet count as users."""
        try:
            return self._edges.processes.find_user(name) is not None
        except NotYet:
            return True

    def started(self) -> None:
        """The first turn."""
        for node in self.core.context.settings.collectors:
            self.context.watch(node)
        if self._outage.problem:
            self._outage.begin(self.context)
        else:
            self._begin()

    def _begin(self) -> None:
        self.context.perform(self.core.start(self.context.now_s(), self._my_address()))
        self.context.set_timer(("trim-history",), FIRST_TRIM_S)
        if self._edges.columns is not None:
            self.context.set_timer(("history-columns",), FIRST_TRIM_S)
        self._check_clock()
        if self._edges.records.daemon.settings.path:
            self._record_ad()
        if self._edges.accounts is not None:
            self._edges.spool.take_up(self.core.context)
        for address in self._host_nodes.values():
            self.context.tell(address, SayHello())

    def receive(self, delivery: Delivery) -> None:
        """A question about files or the history is answered here, everything else by the core."""
        message = delivery.message
        if isinstance(message, NewSettings):
            self.core.take_settings(message.settings)
            return
        if isinstance(message, SiteAdsTold):  # also in an outage: nothing is stored
            super().receive(delivery)
            return
        if isinstance(message, ShadowHostHello) and self._may_be_host(delivery.identity, message):
            self._host_nodes[delivery.sender.node] = delivery.sender
        elif isinstance(message, PeerDown):
            self._host_nodes.pop(message.node, None)
        if self._outage.problem and not self._may_be_read(message):
            if self._outage.receive(self.context, self.core, delivery):
                if self._is_ignorant:
                    self.core, self._is_ignorant = self._make_core(), False
                self._begin()
            return
        if isinstance(message, QueryJobs) and message.source in FROM_FILES:
            sight, most = self.core.context.sight(delivery.identity), self.core.context.settings.history_most
            self.context.defer_to_turn(self._edges.history.answer(message, sight, most),
                                       lambda answer: self._history_answered(delivery, answer))
            return
        if isinstance(message, QueryStory):
            self._tell_story(delivery, message)
            return
        if isinstance(message, SPOOL_MESSAGES):
            self.context.defer_to_turn(self._edges.spool.answer(self.core.context, message, delivery.identity),
                                       lambda answer: self._file_answer(delivery, answer))
            return
        if isinstance(message, TimerFired) and message.key == ("record-ad",):
            self._record_ad()
            return
        if isinstance(message, TimerFired) and message.key == ("clock",):
            self._check_clock()
            return
        if isinstance(message, TimerFired) and isinstance(message.key, tuple) and message.key[0] == "host":
            self.perform_own(message.key[1], None)
            return
        if isinstance(message, TimerFired) and message.key == ("trim-history",):
            self._trim_history()
            return
        if isinstance(message, TimerFired) and message.key == ("history-columns",):
            self._look_at_columns()
            return
        if isinstance(message, ReserveCluster):
            problem = self._cannot_serve(delivery.identity)
            if problem:
                self.context.reply(delivery, Refused(code="denied", text=problem))
                return
            self.context.watch(delivery.sender.node)
        if isinstance(message, ShadowHostHello):
            if not self._may_be_host(delivery.identity, message):
                self.context.log.warn("{who} is no shadow host", who=delivery.identity.name)
                return
            self.context.watch(delivery.sender.node)
            pid = delivery.identity.pid or 0
            message = attrs.evolve(message, pid=pid)
            hello = HostHello(message, self._edges.processes.birth(pid))
            delivery = attrs.evolve(delivery, message=hello)
        elif isinstance(message, FinishSpooling):
            handed = self._edges.spool.complete(self.core.context, message.cluster_id, delivery.identity)
            self.context.defer_to_turn(handed, lambda problem: self._spooled(delivery, problem))
            return
        elif isinstance(message, (ConnectToJob, ConnectToPort)):
            self.context.watch(delivery.sender.node)
        elif isinstance(message, PeerUp) and message.node in self.core.context.settings.collectors:
            delivery = attrs.evolve(delivery, message=RequestCycle())  # a collector that is new knows nothing of us
        super().receive(delivery)

    def _trim_history(self) -> None:
        """One piece of what the history's size and totals need."""
        done = 0
        with contextlib.suppress(StoreUnavailable):
            done = (self._edges.store.sum_history()
                    or self._edges.store.trim_history(self.core.context.settings.history_limit))
        self.context.set_timer(("trim-history",), TRIM_GAP_S if done else HISTORY_TRIM_S)

    def _look_at_columns(self) -> None:
        """Have columns made of what the history has got meanwhile."""
        if self._edges.columns is not None:
            with contextlib.suppress(StoreUnavailable):
                self._edges.columns.look(*self._edges.store.history_span())
            self.context.set_timer(("history-columns",), COLUMNS_LOOK_S)

    def stopped(self) -> None:
        """The last turn: take no more claims, give back what is idle."""
        self.receive(Delivery(message=Stop(False), sender=Address("", ""), answerable=False))

    def _check_clock(self) -> None:
        """Where the wall clock was set, the shadow hosts' credentials are of another time: they get fresh ones."""
        if self._edges.raw_clock is None:
            return
        ahead_s = self._edges.raw_clock() - self.context.system.clock.seconds()
        if self._ahead_s is not None and abs(ahead_s - self._ahead_s) > CLOCK_SET_S:
            self.context.log.warn("the wall clock was set by {seconds:.0f} s", seconds=ahead_s - self._ahead_s)
            self.context.perform(self.core.renew_credentials(self.context.now_s()))
        self._ahead_s = ahead_s
        self.context.set_timer(("clock",), CLOCK_LOOK_S)

    @staticmethod
    def _may_be_read(message: Any) -> bool:
        """What is answered from files that only this daemon reads, whether or not anything can be stored."""
        return (isinstance(message, (QueryStory, *SPOOL_READS))
                or (isinstance(message, QueryJobs) and message.source in FROM_FILES))

    def event(self, delivery: Delivery) -> Delivery:
        """The core must know who asks."""
        return delivery

    def _cannot_serve(self, identity: Identity) -> str:
        """Why this schedd cannot run jobs of a user; empty when it can."""
        name, domain = identity.user, self.core.context.settings.uid_domain
        if not is_user(identity, name, domain):
            return (f"{identity.name} is no user of {domain}: jobs are submitted on this machine, or from the machines "
                    "that its administrator lists in TRUSTED_USER_HOSTS")
        try:
            user = self._edges.processes.find_user(name)
        except NotYet as error:
            return str(error)
        if user is None:
            machine = self.core.context.settings.machine
            return f"there is no user {name} on {machine}, so nobody could own the jobs' files"
        if self._edges.accounts is not None:
            return self._edges.accounts.refusal(name, user)
        if self._edges.uid not in (0, user.uid):
            return f"this schedd runs as uid {self._edges.uid} and cannot run jobs of {name}; use a schedd of your own"
        return ""

    def _may_be_host(self, identity: Identity, message: ShadowHostHello) -> bool:
        """A shadow host runs as its owner, or (a spare) as this process does."""
        if identity.uid is None or identity.uid in (0, self._edges.uid):
            return identity.method in ("local", "self")
        owner = message.owner or self.core.hosts.owner_of(message.host_id)
        try:
            user = self._edges.processes.find_user(owner) if owner else None
        except NotYet:  # a known peer; any other is resolved later
            return False
        return user is not None and user.uid == identity.uid

    def _file_answer(self, delivery: Delivery, answer: Any) -> None:
        if isinstance(answer, Failure):
            self.context.log.failure("a file of the spool", failure=answer)
            answer = Refused(code="invalid", text="the schedd failed at this; its log says how")
        self.context.reply(delivery, answer)

    def _spooled(self, delivery: Delivery, problem: Refused | Failure | None) -> None:
        if problem is None:
            super().receive(delivery)
        else:
            self._file_answer(delivery, problem)

    def _record_ad(self) -> None:
        """The schedd's ad goes into SCHEDD_DAEMON_HISTORY."""
        records = self._edges.records
        records.daemon.record(daemon_record(self.core.demand.schedd_ad(), self.context.now_s()))
        self.context.set_timer(("record-ad",), records.settings.daemon_every_s)

    def _history_answered(self, delivery: Delivery, answer: Any) -> None:
        if hasattr(answer, "KIND"):
            self.context.reply(delivery, answer)
        else:
            self.context.reply(delivery, Refused(code="invalid", text=answer.getErrorMessage()))

    def _tell_story(self, delivery: Delivery, message: QueryStory) -> None:
        """A job's story to a stranger: of the queue at once, of the history by a worker."""
        core = self.core
        job = core.context.queue.job(message.cluster, message.proc)
        if job is not None:
            ad = ClassAd.from_bytes(core.context.strangers_sight().text(job))
            self.context.reply(delivery, Story(ad=ad.to_bytes(), lines=told(ad, core.context.story(job.name))))
            return
        name = f"{message.cluster}.{message.proc}"
        question = QueryJobs(source="history", ids=((message.cluster, message.proc),), limit=1)

        def found(page: Any) -> None:
            ads = getattr(page, "ads", ())
            if not ads:
                self.context.reply(delivery, Refused(code="not-found", text=f"there is no job {name}"))
                return
            ad = ClassAd.from_bytes(ads[0])
            lines = told(ad, self.core.context.story(name))
            self.context.reply(delivery, Story(ad=ads[0], lines=lines, has_left=True))

        self.context.after_commit(lambda: self.context.defer_to_turn(  # it may have left in the turn before
            self._edges.history.answer(question, core.context.strangers_sight()), found))

    # ---- effects of this daemon

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Processes and credentials; they wait for the commit of the turn."""
        if isinstance(effect, StartHost):
            self.context.after_commit(lambda: self._start_host(effect))
        elif isinstance(effect, AssignHost):
            self._assign_host(effect)
        elif isinstance(effect, CheckHost):
            alive = bool(effect.birth) and self._edges.processes.birth(effect.pid) == effect.birth
            deferred: Deferred[Any] = succeed(HostChecked(effect.host_id, alive))
            self.context.defer_to_turn(deferred, self._to_core)
        elif isinstance(effect, ForgetSpool):
            self.context.after_commit(lambda: self._edges.spool.forget(effect))
        elif isinstance(effect, RecordEvent):
            self.context.after_commit(lambda: self._edges.records.event(effect))
        elif isinstance(effect, RecordEpoch):
            self.context.after_commit(lambda: self._edges.records.epochs.record(epoch_record(effect)))
        elif isinstance(effect, AtRest):
            for done in self._at_rest:
                self.context.after_commit(done)
        elif isinstance(effect, EndHost):
            self._edges.processes.kill(effect.pid, effect.birth)
        else:
            super().perform_own(effect, delivery)

    def _to_core(self, event: Any) -> None:
        super().receive(Delivery(message=event, sender=Address("", ""), answerable=False))

    def _start_host(self, effect: StartHost) -> None:
        """On a worker: it is an order to the helper, and the owner is looked up first."""
        processes = self._edges.processes

        def start() -> HostStarted:
            pid = processes.start(effect.host_id, effect.owner)
            return HostStarted(effect.host_id, pid, processes.birth(pid))

        self.context.defer_to_turn(self._edges.in_worker(start), lambda result: self._host_started(effect, result))

    def _host_started(self, effect: StartHost, result: HostStarted | Failure) -> None:
        if not isinstance(result, Failure):
            self._to_core(result)
        elif result.check(NotYet) is not None:
            self.context.set_timer(("host", effect), USERS_AGAIN_S)
        else:
            result.trap(OSError)
            self.context.log.error("cannot start a shadow host: {error}", error=result.value)

    def _assign_host(self, effect: AssignHost) -> None:
        try:
            user = self._edges.processes.find_user(effect.owner)
        except NotYet:
            self.context.set_timer(("host", effect), USERS_AGAIN_S)
            return
        if user is None:
            self.context.log.error("user {owner} does not exist on this machine: no shadow host for it",
                                   owner=effect.owner)
            return
        self._edges.spool.make_folder_of(effect.owner)
        self.context.tell(effect.address, BecomeOwner(
            owner=effect.owner, uid=user.uid, gid=user.gid, credential=self._edges.mint(effect.owner),
            spool_dir=str(self._edges.spool.folder_of(effect.owner))))
        # It connected with our rights; from now on it has no more than its owner's.
        domain = self.core.context.settings.uid_domain
        self._edges.reidentify(effect.address.node, f"{user.name}@{domain}", user.uid)

    def story(self, job: str) -> tuple[str, ...]:
        """What happened to a job, for the manhole: as far as its ad tells, then what was seen since the start."""
        numbers = job_numbers(job)
        known = self.core.context.queue.job(*numbers) if numbers is not None else None
        ad = known.ad if known is not None else self._edges.history.ad(job)
        return whole_story(ad, self.core.context.story(job))
