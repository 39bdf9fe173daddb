"""A pool of production cores: every schedd, startd and the negotiator decide as in production; only the edges are
modelled.

===================  ==============================================================================================
part                 what it is here
===================  ==============================================================================================
schedd               :class:`condor_actors.cores.submit_side.SubmitSide`, one per home station
startd               :class:`condor_actors.cores.execute_desk.ExecuteDesk` with the owner's policy from the
                     configuration, one per station
negotiator           :class:`condor_actors.cores.negotiator_core.NegotiatorCore` with the configured priorities
collector            passes ads on
shadow, starter,     a :class:`Run`: placing takes ``placement_s``, then the job works until its demand is done, is
program              frozen, saved (``checkpoint_s``) and moved as the startd orders
owner                a trace of visits; while one lasts the keyboard is in use and the load is 1
===================  ==============================================================================================

A startd reads its sensors every POLLING_INTERVAL while that can make a difference: not while the owner is there and the
station is the owner's anyway, nor while the owner has been away for longer than the policy asks for (``settled_s``).

Everything that a report wants to know is told to ``observe`` (:mod:`condor_actors.simulation.events`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores import owner_policy as op
from condor_actors.cores.accountant import Accountant
from condor_actors.cores.desk_events import DeskSettings, NeedStarter, Observed, Show
from condor_actors.cores.effects import Effect, Reply
from condor_actors.cores.execute_desk import ExecuteDesk
from condor_actors.cores.match_settings import MatchSettings
from condor_actors.cores.negotiation_cycle import CycleRules, CycleSettings, NegotiationCycle
from condor_actors.cores.negotiator_core import NegotiatorCore
from condor_actors.cores.pool_view import PoolView
from condor_actors.cores.queue_operations import QueueSnapshot
from condor_actors.cores.schedd_settings import ScheddSettings
from condor_actors.cores.shadow_hosts import StartHost
from condor_actors.cores.slot_resources import Share, SlotPlan
from condor_actors.cores.slots import Slots, SlotSettings
from condor_actors.cores.submit_side import HostHello, SubmitSide
from condor_actors.cores.user_priority import PriorityPolicy
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.claim import (
    ClaimActivity,
    CloseClaim,
    ContinueClaim,
    OpenClaim,
    StarterHostHello,
    SuspendClaim,
)
from condor_actors.messages.envelope import Address, Delivery, Done, Identity
from condor_actors.messages.queue import ReserveCluster, SubmitPage
from condor_actors.messages.run import (
    HostOrders,
    NoticesWritten,
    RunEnded,
    RunUpdated,
    ShadowHostHello,
    StartRun,
    StopRun,
)
from condor_actors.simulation import events
from condor_actors.simulation.clock import HeapClock, SimulatedCall
from condor_actors.simulation.core_nodes import COLLECTOR, POOL, Collector, Mesh, Negotiator, Node

__all__ = ["MONDAY_S", "CorePool", "Home", "PoolSettings", "Station"]

MONDAY_S = 581_558_400.0
"""The midnight before Monday, 6 June 1988 (UTC)."""
OWNER_LOAD = 1.0
STATION_OF_1988 = Share(cpus=1, memory_mib=8, disk_kib=20_000)
EXITED = b"ExitCode = 0\nExitBySignal = false\n"
VERSION = "$CondorVersion: simulated $"


@attrs.frozen(kw_only=True)
class PoolSettings:
    """What the cores of a pool are made from.

    Attributes:
        slot, schedd, cycle, match, rules: the settings of the production cores; ``host``, ``name`` and the like are
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
    poll_s: float = 30.0
    settled_s: float | None = 150.0
    slow_poll_s: float = 0.0
    update_s: float = 1800.0
    placement_s: float = 2.5
    checkpoint_s: float = 2.5
    saves: bool = True
    save_every_s: float = 0.0
    keeps_claims: bool = True
    job: str = "RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1000\nRequirements = true\nJobUniverse = 1\n"


@attrs.define(eq=False)
class Work:
    """How much of a job is done; ``saved_s`` of it would survive; ``saves``: whether it keeps its work when evicted."""

    demand_s: float
    saves: bool
    saved_s: float = 0.0


