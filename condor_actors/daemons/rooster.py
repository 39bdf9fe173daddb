"""The rooster: wakes machines that sleep when there are jobs for them.

Theory: :mod:`condor_actors.cores.rooster` decides; here the ads come from the collector, page by page, and a program is
run for each machine (ROOSTER_WAKEUP_CMD), some at a time.  The daemon keeps nothing: a machine that still sleeps at the
next look is woken again.
"""

from __future__ import annotations

import os
import sys
from collections import deque

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.rooster import Rooster, RoosterSettings
from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.daemons.collector_query import query_ads
from condor_actors.daemons.site_programs import site_edge
from condor_actors.daemons.site_settings import PATH, words_of
from condor_actors.messages.advertise import AdKind, QueryAds
from condor_actors.messages.envelope import Delivery, TimerFired

__all__ = ["RoosterDaemon", "make_daemon", "rooster_settings"]

ASK_S = 30.0
AT_ONCE = 10
"""Programs that run at the same time."""
PATIENCE_S = 60.0
"""A program that takes longer is killed."""
CONDOR_POWER = (sys.executable, "-m", "condor_actors.tools.pool.power", "-d", "-i")
"""What wakes machines where the configuration does not say: condor_power, wherever this package is installed."""
OFFLINE = QueryAds(ad_kind=AdKind.SLOT, constraint="Offline =?= True")


def rooster_settings(config: Config) -> RoosterSettings:
    """The parameters ROOSTER_… as the core takes them.

    Raises:
        ConfigError: a value cannot be used.
    """
    command = words_of(config, "ROOSTER_WAKEUP_CMD")
    if config.source("ROOSTER_WAKEUP_CMD").file == "<Default>":
        command = CONDOR_POWER
    if not command or not command[0].startswith("/"):
        raise config.unusable("ROOSTER_WAKEUP_CMD", f"{' '.join(command) or 'nothing'} names no program",
                              "the absolute path of a program, and its arguments")
    return config.settings(RoosterSettings, command=command)


class RoosterActor(Actor):
    """Asks, lets the core decide, runs the programs."""

    def __init__(self, daemon: RoosterDaemon) -> None:
        self.daemon = daemon
        self.core = Rooster(daemon.settings)
        self._waiting: deque[ClassAd] = deque()
        self._runs: dict[int, str] = {}
        self._last_run = 0

    def started(self) -> None:
        """Look soon."""
        self.daemon.programs.close()  # what ran for an actor that has crashed
        self.context.set_timer("look", min(5.0, self.daemon.settings.interval_s))

    def stopped(self) -> None:
        """The daemon ends."""
        self.daemon.programs.close()

    def receive(self, delivery: Delivery) -> None:
        """Time to look again, or a program that takes too long."""
        message = delivery.message
        if not isinstance(message, TimerFired):
            return
        if message.key == "look":
            self.core.settings = self.daemon.settings
            self.context.set_timer("look", self.daemon.settings.interval_s)
            query_ads(self.context, self.daemon.collectors, OFFLINE, timeout_s=ASK_S, then=self._plan,
                      failed=lambda why: self.context.log.warn("no machines from the collector: {why}", why=why))
        elif message.key[1] in self._runs:
            self.context.log.warn("waking {machine} takes more than {limit:.0f} s: the program is killed",
                                  machine=self._runs[message.key[1]], limit=PATIENCE_S)
            self.daemon.programs.stop(message.key[1], fast=True)

    def _plan(self, ads: list[bytes]) -> None:
        """All machines that sleep have come."""
        busy = {*self._runs.values(), *(ad.get_str("Machine") for ad in self._waiting)}
        self._waiting += [ad for ad in self.core.plan([ClassAd.from_bytes(ad) for ad in ads], self.context.now_s())
                          if ad.get_str("Machine") not in busy]
        self._go_on()

    # ---- programs

    def _go_on(self) -> None:
        """Wake those who wait, as many as may be woken at once."""
        while self._waiting and len(self._runs) < AT_ONCE:
            self._wake(self._waiting.popleft())

    def _wake(self, ad: ClassAd) -> None:
        self._last_run += 1
        run, machine = self._last_run, ad.get_str("Machine")
        self._runs[run] = machine
        self.context.log.info("{machine} is woken", machine=machine)
        program = attrs.evolve(self.daemon.program, stdin=ad.to_bytes())
        over = self.context.as_turn(lambda status, problem, said: self._over(run, status, problem, said))
        self.context.set_timer(("late", run), PATIENCE_S)
        self.context.after_commit(lambda: self.daemon.programs.start(program, run, lambda _: None, over))

    def _over(self, run: int, status: int, problem: str, said: str) -> None:
        self.context.cancel_timer(("late", run))
        machine = self._runs.pop(run)
        if status or problem:
            self.context.log.warn("{machine} could not be woken: {why}", machine=machine,
                                  why=problem or said or f"the program ends with {status}")
        self._go_on()


class RoosterDaemon:
    """The daemon; see ``Daemon``."""

    name = "rooster"

    def __init__(self, config: Config, world: World) -> None:
        self.settings = rooster_settings(config)
        self.collectors = collector_nodes(config)
        self.world = world
        self.programs = site_edge(config, world)
        self.program = _program(self.settings, config)
        self.system = world.make_system()

    def start(self) -> None:
        """Spawn the actor."""
        self.system.spawn("rooster", lambda: RoosterActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Nothing is left to do."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Take new settings; from the next look on."""
        self.settings = rooster_settings(config)
        self.program = _program(self.settings, config)

    def ad(self) -> ClassAd:
        """For ``condor_ping``."""
        actor = self.system.actor("rooster")
        woken = actor.core.woken if isinstance(actor, RoosterActor) else 0
        return ClassAd({"MyType": "Rooster", "Name": "rooster", "MyAddress": self.world.post.public_node,
                        "MachinesWoken": woken})


def _program(settings: RoosterSettings, config: Config) -> SiteProgram:
    """How a machine is woken."""
    environment = {"PATH": f"{config.path('BIN')}:{PATH}", "HOME": "/", "LANG": "C.UTF-8"}
    if settings.command == CONDOR_POWER and "PYTHONPATH" in os.environ:  # where this package may be found
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return SiteProgram(name="wake", executable=settings.command[0], arguments=settings.command[1:],
                       environment=tuple(environment.items()))


def make_daemon(config: Config, world: World) -> RoosterDaemon:
    """The rooster, not started."""
    return RoosterDaemon(config, world)
