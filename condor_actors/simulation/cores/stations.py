"""The executing side of a pool of cores: the production's startd with its owner, and what its starter host is told.

A startd reads its sensors every POLLING_INTERVAL while that can make a difference: not while the owner is there and the
station is the owner's anyway, nor while the owner has been away for longer than the policy asks for (``settled_s``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.slot_resources import SlotPlan
from condor_actors.cores.startd.slots import Slots
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import NeedStarter, Observed, Show, StartdSettings
from condor_actors.effects import Effect
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.claim import (
    ClaimActivity,
    CloseClaim,
    ContinueClaim,
    OpenClaim,
    StarterHostHello,
    SuspendClaim,
)
from condor_actors.messages.envelope import Address, Delivery, Done
from condor_actors.simulation.cores.nodes import POOL, Node
from condor_actors.simulation.cores.runs import SimulatedRun
from condor_actors.simulation.report import events
from condor_actors.simulation.world.clock import SimulatedCall

if TYPE_CHECKING:
    from condor_actors.simulation.cores.pool import CorePool

__all__ = ["Station"]

OWNER_LOAD = 1.0


class Station(Node):
    """One workstation: the startd's core, its starter host, its owner.

    Attributes:
        number: of the station; runs: by claim; owner_there: whether someone uses it.
        served: whether its policy serves the pool.
    """

    actor = "startd"

    def __init__(self, pool: CorePool, number: int, visits: Iterable[tuple[float, float]],
                 facts: Mapping[str, Any] | None = None, plan: SlotPlan | None = None) -> None:
        name = f"<station{number}:1>"
        super().__init__(pool.mesh, name)
        self.pool = pool
        self.number = number
        self.starter = Address(f"<station{number}:2>", "starter-host")
        self.runs: dict[str, SimulatedRun] = {}
        self.owner_there = False
        self.served = False
        self._visits = iter(visits)
        self._left_s = -1e6
        self._polling: SimulatedCall | None = None
        self._secrets = 0
        settings = attrs.evolve(pool.settings.slot, host=f"station{number}")
        values = {"MyType": "Machine", "TargetType": "Job", "Machine": settings.host, "StartdName": settings.host,
                  **pool.settings.facts, **(facts or {}), "MyAddress": name, "StartdIpAddr": name}
        self.slots = Slots(settings, ClassAd(values), self._secret)
        whole = SlotPlan(number=1, type_id=0, partitionable=False, share=pool.settings.share)
        self.slots.create((plan or whole,), self.clock.wall())
        self.slot = next(iter(self.slots))
        self.core = StartdCore(
            self.slots, StartdSettings(address=name, update_interval_s=pool.settings.update_s),
            birth_s=self.clock.wall(), new_secret=self._secret)
        self.mesh.nodes[self.starter.node] = _Starter(self)
        self.phase_s = Random(f"phase {number}").random() * pool.settings.poll_s
        self.perform(self.core.start((), self.clock.wall()), None)
        self._next_visit()
        self._poll_soon()

    def _secret(self) -> str:
        self._secrets += 1
        return f"secret {self.number} {self._secrets}"

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Ads, and the starter host."""
        if isinstance(effect, Show):
            slot = effect.slot
            private = f'Capability = "{slot.capability}"\n'.encode()
            self.pool.collector.show(AdKind.SLOT, slot.name, slot.ad.to_bytes(), private)
        elif isinstance(effect, NeedStarter):
            self.starter_says(StarterHostHello(node=self.starter.node, pid=1))

    def starter_says(self, message: Any) -> None:
        """The starter host tells the startd."""
        self.mesh.carry(self.name, Delivery(message=message, sender=self.starter, identity=POOL, message_id="",
                                            answerable=False))

    # ---- the owner

    def _next_visit(self) -> None:
        visit = next(self._visits, None)
        if visit is not None:
            self.clock.callLater(max(0.0, visit[0] - self.clock.now_s), self._comes, visit[1])

    def _comes(self, until_s: float) -> None:
        self.owner_there = True
        self.pool.observe(events.OwnerCame(self.clock.now_s, self.number))
        self.clock.callLater(max(0.0, until_s - self.clock.now_s), self._leaves)
        self._poll_soon()

    def _leaves(self) -> None:
        self.owner_there = False
        self._left_s = self.clock.now_s
        self.pool.observe(events.OwnerLeft(self.clock.now_s, self.number))
        self._poll_soon()
        self._next_visit()

    # ---- the sensors

    def _poll_soon(self) -> None:
        """Poll at the next moment of this station's grid."""
        settings = self.pool.settings
        if self._polling is not None and self._polling.getTime() > self.clock.now_s + settings.poll_s:
            self._polling.cancel()
            self._polling = None
        if self._polling is None:
            every_s = settings.poll_s
            number = math.floor((self.clock.now_s - self.phase_s) / every_s + 1e-6) + 1
            next_s = self.phase_s + number * every_s
            self._polling = self.clock.callLater(max(0.0, next_s - self.clock.now_s), self._poll)

    def _poll(self) -> None:
        self._polling = None
        self.pool.polls += 1
        idle_s = 0.0 if self.owner_there else self.clock.now_s - self._left_s
        own = float(sum(run.since_s is not None for run in self.runs.values()))
        load = OWNER_LOAD if self.owner_there else 0.0
        self.event(Observed(total_load=own + load, own_load=own, idle=(("console:owner", idle_s, ""),)))
        self._look()
        if not self._settled(idle_s):
            self._poll_soon()
        elif self.pool.settings.slow_poll_s:
            self._polling = self.clock.callLater(self.pool.settings.slow_poll_s, self._poll)

    def _settled(self, idle_s: float) -> bool:
        settled_s = self.pool.settings.settled_s
        if settled_s is None:
            return False
        places = {slot.machine.slot_state for slot in self.slots}
        if self.owner_there:
            return places == {op.OWNER}
        return idle_s >= settled_s and op.SUSPENDED not in places and (
            op.OWNER not in places or self.pool.settings.slow_poll_s > 0.0)

    def _look(self) -> None:
        """Tell whether the policy serves the pool or the owner."""
        served = not self.slot.machine.evaluation.is_owner
        if served != self.served:
            self.served = served
            kind = events.Served if served else events.Unserved
            self.pool.observe(kind(self.clock.now_s, self.number))


class _Starter:
    """A station's starter host: the startd's orders reach the runs."""

    def __init__(self, station: Station) -> None:
        self._station = station

    def take(self, delivery: Delivery) -> None:
        """An order."""
        message, station = delivery.message, self._station
        if isinstance(message, OpenClaim):
            station.mesh.answer(delivery.message_id, Done())
            return
        run = station.runs.get(message.claim_id)
        if isinstance(message, CloseClaim):
            if run is None:
                station.starter_says(ClaimActivity(claim_id=message.claim_id, activity="closed"))
            else:
                run.leave(message.vacate_s, message.reason)
        elif run is not None and isinstance(message, SuspendClaim):
            run.freeze()
        elif run is not None and isinstance(message, ContinueClaim):
            run.thaw()
