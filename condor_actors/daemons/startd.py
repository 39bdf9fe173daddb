"""The startd: offers this machine to the pool, and takes it back when its owner wants it.

The decisions are :mod:`condor_actors.cores.startd.startd_core`'s; here they meet the host (readings, the claim file,
the starter host's process) and the network.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from itertools import count
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from condor_actors.actors import Actor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.idleness import Idleness
from condor_actors.cores.startd.slots import Slots, SlotSettings
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import (
    Benchmarked,
    EndStartd,
    Hide,
    NeedStarter,
    Observed,
    Probed,
    RunBenchmarks,
    SensorSpoke,
    Show,
    StartdSettings,
    StarterDied,
    StopBenchmarks,
)
from condor_actors.daemons.advertiser import ADVERTISER, Advertise, Advertiser, Withdraw
from condor_actors.daemons.startd_settings import (
    container_attributes,
    inventories,
    inventory_commands,
    machine_ad,
    machine_share,
    slot_plans,
    slot_settings,
    startd_name,
)
from condor_actors.effects import Effect
from condor_actors.machine.containers.probe import ContainerProbe
from condor_actors.machine.privilege.pool_account import pool_uid
from condor_actors.machine.run.confinement import wanted_parts
from condor_actors.machine.sensors.benchmarks import Benchmarks
from condor_actors.machine.sensors.readings import HostReadings, IdleNow, Readings
from condor_actors.machine.sensors.sensors import HostSensors
from condor_actors.machine.supervisor.claim_file import ClaimFile, Claims
from condor_actors.machine.supervisor.starter_process import StarterHosts, StarterProcess
from condor_actors.messages.admin import IdleReading
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.claim import ClaimActivity, StarterHostHello
from condor_actors.messages.envelope import Address, Delivery, PeerDown, Refused, TimerFired
from condor_actors.messages.shadow_host import SayHello

__all__ = ["Startd", "make_daemon"]

HELLO_WAIT_S = 20.0
STARVED_S = 600.0
"""For so long a starter host that is silent for want of the processor is not taken for one that hangs."""
SHOW_SENSORS_S = 15.0
LOCAL_ONLY = (StarterHostHello, ClaimActivity, IdleReading)
START_AGAIN_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
HEALTHY_S = 10.0
"""A starter host that lived so long after its hello has not failed to start."""


@attrs.frozen
class VacateAll:
    """Local event: the process is to end; every claim does before."""

    fast: bool


@attrs.frozen
class FinishClaims:
    """Local event: the process is to end when what runs has finished."""


@attrs.frozen
class NewSlotSettings:
    """Local event: the configuration was read again."""

    settings: SlotSettings


class StartdActor(Actor):
    """Gives the core its events and performs what it decides."""

    def __init__(self, startd: Startd) -> None:
        self.startd = startd
        self.core = startd.make_core()
        self._shown: tuple[float, str] = (0.0, "")
        self._starved_since_s: float | None = None

    def started(self) -> None:
        """Take up former claims, take the first readings."""
        claims = self.startd.claims
        self.context.perform(self.core.start(claims.records, self.context.now_s(), getattr(claims, "facts", {})))
        if self.startd.sensors is not None:
            self.startd.sensors.start(self.context.system.clock, self._sensed, lambda: self.core.starter.pid)
        self._poll()
        if self.startd.last_hello is not None:  # an actor that is built anew does not know what runs by now
            self.context.tell(self.startd.last_hello.sender, SayHello())
        elif self.startd.resting is not None:
            self.startd.rest()

    def receive(self, delivery: Delivery) -> None:
        """One event for the core."""
        message = delivery.message
        if isinstance(message, TimerFired) and message.key == "poll":
            self._poll()
            return
        if isinstance(message, TimerFired) and message.key == "no-hello":
            self._start_starter()
            return
        if isinstance(message, TimerFired) and message.key == "no-word":
            self._starter_hangs()
            return
        if isinstance(message, (VacateAll, FinishClaims, NewSlotSettings, StarterDied)):
            self._of_the_process(message)
            return
        if isinstance(message, PeerDown):
            if self.core.starter.address is not None and self.core.starter.address.node == message.node:
                self.startd.starters.lacks_processor(self.core.starter.pid)  # from now on
                self.context.set_timer("no-word", HELLO_WAIT_S)
            return
        if isinstance(message, LOCAL_ONLY) and not self._is_ours(delivery):
            self.context.log.warn("{kind} from {who} refused: not of this machine", kind=type(message).__name__,
                                  who=delivery.identity.name)
            self.context.reply(delivery, Refused(code="denied", text="only this machine's own processes say that"))
            return
        if isinstance(message, StarterHostHello):
            self.context.cancel_timer("no-hello")
            self.context.cancel_timer("no-word")
            self._starved_since_s = None
            self.context.watch(delivery.sender.node)
            self.startd.heard_hello(delivery)
        self.decide(delivery if hasattr(message, "KIND") else message)
        if isinstance(message, StarterHostHello) and self.startd.resting is not None:
            self._of_the_process(VacateAll(fast=False))  # an actor that was built anew has not asked them to go

    def _of_the_process(self, message: VacateAll | FinishClaims | NewSlotSettings | StarterDied) -> None:
        """What the daemon tells its actor."""
        core, now_s = self.core, self.context.now_s()
        if isinstance(message, StarterDied):
            self.context.cancel_timer("no-hello")
            self.context.cancel_timer("no-word")
            self.decide(message)
            if not core.starter.is_up:
                self.need_starter()
        elif isinstance(message, NewSlotSettings):
            instead = core.slots.settings.start_instead
            core.slots.reconfigure(attrs.evolve(message.settings, start_instead=instead))
            self.context.perform(core.refresh(now_s))
        elif isinstance(message, FinishClaims):
            self.context.perform(core.finish(now_s))
            self._keep_drain()
        elif core.claims and core.starter.is_up:
            self.context.perform(core.vacate_all(now_s, fast=message.fast))
        else:
            self.startd.rest()

    def _is_ours(self, delivery: Delivery) -> bool:
        """Said by a process of this machine; about jobs, by root or by the account of the daemons."""
        identity = delivery.identity
        if identity.method == "self":
            return True
        trusted = isinstance(delivery.message, IdleReading) or identity.uid in (0, *self.startd.own_uids)
        return identity.method == "local" and trusted

    def decide(self, event: Any) -> None:
        """Let the core decide about an event."""
        delivery = event if isinstance(event, Delivery) else None
        self.context.perform(self.core.handle(event, self.context.now_s()), delivery)
        self._keep_drain()
        if self.startd.resting is not None and not self.core.claims:
            self.startd.rest()

    def _keep_drain(self) -> None:
        if self.core.draining != self.startd.draining:
            kept = attrs.evolve(self.core.draining)
            self.context.after_commit(lambda: setattr(self.startd, "draining", kept))

    def _poll(self) -> None:
        startd = self.startd
        sensors = startd.sensors
        loads = startd.readings.loads(self.core.starter.pid)
        words = startd.readings.idle()
        if sensors is not None:
            words = sensors.idle(words)
        self.decide(Observed(
            total_load=loads.total, own_load=loads.own, idle=tuple((each.source, each.idle_s,
                                                                    each.text) for each in words),
            disk_free_kib=startd.readings.disk_free_kib(startd.execute), utc_offset_s=startd.utc_offset_s(),
            console_uids=sensors.console_users() if sensors is not None else frozenset(),
            screen_locked=sensors.screen_locked() if sensors is not None else None))
        self._remember_input()
        self._show_sensors()
        self.context.set_timer("poll", startd.poll_s)

    def _sensed(self, word: IdleNow) -> None:
        """A sensor saw the owner: a turn of its own."""
        self.context.tell(self.context.address, SensorSpoke(word.source))

    def _remember_input(self) -> None:
        idle_s = self.core.idleness.keyboard_idle_s(self.context.now_s())
        if self.startd.sensors is not None and idle_s is not None:
            self.startd.sensors.remember(idle_s)

    def _show_sensors(self) -> None:
        """The startd's own ad shows what the sensors say; anew when something was said, and once a minute."""
        now_s = self.context.now_s()
        if now_s - self._shown[0] < SHOW_SENSORS_S:
            return
        text = self.core.owner.sensors_text()
        if text != self._shown[1]:
            self._shown = (now_s, text)
            ad = self.startd.ad()
            ad.update(self.core.owner.ad())
            ad["MyType"] = "StartDaemon"
            self.context.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, ad))

    def stopped(self) -> None:
        """Let go of the sensors."""
        if self.startd.sensors is not None:
            self.startd.sensors.stop()
        self.startd.benchmarks.stop()

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Advertise, and mind the starter host."""
        if isinstance(effect, Show):
            slot = effect.slot
            private = ClassAd({"Name": slot.name, "Capability": slot.capability}).to_bytes()
            self.context.tell(Address("", ADVERTISER), Advertise(
                AdKind.SLOT, slot.ad.to_bytes(), private, name=slot.name, my_address=self.core.settings.address))
        elif isinstance(effect, Hide):
            self.context.tell(Address("", ADVERTISER), Withdraw(AdKind.SLOT, effect.name))
        elif isinstance(effect, NeedStarter):
            self.need_starter()
        elif isinstance(effect, RunBenchmarks):
            self.startd.benchmarks.run(lambda found, text: self.context.tell(
                self.context.address, Benchmarked(found=found, text=text)))
        elif isinstance(effect, StopBenchmarks):
            self.startd.benchmarks.stop()
        elif isinstance(effect, EndStartd):
            self.startd.end(effect.how)
        else:
            super().perform_own(effect, delivery)

    def need_starter(self) -> None:
        """One that lives says hello by itself; else start one, a little later after each failure."""
        if self.context.has_timer("no-hello") or self.core.starter.is_up or self.startd.resting is not None:
            return
        pid = self.startd.starters.living()
        if pid:
            self.startd.watch_starter(pid)
            self.context.set_timer("no-hello", HELLO_WAIT_S)
        else:
            self.context.set_timer("no-hello", self.startd.next_start_s(self.context.now_s()))

    def _starter_hangs(self) -> None:
        """Its link broke (90 s of silence break one) and it lives but does not come back: nothing there can be
        suspended or vacated any more, so its jobs end with it."""
        pid = self.core.starter.pid
        if pid and self.startd.starters.living() == pid:
            if self._is_starved(pid):
                self.context.set_timer("no-word", HELLO_WAIT_S)
                return
            self.context.log.error("the starter host (pid {pid}) hangs: it is killed", pid=pid)
            self.startd.starters.kill(pid)

    def _is_starved(self, pid: int) -> bool:
        """Whether a silent starter host wants the processor and does not get it: that will end, and nothing is wrong
        with its jobs."""
        now_s = self.context.now_s()
        if not self.startd.starters.lacks_processor(pid):
            self._starved_since_s = None
            return False
        if self._starved_since_s is None:
            self._starved_since_s = now_s
            self.context.log.warn("the starter host (pid {pid}) is silent because it hardly gets the processor: it is "
                                  "waited for", pid=pid)
        return now_s - self._starved_since_s < STARVED_S

    def _start_starter(self) -> None:
        if self.core.starter.is_up or self.startd.resting is not None:
            return
        stuck = self.startd.starters.living()
        if stuck:  # it has not said hello in time; the next one is started when its end is seen
            self.startd.watch_starter(stuck)
            if not self._is_starved(stuck):
                self.context.log.error("the starter host (pid {pid}) does not say hello: it is killed", pid=stuck)
                self.startd.starters.kill(stuck)
            self.context.set_timer("no-hello", HELLO_WAIT_S)
            return
        try:
            pid = self.startd.starters.start()
        except OSError as error:
            self.context.log.error("the starter host cannot be started: {error}", error=error)
        else:
            self.startd.watch_starter(pid)
        self.context.set_timer("no-hello", HELLO_WAIT_S)


class Startd:
    """The daemon; see ``World`` and ``Daemon``.

    Attributes:
        system, name: of every daemon.
        claims: the claim file; readings: the host; starters: the starter host's process.
        last_hello: the living starter host's introduction, idleness: what sensors have said, both for a rebuilt actor.
        resting: fires when the last claim is over, while the startd stops.
    """

    name = "startd"

    def __init__(self, config: Config, world: World) -> None:
        self.config = config
        self.world = world
        self.own_uids = {world.uid, pool_uid(config)}
        self.started_s = world.wall_clock()
        self.readings: Readings = world.readings or HostReadings(
            config.list_of("CONSOLE_DEVICES"), confine=wanted_parts(config), inventories=inventory_commands(config))
        self.sensors = None if world.readings is not None else HostSensors(
            [word.lower() for word in config.list_of("OWNER_SENSORS")], memory=config.path("RUN") / "owner_seen")
        self._containers = False
        self._probe = ContainerProbe(world.reactor_time, self._probed, works_here=world.readings is None)
        self.benchmarks = Benchmarks(config.list_of("BENCHMARKS_JOBLIST") if world.readings is None else (),
                                     world.reactor_time)
        self.starters: StarterHosts = world.processes or StarterProcess(
            config.path("RUN"), config.path("LOG") / "StarterHostLog.err", world.reactor_time)
        spool = config.path("SPOOL")
        path = spool / f"startd_claims.{config.needed_text('LOCALNAME')}"
        self.claims: Claims = world.stores.open_claims(path) if world.stores is not None else ClaimFile(path)
        self.system = world.make_system(commit=self.claims.commit)
        self.poll_s = config.seconds("POLLING_INTERVAL")
        self.last_hello: Delivery | None = None
        self.idleness = Idleness()
        self.draining = Draining()
        """As it was at the last commit: a core that is made anew goes on with it."""
        self.resting: Deferred[None] | None = None
        self.shut_down: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGTERM)
        self._starter_pid = 0
        self._starts_s: list[float] = []
        self._claim_numbers = count(1)
        self._hello_s = 0.0
        execute = config.path("EXECUTE")
        self.execute = str(execute)
        self._facts = self.readings.facts()
        self._inventories, unread = inventories(self._facts.inventories)
        for sentence in (*self._facts.not_taken, *unread):
            world.log.error("a resource of this machine is left out: {why}", why=sentence)
        self._share = machine_share(config, self._facts, self.readings.disk_free_kib(str(execute)), self._inventories)
        self._plans = slot_plans(config, self._share)
        self._slot_settings = slot_settings(config)
        self._made: tuple[Any, ClassAd] = (None, ClassAd())

    # ---- Daemon

    def start(self) -> None:
        """Spawn the actors."""
        interval_s = self.config.seconds("UPDATE_INTERVAL")
        self.system.spawn(ADVERTISER, lambda: Advertiser(collector_nodes(self.config), interval_s))
        self.system.spawn("startd", lambda: StartdActor(self), inbox_limit=10_000)
        self.system.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, self.ad()))
        self._probe.start()

    def _probed(self, works: bool) -> None:
        """Whether jobs can run in images has been tried out."""
        self._containers, self._made = works, (None, ClassAd())
        self.system.tell(Address("", "startd"), Probed(tuple(container_attributes(self.config, works).items())))
        self.system.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, self.ad()))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Vacate every claim, then end the starter host."""
        if self.resting is None:
            self.resting = Deferred()
        resting = self.resting
        if self.system.actor("startd") is None:
            self.rest()
        else:
            self.system.tell(Address("", "startd"), VacateAll(not graceful))
        return resting

    def rest_peacefully(self, done: Callable[[], None]) -> None:
        """Take no new claims; call ``done`` when the last one is over."""
        self.shut_down = done
        if self.system.actor("startd") is None:
            done()
        else:
            self.system.tell(Address("", "startd"), FinishClaims())

    def rest(self) -> None:
        """Nothing runs any more."""
        resting, self.resting = self.resting, Deferred()
        self._probe.stop()
        if self._starter_pid:
            self.starters.stop(self._starter_pid, fast=False)
            self._starter_pid = 0
        if resting is not None and not resting.called:
            resting.callback(None)

    def reconfigure(self, config: Config) -> None:
        """Take the policy, times and attributes; slots and resources need a restart."""
        settings = slot_settings(config)
        self.config = config
        self._slot_settings = settings
        if self._containers:
            self._probed(True)  # CONTAINER_REGISTRIES
        self.poll_s = config.seconds("POLLING_INTERVAL")
        self.system.tell(Address("", "startd"), NewSlotSettings(settings))

    def ad(self) -> ClassAd:
        """The startd's own ad."""
        ad = self._machine_ad()
        ad["MyType"] = "StartDaemon"
        ad["Name"] = startd_name(self.config)
        node = self.last_hello.message.node if self.last_hello is not None else ""
        if node.startswith("<"):
            ad["StarterAddress"] = node
        return ad

    def _machine_ad(self) -> ClassAd:
        """What all ads of the machine share, made once for a configuration and an address."""
        made_of = (self.config, self.world.post.public_node)
        if self._made[0] != made_of:
            ad = machine_ad(self.config, self._facts, self._share, made_of[1], self.started_s,
                            self._inventories, containers=self._containers)
            ad["TotalSlots"] = len(self._plans)
            self._made = (made_of, ad)
        return self._made[1].copy()

    # ---- for the actor

    def make_core(self) -> StartdCore:
        """A core with fresh slots."""
        now_s = self.world.wall_clock()
        address = self.world.post.public_node
        slots = Slots(self._slot_settings, self._machine_ad(), self.world.new_secret, self._inventories)
        slots.create(self._plans, now_s)
        settings = self.config.settings(
            StartdSettings, address=address, own_uid=self.world.uid,
            owners=frozenset(self.config.list_of("DESKTOP_OWNERS")))
        return StartdCore(slots, settings, birth_s=self.started_s, new_secret=self.world.new_secret,
                          numbers=self._claim_numbers, idleness=self.idleness, draining=attrs.evolve(self.draining))

    def utc_offset_s(self) -> int:
        """How far this machine's clock is ahead of UTC, summer time and all."""
        return time.localtime(self.world.wall_clock()).tm_gmtoff

    def heard_hello(self, delivery: Delivery) -> None:
        """A starter host is there."""
        moved = self.last_hello is None or self.last_hello.message.node != delivery.message.node
        self.last_hello = delivery
        if moved:  # a gateway lets partners' shadows reach what ads name, and nothing else
            self.system.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, self.ad()))
        self._hello_s = self.world.wall_clock()
        self.watch_starter(delivery.message.pid)

    def watch_starter(self, pid: int) -> None:
        """Hear of its end."""
        self._starter_pid = pid
        self.starters.watch(pid, self._starter_ended)

    def _starter_ended(self, pid: int) -> None:
        if self._hello_s and self.world.wall_clock() - self._hello_s > HEALTHY_S:
            self._starts_s.clear()
        self._hello_s = 0.0
        self.last_hello = None
        if pid == self._starter_pid:
            self._starter_pid = 0
        self.system.tell(Address("", "startd"), StarterDied(pid))

    def next_start_s(self, now_s: float) -> float:
        """How long to wait before the next start: longer while starts keep failing."""
        self._starts_s = [each for each in self._starts_s if now_s - each < 300.0]
        delay_s = START_AGAIN_S[min(len(self._starts_s), len(START_AGAIN_S) - 1)]
        self._starts_s.append(now_s)
        return delay_s

    def end(self, how: str) -> None:
        """A drain is over: stop as by a signal; the master starts the startd again."""
        self.world.log.info("the machine is drained; the startd ends ({how})", how=how)
        self.shut_down()


def make_daemon(config: Config, world: World) -> Startd:
    """The startd, not started.

    Raises:
        ConfigError: the slots or the policy cannot be understood.
        OSError: EXECUTE, SPOOL or the claim file cannot be used.
    """
    return Startd(config, world)
