"""Commands to the startds of named machines: which machines, and the sentence when the word was sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from condor_actors.classads import quote
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.messages.advertise import AdKind
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import dial, full_name, local_address, local_node, query, refused, unreachable
from condor_actors.wire.blocking import Client, WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config

STARTD = "startd"


def local_startd(config: Config) -> tuple[str, str, Client]:
    """Name, address and a line of this machine's startd.

    Raises:
        ToolError: it does not run.
    """
    try:
        client = connect(local_node(config, "startd"))
    except WireError as error:
        raise ToolError(unreachable("local startd", error)) from None
    return full_name(config, "startd"), local_address(config, "startd"), client


def startds(
    config: Config, *, names: tuple[str, ...] = (), constraint: str = "", address: str = "", pool: str = ""
) -> Iterator[tuple[str, str, Client]]:
    """Name, address and a line of each startd that is meant; with nothing given, this machine's.

    Raises:
        ToolError: there is none of that name.
    """
    if address:
        yield address, address, dial(config, address, f"startd at {address}")
        return
    if not names and not constraint:
        yield local_startd(config)
        return
    for name in names or ("",):
        found = dict(_machines(config, name, constraint, pool))
        if not found:
            raise ToolError(f"Can't find address for startd {name}".rstrip())
        for there, machine in found.items():
            yield machine, there, dial(config, there, f"startd {machine}")


def _machines(config: Config, name: str, constraint: str, pool: str) -> Iterator[tuple[str, str]]:
    """(address, machine) of slots with that name or machine."""
    parts = [old_to_new(constraint)] if constraint else []
    if name:
        host = quote(name.rpartition("@")[2])
        parts.append(f'Machine == {host} || Name == {quote(name)} || regexp(strcat("^", {host}, "\\\\."), Machine)')
    asked = " && ".join(f"({part})" for part in parts)
    for ad in query(config, AdKind.SLOT, asked, ("Machine", "MyAddress"), pool=pool):
        yield ad.get_str("MyAddress"), ad.get_str("Machine")


def ask(client: Client, actor: str, message: Any) -> Any:
    """The answer of an actor.

    Raises:
        ToolError: it refuses or is silent.
    """
    try:
        return client.ask(actor, message)
    except WireError as error:
        raise ToolError(refused(error)) from None
