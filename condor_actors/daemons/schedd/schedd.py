"""The schedd: the job queue, the claims, and the shadow hosts of one machine's users.

Theory: one actor around :class:`~condor_actors.cores.schedd.schedd_core.ScheddCore`, so every decision about jobs is
one turn and one transaction.  What is not a decision is here: processes, credentials, the spool's files, and long
questions about the history, which a worker thread answers on a connection of its own.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import ActorSystem, Daemon, World
from condor_actors.actors.workers import Workers, at_once
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.cores.schedd.schedd_core import Finish, ScheddCore
from condor_actors.cores.schedd.schedd_settings import ScheddSettings, schedd_settings
from condor_actors.daemons.admin import package_version
from condor_actors.daemons.measures import Measure, jobs_by_owner
from condor_actors.daemons.schedd.columns_maker import ColumnsMaker
from condor_actors.daemons.schedd.epochs import DAEMON, EPOCH, daemon_file, daemon_settings, epoch_file, epoch_settings
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.daemons.schedd.job_accounts import JobAccounts, job_accounts
from condor_actors.daemons.schedd.outage import StoreOutage
from condor_actors.daemons.schedd.records import Records, record_settings
from condor_actors.daemons.schedd.schedd_actor import NewSettings, ScheddActor
from condor_actors.daemons.schedd.schedd_edges import ScheddEdges, make_mint
from condor_actors.daemons.schedd.shadow_processes import RealHostProcesses, own_account
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.daemons.schedd.spool_folders import OrderedFolders, OwnFolders
from condor_actors.daemons.site_programs import SiteHost, site_edge
from condor_actors.machine.time_zone import local_zone
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.envelope import Address
from condor_actors.messages.shadow_host import TRANSFER_KINDS
from condor_actors.store.history_columns import FOLDER, HistoryColumns
from condor_actors.store.queue_store import QueueStore
from condor_actors.store.record_file import RecordReader

__all__ = ["ScheddDaemon", "make_daemon"]

INBOX_LIMIT = 20_000


@contextmanager
def uncollected(set_aside: Callable[[], None]) -> Iterator[None]:
    """Meanwhile Python's cyclic collector rests, and then passes over what was made: it stays, and looking through it
    again and again while a queue of a million jobs grows takes a third as long as making it."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
        set_aside()
    finally:
        if was_on:
            gc.enable()


class ScheddDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon"."""

    name = "schedd"

    def __init__(self, settings: ScheddSettings, world: World, edges: ScheddEdges, config: Config) -> None:
        self._world = world
        self._settings = settings
        self._edges = edges
        self._started_s = world.wall_clock()
        self._lives = 0
        self._outage = StoreOutage(edges.store, settings.spool, edges.spool.has_room)
        self._host_nodes: dict[str, Address] = {}
        self._at_rest: list[Callable[[], None]] = []
        self.system: ActorSystem = world.make_system(commit=self._commit)
        self._version = package_version()
        self._site = SiteHost(config, "SCHEDD_CRON", self.system, "schedd", site_edge(config, world), self.ad)

    def _commit(self, operations: Sequence[Any]) -> None:
        self._outage.commit(operations)
        self._edges.records.archived(operations)

    def _make_core(self) -> ScheddCore:
        with uncollected(self._world.set_aside):
            core = ScheddCore(self._settings, self._edges.store.load(), self._world.random, self._started_s,
                              self._version)
        self._lives += 1
        core.demand.site_ads = self._site.ads
        core.context.queue.changes.life = f"{self._started_s:.3f}-{self._lives}"
        return core

    def _make_actor(self) -> ScheddActor:
        return ScheddActor(self._make_core, self._edges, lambda: self._world.post.public_node, self._outage,
                           self._host_nodes, self._at_rest)

    @property
    def actor(self) -> ScheddActor | None:
        """The living actor."""
        actor = self.system.actor("schedd")
        return actor if isinstance(actor, ScheddActor) else None

    def start(self) -> None:
        """Load the queue and begin."""
        self.system.spawn("schedd", self._make_actor, inbox_limit=INBOX_LIMIT)
        self._site.start()

    def stop(self, graceful: bool) -> Deferred[None]:
        """Take no more claims; running jobs stay with their shadow hosts, which wait for the next schedd."""
        self.system.stop()
        self._site.programs.close()
        self._edges.history.close()
        self._edges.records.epochs.write_waiting()
        self._edges.store.close()
        return succeed(None)

    def rest_peacefully(self, done: Callable[[], None]) -> None:
        """Begin no more jobs; call ``done`` when the last one that runs has finished and is written down."""
        self._at_rest.append(done)
        self.system.tell(Address("", "schedd"), Finish())

    def reconfigure(self, config: Config) -> None:
        """Take new settings; the queue stays."""
        settings, site = settings_of(config, self._settings.machine, self._edges.accounts), self._site.read(config)
        self._settings = settings
        self._edges.records.settings = record_settings(config)
        self._edges.records.epochs.settings = epoch_settings(config)
        self._edges.records.daemon.settings = daemon_settings(config)
        if self._edges.columns is not None:
            self._edges.columns.percent = config.integer("HISTORY_COLUMNS_PERCENT")
        self.system.tell(Address("", "schedd"), NewSettings(settings))
        self._site.reconfigure(site)

    def measures(self) -> tuple[Measure, ...]:
        """Jobs by owner and state."""
        actor = self.actor
        states = {int(status): status.name.lower() for status in JobStatus}
        return (jobs_by_owner(actor.core.context.queue.by_owner, states),) if actor is not None else ()

    def ad(self) -> ClassAd:
        """The schedd's own ad."""
        actor = self.actor
        return actor.core.demand.schedd_ad() if actor is not None else ClassAd({"Name": self._settings.name})


