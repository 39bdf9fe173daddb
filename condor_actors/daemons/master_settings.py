"""What the configuration says to the master: its times, its daemons, the collectors, the text of an obituary."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Final

import attrs

from condor_actors.config import Config, nearest_word, setting
from condor_actors.config.collectors import collector_nodes
from condor_actors.cores.master.supervisor_events import Obituary
from condor_actors.machine.supervisor.master_host import last_lines

__all__ = ["Child", "MasterSettings", "children_of", "collectors_of", "obituary"]

SAYS_WHY_LINES: Final = 5
"""Of so many last lines of a log one says why its daemon could not start."""
KINDS: Final = ("collector", "negotiator", "schedd", "startd", "kbdd", "ckpt_server", "credd", "defrag", "gateway",
                "rooster", "web")
"""What DAEMON_LIST may name, beside MASTER and instances of these."""


@attrs.frozen(kw_only=True)
class MasterSettings:
    """What the configuration says to the master."""

    update_s: float = setting("MASTER_UPDATE_INTERVAL")
    check_version_s: float = setting("MASTER_CHECK_NEW_EXEC_INTERVAL")
    version_delay_s: float = setting("MASTER_NEW_BINARY_DELAY")
    version_restart: str = setting("MASTER_NEW_BINARY_RESTART")
    obituary_lines: int = setting("OBITUARY_LOG_LENGTH")
    obituaries: bool = setting("PUBLISH_OBITUARIES")
    start_daemons: bool = setting("START_DAEMONS")
    admin: str | None = setting("CONDOR_ADMIN")


@attrs.frozen(kw_only=True)
class Child:
    """How one daemon of DAEMON_LIST is started.

    Attributes:
        name: as in DAEMON_LIST, in capitals.
        kind: the service's name.
        arguments: of ``python -m condor_actors.services``.
        environment: what is added to the master's own.
        log: its log file.
        socket: where it listens for this machine.
    """

    name: str
    kind: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    log: Path
    socket: Path

    @property
    def local_name(self) -> str | None:
        """Of an instance: whose parameters it reads."""
        given = [word for before, word in pairwise(self.arguments) if before in ("--local-name", "-l")]
        return given[0] if given else None


def children_of(config: Config) -> tuple[Child, ...]:
    """The daemons of DAEMON_LIST.

    Raises:
        ConfigError: it names something that is no daemon.
    """
    names = dict.fromkeys(word.upper() for word in config.list_of("DAEMON_LIST"))
    return tuple(_child(config, name) for name in names if name not in ("MASTER", "SHARED_PORT"))


def _child(config: Config, name: str) -> Child:
    arguments = (config.text(f"{name}_ARGS") or "").split()
    kind = (config.text(f"{name}_KIND") or name).lower()
    if kind not in KINDS:
        # HTCondor's way to name an instance: XYZZY = $(SCHEDD).
        program = (config.text(name) or "").rpartition("/")[2].removeprefix("condor_").lower()
        kind = program if program in KINDS else kind
    if kind not in KINDS:
        raise config.unusable(
            "DAEMON_LIST", f"DAEMON_LIST names {name}, which is no daemon",
            f"{', '.join(KINDS).upper()}, or an instance whose {name}_KIND is one of them", value=name,
            nearest=nearest_word(name, [known.upper() for known in KINDS]))
    instance = name.lower() if kind != name.lower() else ""
    if instance and not any(word.lstrip("-") in ("local-name", "l") for word in arguments):
        arguments = ["--local-name", instance, *arguments]
    arguments = ["--local-name" if word == "-local-name" else word for word in arguments]
    folder = config.path("LOG")
    log = config.text(f"{name}_LOG")
    run = config.text(f"{kind.upper()}.{name}.RUN") or config.needed_text("RUN")
    return Child(
        name=name,
        kind=kind,
        arguments=(kind, *arguments),
        environment=_environment(config.text(f"{name}_ENVIRONMENT") or ""),
        log=Path(log) if log else folder / f"{kind.capitalize()}Log",
        socket=Path(run) / f"{kind}.sock",
    )


def _environment(text: str) -> dict[str, str]:
    pairs = (item.partition("=") for item in text.strip('"').split(";"))
    return {name.strip(): value.strip() for name, equals, value in pairs if equals and name.strip()}


def reason_of(child: Child) -> str:
    """Why a child that has ended by itself could not start, as its log says last; empty: it does not say so."""
    for line in reversed(last_lines(child.log, SAYS_WHY_LINES)):
        _, found, why = line.partition(" cannot start: ")
        if found and not line.startswith("{"):
            return why
    return ""


def obituary(effect: Obituary, child: Child, host: str, settings: MasterSettings) -> str:
    """The text of the mail about a death."""
    again = "at once" if effect.again_in_s <= 0 else f"in {effect.again_in_s:g} seconds"
    parts = [f"{effect.name} on {host} (process {effect.pid}) {effect.how}."]
    parts.append(f"It is failure {effect.failures} in a row. It is started again {again}.")
    errors = child.log.with_name(f"{child.log.name}.stderr")
    for title, path in (("its log", child.log), ("its standard error", errors)):
        lines = last_lines(path, settings.obituary_lines)
        if lines:
            parts += ["", f"The last lines of {title}, {path}:", "", *lines]
    return "\n".join(parts) + "\n"


def collectors_of(config: Config) -> tuple[str, ...]:
    """The nodes of the collectors: the UNIX socket of the one that this machine runs, else those of COLLECTOR_HOST.

    Raises:
        ConfigError: COLLECTOR_HOST is no address.
    """
    if "COLLECTOR" in (word.upper() for word in config.list_of("DAEMON_LIST")):
        return (f"unix:{config.path('RUN') / 'collector.sock'}",)
    return collector_nodes(config)
