"""A pool of production cores: every schedd, startd and the negotiator decide as in production; only the edges are
modelled.

===================  ==============================================================================================
part                 what it is here
===================  ==============================================================================================
schedd               :class:`~condor_actors.cores.schedd.schedd_core.ScheddCore`, one per home station
                     (:mod:`condor_actors.simulation.cores.homes`)
startd               :class:`~condor_actors.cores.startd.startd_core.StartdCore` with the owner's policy from the
                     configuration, one per station (:mod:`condor_actors.simulation.cores.stations`)
negotiator           :class:`~condor_actors.cores.negotiator.negotiator_core.NegotiatorCore` with the
                     configured priorities
collector            passes ads on
shadow, starter,     a :class:`~condor_actors.simulation.cores.runs.SimulatedRun`: placed, working, frozen,
program              saved, moved as the startd orders
owner                a trace of visits; while one lasts the keyboard is in use and the load is 1
===================  ==============================================================================================

Everything that a report wants to know is told to ``observe`` (:mod:`condor_actors.simulation.report.events`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs

from condor_actors.config.settings import setting
from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.cycle_settings import CycleRules, CycleSettings
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.negotiator_core import NegotiatorCore
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.cores.negotiator.user_priority import PriorityPolicy
from condor_actors.cores.schedd.schedd_settings import ScheddSettings
from condor_actors.cores.startd.slot_resources import Share, SlotPlan
from condor_actors.cores.startd.slots import SlotSettings
from condor_actors.messages.codes import Universe
from condor_actors.simulation.cores.homes import Home
from condor_actors.simulation.cores.nodes import LATENCY_S, Collector, Mesh, Negotiator
from condor_actors.simulation.cores.stations import Station
from condor_actors.simulation.report import events
from condor_actors.simulation.world.clock import HeapClock

__all__ = ["CorePool", "MONDAY_S", "PoolSettings"]

MONDAY_S = 581_558_400.0
"""The midnight before Monday, 6 June 1988 (UTC)."""
STATION_OF_1988 = Share(cpus=1, memory_mib=8, disk_kib=20_000)


@attrs.frozen(kw_only=True)
class PoolSettings:
    """What the cores of a pool are made from.

    Attributes:
        slot, schedd, cycle, match, rules: the settings of the production cores; ``host``, ``name`` and so on are
            replaced for each of them.
        policy: makes the priorities.
        share, facts: a station's resources, and what its ads say beside those that the cores write.
        poll_s: POLLING_INTERVAL; settled_s: how long after an owner has left nothing changes any more; None: always
            poll; slow_poll_s: polls at times when nothing should change, 0: none.
        update_s: UPDATE_INTERVAL of startds.
        placement_s, checkpoint_s: how long a job takes to be sent and to be saved.
        saves: whether an evicted job keeps its work; save_every_s: between periodic checkpoints, 0: none.
        keeps_claims: whether a claim is used for one job after another.
        job: attributes of every job's ad.
    """

    slot: SlotSettings
    schedd: ScheddSettings
    cycle: CycleSettings
    match: MatchSettings
    policy: Callable[[], PriorityPolicy]
    rules: CycleRules = attrs.field(factory=CycleRules)
    share: Share = STATION_OF_1988
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    poll_s: float = setting("POLLING_INTERVAL")
    settled_s: float | None = 150.0
    slow_poll_s: float = 0.0
    update_s: float = setting("UPDATE_INTERVAL")
    placement_s: float = 2.5
    checkpoint_s: float = 2.5
    saves: bool = True
    save_every_s: float = 0.0
    keeps_claims: bool = True
    job: str = (
        "RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1000\nRequirements = true\n"
        f"JobUniverse = {Universe.STANDARD}\n")


class CorePool:
    """The whole pool; see the module.

    Args:
        settings: of the cores.
        visits: the owner's visits of each station, which also says how many stations there are.
        users: who submits; each has a schedd.
        observe: takes what happens.
        facts: what the ads of each station say beside the common facts; empty: nothing.
        plans: the slot of each station; empty: one of the settings' share.
        watch: see :class:`~condor_actors.simulation.cores.nodes.Negotiator`.

    Attributes:
        clock: simulated time, from a Monday's midnight; polls: readings that startds took.
    """

    def __init__(self, settings: PoolSettings, visits: Sequence[Iterable[tuple[float, float]]], users: Iterable[str],
                 observe: Callable[[events.Event], None], *, facts: Sequence[Mapping[str, Any]] = (),
                 plans: Sequence[SlotPlan] = (),
                 watch: Callable[[Any, Callable[[], None]], None] | None = None) -> None:
        self.settings = settings
        self.observe = observe
        self.clock = HeapClock(MONDAY_S, LATENCY_S)
        self.mesh = Mesh(self.clock)
        self.polls = 0
        self.collector = Collector(self.mesh)
        view = PoolView()
        self.priorities = settings.policy()
        cycle = NegotiationCycle(settings.cycle, settings.match, view, self.priorities, settings.rules)
        self.negotiator = Negotiator(self.mesh, NegotiatorCore(view, cycle, Accountant(self.priorities, 3600.0)), watch)
        self.stations = [Station(self, number, each, facts[number] if facts else None, plans[number] if plans else None)
                         for number, each in enumerate(visits)]
        self.stations_by_node = {station.starter.node: station for station in self.stations}
        self.homes = {user: Home(self, user) for user in users}

    def submit_at(self, when_s: float, user: str, demands_s: Sequence[float], calls: Sequence[int] = (),
                  ad: str = "", saves: bool | None = None) -> None:
        """Plan a submission; see :meth:`Home.submit`."""
        self.clock.callLater(max(0.0, when_s - self.clock.now_s), self.homes[user].submit, demands_s, calls, ad, saves)

    def run_until(self, end_s: float) -> None:
        """Let time pass."""
        self.clock.run_until(end_s)