def machine_name(config: Config) -> str:
    """This host's full name."""
    return config.full_hostname


def settings_of(config: Config, machine: str, accounts: JobAccounts | None) -> ScheddSettings:
    """The settings of this process; one that has dropped root starts each host as its owner, and none to spare.

    Raises:
        ConfigError: a value is not of its kind.
    """
    settings = schedd_settings(config, machine=machine, account=own_account(), zone=local_zone())
    return settings if accounts is None else attrs.evolve(settings, spare_hosts=0)


def make_daemon(config: Config, world: World) -> Daemon:
    """The schedd on these edges.

    Raises:
        StoreError: the job queue cannot be opened; on a disk that is full or read-only the schedd waits instead.
    """
    machine = machine_name(config)
    accounts = job_accounts(config)
    settings = settings_of(config, machine, accounts)
    reactor: Any = world.reactor_time  # the real one: threads report to it
    questions, removals, starts = (Workers(reactor, config.seconds("USER_FILE_TIMEOUT")) for _ in range(3))
    spool = Path(settings.spool)
    store = world.stores.open_queue(spool) if world.stores is not None else QueueStore(spool, patient=True)
    epochs = epoch_file(epoch_settings(config), clock=reactor)
    daemon = daemon_file(daemon_settings(config))

    def runs(*kinds: str) -> RecordReader:
        epochs.write_waiting()
        return RecordReader(epochs.settings.path, kinds)

    edges = ScheddEdges(
        store=store,
        processes=world.processes or RealHostProcesses(config.path("RUN"), config.path("LOG"), accounts),
        mint=make_mint(world, machine, config.seconds("PROXY_LIFETIME")),
        spool=Spool(spool, OrderedFolders(accounts) if accounts is not None else OwnFolders(),
                    questions.run, removals.run),
        history=HistoryQuestions(store.history, files={
            "epochs": lambda: runs(EPOCH), "transfers": lambda: runs(*TRANSFER_KINDS),
            "daemon": lambda: RecordReader(daemon.settings.path, (DAEMON,))}, columns=HistoryColumns(spool / FOLDER)),
        reidentify=getattr(world.post, "reidentify", lambda node, name, uid: None),
        uid=world.uid, accounts=accounts,
        records=Records(record_settings(config), world.wall_clock, epochs, daemon), raw_clock=time.time,
        in_worker=starts.run if world.processes is None else at_once, tell_span=world.tell_span,
        columns=ColumnsMaker(spool, config.integer("HISTORY_COLUMNS_PERCENT"), world.log)
        if world.processes is None and world.stores is None else None,
    )
    return ScheddDaemon(settings, world, edges, config)
