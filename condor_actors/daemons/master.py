"""The master: keeps the daemons of one machine running.

What it decides is in :mod:`condor_actors.cores.master.supervisor`; here are the processes, the mail, the ad, and what
administrators say to it (``DaemonCommand``). Daemons that an earlier master left running are found and kept.
"""

from __future__ import annotations

import os
import signal
from functools import partial
from typing import Any, Final, cast

import attrs
from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.actors.system import ActorSystem
from condor_actors.classads import ClassAd
from condor_actors.config import Config, nearest_word
from condor_actors.cores.master.supervisor import SupervisedProcess, Supervisor
from condor_actors.cores.master.supervisor_events import (
    AllStopped,
    ChildExited,
    ChildFound,
    ChildReady,
    ChildSpawned,
    DaemonsListed,
    DaemonSpec,
    Finish,
    KeeperLimits,
    Obituary,
    SpawnFailed,
    StartProcess,
    State,
    StopProcess,
    TurnOff,
    TurnOn,
)
from condor_actors.daemons.advertiser import ADVERTISER, Advertise, Advertiser, Withdraw
from condor_actors.daemons.master_settings import (
    Child,
    MasterSettings,
    children_of,
    collectors_of,
    obituary,
    reason_of,
)
from condor_actors.daemons.measures import Measure
from condor_actors.effects import Effect
from condor_actors.machine.supervisor.master_host import Host
from condor_actors.messages.admin import DaemonCommand, DaemonStarted, Reconfigure, Shutdown
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused, TimerFired

__all__ = ["Master", "MasterActor", "make_daemon"]

ASK_S: Final = 60.0
CONFIG_ERROR: Final = 44
"""The exit status of a daemon whose configuration is not valid."""

MANY_FAILURES: Final = 3
MEND_S: Final = 5.0
"""How often a master that stopped its daemons to begin again checks whether the configuration can be read."""

STOP_SIGNALS: Final = {"graceful": signal.SIGTERM, "fast": signal.SIGQUIT, "kill": signal.SIGKILL}


