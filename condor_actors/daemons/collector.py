"""The collector: holds the current ads of the pool, answers questions about them, tells negotiators what changes.

Theory: it decides nothing, and stores nothing but the ads of machines that sleep
(:mod:`condor_actors.cores.collector.offline_ads`).  After ``kill -9`` every daemon's advertiser tells it everything
again as soon as the link is back, and the negotiator subscribes again; a moment later it is as if nothing had happened.

Subscribers get a snapshot in pages, then what changed, once per iteration of the reactor however often an ad changed
in it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from functools import lru_cache

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, ActorSystem, Daemon, World
from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.config import Config
from condor_actors.config.settings import setting
from condor_actors.cores.collector.ad_table import AdRecord, AdTable, TooManyAds, ad_key
from condor_actors.cores.collector.offline_ads import LAST_MATCH, DropAd, KeepAd, is_offline, take_over_matches
from condor_actors.cores.flocking import foreign_submitter
from condor_actors.cores.rights import host_of
from condor_actors.daemons.admin import package_version
from condor_actors.messages.advertise import (
    AdChange,
    AdKind,
    AdsChanged,
    InvalidateAd,
    OfflineMatched,
    QueryAds,
    SubscribeAds,
    UpdateAd,
)
from condor_actors.messages.codec import PAGE_BYTES
from condor_actors.messages.envelope import (
    Address,
    Delivery,
    Done,
    Identity,
    Level,
    PeerDown,
    PeerUp,
    Refused,
    TimerFired,
)
from condor_actors.messages.pool import HostsRevoked
from condor_actors.messages.realm import abroad, node_abroad
from condor_actors.store.offline_ads import OfflineAds, OfflineAdsFile

__all__ = ["Collector", "CollectorSettings", "make_daemon"]

ACTOR = ROLE = "collector"
INBOX_LIMIT = 100_000
"""Thousands of machines may speak in one moment, after a restart of the collector for instance."""
SWEEP_S = 5.0

MAY_ADVERTISE = {
    AdKind.SLOT: Level.ADVERTISE_STARTD,
    AdKind.STARTD: Level.ADVERTISE_STARTD,
    AdKind.SCHEDD: Level.ADVERTISE_SCHEDD,
    AdKind.SUBMITTER: Level.ADVERTISE_SCHEDD,
    AdKind.MASTER: Level.ADVERTISE_MASTER,
    AdKind.NEGOTIATOR: Level.NEGOTIATOR,
    AdKind.ACCOUNTING: Level.NEGOTIATOR,
    AdKind.COLLECTOR: Level.DAEMON,
    AdKind.GENERIC: Level.DAEMON,
}
"""What it takes to speak for a table."""


@attrs.frozen(kw_only=True)
class CollectorSettings:
    """The collector's configuration.

    Attributes:
        name, machine: of its own ad.
        lifetime_s: how long an ad lives that does not say; most_ads: how many are kept.
        page_limit: the most ads of one answer.
        requirements: what an ad has to satisfy to be taken; None: anything.
        offline_s: how long the ad of a machine that sleeps lives.
    """

    name: str
    machine: str
    lifetime_s: float = setting("CLASSAD_LIFETIME")
    most_ads: int = setting("COLLECTOR_MAX_ADS")
    page_limit: int = setting("COLLECTOR_QUERY_MAX_ADS")
    requirements: Expr | None = setting("COLLECTOR_REQUIREMENTS")
    offline_s: float = setting("OFFLINE_EXPIRE_ADS_AFTER")

    @classmethod
    def of(cls, config: Config) -> CollectorSettings:
        """Read the configuration."""
        machine = config.full_hostname
        return config.settings(
            cls, name=config.text("COLLECTOR_NAME") or f"My Pool - {machine}", machine=machine)


@attrs.define(eq=False)
class Subscriber:
    """Who wants to hear of changes: where, of which kinds, and the number of the last message."""

    to: Address
    kinds: frozenset[AdKind]
    sequence: int = 0


@attrs.define(eq=False)
class CollectorMemory:
    """What outlives a rebuilt actor, but not the process.

    Attributes:
        settings: the configuration in force.
        table: the ads.
        subscribers: by address.
        pending: by subscriber, what changed and was not told yet.
        started_s: when the process began.
        offline: the stored ads of machines that sleep.
        own_node: our public address.
    """

    settings: CollectorSettings
    table: AdTable
    started_s: float
    offline: OfflineAds
    own_node: str = ""
    subscribers: dict[Address, Subscriber] = attrs.field(factory=dict)
    pending: dict[tuple[AdKind, str], AdChange] = attrs.field(factory=dict)

    def own_ad(self, now_s: float) -> ClassAd:
        """The collector's own ad, with the totals of the pool."""
        settings, table = self.settings, self.table
        ad = ClassAd({
            "MyType": "Collector", "TargetType": "", "Name": settings.name, "Machine": settings.machine,
            "MyAddress": self.own_node, "CollectorIpAddr": self.own_node,
            "CondorVersion": f"$CondorVersion: {package_version()} $", "DaemonStartTime": int(self.started_s),
            "MyCurrentTime": int(now_s), "UpdatesTotal": table.updates,
            "MonitorSelfTime": int(now_s), "DetectedCpus": os.cpu_count() or 1,
        })
        ad.update(table.totals.attributes())
        return ad


