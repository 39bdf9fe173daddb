"""What puts the startd's machine to sleep: the site's program, and the collectors that are told before."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from condor_actors.actors import World
from condor_actors.actors.context import Context
from condor_actors.config import Config
from condor_actors.cores.startd.hibernation import LEVELS, PowerKnown
from condor_actors.daemons.advertiser import COLLECTOR
from condor_actors.daemons.site_programs import site_edge
from condor_actors.daemons.site_settings import PATH, words_of
from condor_actors.machine.power.plugin import PluginPower, Power
from condor_actors.machine.power.power_state import METHODS
from condor_actors.messages.advertise import AdKind, UpdateAd
from condor_actors.messages.envelope import Address, Delivery, Done

__all__ = ["confirm", "known_power", "power_command", "power_edge"]

ASK_S = 20.0
OWN = (sys.executable, "-m", "condor_actors.machine.power.power_state")
"""The pool's own program, wherever this package is installed."""


def power_command(config: Config) -> tuple[str, ...]:
    """The program that puts the machine to sleep, and its arguments.

    Raises:
        ConfigError: a value cannot be used.
    """
    arguments = words_of(config, "HIBERNATION_PLUGIN_ARGS")
    method = config.text("LINUX_HIBERNATION_METHOD")
    if method is not None and method not in METHODS:
        raise config.unusable("LINUX_HIBERNATION_METHOD", f"{method} is no method", " or ".join(METHODS))
    if config.source("HIBERNATION_PLUGIN").file == "<Default>":
        return (*OWN, *(("-method", method) if method else ()), *arguments)
    return (str(config.path("HIBERNATION_PLUGIN")), *arguments)


def power_edge(config: Config, world: World) -> Power:
    """What puts the machine to sleep.

    Raises:
        ConfigError: a value cannot be used.
    """
    environment = {"PATH": PATH, "HOME": "/", "LANG": "C.UTF-8"}
    command = power_command(config)
    if command[:len(OWN)] == OWN and "PYTHONPATH" in os.environ:  # where this package may be found
        environment["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return PluginPower(site_edge(config, world, "power"), command, environment)


def known_power(states: tuple[str, ...], method: str, problem: str) -> PowerKnown:
    """What the program has said, for the core; states that have no name there are left out."""
    levels = frozenset(level for state in states if (level := LEVELS.get(state.upper(), 0)))
    return PowerKnown(levels=levels, method=method, problem=problem)


def confirm(context: Context, collectors: Sequence[str], ads: Sequence[bytes], lifetime_s: int,
            done: Callable[[str], None]) -> None:
    """Have a collector confirm that it has these ads of slots; ``done`` is called with why none did."""
    open_at = {node: len(ads) for node in collectors}
    problems: list[str] = []

    def answered(node: str, answer: Delivery) -> None:
        open_at[node] -= 1
        if not isinstance(answer.message, Done):
            problems.append(f"{node}: {getattr(answer.message, 'text', answer.message)}")
            open_at.pop(node, None)
        elif open_at[node] == 0:
            open_at.clear()
            done("")
            return
        if not open_at:
            done(problems[-1])

    def then(node: str) -> Callable[[Delivery], None]:
        return lambda answer: answered(node, answer) if node in open_at else None

    for node in collectors:
        for ad in ads:
            update = UpdateAd(ad_kind=AdKind.SLOT, ad=ad, lifetime_s=lifetime_s)
            context.ask(Address(node, COLLECTOR), update, timeout_s=ASK_S, then=then(node))