class Run:
    """One run of a job on a station; see the module.

    Attributes:
        done_s: work done when it last began or stood still; since_s: since when it runs; None: it stands still.
    """

    def __init__(self, pool: CorePool, home: Home, order: StartRun, host: str) -> None:
        self.pool = pool
        self.home = home
        self.host = host
        self.run_id = order.run_id
        self.claim_id = order.claim_id
        self.job = (home.user, order.run_id.partition("#")[0])
        self.work = home.work[self.job]
        self.done_s = self.work.saved_s
        self.since_s: float | None = None
        self.leaving = ""
        self._call: SimulatedCall | None = None
        self._save: SimulatedCall | None = None
        self.station = pool.stations_by_node[order.starter_node]
        self.station.runs[self.claim_id] = self
        home.runs[self.run_id] = self
        pool.observe(events.Placed(pool.clock.now_s, self.job, self.station.number))
        self._call = pool.clock.callLater(pool.settings.placement_s, self._begin)

    def _begin(self) -> None:
        self.pool.observe(events.Began(self.pool.clock.now_s, self.job, self.station.number))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="busy", job_id=self.run_id))
        self._go_on()

    def _go_on(self) -> None:
        clock, settings = self.pool.clock, self.pool.settings
        self.since_s = clock.now_s
        self._call = clock.callLater(max(0.0, self.work.demand_s - self.done_s), self._finish)
        if settings.save_every_s:
            self._save = clock.callLater(settings.save_every_s, self._save_now)

    def _stand(self) -> None:
        """Stop working."""
        for call in (self._call, self._save):
            if call is not None and call.active():
                call.cancel()
        self._call = self._save = None
        if self.since_s is not None:
            self.done_s += self.pool.clock.now_s - self.since_s
            self.since_s = None

    def _save_now(self) -> None:
        self._stand()
        self.work.saved_s = self.done_s
        self.pool.observe(events.Saved(self.pool.clock.now_s, self.job))
        self._call = self.pool.clock.callLater(self.pool.settings.checkpoint_s, self._go_on)

    def _finish(self) -> None:
        self._stand()
        self._forget()
        del self.home.work[self.job]
        self.pool.observe(events.Completed(self.pool.clock.now_s, self.job))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="idle", job_id=self.run_id))
        self.home.host_says(self.host, RunEnded(run_id=self.run_id, outcome="exited", attributes=EXITED,
                                                claim_usable=self.pool.settings.keeps_claims))

    def _forget(self) -> None:
        self.station.runs.pop(self.claim_id, None)
        self.home.runs.pop(self.run_id, None)

    # ---- orders of the startd

    def freeze(self) -> None:
        """SuspendClaim."""
        if self.since_s is not None:
            self._stand()
            self.pool.observe(events.Suspended(self.pool.clock.now_s, self.job))
            self.home.host_says(self.host, RunUpdated(run_id=self.run_id, attributes=b"", event="suspended"))

    def thaw(self) -> None:
        """ContinueClaim."""
        if self.since_s is None and self._call is None and not self.leaving:
            self.pool.observe(events.Resumed(self.pool.clock.now_s, self.job))
            self.home.host_says(self.host, RunUpdated(run_id=self.run_id, attributes=b"", event="continued"))
            self._go_on()

    def leave(self, vacate_s: float, reason: str) -> None:
        """CloseClaim, or the schedd's StopRun: save what can be saved in time and go."""
        settings = self.pool.settings
        saves = self.work.saves and vacate_s >= settings.checkpoint_s
        if self.leaving:
            if saves:
                return
            self._stand()
        running = self.since_s is not None
        placed = running or self.done_s > self.work.saved_s
        self._stand()
        if running:
            self.pool.observe(events.Suspended(self.pool.clock.now_s, self.job))
        self.leaving = "priority" if reason.startswith("preempted by") else "owner"
        delay_s = settings.checkpoint_s if saves and placed else 0.0
        self._call = self.pool.clock.callLater(delay_s, self._gone, saves and placed, reason)

    def _gone(self, saved: bool, reason: str) -> None:
        lost_s = 0.0 if saved else self.done_s - self.work.saved_s
        if saved:
            self.work.saved_s = self.done_s
        self._forget()
        self.pool.observe(events.Left(self.pool.clock.now_s, self.job, self.leaving, saved, lost_s))
        self.home.host_says(self.host, RunEnded(run_id=self.run_id, outcome="evicted", attributes=b"", reason=reason,
                                                claim_usable=False))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="closed", job_id=self.run_id))


