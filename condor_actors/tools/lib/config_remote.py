"""condor_config_val towards a living daemon: reading what it goes by, and changing it where its owner allows."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from condor_actors.config import all_parameters, find_parameter
from condor_actors.messages.admin import EVERYTHING_SET, Ping, QueryConfig, SetConfig
from condor_actors.tools.lib import contact
from condor_actors.tools.lib.command import ToolError
from condor_actors.wire.blocking import Client, WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config
    from condor_actors.tools.admin.config_val import Wishes

__all__ = ["remote"]

MANY = 200


def remote(wishes: Wishes) -> int:
    """Do what the wishes say with a daemon; the exit status."""
    from condor_actors.tools.admin.config_val import DAEMONS, load

    config = load(wishes)
    daemon = next((name for name in DAEMONS if wishes.has(name)), "master")
    try:
        client, title = _dial(config, daemon, wishes)
        with client:
            if any(wishes.has(name) for name in ("set", "unset", "rset", "runset")):
                return _change(client, title, wishes)
            return _read(client, wishes, daemon)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except WireError as error:
        print(f"Can't get an answer from {daemon}: {error}", file=sys.stderr)
        return 1


def _dial(config: Config, daemon: str, wishes: Wishes) -> tuple[Client, str]:
    """A line to the daemon meant, and what it is called."""
    if wishes.has("address"):
        address = wishes.value("address")
        return contact.dial(config, address, f"{daemon} at {address}"), f"{daemon} {address}"
    name, pool = wishes.value("name"), wishes.value("pool")
    ours = contact.full_name(config, daemon)
    if pool and not name and daemon != "collector":
        raise ToolError("Error: you must specify -name with -pool")
    if not pool and (not name or name.lower() in (ours.lower(), ours.split(".")[0].lower(), "localhost")):
        try:
            client = connect(contact.local_node(config, daemon))
        except WireError as error:
            raise ToolError(contact.unreachable(f"local {daemon}", error)) from None
        return client, f"{daemon} {ours} {contact.local_address(config, daemon)}"
    if daemon == "collector":
        return contact.collector(config, pool=pool or name), f"collector {pool or name}"
    from condor_actors.classads import quote
    from condor_actors.messages.advertise import AdKind

    kinds = {"master": AdKind.MASTER, "schedd": AdKind.SCHEDD, "startd": AdKind.STARTD, "negotiator": AdKind.NEGOTIATOR}
    text = quote(name)
    fitting = f'Name == {text} || Machine == {text} || regexp(strcat("^", {text}, "\\\\."), Machine)'
    found = contact.query(config, kinds[daemon], fitting, ("Name", "MyAddress"), pool=pool)
    if not found:
        raise ToolError(
            f"Can't find address for {daemon} '{name}' in {pool or 'this pool'}\n"
            "Perhaps you need to query another pool."
        )
    address = found[0].get_str("MyAddress")
    return contact.dial(config, address, f"{daemon} {name}"), f"{daemon} {found[0].get_str('Name')} {address}"


def _read(client: Client, wishes: Wishes, daemon: str) -> int:
    from condor_actors.tools.admin.config_val import as_written
    from condor_actors.tools.lib.command import reminder_of

    if wishes.has("dump") or wishes.has("used") or wishes.has("unused"):
        for value in _many(client, wishes, daemon):
            shown = value.value if wishes.has("expand") else value.raw
            print(f"{value.name} {as_written(_evaluated(client, value) if wishes.has('evaluate') else shown)}")
        return 0
    if not wishes.words:
        print(reminder_of("condor_config_val"), file=sys.stderr)
        return 1
    status = 0
    for value in _ask(client, wishes.words):
        if not value.defined:
            print(f"Not defined: {value.name.upper()}", file=sys.stderr, flush=True)
            status = 1
            continue
        shown = _evaluated(client, value) if wishes.has("evaluate") else value.value
        if wishes.has("verbose"):
            print(f"{value.name.upper()} {as_written(shown)}")
            print(f" # at: {value.where}\n # raw: {value.name.upper()} {as_written(value.raw)}\n")
        else:
            print(value.raw if wishes.has("raw") else shown)
    return status


def _many(client: Client, wishes: Wishes, daemon: str) -> list[Any]:
    """What a dump shows: every parameter and whatever else is set, or those (not) used by the daemon, by name."""
    wanted = [re.compile(word, re.IGNORECASE) for word in wishes.words]
    found = {value.name.upper(): value for value in _ask(client, (EVERYTHING_SET,)) if value.defined}
    mentioned = {word.upper() for value in found.values() for word in re.findall(r"[A-Za-z_]\w*", value.raw)}
    if not wishes.has("unused"):
        names = sorted(each.name for each in all_parameters() if not each.is_pattern and not each.sensitive)
        names = [name for name in names if name not in found]
        for at in range(0, len(names), MANY):
            found |= {value.name: value for value in _ask(client, tuple(names[at : at + MANY])) if value.defined}

    def fits(name: str) -> bool:
        if wanted and not any(each.search(name) for each in wanted):
            return False
        if not wishes.has("used") and not wishes.has("unused"):
            return True
        parameter = find_parameter(name)
        if parameter is None:
            used = name in mentioned
        else:
            used = not parameter.read_by or daemon.upper() in parameter.read_by
        return used is wishes.has("used")

    return [found[name] for name in sorted(found) if fits(name)]


def _evaluated(client: Client, value: Any) -> str:
    """A value as an expression about the daemon's own ad."""
    from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_long_expression, unparse

    try:
        node = parse_long_expression(value.value)
    except ClassAdSyntaxError:
        return "error"
    return unparse(node.evaluate(ClassAd.from_bytes(client.ask(contact.ADMIN, Ping()).ad)), style="tools")


def _ask(client: Client, names: tuple[str, ...]) -> tuple[Any, ...]:
    return tuple(client.ask(contact.ADMIN, QueryConfig(names=names)).values)


def _change(client: Client, title: str, wishes: Wishes) -> int:
    """One setting after the other; the first that is refused ends it."""
    for item in wishes.given:
        if item.name not in ("set", "unset", "rset", "runset"):
            continue
        text = item.values[0]
        name, equals, value = text.partition("=")
        removes = item.name in ("unset", "runset")
        if not removes and not equals:
            print(f"condor_config_val: Can't set configuration value (\"{text}\")\n"
                  'The value has to be given as "NAME = value"', file=sys.stderr)
            return 1
        message = SetConfig(name=name.strip(), value=None if removes else value.strip(),
                            persistent=item.name in ("set", "unset"))
        verb = "unset" if removes else "set"
        try:
            client.ask(contact.ADMIN, message)
        except WireError as error:
            print(f'Attempt to {verb} configuration "{text}" on {title} failed.\n{contact.refused(error)}',
                  file=sys.stderr)
            return 1
        print(f'Successfully {verb} configuration "{text}" on {title}.')
    return 0
