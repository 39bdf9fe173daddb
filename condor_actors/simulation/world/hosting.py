"""Puts the production's daemons into simulated processes: one builder for each kind.

Each builder makes the daemon exactly as ``services/`` does, on edges of the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.defer import Deferred, fail

from condor_actors.actors import Actor, World
from condor_actors.actors.workers import at_once
from condor_actors.config import Config
from condor_actors.cores.schedd.schedd_settings import schedd_settings
from condor_actors.daemons import collector, kbdd, master, negotiator, rooster, startd
from condor_actors.daemons.admin import AdminActor, AdminEdges
from condor_actors.daemons.gateway import gateway
from condor_actors.daemons.schedd.completion_mail import CompletionMail
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.daemons.schedd.schedd import ScheddDaemon
from condor_actors.daemons.schedd.schedd_edges import ScheddEdges
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.daemons.shadow.checkpoints.removal import CheckpointRemover, removal_settings
from condor_actors.daemons.shadow.host_daemon import ShadowHostDaemon
from condor_actors.daemons.shadow.input_files import FileCache
from condor_actors.daemons.shadow.shadow_host import HostEdges
from condor_actors.daemons.starter.starter_host import StarterHostDaemon
from condor_actors.daemons.web import web
from condor_actors.messages.envelope import Address, Delivery, TimerFired
from condor_actors.messages.pool import PartnersKnown
from condor_actors.services.world import gateways_of
from condor_actors.simulation.world.disk import Disk, SimulatedLogs
from condor_actors.simulation.world.jobs import SimulatedLauncher, SimulatedRunHost
from condor_actors.simulation.world.machine import (
    MasterHost,
    ShadowHosts,
    SimulatedReadings,
    SimulatedScreens,
    StarterHosts,
)
from condor_actors.simulation.world.post import SimulatedPost
from condor_actors.simulation.world.programs import SimulatedSitePrograms
from condor_actors.simulation.world.relays import simulated_edges
from condor_actors.simulation.world.sleeping import SimulatedPower, WakePackets
from condor_actors.userlog.writer import UserLogs
from condor_actors.wire.relays.lines import BACK_LINE, CIRCUIT_LINE

if TYPE_CHECKING:
    from condor_actors.simulation.world.process import Process
from condor_actors.simulation.world.stores import Stores

__all__ = ["PORTS", "host"]

PORTS = {"collector": 9618, "negotiator": 9614, "schedd": 9615, "startd": 9616, "master": 9617, "starter-host": 9619,
         "gateway": 9619}


class SimulatedSpool(Spool):
    """A spool without folders, on a simulated disk."""

    def __init__(self, root: Path, disk: Disk) -> None:
        super().__init__(root)
        self._disk = disk

    def has_room(self) -> None:
        """Fail when the disk does."""
        self._disk.check()

    def make_folder_of(self, owner: str) -> None:
        """Nothing to make."""


class NoBulk:
    """Bulk transfers, for small files only: nothing ever needs one."""

    def open(self, key: str, grant: Any) -> None:
        """A grant."""

    def close(self, key: str) -> None:
        """No grant."""

    def grant(self, key: str) -> None:
        """None."""

    def put(self, node: str, key: str, digest: str, size_bytes: int, source: str) -> Deferred[None]:
        """Nothing."""
        return fail(OSError("no bulk transfers here"))

    def fetch_file(self, node: str, key: str, digest: str, size_bytes: int, target: str,
                   mode: int = 0o644) -> Deferred[None]:
        """Nothing."""
        return fail(OSError("no bulk transfers here"))

    def fetch_bytes(self, node: str, key: str, digest: str, limit_bytes: int) -> Deferred[bytes]:
        """Nothing."""
        return fail(OSError("no bulk transfers here"))


class NoMail:
    """Nobody reads it."""

    def send(self, to: str, subject: str, body: str) -> None:
        """Gone."""

    def reconfigure(self, config: Config) -> None:
        """Nothing."""


def _world(process: Process, config: Config, **edges: Any) -> World:
    pool = process.machine.pool
    post = process.post = SimulatedPost(pool.network, process, process.machine.identity, pool.domain, process.log)
    post.gateways = gateways_of(config, process.kind)
    return World(
        reactor_time=process.clock, wall_clock=process.wall, random=process.random, new_secret=process.new_secret,
        stopwatch=process.clock.seconds, uid=process.uid, pid=process.pid, post=post, log=process.log,
        authorize=pool.authorization(process.kind, config, process.machine.spec.pool).allows,
        exhausted=lambda name: process.exit(70),
        stores=Stores(process.machine.disk, process), mail=NoMail(),
        **{"programs": SimulatedSitePrograms(process.machine, process), **edges})


def _listen(process: Process) -> None:
    machine, post = process.machine, process.post
    assert post is not None
    post.listen(f"unix:{machine.folder('run')}/{process.kind}.sock")
    if process.kind in PORTS:
        post.listen(f"<{machine.name}:{PORTS[process.kind]}>")


def host(process: Process, argument: str) -> None:
    """Give a process its daemon and start it.

    Args:
        argument: of a shadow host: its id.
    """
    config = process.machine.pool.config_of(process.machine, process.kind)
    process.daemon = daemon = _BUILDERS[process.kind](process, config, argument)
    process.system = daemon.system
    if process.machine.pool.raises:
        process.machine.pool.trips.watch(process)
    if process.machine.pool.scenario.checks:
        process.machine.pool.checkers.listen(process)
    if process.kind not in ("shadow-host",):
        _admin(process, config)
        _listen(process)
    daemon.start()
    if process.machine.spec.pool and process.kind in ("schedd", "startd", "negotiator", "gateway"):
        process.system.spawn("partners", lambda: PartnerTeller(process))


PARTNERS_S = 10.0


class PartnerTeller(Actor):
    """Tells a daemon which pools are trusted, again and again, as the keeper of certificates does."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def started(self) -> None:
        """At once."""
        self.context.set_timer("look", 0.0)

    def receive(self, delivery: Delivery) -> None:
        """The timer."""
        if isinstance(delivery.message, TimerFired):
            machine = self._process.machine
            self.context.tell(Address("", self._process.kind),
                              PartnersKnown(partners=machine.pool.partners_of(machine.spec.pool)))
            self.context.set_timer("look", PARTNERS_S)