class MasterActor(Actor):
    """Feeds the process keeper and does what it says."""

    def __init__(self, master: Master) -> None:
        self.master = master

    def started(self) -> None:
        """Take up what lives, start what does not."""
        master = self.master
        master.host.notify("STATUS=MASTER is up")
        if master.begun:
            self.context.perform(master.supervisor.resume(self.context.now_s()))
        else:
            master.begun = True
            kinds = {child.name: child.kind for child in master.children.values()}
            for name, pid, started_s in master.host.adopt(kinds):
                self._handle(ChildFound(name=name, pid=pid, started_s=started_s))
            self._take_list()
        self.context.set_timer("ad", 0.0)
        self.context.set_timer("version", master.settings.check_version_s)

    def _take_list(self) -> None:
        settings = self.master.settings
        specs = tuple(DaemonSpec(name=name, last=child.kind == "collector")
                      for name, child in self.master.children.items() if name in self.master.listed)
        self._handle(DaemonsListed(daemons=specs, limits=self.master.config.settings(KeeperLimits),
                                   start=settings.start_daemons))

    def receive(self, delivery: Delivery) -> None:
        """A word from an admin, a daemon, a timer."""
        message = delivery.message
        if isinstance(message, DaemonStarted) and not delivery.identity.is_local:
            self.context.log.warn("{who} of {host} says that a daemon of this machine has started: ignored",
                                  who=delivery.identity.name, host=delivery.identity.host)
        elif isinstance(message, DaemonStarted):
            self._daemon_started(message)
            self.context.reply(delivery, Done())
        elif isinstance(message, DaemonCommand):
            self._command(delivery, message)
        elif isinstance(message, TimerFired):
            self._timer(message)
        elif isinstance(message, Finish):
            self._handle(message)
        elif isinstance(message, ChildExited):
            self._handle(message)
            self.context.set_timer("ad", 0.0)
        elif isinstance(message, ListChanged):
            self._take_list()
            self.context.set_timer("ad", 0.0)
        else:
            self.context.reply(delivery, Refused(code="invalid", text=f"the master takes no {type(message).__name__}"))

    # ---- the core and its effects

    def _handle(self, event: Any) -> None:
        self.context.perform(self.master.supervisor.handle(event, self.context.now_s()))

    def perform_own(self, effect: Effect, delivery: Delivery | None) -> None:
        """Processes, mail, and the end."""
        if isinstance(effect, StartProcess):
            self._start(effect.name)
        elif isinstance(effect, StopProcess):
            self._stop(effect)
        elif isinstance(effect, Obituary):
            self._obituary(effect)
        elif isinstance(effect, AllStopped):
            self._all_stopped(effect.sequel)
        else:
            super().perform_own(effect, delivery)

    def _start(self, name: str) -> None:
        master = self.master
        child = master.children[name]
        environment = {**child.environment, **master.environment()}
        errors = child.log.with_name(f"{child.log.name}.stderr")
        try:
            pid = master.host.start(name, child.arguments, environment, errors)
        except OSError as error:
            self._handle(SpawnFailed(name=name, reason=str(error)))
            return
        self._handle(ChildSpawned(name=name, pid=pid))

    def _stop(self, effect: StopProcess) -> None:
        if effect.how != "peaceful":
            self.master.host.signal(effect.name, STOP_SIGNALS[effect.how])
            return
        address = Address(f"unix:{self.master.children[effect.name].socket}", "admin")

        def answered(answer: Delivery) -> None:
            # One that does not listen yet has nothing to let finish.
            if isinstance(answer.message, AskFailed) and answer.message.reason == "unreachable":
                self.master.host.signal(effect.name, STOP_SIGNALS["graceful"])

        self.context.ask(address, Shutdown(how="peaceful"), timeout_s=ASK_S, then=answered)

    def _obituary(self, effect: Obituary) -> None:
        master = self.master
        child = master.children.get(effect.name)
        why = reason_of(child) if child is not None and (effect.code or 0) > 0 else ""
        master.world.log.error("{name} (pid {pid}) {how}, failure {failures} in a row{why}", name=effect.name,
                               pid=effect.pid, how=effect.how, failures=effect.failures, why=why and f": {why}")
        failures = effect.failures if effect.code != CONFIG_ERROR else max(effect.failures, MANY_FAILURES)
        master.host.notify(f"STATUS={effect.name} {effect.how}\nX_FAILURES={failures}")
        if child is None or not master.settings.obituaries or not master.settings.admin or master.world.mail is None:
            return
        host = master.config.full_hostname
        subject = f"[Condor] {effect.name} on {host} {effect.how}"
        master.world.mail.send(master.settings.admin, subject, obituary(effect, child, host, master.settings))

    def _all_stopped(self, sequel: str) -> None:
        master = self.master
        master.host.notify("STOPPING=1")
        self.context.tell(Address("", ADVERTISER), Withdraw(AdKind.MASTER, master.ad_name))
        if master.resting is not None:
            resting, master.resting = master.resting, None
            self.context.system.clock.callLater(0.0, resting.callback, None)
        elif sequel == "renew":
            self._renew()
        else:
            master.host.finish("graceful", renew=False)

    def _renew(self) -> None:
        """Become a new master; one that would refuse its configuration waits until that is mended."""
        problem = self._would_not_start(())
        if problem:
            self.master.world.log.error("cannot begin anew: {problem}", problem=problem)
            self.master.host.notify(f"STATUS=cannot begin anew: {problem}")
            self.context.set_timer("renew", MEND_S)
        else:
            self.master.host.finish("graceful", renew=True)

    def _would_not_start(self, names: tuple[str, ...]) -> str:
        """Why these daemons (none named: the master and all that it keeps) would refuse to start now; else empty."""
        try:
            self.master.check_configuration(names)
        except (ValueError, OSError) as error:
            return str(error)
        return ""

    # ---- what daemons and timers say

    def _daemon_started(self, message: DaemonStarted) -> None:
        for kept in self.master.supervisor.living():
            if kept.pid == message.pid:
                self._handle(ChildReady(name=kept.spec.name, pid=message.pid, address=message.address))
                self.master.host.notify(f"STATUS={kept.spec.name} is up")
                self._tell_late(kept.spec.name)
        self._tell_ready()
        self.context.set_timer("ad", 0.0)

    def _tell_late(self, name: str) -> None:
        if name in self.master.late:
            self.master.late.discard(name)
            self.context.tell(Address(f"unix:{self.master.children[name].socket}", "admin"), Reconfigure())

    def _tell_ready(self) -> None:
        wanted = [kept for kept in self.master.supervisor.daemons.values() if kept.wanted]
        if not self.master.told_ready and all(kept.state is State.UP for kept in wanted):
            self.master.told_ready = True
            self.master.host.notify("READY=1\nSTATUS=all daemons are up")

    def _timer(self, fired: TimerFired) -> None:
        if fired.key == "ad":
            self._advertise()
        elif fired.key == "version":
            self._check_version()
        elif fired.key == "renew":
            self._renew()
        else:
            self._handle(fired)

    def _advertise(self) -> None:
        self._tell_ready()
        self.context.tell(Address("", ADVERTISER), Advertise(AdKind.MASTER, self.master.ad()))
        self.context.set_timer("ad", self.master.settings.update_s)

    def _check_version(self) -> None:
        """A newer version counts once it has stayed the same for the time an installation takes."""
        master = self.master
        settings = master.settings
        found = master.host.installed_version()
        delay_s = settings.check_version_s
        if found != master.version and settings.version_restart != "NEVER":
            problem = self._would_not_start(()) if found == master.newer_version else ""
            if problem:
                master.world.log.error("the newer version is not started: {problem}", problem=problem)
            elif found == master.newer_version:
                master.world.log.info("a newer version is installed: starting everything anew")
                self._handle(Finish(how=settings.version_restart.lower(), sequel="renew"))
                return
            master.newer_version = found
            delay_s = settings.version_delay_s
        self.context.set_timer("version", max(delay_s, 1.0))

    # ---- what administrators say

    def _command(self, delivery: Delivery, message: DaemonCommand) -> None:
        names = tuple(name.upper() for name in message.daemons)
        refusal = self._refusal(message, names)
        if refusal is not None:
            self.context.reply(delivery, refusal)
            return
        self.master.world.log.info("{who}: {command} {names} ({how})", who=delivery.identity.name,
                                   command=message.command, names=" ".join(names) or "all", how=message.how)
        if message.command == "reconfig":
            self._reconfigure(delivery, names)
            return
        self.context.reply(delivery, Done(text=f"{message.command} {' '.join(names) or 'all'}"))
        itself = "MASTER" in names
        if message.command == "on":
            self._handle(TurnOn(names=tuple(name for name in names if name != "MASTER")))
        elif message.command == "off":
            self._handle(Finish(how=message.how) if itself else TurnOff(names=names, how=message.how))
        elif itself or not names:
            self._handle(Finish(how=message.how, sequel="renew"))
        else:
            self._handle(TurnOff(names=names, how=message.how, again=True))
        self.context.set_timer("ad", 0.0)

    def _refusal(self, message: DaemonCommand, names: tuple[str, ...]) -> Refused | None:
        if message.command not in ("on", "off", "restart", "reconfig"):
            return Refused(code="invalid", text=f"the master cannot {message.command!r}")
        if message.how not in ("peaceful", "graceful", "fast"):
            return Refused(code="invalid", text=f"nothing stops {message.how!r}")
        known = (*self.master.listed, "MASTER")
        for name in names:
            if name not in known:
                near = nearest_word(name, known)
                hint = f"; did you mean {near}?" if near else ""
                return Refused(code="not-found", text=f"{name} is not in this machine's DAEMON_LIST{hint}")
        return self._not_startable(message.command, names)

    def _not_startable(self, command: str, names: tuple[str, ...]) -> Refused | None:
        """Nothing is stopped, or started, that would then refuse its configuration."""
        if command not in ("on", "restart"):
            return None
        whole = "MASTER" in names or (command == "restart" and not names)
        problem = self._would_not_start(() if whole else names or tuple(self.master.listed))
        if not problem:
            return None
        undone = "everything goes on as it was" if command == "restart" else "nothing was started"
        return Refused(code="invalid", text=f"{problem}\nThe configuration cannot be used, so {undone}; "
                       "mend it and try again")

    def _up(self) -> set[str]:
        """The daemons that are up and not on their way out."""
        return {kept.spec.name for kept in self.master.supervisor.living() if kept.state is State.UP}

    def _reconfigure(self, delivery: Delivery, names: tuple[str, ...]) -> None:
        """Tell the daemons concerned, the master itself last, and answer with what they said."""
        living = [kept for kept in self.master.supervisor.living() if not names or kept.spec.name in names]
        # One that is just starting may have read the old files: it is told when it listens.
        self.master.late.update(kept.spec.name for kept in living if kept.state is State.STARTING)
        targets = [self.master.children[kept.spec.name] for kept in living
                   if kept.state is State.UP and kept.spec.name in self.master.children]
        addresses = {child.name: Address(f"unix:{child.socket}", "admin") for child in targets}
        if not names or "MASTER" in names:
            addresses["MASTER"] = Address("", "admin")
        refusals: list[str] = []
        waiting = set(addresses)

        def answered(name: str, answer: Delivery) -> None:
            # One that ends meanwhile (its name may have left DAEMON_LIST) reads the files when it starts again.
            failed = answer.message if isinstance(answer.message, AskFailed) and name != "MASTER" else None
            ended = failed is not None and name not in self._up()
            # One that does not listen yet may have read the old files: it is told when it does.
            early = failed is not None and failed.reason == "unreachable"
            if early and not ended:
                self.master.late.add(name)
            if not (isinstance(answer.message, Done) or ended or early):
                refusals.append(f"{name}: {getattr(answer.message, 'text', answer.message)}")
            waiting.discard(name)
            if not waiting:
                text = "; ".join(refusals)
                answer_to_all = Refused(code="invalid", text=text) if refusals else Done(text="reconfigured")
                self.context.reply(delivery, answer_to_all)

        if not addresses:
            self.context.reply(delivery, Done(text="nothing runs"))
        for name, address in addresses.items():
            self.context.ask(address, Reconfigure(), timeout_s=ASK_S,
                             then=partial(answered, name))


