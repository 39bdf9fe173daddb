"""What condor_on, condor_off, condor_restart and condor_reconfig have in common: which masters, which words.

Each sends one ``DaemonCommand`` to the master of this machine, of the machines named, or of all that fit. Words,
streams and exit codes are those of HTCondor's manual pages; a flag may be cut short.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from condor_actors import records
from condor_actors.messages.admin import DaemonCommand
from condor_actors.tools.lib import command, contact
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.wire.blocking import Client, RequestRefused, WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config

__all__ = ["AdminTool", "run"]

ANSWER_S: Final = 120.0

TARGETS: Final = (
    Flag("help"),
    Flag("version"),
    Flag("debug", colon=True, idle=NO_DEBUG),
    Flag("pool", takes=1),
    Flag("name", takes=1),
    Flag("addr", takes=1),
    Flag("constraint", takes=1),
    Flag("all", 2),
    Flag("daemon", 2, takes=1),
    Flag("subsystem", 2, takes=1, alias="daemon"),
)
HOWS: Final = (Flag("graceful"), Flag("fast", 2), Flag("peaceful", 2), Flag("force-graceful", 2))
KINDS: Final = tuple(Flag(kind, 3) for kind in ("master", "schedd", "startd", "collector", "negotiator", "kbdd"))
NOT_OURS: Final = tuple(Flag(name, len(name), refused="condor_drain lets a machine finish its jobs first") for name in (
    "annex", "exec", "drain", "reason", "request-id", "check", "start"))


@records.frozen(kw_only=True)
class AdminTool:
    """One of the commands.

    Attributes:
        name: as typed.
        command: for the master.
        stops: whether it has ``-graceful``, ``-fast``, ``-peaceful``.
        words: what it is called in its report: for all daemons, and for one.
    """

    name: str
    command: str
    stops: bool
    words: tuple[str, str]

    def flags(self) -> tuple[Flag, ...]:
        """What it understands."""
        hows = HOWS if self.stops else ()
        return (*TARGETS, *hows, *KINDS, *NOT_OURS)

    def word(self, how: str, one: bool) -> str:
        """What the report calls the command."""
        word = self.words[one]
        ends = {"fast": "-Fast", "peaceful": "-Peacefully" if word.startswith("Kill") else "-Peaceful"}
        return word + (ends.get(how, "") if self.stops else "")


@records.frozen
class Target:
    """A master: its name for people, and its node."""

    title: str
    node: str


def run(tool: AdminTool, words: Sequence[str]) -> int:
    """Do what a command line says; the exit status."""
    return command.run(
        tool.flags(), tool.name, lambda given: _send(tool, given), arguments=words, words=command.Words(
            unknown="ERROR: unknown option {word}\n\n{usage}", missing="ERROR: {word} needs a value\n\n{usage}"),
    )  # fmt: skip


def _send(tool: AdminTool, given: Sequence[Given]) -> int:
    config = contact.load()
    how = next((item.name.removeprefix("force-") for item in reversed(given)
                if item.name in ("graceful", "fast", "peaceful", "force-graceful")), "graceful")
    daemons = [item.values[0].upper().removeprefix("CONDOR_") for item in given if item.name == "daemon"]
    daemons += [item.name.upper() for item in given if item.name in [flag.name for flag in KINDS]]
    if len(daemons) > 1:
        raise command.ToolError("ERROR: can only specify one daemon flag.")
    if tool.command in ("on", "reconfig") and daemons == ["MASTER"]:
        daemons = []
    message = DaemonCommand(command=tool.command, daemons=tuple(daemons), how=how)
    status = 0
    targets, missing = _targets(config, given)
    for text in missing:
        print(text, file=sys.stderr)
        status = 1
    for target in targets:
        if not _tell(tool, config, target, message):
            status = 1
    return status


def _tell(tool: AdminTool, config: Config, target: Target, message: DaemonCommand) -> bool:
    one = bool(message.daemons) and message.daemons != ("MASTER",)
    word = tool.word(message.how, one)
    try:
        with _dial(config, target) as client:
            client.ask("master", message, ANSWER_S)
    except RequestRefused as error:
        print(f"ERROR\n{contact.refused(error)}\nCan't send {word} command to {target.title}", file=sys.stderr)
        return False
    except WireError as error:
        print(f"ERROR\n{error}\nCan't connect to {target.title}", file=sys.stderr)
        return False
    for_daemon = f' for "{message.daemons[0]}"' if one else ""
    print(f'Sent "{word}" command{for_daemon} to {target.title}')
    return True


def _dial(config: Config, target: Target) -> Client:
    if target.node.startswith("unix:"):
        return connect(target.node)
    return connect(target.node, contact.credentials(config))


def _targets(config: Config, given: Sequence[Given]) -> tuple[list[Target], list[str]]:
    """The masters meant, and a sentence for each that cannot be found."""
    pool = next((item.values[0] for item in given if item.name == "pool"), "")
    wanted = [item.values[0] for item in given if item.name in ("", "name", "addr")]
    constraint = next((item.values[0] for item in given if item.name == "constraint"), "")
    everybody = any(item.name == "all" for item in given)
    local = Target("local master", contact.local_node(config, "master"))
    if everybody or constraint:
        found = _ask_collector(config, constraint, pool)
        what = f" for constraint '{constraint}'" if constraint else " for -all"
        return found, [] if found else [f"Can't find addresses for master's{what}"]
    if not wanted:
        if pool:
            raise command.ToolError("ERROR: -pool needs a machine's name, -constraint or -all")
        return [local], []
    targets: list[Target] = []
    missing: list[str] = []
    ours = contact.full_name(config, "master").lower()
    for name in wanted:
        if name.startswith("<"):
            targets.append(Target(f"master {name}", name))
        elif not pool and name.lower() in (ours, ours.partition(".")[0], "localhost"):
            targets.append(local)
        else:
            from condor_actors.classads import quote

            text = quote(name)
            fitting = f'Name == {text} || Machine == {text} || regexp(strcat("^", {text}, "\\\\."), Machine)'
            found = _ask_collector(config, fitting, pool)
            targets += found[:1]
            missing += [] if found else [f"Can't find address for master {name}"]
    return targets, missing


def _ask_collector(config: Config, constraint: str, pool: str) -> list[Target]:
    from condor_actors.messages.advertise import AdKind

    ads = contact.query(config, AdKind.MASTER, constraint, ("Name", "MyAddress"), pool=pool)
    return [Target(f"master {ad.get_str('Name')}", ad.get_str("MyAddress")) for ad in ads]
