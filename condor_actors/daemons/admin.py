"""The actor ``admin`` that every daemon has: who are you, read your configuration again, stop.

It holds no policy; the master has further commands of its own (:mod:`condor_actors.daemons.master`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib import metadata
from typing import Protocol

import attrs

from condor_actors.actors import Actor, Daemon
from condor_actors.config import Config, ConfigError, find_parameter
from condor_actors.daemons.statistics import statistics_ad
from condor_actors.messages.admin import (
    EVERYTHING_SET,
    ConfigValue,
    ConfigValues,
    DaemonStarted,
    DaemonStatistics,
    LevelDecision,
    Ping,
    Pong,
    QueryConfig,
    QueryStatistics,
    Reconfigure,
    SetConfig,
    Shutdown,
)
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Identity, Level, Refused, TimerFired

MASTER_PATIENCE_S = 60.0
MASTER_RETRY_S = 2.0

@cache
def package_version() -> str:
    """The installed version of this package."""
    return metadata.version("condor-actors")


def may_be_set(config: Config, name: str) -> bool:
    """Whether the owner of this machine lets CONFIG-level callers set ``name``: ENABLE_PERSISTENT_CONFIG and the
    patterns of SETTABLE_ATTRS_CONFIG."""
    if not config.boolean("ENABLE_PERSISTENT_CONFIG"):
        return False
    patterns = config.list_of("SETTABLE_ATTRS_CONFIG")
    return any(fnmatchcase(name.upper(), pattern.upper()) for pattern in patterns)


class Explained(Protocol):
    """A decision about a level: whether it is a yes, the rule, and what would change a no."""

    @property
    def allowed(self) -> bool:
        """Whether it is a yes."""

    @property
    def rule(self) -> str:
        """By which rule."""

    @property
    def remedy(self) -> str:
        """What would change a no."""


@attrs.frozen(kw_only=True)
class AdminEdges:
    """What the admin actor needs of its process.

    Attributes:
        daemon: the daemon it speaks for.
        config: the configuration in force.
        reload_config: reads the files again and gives them to the daemon; raises ``ConfigError`` when they are not
            valid, and the old ones stay in force.
        store_setting: keeps a setting (name, value or None to forget, persistent) for the next reload.
        explain: whether an identity has a level, and why.
        shut_down: ends the process in the given way (``graceful peaceful fast``).
        started_s: when the process began, seconds since 1970.
        master_socket: the UNIX socket of the master that started it; empty: none did.
        public_node: where the process listens for others.
        metrics: what Prometheus reads of the process.
        pid: of the process.
    """

    daemon: Daemon
    config: Callable[[], Config]
    reload_config: Callable[[], None]
    store_setting: Callable[[str, str | None, bool], None]
    explain: Callable[[Identity, Level], Explained]
    shut_down: Callable[[str], None]
    started_s: float
    master_socket: str = ""
    public_node: Callable[[], str] = str
    metrics: Callable[[], str] = str
    pid: int = attrs.field(factory=os.getpid)


class AdminActor(Actor):
    """Answers ``Ping``, ``QueryConfig``, ``QueryStatistics``, ``Reconfigure``, ``SetConfig`` and ``Shutdown``."""

    def __init__(self, edges: AdminEdges) -> None:
        self.edges = edges

    def started(self) -> None:
        """The doors are open: the master may know."""
        if self.edges.master_socket:
            self._tell_master()

    def _tell_master(self) -> None:
        """Say it until the master has heard it: it may be busy, stopped for a while, or just coming back."""
        message = DaemonStarted(daemon=self.edges.daemon.name, pid=self.edges.pid, address=self.edges.public_node())
        self.context.ask(Address(f"unix:{self.edges.master_socket}", "master"), message, timeout_s=MASTER_PATIENCE_S,
                         then=self._master_heard)

    def _master_heard(self, answer: Delivery) -> None:
        if isinstance(answer.message, AskFailed):
            self.context.set_timer("started", MASTER_RETRY_S)

    def receive(self, delivery: Delivery) -> None:
        """One question of an admin, a tool or the master."""
        message = delivery.message
        if isinstance(message, TimerFired):
            self._tell_master()
        elif isinstance(message, Ping):
            self.context.reply(delivery, self._pong(delivery.identity))
        elif isinstance(message, QueryStatistics):
            self.context.reply(delivery, self._statistics(message))
        elif isinstance(message, QueryConfig):
            self.context.reply(delivery, ConfigValues(values=self._values(message.names)))
        elif isinstance(message, Reconfigure):
            self.context.reply(delivery, self._reconfigure())
        elif isinstance(message, SetConfig):
            self.context.reply(delivery, self._set(message))
        elif isinstance(message, Shutdown):
            if message.how not in ("graceful", "peaceful", "fast"):
                self.context.reply(delivery, Refused(code="invalid", text=f"cannot shut down {message.how!r}"))
                return
            self.context.reply(delivery, Done(text=f"{self.edges.daemon.name} is shutting down"))
            self.context.system.clock.callLater(0, self.edges.shut_down, message.how)
        else:
            self.context.reply(delivery, Refused(code="invalid", text=f"admin does not take {message.KIND}"))

    def _pong(self, identity: Identity) -> Pong:
        daemon = self.edges.daemon
        decisions = self._decisions(identity)
        return Pong(
            daemon=daemon.name,
            version=package_version(),
            pid=self.edges.pid,
            started_s=self.edges.started_s,
            identity=identity.name,
            method=identity.method,
            levels=tuple(each.level for each in decisions if each.allowed),
            ad=daemon.ad().to_bytes(),
            decisions=decisions,
        )

    def _statistics(self, message: QueryStatistics) -> DaemonStatistics:
        if message.metrics:
            return DaemonStatistics(metrics=self.edges.metrics())
        system = self.context.system
        ad = statistics_ad(self.edges.daemon.ad(), system.loop.times, self.edges.started_s, self.context.now_s())
        return DaemonStatistics(ad=ad.to_bytes())

    def _decisions(self, identity: Identity) -> tuple[LevelDecision, ...]:
        explained = ((level.value, self.edges.explain(identity, level)) for level in Level)
        return tuple(LevelDecision(level=level, allowed=each.allowed, rule=each.rule, remedy=each.remedy)
                     for level, each in explained)

    def _values(self, names: Sequence[str]) -> tuple[ConfigValue, ...]:
        config = self.edges.config()
        values = []
        if EVERYTHING_SET in names:
            names = sorted({definition.name.upper() for definition in config.macros if "." not in definition.name})
        for name in names:
            text = config.text(name)
            parameter = find_parameter(name)
            if text is None or (parameter is not None and parameter.sensitive):
                values.append(ConfigValue(name=name, value="", defined=False))
                continue
            file, line = config.where(name)
            where = f"{file}, line {line}" if line else file
            values.append(ConfigValue(name=name, value=text, raw=config.raw(name) or "", where=where))
        return tuple(values)

    def _reconfigure(self) -> Done | Refused:
        try:
            self.edges.reload_config()
        except ConfigError as error:
            return Refused(code="invalid", text=str(error))
        return Done(text="reconfigured")

    def _set(self, message: SetConfig) -> Done | Refused:
        if not may_be_set(self.edges.config(), message.name):
            text = f"{message.name} may not be set remotely (see SETTABLE_ATTRS_CONFIG and ENABLE_PERSISTENT_CONFIG)"
            return Refused(code="denied", text=text)
        try:
            self.edges.store_setting(message.name, message.value, message.persistent)
        except OSError as error:
            return Refused(code="internal", text=f"cannot keep {message.name}: {error}")
        return Done(text=f"{message.name} set; it counts from the next reconfig")