@attrs.frozen
class ListChanged:
    """The configuration was read again (a word from the daemon to its actor)."""


class Master:
    """The master of this machine."""

    def __init__(self, config: Config, world: World) -> None:
        self.name = "master"
        self.world = world
        self.host = cast(Host, world.processes)
        self.system: ActorSystem = world.make_system()
        self.supervisor = Supervisor()
        self.resting: Deferred[None] | None = None
        self.begun = False
        self.late: set[str] = set()
        self.told_ready = False
        self.newer_version = ""
        self.metrics_address = ""
        self.version = self.host.installed_version()
        self.started_s = world.wall_clock()
        self._take(config)
        self.host.on_end(self._ended)

    def _ended(self, name: str, pid: int, code: int | None, number: int | None) -> None:
        self.system.tell(Address("", "master"), ChildExited(name=name, pid=pid, code=code, signal=number))

    def _take(self, config: Config) -> None:
        children = children_of(config)
        settings = config.settings(MasterSettings)
        self.collectors = collectors_of(config)
        self.config, self.settings = config, settings
        # Those not in the list any more are still needed to stop them.
        self.children: dict[str, Child] = {child.name: child for child in children}
        self.listed = frozenset(self.children)
        self.ad_name = config.text("MASTER_NAME") or config.full_hostname

    def check_configuration(self, names: tuple[str, ...]) -> None:
        """Read the configuration as these daemons would if they started now; empty: the master and all it would keep.

        Raises:
            ConfigError: one of them would refuse it.
        """
        children = tuple(self.children[name] for name in names if name in self.children)
        if not names:
            config = self.host.configuration("master", self.config.macros.local_name, {})
            config.settings(MasterSettings)
            collectors_of(config)
            children = children_of(config)
        for child in children:
            self.host.configuration(child.kind, child.local_name, {**child.environment, **self.environment()})

    def environment(self) -> dict[str, str]:
        """What every daemon finds in its environment."""
        found = {"CONDOR_MASTER_SOCKET": str(self.config.path("RUN") / "master.sock")}
        if self.config.sources and "CONDOR_CONFIG" not in os.environ:
            found["CONDOR_CONFIG"] = self.config.sources[0]
        return found

    def start(self) -> None:
        """Start the daemons."""
        self.system.spawn(ADVERTISER, lambda: Advertiser(self.collectors, self.settings.update_s))
        self.system.spawn("master", lambda: MasterActor(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Stop every daemon; fires when they are gone."""
        if not self.supervisor.living():
            return succeed(None)
        if self.resting is None:
            self.resting = Deferred()
        self.system.tell(Address("", "master"), Finish(how="graceful" if graceful else "fast"))
        return self.resting

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration: start what is new in DAEMON_LIST, stop what is gone from it."""
        old = self.children
        self._take(config)
        self.children = {**{name: child for name, child in old.items() if self._runs(name)}, **self.children}
        if self.world.mail is not None:
            self.world.mail.reconfigure(config)
        self.system.tell(Address("", "master"), ListChanged())

    def _runs(self, name: str) -> bool:
        return any(kept.spec.name == name for kept in self.supervisor.living())

    def ad(self) -> ClassAd:
        """The master's ad, with what it knows of each daemon."""
        ad = ClassAd()
        ad["MyType"] = "DaemonMaster"
        ad["Name"] = self.ad_name
        ad["Machine"] = self.config.full_hostname
        ad["MyAddress"] = self.world.post.public_node
        ad["DaemonStartTime"] = int(self.started_s)
        ad["MyCurrentTime"] = int(self.world.wall_clock())
        ad["RealUid"] = self.world.uid
        ad["DetectedCpus"] = int(self.config.needed_text("DETECTED_CPUS"))
        ad["DetectedMemory"] = int(self.config.needed_text("DETECTED_MEMORY"))
        ad["CondorVersion"] = f"$CondorVersion: {self.version.split(' ')[0]} $"
        ad["CondorAdmin"] = self.settings.admin or ""
        ad["DaemonList"] = " ".join(["MASTER", *(name for name in self.children if name in self.listed)])
        if self.metrics_address:
            ad["MetricsAddress"] = self.metrics_address
        for name, kept in self.supervisor.daemons.items():
            self._describe(ad, name, kept)
        return ad

    def sockets(self) -> dict[str, str]:
        """Where the daemons listen that are up, by their names in DAEMON_LIST."""
        return {kept.spec.name: str(self.children[kept.spec.name].socket) for kept in self.supervisor.living()
                if kept.spec.name in self.children}

    def measures(self) -> tuple[Measure, ...]:
        """How often each daemon was started."""
        kept = sorted(self.supervisor.daemons.items())
        return (Measure("condor_daemon_starts", "Times a daemon was started", ("daemon",),
                        tuple(((name.lower(),), float(each.starts)) for name, each in kept), is_counter=True),)

    def _describe(self, ad: ClassAd, name: str, kept: SupervisedProcess) -> None:
        ad[f"{name}_State"] = kept.state.value
        ad[f"{name}_Starts"] = kept.starts
        if kept.pid:
            ad[f"{name}_Pid"] = kept.pid
            ad[f"{name}_StartTime"] = int(kept.started_s)
        if kept.again_at_s:
            ad[f"{name}_StartsAgain"] = int(kept.again_at_s)


def make_daemon(config: Config, world: World) -> Master:
    """The master, not started.

    Args:
        config: read for the subsystem MASTER.
        world: its ``processes`` is a :class:`condor_actors.machine.supervisor.master_host.Host`.

    Raises:
        ConfigError: DAEMON_LIST or COLLECTOR_HOST cannot be understood.
    """
    return Master(config, world)
