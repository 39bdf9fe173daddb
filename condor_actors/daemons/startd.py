"""The startd: offers this machine to the pool, and takes it back when its owner wants it.

The decisions are :mod:`condor_actors.cores.startd.startd_core`'s; here they meet the host (readings, the claim file,
the starter host's process) and the network.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from condor_actors.actors import World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.idleness import Idleness
from condor_actors.cores.startd.site_attributes import merged
from condor_actors.cores.startd.slots import Slots
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import (
    DiskGrew,
    Probed,
    StartdSettings,
    StarterDied,
)
from condor_actors.daemons.advertiser import ADVERTISER, Advertise, Advertiser
from condor_actors.daemons.fetched_work.fetcher import Fetcher
from condor_actors.daemons.measures import Measure, counted
from condor_actors.daemons.run_questions import RunQuestions
from condor_actors.daemons.site_programs import SiteHost, site_edge
from condor_actors.daemons.startd_actor import FinishClaims, NewSlotSettings, StartdActor, VacateAll
from condor_actors.daemons.startd_power import power_edge
from condor_actors.daemons.startd_settings import (
    container_attributes,
    disk_share_kib,
    inventories,
    inventory_commands,
    machine_ad,
    machine_share,
    slot_plans,
    slot_settings,
    startd_name,
)
from condor_actors.machine.containers.probe import ContainerProbe
from condor_actors.machine.power.plugin import Power
from condor_actors.machine.privilege.pool_account import pool_uid
from condor_actors.machine.run.confinement import wanted_parts
from condor_actors.machine.run.plugin_query import PluginQuery
from condor_actors.machine.sensors.benchmarks import Benchmarks
from condor_actors.machine.sensors.readings import HostReadings, Readings
from condor_actors.machine.sensors.sensors import HostSensors
from condor_actors.machine.supervisor.claim_file import ClaimFile, Claims
from condor_actors.machine.supervisor.starter_process import StarterHosts, StarterProcess
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.envelope import Address, Delivery

__all__ = ["Startd", "make_daemon"]

START_AGAIN_S = (0.0, 1.0, 2.0, 5.0, 10.0, 30.0)
GROWTH = 1.1
"""A disk that has so many times as much room as when the slots were made is divided anew."""
HEALTHY_S = 10.0
"""A starter host that lived so long after its hello has not failed to start."""


class Startd:
    """The daemon; see ``World`` and ``Daemon``.

    Attributes:
        system, name: of every daemon.
        claims: the claim file; readings: the host; starters: the starter host's process.
        power: puts the machine to sleep; fetcher: fetches work.
        history: answers questions about runs that have ended here.
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
        self._plugins = PluginQuery(world.log)
        self._methods = ",".join(self._plugins.table.methods)
        self.benchmarks = Benchmarks(config.list_of("BENCHMARKS_JOBLIST") if world.readings is None else (),
                                     world.reactor_time)
        self.power: Power = world.power or power_edge(config, world)
        self.starters: StarterHosts = world.processes or StarterProcess(
            config.path("RUN"), config.path("LOG") / "StarterHostLog.err", world.reactor_time)
        spool = config.path("SPOOL")
        path = spool / f"startd_claims.{config.needed_text('LOCALNAME')}"
        self.claims: Claims = world.stores.open_claims(path) if world.stores is not None else ClaimFile(path)
        self.system = world.make_system(commit=self.claims.commit)
        self.poll_s = config.seconds("POLLING_INTERVAL")
        self.collectors = collector_nodes(config)
        self.last_hello: Delivery | None = None
        self.idleness = Idleness()
        self.history = RunQuestions(config)
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
        self.site = SiteHost(config, "STARTD_CRON", self.system, "startd", site_edge(config, world), self._site_facts)
        self.fetcher = Fetcher(self)

    # ---- Daemon

    def start(self) -> None:
        """Spawn the actors."""
        interval_s = self.config.seconds("UPDATE_INTERVAL")
        self.system.spawn(ADVERTISER, lambda: Advertiser(self.collectors, interval_s))
        self.system.spawn("startd", lambda: StartdActor(self), inbox_limit=10_000)
        self.system.tell(Address("", ADVERTISER), Advertise(AdKind.STARTD, self.ad()))
        self._probe.start()
        self._ask_plugins()
        self.site.start()
        self.fetcher.start()

    def _ask_plugins(self) -> None:
        """By which URLs files are transferred is known when the plugins have answered."""
        if self.world.readings is None:  # this machine, and no simulated one
            self._plugins.ask(self.config.list_of("FILETRANSFER_PLUGINS"),
                              self.config.seconds("FILETRANSFER_PLUGIN_CLASSAD_TIMEOUT"))
            self._plugins.when_known(self._plugins_known)

    def _plugins_known(self) -> None:
        methods = ",".join(self._plugins.table.methods)
        if methods != self._methods:
            self._methods = methods
            self._learned({"HasFileTransferPluginMethods": methods})

    def _probed(self, works: bool) -> None:
        """Whether jobs can run in images has been tried out."""
        self._containers = works
        self._learned(container_attributes(self.config, works))

    def _learned(self, values: Mapping[str, Any]) -> None:
        """Tell what has been found out about the machine, in all its ads."""
        self._made = (None, ClassAd())
        self.system.tell(Address("", "startd"), Probed(tuple(values.items())))
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
        self.site.programs.close()
        self.fetcher.programs.close()
        self.power.close()
        if self._starter_pid:
            self.starters.stop(self._starter_pid, fast=False)
            self._starter_pid = 0
        if resting is not None and not resting.called:
            resting.callback(None)

    def reconfigure(self, config: Config) -> None:
        """Take the policy, times and attributes; slots and resources need a restart."""
        settings, site, fetch = slot_settings(config), self.site.read(config), self.fetcher.read(config)
        self.config = self.history.config = config
        self._slot_settings = settings
        if self._containers:
            self._probed(True)  # CONTAINER_REGISTRIES
        self._ask_plugins()
        self.poll_s = config.seconds("POLLING_INTERVAL")
        self.system.tell(Address("", "startd"), NewSlotSettings(settings))
        self.site.reconfigure(site)
        self.fetcher.reconfigure(fetch)

    def disk_grows(self, free_kib: int) -> DiskGrew | None:
        """The slots' shares of the disk, where there is a tenth more room than when they were made."""
        kib = disk_share_kib(self.config, free_kib)
        if kib <= self._share.disk_kib * GROWTH:
            return None
        self._share = attrs.evolve(self._share, disk_kib=kib)
        self._plans, self._made = slot_plans(self.config, self._share), (None, ClassAd())
        return DiskGrew({plan.number: plan.share.disk_kib for plan in self._plans}, kib)

    def measures(self) -> tuple[Measure, ...]:
        """Slots by state and activity."""
        actor = self.system.actor("startd")
        if not isinstance(actor, StartdActor):
            return ()
        return (counted("condor_slots", "Slots of this machine", "state",
                        (slot.machine.slot_state[0].value for slot in actor.core.slots)),)

    def ad(self) -> ClassAd:
        """The startd's own ad."""
        ad = self._machine_ad()
        ad["MyType"] = "StartDaemon"
        ad["Name"] = startd_name(self.config)
        node = self.last_hello.message.node if self.last_hello is not None else ""
        if node.startswith("<"):
            ad["StarterAddress"] = node
        return ad

    def _site_facts(self) -> ClassAd:
        """What conditions of programs of the site are about: the machine, and what the others say of all of it."""
        actor = self.system.actor("startd")
        ad = actor.core.slots.machine_ad.copy() if isinstance(actor, StartdActor) else self._machine_ad()
        for _, (name, value) in merged((each for each in self.site.ads if each.is_for_all), ad).items():
            ad.setdefault(name, value)
        return ad

    def _machine_ad(self) -> ClassAd:
        """What all ads of the machine share, made once for a configuration and an address."""
        made_of = (self.config, self.world.post.public_node)
        if self._made[0] != made_of:
            ad = machine_ad(self.config, self._facts, self._share, made_of[1], self.started_s,
                            self._inventories, containers=self._containers, plugins=self._plugins.table)
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
        slots.take_site_ads(self.site.ads)
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