def _admin(process: Process, config: Config) -> None:
    machine, post = process.machine, process.post
    assert post is not None
    assert process.system is not None
    edges = AdminEdges(
        daemon=process.daemon, config=lambda: config, reload_config=lambda: None,
        store_setting=lambda name, value, persistent: None,
        explain=machine.pool.authorization(process.kind, config, machine.spec.pool).explain,
        shut_down=process.shut_down,
        started_s=process.wall(), public_node=lambda: post.public_node, pid=process.pid,
        master_socket=f"{machine.folder('run')}/master.sock" if process.kind not in ("master", "starter-host") else "")
    process.system.spawn("admin", lambda: AdminActor(edges))


def _collector(process: Process, config: Config, argument: str) -> Any:
    return collector.make_daemon(config, _world(process, config))


def _negotiator(process: Process, config: Config, argument: str) -> Any:
    return negotiator.make_daemon(config, _world(process, config))


def _master(process: Process, config: Config, argument: str) -> Any:
    return master.make_daemon(config, _world(process, config, processes=MasterHost(process.machine, process)))


def _schedd(process: Process, config: Config, argument: str) -> Any:
    world = _world(process, config)
    settings = schedd_settings(config, machine=process.machine.name)
    spool = Path(settings.spool)
    store = world.stores.open_queue(spool)
    assert process.post is not None
    edges = ScheddEdges(
        store=store, processes=ShadowHosts(process.machine), mint=lambda owner: b"",
        spool=SimulatedSpool(spool, process.machine.disk),
        history=HistoryQuestions(store.history, at_once), reidentify=process.post.reidentify, uid=process.uid)
    return ScheddDaemon(settings, world, edges, config)


def _startd(process: Process, config: Config, argument: str) -> Any:
    machine = process.machine
    daemon = startd.make_daemon(config, _world(process, config, readings=SimulatedReadings(machine),
                                               processes=StarterHosts(machine, process),
                                               power=SimulatedPower(machine, process)))
    daemon.shut_down = lambda: process.shut_down("graceful")
    return daemon


def _kbdd(process: Process, config: Config, argument: str) -> Any:
    return kbdd.make_daemon(config, _world(process, config, readings=SimulatedScreens(process.machine)))


def _rooster(process: Process, config: Config, argument: str) -> Any:
    return rooster.make_daemon(config, _world(process, config, programs=WakePackets(process)))


def _web(process: Process, config: Config, argument: str) -> Any:
    daemon = web.make_daemon(config, _world(process, config))
    daemon.known.wanted_s = math.inf  # a page is open, behind a door that is not there
    return daemon


def _gateway(process: Process, config: Config, argument: str) -> Any:
    world = _world(process, config)
    post = process.post
    assert post is not None
    daemon = gateway.make_daemon(config, world, simulated_edges(post))
    wanted: Any = daemon.circuits.wanted
    brought: Any = daemon.circuits.brought
    post.asked_for.update({CIRCUIT_LINE: wanted, BACK_LINE: brought})
    return daemon


def _starter_host(process: Process, config: Config, argument: str) -> Any:
    machine = process.machine
    world = _world(process, config, processes=SimulatedLauncher(machine, process),
                   host=SimulatedRunHost(machine, process), blobs=NoBulk())
    return StarterHostDaemon(config, world, Address(f"unix:{machine.folder('run')}/startd.sock", "startd"),
                             in_thread=at_once)


def _shadow_host(process: Process, config: Config, argument: str) -> Any:
    machine = process.machine
    world, launcher = _world(process, config), SimulatedLauncher(machine, process)
    edges = HostEdges(
        remover=CheckpointRemover(removal_settings(config), launcher, at_once, world.wall_clock),
        schedd=Address(f"unix:{machine.folder('run')}/schedd.sock", "schedd"), host_id=argument,
        logs=UserLogs(process.clock, log=process.log, files=SimulatedLogs(machine)), cache=FileCache(),
        bulk=NoBulk(), domain=config.text("FILESYSTEM_DOMAIN") or "",
        mail=CompletionMail(NoMail(), machine.pool.domain),
        launcher=launcher, become=process.become, use_credential=lambda bundle: None,
        leave=lambda: process.exit(0), pid=process.pid, new_secret=process.new_secret, in_thread=at_once)
    return ShadowHostDaemon(attrs.evolve(world), edges)


_BUILDERS: dict[str, Callable[[Process, Config, str], Any]] = {
    "collector": _collector, "negotiator": _negotiator, "master": _master, "schedd": _schedd, "startd": _startd,
    "gateway": _gateway, "kbdd": _kbdd, "rooster": _rooster, "web": _web, "starter-host": _starter_host,
    "shadow-host": _shadow_host,
}