class Collector(Actor):
    """The actor ``collector``; see the module."""

    def __init__(self, memory: CollectorMemory, world: World) -> None:
        self.memory = memory
        self._authorize = world.authorize

    def started(self) -> None:
        """Watch the links of those who subscribed to what was before this actor."""
        for address in self.memory.subscribers:
            self.context.watch(address.node)
        self.context.set_timer("sweep", SWEEP_S)
        if self.memory.pending:
            self.context.set_timer("tell", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """An ad, a question, a subscription, or time that passed."""
        message = delivery.message
        if isinstance(message, UpdateAd):
            self._update(delivery, message)
        elif isinstance(message, QueryAds):
            self._query(delivery, message)
        elif isinstance(message, InvalidateAd):
            self._invalidate(delivery, message)
        elif isinstance(message, SubscribeAds):
            self._subscribe(delivery, message)
        elif isinstance(message, OfflineMatched):
            self._offline_matched(delivery, message)
        elif isinstance(message, TimerFired) and message.key == "tell":
            self._tell_subscribers()
        elif isinstance(message, TimerFired):
            self._gone(self.memory.table.expire(self.context.now_s()))
            self.context.set_timer("sweep", SWEEP_S)
        elif isinstance(message, HostsRevoked):
            self._gone(self.memory.table.drop_hosts(message.hosts))
        elif isinstance(message, PeerDown):
            self._forget(message.node)
        elif isinstance(message, PeerUp):
            pass  # the link of a subscriber, which we know of
        else:
            self._refuse(delivery, "invalid", f"the collector does not take {type(message).__name__}")

    # ---- ads

    def _may(self, delivery: Delivery, ad_kind: AdKind) -> bool:
        identity = delivery.identity
        if ad_kind is AdKind.COLLECTOR and identity.is_machine and ROLE not in identity.roles:
            self._refuse(delivery, "denied", f"{identity.name} may not advertise ads of kind {ad_kind.value}: its "
                                             f"certificate has not the role {ROLE}")
            return False
        if identity.method == "self" or self._authorize(identity, MAY_ADVERTISE[ad_kind]):
            return True
        self._refuse(delivery, "denied", f"{delivery.identity.name} may not advertise ads of kind {ad_kind.value}: "
                                         f"it needs {MAY_ADVERTISE[ad_kind].value}")
        return False

    def _update(self, delivery: Delivery, message: UpdateAd) -> None:
        if not self._may(delivery, message.ad_kind):
            return
        memory = self.memory
        try:
            ad, text = ClassAd.from_bytes(message.ad), message.ad
            if delivery.identity.realm:
                if message.ad_kind is not AdKind.SUBMITTER:
                    self._refuse(delivery, "denied", f"the pool {delivery.identity.realm} advertises submitters alone")
                    return
                foreign_submitter(ad, delivery.identity.realm)
                text = ad.to_bytes()
            requirements = memory.settings.requirements
            if requirements is not None and not is_true(requirements.evaluate(ad)):
                self._refuse(delivery, "denied", f"{ad.get_str('Name')} does not satisfy COLLECTOR_REQUIREMENTS")
                return
            foreign = foreign_claim(message.ad_kind, ad, delivery.identity)
            if foreign:
                self._refuse(delivery, "denied", foreign)
                return
            holder = self._holder(message.ad_kind, ad, delivery.identity)
            if holder:
                self._refuse(delivery, "denied", f"{ad.get_str('Name')} is an ad of {holder}")
                return
            lifetime_s = float(message.lifetime_s or memory.settings.lifetime_s)
            if message.ad_kind is AdKind.SLOT and is_offline(ad):
                lifetime_s = memory.settings.offline_s
                before = memory.table.tables[AdKind.SLOT].get(ad_key(AdKind.SLOT, ad.get_str("Name")))
                if before is not None and is_offline(before.ad) and take_over_matches(before.ad, ad):
                    text = ad.to_bytes()
            record, changed = memory.table.update(
                message.ad_kind, text, message.private, now_s=self.context.now_s(), lifetime_s=lifetime_s, parsed=ad,
                host=delivery.identity.host,
            )
        except (ClassAdSyntaxError, TooManyAds, ValueError) as error:
            self._refuse(delivery, "invalid", str(error))
            return
        if changed:
            self._changed(record.change())
        self._store(record)
        self.context.reply(delivery, Done())

    # ---- machines that sleep

    def _store(self, record: AdRecord) -> None:
        """Store the ad of a slot whose machine sleeps; what is stored of one that is awake is out of date."""
        if record.ad_kind is not AdKind.SLOT:
            return
        kept = self.memory.offline.kept.get(record.key)
        if is_offline(record.ad):
            keep = KeepAd(key=record.key, data=record.data, host=record.host, expires_s=record.expires_s)
            if kept is None or attrs.evolve(kept, expires_s=keep.expires_s) != keep:
                self.context.persist(keep)
        elif kept is not None:
            self.context.persist(DropAd(record.key))

    def _offline_matched(self, delivery: Delivery, message: OfflineMatched) -> None:
        """A negotiator has jobs for machines that sleep."""
        slots = self.memory.table.tables[AdKind.SLOT]
        for name in message.names:
            record = slots.get(name)
            if record is None or not is_offline(record.ad):
                continue
            self._date(record, LAST_MATCH)
            first = slots.get(f"slot1@{record.ad.get_str('Machine')}")
            if first is not None and first is not record and first.host == record.host and is_offline(first.ad):
                self._date(first, f"slot{record.ad.get_int('SlotID')}_{LAST_MATCH}")
        self.context.reply(delivery, Done())

    def _date(self, record: AdRecord, attribute: str) -> None:
        ad = ClassAd.from_bytes(record.data)
        ad[attribute] = int(self.context.now_s())
        record, changed = self.memory.table.update(
            AdKind.SLOT, ad.to_bytes(), record.private, now_s=record.heard_s,
            lifetime_s=record.expires_s - record.heard_s, parsed=ad, host=record.host)
        if changed:
            self._changed(record.change())
            self._store(record)

    def _holder(self, ad_kind: AdKind, ad: ClassAd, identity: Identity) -> str:
        """The other machine that an ad of this name belongs to now; empty: it is the sender's, or nobody's."""
        if identity.is_local or ad_kind not in ELSEWHERE_BOUND:
            return ""
        key = ad_key(ad_kind, ad.get_str("Name"), ad.get_str("ScheddName"))
        record = self.memory.table.tables[ad_kind].get(key)
        if record is None or record.host == identity.host:
            return ""
        return record.host or "this machine"

    def _invalidate(self, delivery: Delivery, message: InvalidateAd) -> None:
        if not self._may(delivery, message.ad_kind):
            return
        identity = delivery.identity
        gone = self.memory.table.invalidate(
            message.ad_kind, tuple(abroad(name, identity.realm) for name in message.names),
            node_abroad(message.my_address, identity.realm) if message.my_address else "",
            may=lambda record: identity.is_local or (identity.host != "" and record.host == identity.host))
        self._gone(gone)
        self.context.reply(delivery, Done())

    def _gone(self, records: Iterable[AdRecord]) -> None:
        for record in records:
            self._changed(AdChange(ad_kind=record.ad_kind, name=record.key))
            if record.ad_kind is AdKind.SLOT and record.key in self.memory.offline.kept:
                self.context.persist(DropAd(record.key))

    def _query(self, delivery: Delivery, message: QueryAds) -> None:
        memory = self.memory
        try:
            constraint = parse_constraint(message.constraint)
            if message.ad_kind is AdKind.COLLECTOR:
                own = memory.own_ad(self.context.now_s())
                memory.table.update(AdKind.COLLECTOR, own.to_bytes(), b"", now_s=self.context.now_s(),
                                    lifetime_s=memory.settings.lifetime_s, parsed=own)
            limit = min(message.limit or memory.settings.page_limit, memory.settings.page_limit)
            page = memory.table.page(message.ad_kind, constraint, message.projection, limit, message.cursor)
        except (ClassAdSyntaxError, ValueError) as error:
            self._refuse(delivery, "invalid", str(error))
            return
        self.context.reply(delivery, page)

    def _refuse(self, delivery: Delivery, code: str, text: str) -> None:
        if not delivery.answerable:
            self.context.log.warn("refused: {text}", text=text)
        self.context.reply(delivery, Refused(code=code, text=text))

    # ---- subscribers

    def _subscribe(self, delivery: Delivery, message: SubscribeAds) -> None:
        self._tell_subscribers()
        to = Address(delivery.sender.node, message.subscriber)
        subscriber = self.memory.subscribers[to] = Subscriber(to, frozenset(message.ad_kinds))
        if to.node:
            self.context.watch(to.node)
        self.context.reply(delivery, Done())
        pages = list(paged(self.memory.table.changes(message.ad_kinds)))
        for index, page in enumerate(pages):
            self._tell(subscriber, page, snapshot=index == 0, more=index < len(pages) - 1)

    def _changed(self, change: AdChange) -> None:
        if self.memory.subscribers:
            if not self.memory.pending:
                self.context.set_timer("tell", 0.0)
            self.memory.pending[change.ad_kind, change.name] = change

    def _tell_subscribers(self) -> None:
        pending, self.memory.pending = self.memory.pending, {}
        self.context.cancel_timer("tell")
        for subscriber in tuple(self.memory.subscribers.values()):
            changes = [change for change in pending.values() if change.ad_kind in subscriber.kinds]
            if changes:
                pages = list(paged(changes))
                for index, page in enumerate(pages):
                    self._tell(subscriber, page, snapshot=False, more=index < len(pages) - 1)

    def _tell(self, subscriber: Subscriber, page: tuple[AdChange, ...], *, snapshot: bool, more: bool) -> None:
        subscriber.sequence += 1
        self.context.tell(subscriber.to, AdsChanged(sequence=subscriber.sequence, changes=page, snapshot=snapshot,
                                                    more=more))

    def _forget(self, node: str) -> None:
        """A link is gone, and with it those who subscribed over it."""
        for address in [each for each in self.memory.subscribers if each.node == node]:
            del self.memory.subscribers[address]
        self.context.unwatch(node)


ELSEWHERE_BOUND = frozenset({AdKind.SUBMITTER, AdKind.COLLECTOR, AdKind.GENERIC})
"""Kinds whose ``Name`` says nothing of a host: who has the ad keeps it until it expires."""

IDENTIFYING = ("Name", "Machine", "MyAddress", "StartdIpAddr", "ScheddName", "ScheddIpAddr", "MetricsAddress")
"""Attributes that say whose an ad is, or where it is reached."""

HOST_BOUND = frozenset({AdKind.SLOT, AdKind.STARTD, AdKind.SCHEDD, AdKind.MASTER})
"""Kinds whose ``Name`` is a host, or ends in ``@host``."""


def foreign_claim(ad_kind: AdKind, ad: ClassAd, identity: Identity) -> str:
    """What an ad says that its sender's certificate does not cover; empty when it may say all of it.

    A machine advertises itself and its daemons only: the host of ``MyAddress``, ``Machine``, and the host in ``Name``
    are names of its certificate, written out: an expression may be another name where a job is compared with it.
    Daemons of this machine are known by their user id and not asked.
    """
    if identity.is_local:
        return ""
    for attribute in IDENTIFYING:
        if not isinstance(ad.find(attribute.lower()), str | None):
            return f"{identity.host} may not advertise an expression as {attribute}: a name there is written out"
    claimed = {}
    if ad_kind is not AdKind.ACCOUNTING or ad.find("myaddress") is not None:  # an account has no address
        claimed["MyAddress"] = host_of(ad.get_str("MyAddress"))
    if ad_kind in HOST_BOUND:
        claimed["Name"] = ad.get_str("Name").rpartition("@")[2]
    if ad.find("machine") is not None or ad_kind in HOST_BOUND:
        claimed["Machine"] = ad.get_str("Machine")
    if ad.find("metricsaddress") is not None:  # Prometheus shows its token there
        claimed["MetricsAddress"] = host_of(f"<{ad.get_str('MetricsAddress')}>")
    if ad_kind is AdKind.SUBMITTER:
        claimed["ScheddName"] = ad.get_str("ScheddName").rpartition("@")[2]
    for attribute, host in claimed.items():
        if not identity.speaks_for(host):
            return (f"{identity.host} may not advertise {attribute} = {ad.get_str(attribute)!r}: its certificate does "
                    f"not name {host or 'that host'!r}; condor_pool join gives a machine a certificate of its names")
    return ""


def paged(changes: Iterable[AdChange]) -> Iterable[tuple[AdChange, ...]]:
    """Changes in pages that fit a message; one empty page when there are none."""
    page: list[AdChange] = []
    size = 0
    for change in changes:
        length = len(change.ad) + len(change.private) + len(change.name) + 64
        if page and size + length > PAGE_BYTES:
            yield tuple(page)
            page, size = [], 0
        page.append(change)
        size += length
    yield tuple(page)


@lru_cache(maxsize=256)
def parse_constraint(text: str) -> Expr | None:
    """A query's constraint; None for an empty one.

    Raises:
        ClassAdSyntaxError: it is no expression.
    """
    return parse_expression(text) if text.strip() else None


class CollectorDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon"."""

    name = "collector"

    def __init__(self, config: Config, world: World) -> None:
        self._world = world
        settings = CollectorSettings.of(config)
        path = config.path("COLLECTOR_PERSISTENT_AD_LOG")
        offline = world.stores.open_offline_ads(path) if world.stores is not None else OfflineAdsFile(path)
        now_s = world.wall_clock()
        table = AdTable(settings.most_ads)
        for each in offline.kept.values():
            with contextlib.suppress(TooManyAds):
                table.update(AdKind.SLOT, each.data, b"", now_s=now_s, lifetime_s=each.expires_s - now_s,
                             host=each.host)
        self.memory = CollectorMemory(settings, table, now_s, offline)
        self.system: ActorSystem = world.make_system(commit=offline.commit)

    def start(self) -> None:
        """Spawn the actor."""
        self.memory.own_node = self._world.post.public_node
        self.system.spawn(ACTOR, lambda: Collector(self.memory, self._world), inbox_limit=INBOX_LIMIT)

    def stop(self, graceful: bool) -> Deferred[None]:
        """There is nothing to finish."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Take new limits and requirements; ads that are here stay."""
        self.memory.settings = CollectorSettings.of(config)
        self.memory.table.limit = self.memory.settings.most_ads

    def ad(self) -> ClassAd:
        """The collector's own ad."""
        return self.memory.own_ad(self._world.wall_clock())


def make_daemon(config: Config, world: World) -> Daemon:
    """The collector on these edges."""
    return CollectorDaemon(config, world)
