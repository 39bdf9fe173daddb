"""The defrag daemon: drains some machines now and then, so that large jobs find whole ones again.

Theory: :mod:`condor_actors.cores.defrag` decides; here the slots' ads come from the collector, page by page, and the
orders go to the startds.  It keeps nothing: a drain ends by itself, with the machine back in service.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.defrag import Defrag, DefragSettings, Order
from condor_actors.daemons.collector_query import query_ads
from condor_actors.messages.admin import CancelDrain, Drain
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Refused, TimerFired

__all__ = ["DefragDaemon", "defrag_settings", "make_daemon"]

ASK_S = 30.0
REASON = "defragmentation"
PARTITIONABLE = QueryAds(ad_kind=AdKind.SLOT, constraint="PartitionableSlot =?= True")


def defrag_settings(config: Config) -> DefragSettings:
    """The parameters DEFRAG_… as the core takes them."""
    start = config.text("DEFRAG_DRAINING_START_EXPR") or ""
    return config.settings(
        DefragSettings, cancel=config.expression("DEFRAG_CANCEL_REQUIREMENTS"),
        start="" if start.strip().lower() == "false" else start)


class DefragActor(Actor):
    """Asks, lets the core decide, gives orders."""

    def __init__(self, daemon: DefragDaemon) -> None:
        self.daemon = daemon
        self.core = Defrag(daemon.settings)

    def started(self) -> None:
        """Look soon."""
        self.context.set_timer("look", min(5.0, self.daemon.settings.interval_s))

    def receive(self, delivery: Delivery) -> None:
        """Time to look again."""
        if isinstance(delivery.message, TimerFired):
            self.core.settings = self.daemon.settings
            self.context.set_timer("look", self.daemon.settings.interval_s)
            query_ads(self.context, self.daemon.collectors, PARTITIONABLE, timeout_s=ASK_S, then=self._plan,
                      failed=lambda why: self.context.log.warn("no slots from the collector: {why}", why=why))

    def _plan(self, ads: list[bytes]) -> None:
        """All slots have come."""
        for order in self.core.plan([ClassAd.from_bytes(ad) for ad in ads], self.context.now_s()):
            self._give(order)

    def _give(self, order: Order) -> None:
        settings = self.daemon.settings
        message: Any = Drain(how=settings.how, on_completion="resume", start_expr=settings.start,
                             reason=REASON) if order.drain else CancelDrain()
        self.context.log.info("{machine}: {what}", machine=order.machine,
                              what="is drained" if order.drain else "has enough; its drain is called off")
        self.context.ask(Address(order.address, "startd"), message, timeout_s=ASK_S,
                         then=lambda answer: self._answered(order, answer))

    def _answered(self, order: Order, answer: Delivery) -> None:
        if isinstance(answer.message, (Refused, AskFailed)):
            self.core.ours.discard(order.machine)
            self.context.log.warn("{machine} does not obey: {why}", machine=order.machine, why=answer.message.text)


class DefragDaemon:
    """The daemon; see ``Daemon``."""

    name = "defrag"

    def __init__(self, config: Config, world: World) -> None:
        self.settings = defrag_settings(config)
        self.collectors = collector_nodes(config)
        self.world = world
        self.system = world.make_system()

    def start(self) -> None:
        """Spawn the actor."""
        self.system.spawn("defrag", lambda: DefragActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Nothing is left to do."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Take new settings; from the next look on."""
        self.settings = defrag_settings(config)

    def ad(self) -> ClassAd:
        """For ``condor_ping``."""
        actor = self.system.actor("defrag")
        drained = actor.core.drained if isinstance(actor, DefragActor) else 0
        return ClassAd({"MyType": "Defrag", "Name": "defrag", "MyAddress": self.world.post.public_node,
                        "DrainsRequested": drained})


def make_daemon(config: Config, world: World) -> DefragDaemon:
    """The defrag daemon, not started."""
    return DefragDaemon(config, world)