class Home(Node):
    """One schedd with its users' jobs, and their shadow hosts.

    Args:
        pool: where it belongs; user: whose station it is.
    """

    actor = "schedd"

    def __init__(self, pool: CorePool, user: str) -> None:
        super().__init__(pool.mesh, f"<{user}:1>", wrapped=True)
        self.pool = pool
        self.user = user
        self.identity = Identity(name=f"{user}@pool")
        self.work: dict[tuple[str, str], Work] = {}
        self.runs: dict[str, Run] = {}
        self._hosts = 0
        settings = attrs.evolve(pool.settings.schedd, name=f"schedd@{user}", machine=user, uid_domain="pool",
                                collectors=(COLLECTOR,))
        self.core = SubmitSide(settings, QueueSnapshot(), Random(f"schedd {user}"), self.clock.wall(), VERSION)
        self.perform(self.core.start(self.clock.wall(), self.name), None)

    def submit(self, demands_s: Sequence[float], calls: Sequence[int] = (), ad: str = "",
               saves: bool | None = None) -> None:
        """Queue jobs of one cluster.

        Args:
            demands_s: the work of each; calls: their remote system calls.
            ad: attributes of the cluster beside those of every job.
            saves: whether they keep their work when they are evicted; None: as the settings say.

        Raises:
            ValueError: the schedd refuses them.
        """
        cluster = self._tell(ReserveCluster()).cluster_id
        page = SubmitPage(cluster_id=cluster, page=0, cluster_ad=(self.pool.settings.job + ad).encode(),
                          procs=(b"",) * len(demands_s), first_proc=0, last=True)
        for proc, demand_s in enumerate(demands_s):
            job = (self.user, f"{cluster}.{proc}")
            self.work[job] = Work(demand_s, self.pool.settings.saves if saves is None else saves)
            self.pool.observe(events.Submitted(self.clock.now_s, job, self.user, demand_s,
                                               calls[proc] if calls else 0))
        answer = self._tell(page)
        if not hasattr(answer, "first_proc"):
            raise ValueError(f"the schedd of {self.user} refuses: {answer.text}")

    def _tell(self, message: Any) -> Any:
        """A tool's question, answered in the same turn."""
        delivery = Delivery(message=message, sender=Address("tool", "tool"), identity=self.identity, message_id="")
        answers = []
        effects = self.core.handle(delivery, self.clock.wall())
        others = []
        for effect in effects:
            if isinstance(effect, Reply):
                answers.append(effect.message)
            else:
                others.append(effect)
        self.perform(tuple(others), None)
        return answers[0]

    # ---- shadow hosts

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """A process is wanted: it is there a moment later."""
        if isinstance(effect, StartHost):
            self._hosts += 1
            node = f"host:{self.user}:{self._hosts}"
            self.mesh.nodes[node] = _Host(self, node)
            hello = ShadowHostHello(host_id=effect.host_id, owner=effect.owner, pid=self._hosts)
            self.mesh.carry(self.name, Delivery(message=HostHello(hello, "born"), sender=Address(node, "shadow-host"),
                                                identity=self.identity, message_id="", answerable=False))

    def host_says(self, host: str, message: Any) -> None:
        """A shadow host tells the schedd."""
        self.mesh.carry(self.name, Delivery(message=message, sender=Address(host, "shadow-host"),
                                            identity=self.identity, message_id="", answerable=False))


