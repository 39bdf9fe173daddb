"""``htcondor server | ap | ep | cm``: whether daemons answer, and the slots of a machine.

A daemon's health here is whether it answers, within a few seconds, who asks it how it is; there are no points for it.

**Source**: the manual, htcondor, "Server Verbs", "AP Verbs", "EP Verbs", "CM Verbs".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd, quote
from condor_actors.messages.admin import Ping
from condor_actors.messages.advertise import AdKind
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import ADMIN, dial, full_name, load, local_node, query
from condor_actors.tools.nouns.words import table, tell
from condor_actors.wire.blocking import WireError, connect

if TYPE_CHECKING:
    from condor_actors.config import Config

PATIENCE_S = 5.0
GOOD, BAD = "Good", "Bad"


def server_status(_: dict[str, Any]) -> int:
    """Which daemons of this machine answer."""
    config = load()
    rows = []
    for name in [each.lower() for each in config.list_of("DAEMON_LIST")]:
        try:
            with connect(local_node(config, name), timeout_s=PATIENCE_S) as client:
                pong = client.ask(ADMIN, Ping(), PATIENCE_S)
        except WireError:
            rows.append((name.upper(), "-----", "Missing", "UNKNOWN"))
        else:
            rows.append((name.upper(), str(pong.pid), "Alive", GOOD))
    if not any(row[2] == "Alive" for row in rows):
        raise ToolError("There are no HTCondor daemons currently running")
    tell(*table(("Daemon", "PID", "Status", "Health"), rows, right=(1,)))
    whole = GOOD if all(row[3] == GOOD for row in rows) else BAD
    tell(f"\nOverall HTCondor Health: {whole}\n")
    return 0


def _answers(config: Config, ad: ClassAd) -> bool:
    address = ad.get_str("MyAddress")
    try:
        with dial(config, address, ad.get_str("Name")) as client:
            client.ask(ADMIN, Ping(), PATIENCE_S)
    except (ToolError, WireError):
        return False
    return True


def _healths(config: Config, ads: Iterable[ClassAd]) -> dict[str, str]:
    """By machine: whether all of these daemons answer."""
    health: dict[str, str] = {}
    for ad in ads:
        name = ad.get_str("Machine") or ad.get_str("Name")
        if not _answers(config, ad):
            health[name] = BAD
        health.setdefault(name, GOOD)
    return health


def ap_status(given: dict[str, Any]) -> int:
    """Whether schedds answer, by machine."""
    config, wanted = load(), list(given["hostname"])
    ads = [ad for ad in query(config, AdKind.SCHEDD)
           if not wanted or _is_named(ad.get_str("Machine"), wanted)]
    if not ads:
        raise ToolError("Failed to locate specified Access Point(s)" if wanted
                        else "Failed to locate any Access Point information")
    health = _healths(config, ads)
    tell(*table(("Access Point", "Health"), sorted(health.items())))
    lost = [host for host in wanted if not any(_is_named(name, [host]) for name in health)]
    if lost:
        tell("\nFailed to find the following hosts:", *lost)
    return 1 if lost else 0


def _is_named(machine: str, hosts: Iterable[str]) -> bool:
    names = {machine.lower(), machine.partition(".")[0].lower()}
    return any(host.lower() in names for host in hosts)


def ap_claims(given: dict[str, Any]) -> int:
    """The slots that a schedd's jobs hold, as the collector has them."""
    config = load()
    name = given["name"] or full_name(config, "schedd")
    found = [ad for ad in query(config, AdKind.SCHEDD)
             if name.lower() in (ad.get_str("Name").lower(), ad.get_str("Machine").lower())]
    if not found:
        raise ToolError(f"the pool has no schedd {name}")
    host = found[0].get_str("Machine")
    claimed = query(config, AdKind.SLOT, f'State == "Claimed" && ClientMachine =?= {quote(host)}')
    if not claimed:
        tell("No active claims")
        return 0
    rows = [(ad.get_str("Name", "???"), ad.get_str("Activity", "Unknown"), "Negotiator",
             str(ad.get_int("NumJobStarts"))) for ad in sorted(claimed, key=lambda ad: ad.get_str("Name"))]
    tell(*table(("Name", "Activity", "Source", "Activations"), rows))
    return 0


def ep_status(given: dict[str, Any]) -> int:
    """The slots of a machine."""
    name = given["ep_name"]
    ads = [ad for ad in query(load(), AdKind.SLOT) if _is_named(ad.get_str("Machine"), [name])]
    if not ads:
        raise ToolError(f"No slots found for execution point: {name}")
    rows = [(ad.get_str("Name"), ad.get_str("SlotType"), ad.get_str("State", "Unknown"),
             ad.get_str("Activity", "Unknown"), str(ad.get_int("Cpus")), f"{ad.get_int('Memory')} MB")
            for ad in sorted(ads, key=lambda ad: ad.get_str("Name"))]
    tell(*table(("Slot", "Type", "State", "Activity", "Cpus", "Memory"), rows, right=(4, 5)))
    tell(f"\nTotal slots: {len(rows)}")
    return 0


def cm_status(_: dict[str, Any]) -> int:
    """Whether collector and negotiator answer."""
    config = load()
    ads = [*query(config, AdKind.COLLECTOR), *query(config, AdKind.NEGOTIATOR)]
    if not ads:
        raise ToolError("Failed to locate any Central Managers")
    tell(*table(("Central Manager", "Health"), sorted(_healths(config, ads).items())))
    return 0
