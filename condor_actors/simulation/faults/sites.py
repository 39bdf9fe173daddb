"""The worldwide flock of 1994: six sites, each with its gateway, in one world with faults by chance.

Theory: "Numbers indicate the size of each Condor pool.  Lines indicate flocking via gateways.  Arrows indicate the
direction that jobs may flow."  The figure has nine pools at six places: Madison with 200 machines, others with 3 to 30.
Which number stands at which of the smaller places, and which way each arrow points, cannot be read from the copy that
there is; below is one reading of it.

**Source**: Thain, Tannenbaum, Livny, "Distributed Computing in Practice: The Condor Experience", figures 4 and 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import attrs

from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.simulation.faults.chance import DESKTOP, QUICK
from condor_actors.simulation.faults.fault_chances import random_schedule
from condor_actors.simulation.faults.faults import Fault
from condor_actors.simulation.faults.federations import LATE_S
from condor_actors.simulation.world.scenario import MachineSpec, Scenario, Submission

__all__ = ["SITES", "WAYS", "random_sites", "site_machines"]


@attrs.frozen
class Site:
    """One place.

    Attributes:
        name: of its pool.
        size: machines that ran jobs.
        gateways: how many stand by for one another.
        hidden: its gateway dials, and cannot be dialled.
    """

    name: str
    size: int
    gateways: int = 1
    hidden: bool = False


SITES = (Site("madison", 200, gateways=2), Site("delft", 30, gateways=2), Site("amsterdam", 3, hidden=True),
         Site("geneva", 10), Site("warsaw", 3, hidden=True), Site("dubna", 4, hidden=True))

WAYS = (("delft", "madison"), ("madison", "delft"), ("amsterdam", "delft"), ("delft", "amsterdam"),
        ("amsterdam", "madison"), ("geneva", "madison"), ("geneva", "delft"), ("warsaw", "madison"),
        ("warsaw", "geneva"), ("dubna", "geneva"), ("geneva", "dubna"), ("dubna", "madison"))
"""The directions in which jobs may flow."""

GATEWAY_LIMITS = {"GATEWAY_MAX_RATE": "20", "GATEWAY_MAX_OPENING": "30", "GATEWAY_MAX_STREAMS": "400"}
"""Small enough for a flood to reach them."""

MISBEHAVIOUR = 0.25
"""This part of the faults that hit a whole partner are its own wrongdoing."""


def site_machines(scale: float, random: Random, config: Mapping[str, str] | None = None) -> tuple[MachineSpec, ...]:
    """All machines of all sites: a central manager that submits, gateways, and some that run jobs.

    Args:
        scale: this part of the machines of then; at least one at each site.
        random: whose desks they are, and how wrong each site's clocks are.
        config: parameters of all of them.
    """
    specs = []
    for site in SITES:
        gates = [f"{site.name}-g{number}" for number in range(site.gateways)]
        own = {**GATEWAY_LIMITS, **(config or {}), "GATEWAY_HOST": " ".join(gates),
               "FLOCK_TO": " ".join(there for here, there in WAYS if here == site.name),
               "FLOCK_FROM": " ".join(here for here, there in WAYS if there == site.name)}
        apart_s = random.choice((0.0, 0.0, round(random.uniform(-7200.0, 7200.0), 3)))
        specs.append(MachineSpec(f"{site.name}-cm", central=True, submits=True, executes=False, pool=site.name,
                                 config=own, offset_s=apart_s))
        specs += [MachineSpec(gate, gateway=True, executes=False, pool=site.name, config=own, offset_s=apart_s)
                  for gate in gates]
        for number in range(max(1, round(site.size * scale))):
            desk = random.random() < 0.3
            specs.append(MachineSpec(
                f"{site.name}-x{number}", pool=site.name, cpus=random.choice((1, 1, 2)), memory_mib=4096, kbdd=desk,
                config={**own, **(DESKTOP if desk else {})}, offset_s=apart_s))
    return tuple(specs)


def site_delays(random: Random) -> dict[tuple[str, str], float]:
    """Seconds one way between the sites' gateways: 10 to 50 ms, so 20 to 100 ms there and back."""
    pairs = sorted({(min(pair), max(pair)) for pair in WAYS})
    delays = {}
    for one, other in pairs:
        delays[one, other] = delays[other, one] = round(random.uniform(0.010, 0.050), 4)
    return delays


def random_sites(seed: int, scale: float = 0.05, faults: int | None = None, raises: bool = False) -> Scenario:
    """The six sites, work unevenly spread, and faults: of daemons, machines, lines, and of partners that do wrong.

    Args:
        seed: says everything else.
        scale: see :func:`site_machines`.
        faults: how many; None: chance says.
        raises: whether turns and edges of actors may raise as well.
    """
    random = Random(f"sites {seed}")
    machines = site_machines(scale, random)
    both = sorted({*WAYS, *((there, here) for here, there in WAYS)})
    terms = {pair: FlockTerms(quota=float(random.choice((-1, -1, 1, 2, 5)))) for pair in both}
    end_s = round(random.uniform(300.0, 900.0), 3)
    count = random.randrange(0, len(machines)) if faults is None else faults
    schedule = [*random_schedule(random, machines, 1.0, end_s, count, raises),
                *(_of_a_partner(random, machines, end_s) for _ in range(count // 4))]
    sites = [site.name for site in SITES]
    submissions = tuple(
        Submission(when_s=round(random.uniform(5.0, end_s + LATE_S), 3), owner=random.choice(("alice", "bob")),
                   machine=f"{random.choice(('dubna', 'warsaw', *sites))}-cm", count=random.choice((1, 3, 5, 10)),
                   cpu_s=round(random.choice((20.0, 60.0, 300.0, 1500.0)) * random.uniform(0.5, 1.5), 3))
        for _ in range(random.randrange(6, 14)))
    return Scenario(
        seed=seed, machines=machines, submissions=submissions, release_s=97.0, terms=terms, delays=site_delays(random),
        faults="\n".join(map(str, sorted(schedule, key=lambda fault: fault.when_s))), span_s=end_s + 5 * 3600.0,
        hidden=frozenset(site.name for site in SITES if site.hidden), delay_s=0.0005,
        config={**QUICK, "JOB_DEFAULT_LEASE_DURATION": str(random.choice((300, 900)))})


def _of_a_partner(random: Random, machines: tuple[MachineSpec, ...], end_s: float) -> Fault:
    """A gateway killed, a line between two cut or half-open, a central manager gone, or a partner that does wrong."""
    when_s = round(random.uniform(1.0, end_s * 0.85), 3)
    span_s = round(min(random.uniform(5.0, 300.0), end_s - when_s), 3)
    here, there = random.choice(WAYS)
    gates = {pool: [spec.name for spec in machines if spec.gateway and spec.pool == pool] for pool in (here, there)}
    one, other = random.choice(gates[here]), random.choice(gates[there])
    if random.random() < 0.5:
        one, other = other, one
    if random.random() < MISBEHAVIOUR:
        kind = random.choice(("flood", "mute", "greedy"))
        return Fault(kind=kind, when_s=when_s, target=one, other=other if kind == "flood" else "", span_s=span_s)
    kind = random.choice(("crash", "power", "cut", "cut", "central"))
    if kind == "crash":
        return Fault(kind="crash", when_s=when_s, target=one, daemon="gateway")
    if kind == "cut":
        return Fault(kind="cut", when_s=when_s, target=one, other=other, span_s=span_s, one_way=random.random() < 0.3)
    return Fault(kind="power", when_s=when_s, span_s=span_s, target=one if kind == "power" else f"{there}-cm")
