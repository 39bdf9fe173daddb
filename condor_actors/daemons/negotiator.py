"""The negotiator: subscribes to the collector's ads and serves submitters as soon as there is something to serve.

Theory: it keeps nothing but the accountant's records.  After ``kill -9`` it reads these, subscribes, and the snapshot
tells it the pool.  When its collector is gone it takes the next of COLLECTOR_HOST; meanwhile it goes on with what it
knows, since running jobs and claims need no central manager.  A full disk does not end it either
(:mod:`condor_actors.daemons.accountant_outage`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import ActorSystem, CoreActor, Daemon, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.negotiator_core import NegotiatorCore
from condor_actors.cores.negotiator.negotiator_settings import (
    cycle_rules,
    cycle_settings,
    match_settings,
    priority_policy,
)
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.cores.negotiator.reservations import Reservations
from condor_actors.cores.negotiator.waking.demand import TellCollectors
from condor_actors.daemons.accountant_outage import AccountantOutage
from condor_actors.daemons.admin import package_version
from condor_actors.daemons.advertiser import ADVERTISER, COLLECTOR, Advertise, Advertiser
from condor_actors.daemons.measures import Measure
from condor_actors.effects import Effect
from condor_actors.messages.advertise import AdKind, AdsChanged, SubscribeAds
from condor_actors.messages.envelope import Address, AskFailed, Delivery, PeerDown, PeerUp, Refused, TimerFired
from condor_actors.messages.negotiate import CancelReservation, MakeReservation, RequestCycle, SetPriority
from condor_actors.store.accountant import AccountantStore
from condor_actors.store.database import has_room

__all__ = ["NegotiatorActor", "make_daemon"]

ACTOR = "negotiator"
INBOX_LIMIT = 100_000
SUBSCRIBED = (AdKind.SLOT, AdKind.SUBMITTER)
SUBSCRIBE_AGAIN_S = 5.0
SUBSCRIBE_TIMEOUT_S = 30.0
DECREES = (SetPriority, MakeReservation, CancelReservation)
"""What changes something that has to be stored before it is answered."""


class NegotiatorActor(CoreActor):
    """The actor ``negotiator``: the core, and the subscription to one of the collectors.

    Args:
        make_core: makes what decides, from what is stored.
        outage: whether anything can be stored.
        collectors: their nodes, the preferred one first.
        stopwatch: measures how long a decision takes.
        own_ad: the negotiator's ad as it is now.
    """

    core: NegotiatorCore

    def __init__(self, make_core: Callable[[], NegotiatorCore], outage: AccountantOutage, collectors: tuple[str, ...],
                 stopwatch: Callable[[], float], own_ad: Callable[[], ClassAd]) -> None:
        super().__init__(make_core())
        self._make_core = make_core
        self._outage = outage
        self._is_ignorant = outage.is_ignorant
        self._collectors = collectors
        self._stopwatch = stopwatch
        self._own_ad = own_ad
        self._up: set[str] = set()
        self._source = ""
        self._next = 1
        """The number of the next message of the subscription."""

    def started(self) -> None:
        """The first turn."""
        if self._is_ignorant:
            self.context.log.error("{problem}; nobody is matched until that is mended", problem=self._outage.problem)
            self.context.set_timer("store", self._outage.next_look_s())
        else:
            self._begin()

    def _begin(self) -> None:
        """Keep a link to every collector."""
        self.context.perform(self.core.started())
        for node in self._collectors:
            self.context.watch(node)

    def receive(self, delivery: Delivery) -> None:
        """Links are ours, the rest the core decides."""
        message = delivery.message
        if self._is_ignorant:
            self._wait(delivery)
            return
        if isinstance(message, DECREES) and (refused := self._outage.why_not()) is not None:
            self.context.reply(delivery, refused)
            return
        if isinstance(message, TimerFired) and message.key == "save":
            self._outage.save_late()
        if isinstance(message, TimerFired) and message.key == "subscribe":
            self._choose_source()
        elif isinstance(message, PeerUp):
            self._up.add(message.node)
            self._choose_source()
        elif isinstance(message, PeerDown):
            self._up.discard(message.node)
            if message.node == self._source:
                self._source = ""
            self._choose_source()
        elif isinstance(message, AdsChanged) and not self._in_sequence(delivery, message):
            pass
        else:
            before = self._stopwatch()
            cycle = self.core.cycle.cycle
            effects = self.core.handle(message, self.context.now_s())
            spent_s = self._stopwatch() - before
            if self.core.cycle.cycle == cycle and spent_s > 0.001:
                self.core.cycle.busy_s = spent_s
            self.context.perform(effects, delivery)
            if isinstance(message, TimerFired) and message.key == "interval":
                self._advertise()

    def _wait(self, delivery: Delivery) -> None:
        """Nobody knows what is stored: look again from time to time."""
        message = delivery.message
        if not isinstance(message, TimerFired):
            self.context.reply(delivery, self._outage.refusal())
        elif self._outage.opened():
            self.core, self._is_ignorant = self._make_core(), False
            self._begin()
        else:
            self.context.set_timer("store", self._outage.next_look_s())

    def _advertise(self) -> None:
        """Tell the collectors of the last cycle, and what the accountant knows of each user."""
        to = Address("", ADVERTISER)
        self.context.tell(to, Advertise(AdKind.NEGOTIATOR, self._own_ad()))
        for ad in self.core.accountant.ads(self.context.now_s()):
            self.context.tell(to, Advertise(AdKind.ACCOUNTING, ad))

    def stopped(self) -> None:
        """Save the accountant's records."""
        if self._is_ignorant:
            return
        self.context.perform(self.core.accountant.save(self.context.now_s()))

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Tell the collectors of jobs for machines that sleep."""
        if isinstance(effect, TellCollectors):
            for node in self._collectors:
                self.context.tell(Address(node, COLLECTOR), effect.message)
        else:
            super().perform_own(effect, delivery)

    def _choose_source(self) -> None:
        """Subscribe to the first collector that is up, unless one serves us already."""
        if self._source:
            return
        for node in self._collectors:
            if node in self._up:
                self._source = node
                self._next = 1
                self.context.ask(
                    Address(node, COLLECTOR), SubscribeAds(ad_kinds=SUBSCRIBED, subscriber=ACTOR),
                    timeout_s=SUBSCRIBE_TIMEOUT_S, then=self._subscribed)
                return

    def _in_sequence(self, delivery: Delivery, message: AdsChanged) -> bool:
        """Whether this is the next word of the collector we subscribed to; a gap in them makes us subscribe anew."""
        if delivery.sender.node != self._source:
            self.context.log.warn("ads from {who}, who was not asked", who=delivery.identity.name)
            return False
        if message.sequence == self._next:
            self._next += 1
            return True
        if self._next > 1:
            self.context.log.warn("changes of ads were lost; asking for all of them again")
            self._source = ""
            self._choose_source()
        return False

    def _subscribed(self, answer: Delivery) -> None:
        if isinstance(answer.message, (Refused, AskFailed)):
            text = answer.message.text
            self.context.log.error("no ads from the collector: {text}", text=text)
            self._source = ""
            if isinstance(answer.message, AskFailed):
                self._choose_source()
            else:  # an error of the collector's, or too much to do there
                self.context.set_timer("subscribe", SUBSCRIBE_AGAIN_S)


class NegotiatorDaemon:
    """See ``docs/architecture.md``, "The edges of a daemon"."""

    name = "negotiator"

    def __init__(self, config: Config, world: World) -> None:
        self._world = world
        self._config = config
        self._started_s = world.wall_clock()
        path = config.path("ACCOUNTANT_DATABASE")
        simulated = world.stores.open_accountant(path) if world.stores is not None else None
        self._store = simulated or AccountantStore(path, patient=True)
        self._outage = AccountantOutage(self._store, path, partial(has_room, path.parent) if simulated is None
                                        else lambda: None, world.log)
        self._core = self._make_core()
        self.system: ActorSystem = world.make_system(commit=self._outage.commit)

    def _make_core(self) -> NegotiatorCore:
        """A core of what is known of users and reservations."""
        policy = priority_policy(self._config, self._outage.load())
        view = PoolView(weighs=self._config.boolean("NEGOTIATOR_USE_SLOT_WEIGHTS"))
        rules = cycle_rules(self._config)
        cycle = NegotiationCycle(cycle_settings(self._config), match_settings(self._config), view, policy, rules,
                                self._world.stopwatch)
        cycle.keep(Reservations(self._store.reservations()))
        accountant = Accountant(policy)
        accountant.groups = rules.groups
        self._core = NegotiatorCore(view, cycle, accountant)
        return self._core

    def start(self) -> None:
        """Spawn the actors."""
        nodes = collector_nodes(self._config)
        self.system.spawn(ADVERTISER, lambda: Advertiser(nodes, self._config.seconds("UPDATE_INTERVAL")))
        self.system.spawn(ACTOR, lambda: NegotiatorActor(self._make_core, self._outage, nodes, self._world.stopwatch,
                                                         self.ad), inbox_limit=INBOX_LIMIT)
        self._advertise()

    def _advertise(self) -> None:
        self.system.tell(Address("", ADVERTISER), Advertise(AdKind.NEGOTIATOR, self.ad()))

    def stop(self, graceful: bool) -> Deferred[None]:
        """There is nothing to finish; the actor saves as it stops."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Take new settings; records and view stay."""
        self._config = config
        policy = self._core.accountant.policy = priority_policy(config, self._core.accountant.policy.users)
        self._core.view.weigh(config.boolean("NEGOTIATOR_USE_SLOT_WEIGHTS"))
        rules = cycle_rules(config)
        self._core.accountant.groups = rules.groups
        self._core.cycle.reconfigure(cycle_settings(config), match_settings(config), rules, policy)
        self.system.tell(Address("", ACTOR), RequestCycle())  # a limit or quota may be higher now
        self._advertise()

    def measures(self) -> tuple[Measure, ...]:
        """What the last cycle came to."""
        last = self._core.cycle.last
        return tuple(Measure(name, doc, (), (((), last[key]),)) for name, doc, key in (
            ("condor_negotiation_matches", "Matches of the last cycle", "LastNegotiationCycleMatches0"),
            ("condor_negotiation_rejections", "Refused requests of the last cycle", "LastNegotiationCycleRejections0"),
            ("condor_negotiation_slots", "Slots in the last cycle", "LastNegotiationCycleTotalSlots0"),
            ("condor_negotiation_end_time_seconds", "When it ended, since 1970", "LastNegotiationCycleEnd0"),
        ) if key in last)

    def ad(self) -> ClassAd:
        """The negotiator's own ad."""
        config, node = self._config, self._world.post.public_node
        machine = config.full_hostname
        ad = ClassAd({
            "MyType": "Negotiator", "TargetType": "", "Name": config.text("NEGOTIATOR_NAME") or machine,
            "Machine": machine, "MyAddress": node, "NegotiatorIpAddr": node,
            "CondorVersion": f"$CondorVersion: {package_version()} $", "DaemonStartTime": int(self._started_s),
        })
        for name, value in self._core.cycle.last.items():
            ad[name] = int(value)
        return ad


def make_daemon(config: Config, world: World) -> Daemon:
    """The negotiator on these edges."""
    return NegotiatorDaemon(config, world)
