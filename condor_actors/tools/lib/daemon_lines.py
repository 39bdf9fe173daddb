"""A line to the daemon that ``-type``, ``-name``, ``-pool`` and ``-address`` mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import collector, dial, local_address, local_node, query, unreachable
from condor_actors.tools.lib.flags import Flag
from condor_actors.wire.blocking import Client, WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config

PLACE_FLAGS = (
    Flag("address", 2, 1),
    Flag("pool", 1, 1),
    Flag("name", 1, 1),
    Flag("type", 2, 1),
    Flag("subsystem", 2, 1, alias="type"),
)
KINDS = {
    "schedd": "SCHEDD",
    "startd": "STARTD",
    "master": "MASTER",
    "negotiator": "NEGOTIATOR",
    "collector": "COLLECTOR",
}


def line_to(config: Config, values: dict[str, str], kind: str) -> tuple[str, Client]:
    """Where it is, in words, and a line to it.

    Args:
        config: of the tool.
        values: of the flags.
        kind: of daemon, where ``-type`` does not say.

    Raises:
        ToolError: there is none, or it does not answer.
    """
    kind = (values.get("type") or kind).lower()
    address = values.get("address", "")
    if address:
        text = address if address.startswith("<") else f"<{address}>"
        return text, dial(config, text, text)
    if not values.get("name") and not values.get("pool"):
        try:
            return f"local {kind} {local_address(config, kind)}", connect(local_node(config, kind))
        except WireError as error:
            if kind == "collector":
                return "collector", collector(config)
            raise ToolError(unreachable(f"local {kind}", error)) from None
    if kind == "collector":
        pool = values.get("pool") or values["name"]
        return f"collector {pool}", collector(config, pool=pool)
    if kind not in KINDS:
        raise ToolError(f"-type {kind}: expected one of {', '.join(KINDS)}")
    from condor_actors.classads import quote
    from condor_actors.messages.advertise import AdKind

    name = quote(values.get("name", ""))
    asked = f"Name == {name} || Machine == {name}" if values.get("name") else ""
    found = query(config, AdKind[KINDS[kind]], asked, ("Name", "MyAddress"), pool=values.get("pool", ""))
    if not found:
        raise ToolError(f"Can't find address for {kind} {values.get('name', '')}".rstrip())
    where = found[0].get_str("MyAddress")
    return f"{kind} {found[0].get_str('Name')} {where}", dial(config, where, where)
