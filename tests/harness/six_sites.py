"""The worldwide flock of 1994 as real pools: six sites of network namespaces, far from one another.

The sites, their sizes, which of them hide and the directions in which jobs may flow are the simulation's
(:mod:`condor_actors.simulation.faults.sites`).  Each is a wire of its own with addresses of its own: a central manager
that submits, its gateways (Madison and Delft have two), and one machine with the slots of all that the site had.  The
clocks of some sites are up to two hours wrong.  Between them is :mod:`tests.harness.internet`: every machine has a
route to every other one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random

import attrs

from condor_actors.simulation.faults.sites import SITES, WAYS, Site, site_delays
from tests.harness.federation import introduce
from tests.harness.internet import Internet
from tests.harness.jumping_clock import JumpingClock
from tests.harness.namespaces import Machine, Wire, a_wire
from tests.pool_fixture import until

__all__ = ["Place", "SixSites", "six_sites"]

AT_ONCE = 3
"""Sites are built side by side: much of it is waiting."""
MEETING_S = 600.0
APART_S = 7200
CONFIG = """
PERIODIC_EXPR_INTERVAL = 20
NEGOTIATOR_INTERVAL = 20
UPDATE_INTERVAL = 60
JOB_DEFAULT_LEASE_DURATION = 240
MAX_DEFAULT_LOG = 200000000
RunBenchmarks = False
"""
DESKS = """
use POLICY : 1988
NUM_CPUS = {slots}
NUM_SLOTS = {slots}
MEMORY = {memory}
SLOTS_CONNECTED_TO_CONSOLE = {owned}
SLOTS_CONNECTED_TO_KEYBOARD = 0
CONSOLE_DEVICES = ..{console}
POLLING_INTERVAL = 1
KeyboardBusy = (ConsoleIdle < 2)
CPUBusy = False
START = (ConsoleIdle =?= undefined || ConsoleIdle > 2)
CONTINUE = (ConsoleIdle > 2)
MINUTE = 1
MaxSuspendTime = 4
KILLING_TIMEOUT = 5
"""
"""The owner sits at half of the desks; a minute of the policy is a second.  The load of the machine that all of this
runs on is no owner's."""


@attrs.frozen(kw_only=True)
class Place:
    """One site.

    Attributes:
        site: what the figure says of it.
        manager: its central manager, where its users submit.
        gateways: the first one, and those that stand by.
        desks: its machine with slots.
        console: the device at which its owner types.
        apart_s: by so much its clocks are ahead.
    """

    site: Site
    wire: Wire
    manager: Machine
    gateways: tuple[Machine, ...]
    desks: Machine
    console: Path
    apart_s: int

    @property
    def name(self) -> str:
        """Of its pool."""
        return self.site.name

    def owner_types(self) -> None:
        """A key is pressed; when, the site's clocks say."""
        now_s = time.time() + self.apart_s
        os.utime(self.console, (now_s, now_s))


@attrs.frozen(kw_only=True)
class SixSites:
    """All of them, and what is between them."""

    internet: Internet
    places: dict[str, Place]

    def machines(self) -> list[Machine]:
        """Every machine of every site."""
        return [machine for place in self.places.values() for machine in place.wire.machines]

    def logs(self, lines: int = 12) -> str:
        """The ends of all logs."""
        return "\n".join(place.wire.logs(lines) for place in self.places.values())


def _all(action: Callable[[str], object], names: Sequence[str]) -> list[object]:
    """Do something for each of these, some at once; their results.

    Raises:
        whatever the first that failed has raised.
    """
    with ThreadPoolExecutor(AT_ONCE) as workers:
        return list(workers.map(action, names))


def _built(site: Site, wire: Wire, scale: float, apart_s: int) -> Place:
    """The machines of a site, started."""
    clock = JumpingClock(wire.folder)
    clock.jump(apart_s)
    wire.environment = clock.environment
    addresses = [f"{wire.subnet}.{number}" for number in range(2, 2 + site.gateways)]
    config = (f"{CONFIG}GATEWAY_HOST = {', '.join(addresses)}\n"
              f"FLOCK_TO = {' '.join(there for here, there in WAYS if here == site.name)}\n"
              f"FLOCK_FROM = {' '.join(here for here, there in WAYS if there == site.name)}\n")
    manager = wire.manager(f"{site.name}-cm", f"DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD\n{config}", site.name)
    gateways = tuple(wire.member(manager, f"{site.name}-g{number}", "master,gateway", config)
                     for number in range(site.gateways))
    slots = max(1, round(site.size * scale))
    console = wire.folder / "console"
    console.touch()
    os.utime(console, (1, 1))
    desks = wire.member(manager, f"{site.name}-x", "master,startd", config + DESKS.format(
        slots=slots, memory=256 * slots, owned=(slots + 1) // 2, console=console))
    until((manager.dir / "run" / "schedd.address").exists, f"the schedd of {site.name} to listen", MEETING_S)
    return Place(site=site, wire=wire, manager=manager, gateways=gateways, desks=desks, console=console,
                 apart_s=apart_s)


def _meet(sites: SixSites) -> None:
    """Every two pools between which jobs flow trust each other, and their gateways meet."""
    for here, there in sorted({(min(way), max(way)) for way in WAYS}):
        for guest, host in ((here, there), (there, here)):
            place = sites.places[guest]
            reached_at = "none" if place.site.hidden else ",".join(gate.address for gate in place.gateways)
            introduce(sites.places[host].manager, place.manager, "--gateway", reached_at)

    def meets(name: str) -> None:
        place = sites.places[name]
        partners = {one for way in WAYS for one in way if name in way} - {name}

        def reached() -> bool:
            lines = place.manager.tool("condor_flock", "status").stdout.splitlines()
            return partners <= {line.split()[0] for line in lines if " reached: " in line}

        until(reached, lambda: f"{name} to reach {partners}: {place.manager.tool('condor_flock', 'status').stdout}",
              MEETING_S)
        until(lambda: f"{name}-x.trio" in place.manager.tool("condor_status", "-af", "Machine").stdout,
              f"the machine of {name} in the collector", MEETING_S)

    _all(meets, list(sites.places))


@contextmanager
def six_sites(seed: int, scale: float) -> Iterator[SixSites]:
    """All six, ready to lend.

    Args:
        seed: of the distances, and of the clocks.
        scale: this part of the machines of 1994, as slots; each site has at least one.
    """
    tag = f"ca{os.getpid() % 100000}"
    subnets = {site.name: f"10.{101 + number}.0" for number, site in enumerate(SITES)}
    with Internet(tag, subnets, site_delays(Random(seed))) as internet, ExitStack() as stack:
        wires = {}
        for number, site in enumerate(SITES):
            wires[site.name] = stack.enter_context(a_wire(
                "abcdef"[number], cgroups=True, subnet=subnets[site.name], router=internet.router(site.name)))
            internet.plug_in(wires[site.name].hub, site.name)
            gates = [f"{subnets[site.name]}.{2 + each}" for each in range(site.gateways)]
            internet.gateways.update(gates)
            if site.hidden:
                internet.hidden.update(gates)
        internet.start()
        chance = Random(f"clocks {seed}")
        by_name = {site.name: (site, chance.choice((0, chance.randint(-APART_S, APART_S)))) for site in SITES}
        places = _all(lambda name: _built(by_name[name][0], wires[name], scale, by_name[name][1]), list(by_name))
        made = SixSites(internet=internet, places={place.name: place for place in places if isinstance(place, Place)})
        _meet(made)
        yield made