class _Host:
    """A shadow host's process: its orders become runs."""

    def __init__(self, home: Home, name: str) -> None:
        self._home = home
        self._name = name

    def take(self, delivery: Delivery) -> None:
        """An order of the schedd."""
        message, home = delivery.message, self._home
        if isinstance(message, HostOrders):
            written = (*(run_id for run_id, _ in message.verdicts), *(each.notice_id for each in message.notices))
            if written:
                home.host_says(self._name, NoticesWritten(notice_ids=written))
            for start in message.starts:
                Run(home.pool, home, start, self._name)
        elif isinstance(message, StopRun):
            run = home.runs.get(message.run_id)
            if run is not None:
                run.leave(0.0 if message.how in ("fast", "remove", "lost") else 600.0, message.reason)


class Station(Node):
    """One workstation: the startd's core, its starter host, its owner.

    Attributes:
        number: of the station; runs: by claim; owner_there: whether somebody uses it.
        served: whether its policy serves the pool.
    """

    actor = "startd"

    def __init__(self, pool: CorePool, number: int, visits: Iterable[tuple[float, float]],
                 facts: Mapping[str, Any] | None = None, plan: SlotPlan | None = None) -> None:
        name = f"<station{number}:1>"
        super().__init__(pool.mesh, name)
        self.pool = pool
        self.number = number
        self.starter = Address(f"<starter{number}:1>", "starter-host")
        self.runs: dict[str, Run] = {}
        self.owner_there = False
        self.served = False
        self._visits = iter(visits)
        self._left_s = -1e6
        self._polling: SimulatedCall | None = None
        self._secrets = 0
        settings = attrs.evolve(pool.settings.slot, host=f"station{number}")
        values = {"MyType": "Machine", "TargetType": "Job", "Machine": settings.host, "MyAddress": name,
                  "StartdName": settings.host, **pool.settings.facts, **(facts or {})}
        self.slots = Slots(settings, ClassAd(values), self._secret)
        whole = SlotPlan(number=1, type_id=0, partitionable=False, share=pool.settings.share)
        self.slots.create((plan or whole,), self.clock.wall())
        self.slot = next(iter(self.slots))
        self.core = self.desk = ExecuteDesk(
            self.slots, DeskSettings(address=name, update_interval_s=pool.settings.update_s),
            birth_s=self.clock.wall(), new_secret=self._secret)
        self.mesh.nodes[self.starter.node] = _Starter(self)
        self.phase_s = Random(f"phase {number}").random() * pool.settings.poll_s
        self.perform(self.desk.start((), self.clock.wall()), None)
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
        self.event(Observed(total_load=own + load, own_load=own, idle=(("tty:console", idle_s, ""),)))
        self._look()
        if not self._settled(idle_s):
            self._poll_soon()
        elif self.pool.settings.slow_poll_s:
            self._polling = self.clock.callLater(self.pool.settings.slow_poll_s, self._poll)

    def _settled(self, idle_s: float) -> bool:
        settled_s = self.pool.settings.settled_s
        if settled_s is None:
            return False
        places = {slot.machine.place for slot in self.slots}
        if self.owner_there:
            return places == {op.OWNER}
        return idle_s >= settled_s and op.SUSPENDED not in places and (
            op.OWNER not in places or self.pool.settings.slow_poll_s > 0.0)

    def _look(self) -> None:
        """Tell whether the policy serves the pool or the owner."""
        served = not self.slot.machine.look.is_owner
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


class CorePool:
    """The whole pool; see the module.

    Args:
        settings: of the cores.
        visits: the owner's visits of each station, which also says how many stations there are.
        users: who submits; each has a schedd.
        observe: takes what happens.
        facts: what the ads of each station say beside the common facts; empty: nothing.
        plans: the slot of each station; empty: one of the settings' share.
        watch: see :class:`condor_actors.simulation.core_nodes.Negotiator`.

    Attributes:
        clock: simulated time, from a Monday's midnight; polls: readings that startds took.
    """

    def __init__(self, settings: PoolSettings, visits: Sequence[Iterable[tuple[float, float]]], users: Iterable[str],
                 observe: Callable[[events.Event], None], *, facts: Sequence[Mapping[str, Any]] = (),
                 plans: Sequence[SlotPlan] = (),
                 watch: Callable[[Any, Callable[[], None]], None] | None = None) -> None:
        self.settings = settings
        self.observe = observe
        self.clock = HeapClock(MONDAY_S)
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
