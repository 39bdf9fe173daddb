"""Pools joined by gateways in one world: the flock of 1994, gateways that fail, partners that do wrong."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import attrs
import pytest

from condor_actors.cores.gateway.client_limits import ClientLimits
from condor_actors.cores.gateway.routes import Dial, Routes
from condor_actors.cores.startd.claims.announced_matches import AnnouncedMatches
from condor_actors.messages.flock_terms import FlockTerms
from condor_actors.simulation.faults.chance import QUICK
from condor_actors.simulation.faults.sites import SITES, WAYS, random_sites, site_machines
from condor_actors.simulation.world import hosting, relays
from condor_actors.simulation.world.scenario import MachineSpec, Result, Scenario, Submission, run
from condor_actors.wire.partners.flock_rules import FlockRules
from tests.harness.seeds import some_of

Patch = pytest.MonkeyPatch


def test_the_map_has_its_sizes_and_directions() -> None:
    assert {site.size for site in SITES} <= {200, *range(3, 31)}
    hidden = {site.name for site in SITES if site.hidden}
    assert all(not {here, there} <= hidden for here, there in WAYS)  # of two that cannot be dialled none can dial
    machines = site_machines(1.0, Random(1))
    assert sum(spec.executes for spec in machines) == sum(site.size for site in SITES)


@pytest.mark.parametrize("seed", some_of([11, 3]))
def test_the_flock_of_1994_by_chance(seed: int) -> None:
    result = run(random_sites(seed, scale=0.02))
    assert result.violations == ()
    assert result.completed == len(result.jobs)


def test_the_same_seed_is_the_same_run() -> None:
    scenario = attrs.evolve(random_sites(5, scale=0.005), span_s=600.0, drain=False)
    assert run(scenario).digest == run(scenario).digest


def two_pools(*, hidden: str = "", faults: str = "", cpu_s: float = 300.0, count: int = 4,
              takes: bool = True, **more: Any) -> Scenario:
    """``guests`` has work and no machine, ``lender`` two machines; each has two gateways."""
    flocks = {"guests": {"FLOCK_TO": "lender"}, "lender": {"FLOCK_FROM" if takes else "FLOCK_TO": "guests"}}
    machines = []
    for pool, config in flocks.items():
        gates = [f"{pool[0]}g{number}" for number in range(2)]
        config = {**config, "GATEWAY_HOST": " ".join(gates), "GATEWAY_MAX_RATE": "5"}
        machines += [MachineSpec(f"{pool[0]}0", central=True, submits=True, executes=False, pool=pool, config=config),
                     *(MachineSpec(gate, gateway=True, executes=False, pool=pool, config=config) for gate in gates)]
        machines += [MachineSpec(f"l{n}", pool=pool, config=config, cpus=2, memory_mib=4096) for n in (1, 2)
                     if pool == "lender"]
    return Scenario(
        machines=tuple(machines), config={**QUICK, "JOB_DEFAULT_LEASE_DURATION": "900"}, faults=faults,
        submissions=(Submission(when_s=30.0, owner="alice", machine="g0", count=count, cpu_s=cpu_s),),
        hidden=frozenset({hidden} - {""}), delays={("guests", "lender"): 0.05, ("lender", "guests"): 0.05},
        terms={("lender", "guests"): FlockTerms(), ("guests", "lender"): FlockTerms(quota=0.0)},
        **{"span_s": 3000.0, **more})


def passes(result: Result) -> bool:
    return result.violations == () and result.completed == len(result.jobs) > 0


@pytest.mark.parametrize("hidden", ["", "guests", "lender"])
def test_either_gateway_may_be_the_one_that_dials(hidden: str) -> None:
    result = run(two_pools(hidden=hidden))
    assert passes(result), result.violations
    assert all(job.starts == 1 for job in result.jobs.values())


ONCE = {
    "a gateway is killed": "at 100s crash gg0/gateway\nat 150s crash lg0/gateway",
    "another stands by": "at 20s power gg0 for 40m",
    "another of the partner's stands by": "at 20s power lg0 for 40m",
    "both of a pool are gone for a while": "at 100s power gg0 for 5m\nat 110s power gg1 for 5m",
    "cut between the gateways": "at 100s cut gg0 lg0 for 5m\nat 100s cut gg0 lg1 for 5m\n"
                                "at 100s cut gg1 lg0 for 5m\nat 100s cut gg1 lg1 for 5m",
    "nothing comes back": "at 100s cut lg0 > gg0 for 5m\nat 100s cut lg1 > gg0 for 5m",
    "the partner's central manager is gone": "at 100s power l0 for 20m",
    "cut while jobs begin": "".join(f"at {31 + n}s cut gg0 lg0 for 1s\n" for n in range(0, 30, 3)),
    "clocks are set apart": "at 100s clock g0 jump 2h\nat 120s clock l1 jump -3h\nat 120s clock lg0 jump -3h",
}


@pytest.mark.parametrize("faults", ONCE.values(), ids=ONCE.keys())
def test_running_jobs_outlive_what_befalls_the_gateways(faults: str) -> None:
    result = run(two_pools(faults=faults, cpu_s=600.0))
    assert passes(result), result.violations
    assert all(job.starts == 1 for job in result.jobs.values()), "a job began again"


WRONG = {"flood": "at 60s flood lg0 gg0 for 1m\nat 60s flood gg0 lg0 for 1m", "greedy": "at 20s greedy g0 for 10m",
         "mute": "at 20s mute l0 for 5m"}


@pytest.mark.parametrize("faults", WRONG.values(), ids=WRONG.keys())
def test_a_partner_that_does_wrong_harms_nobody(faults: str) -> None:
    result = run(two_pools(faults=faults))
    assert passes(result), result.violations


def dials_directly(patch: Patch) -> None:
    patch.setattr(hosting, "gateways_of", lambda config, name: ())


def bears_every_flood(patch: Patch) -> None:
    patch.setattr(ClientLimits, "_objection", lambda self, account, now_s, *, is_partner: "")


def claims_without_matches(patch: Patch) -> None:
    patch.setattr(AnnouncedMatches, "knows", lambda self, *arguments: True)
    patch.setattr(AnnouncedMatches, "why_not", lambda self, *arguments: "")


def takes_anybody(patch: Patch) -> None:
    patch.setattr(FlockRules, "_is_source", lambda self, identity: True)


def never_asks_back(patch: Patch) -> None:
    patch.setattr(Routes, "routes", lambda self, realm: (Dial("<nowhere:1>"),))


def only_the_first_gateway(patch: Patch) -> None:
    patch.setattr(relays, "first_circuit", lambda gateways, through: through(gateways[0]))


MUTANTS = [
    (dials_directly, {}, "has a connection with"),
    (bears_every_flood, {"faults": WRONG["flood"]}, "circuits that"),
    (claims_without_matches, {"faults": WRONG["greedy"], "count": 1}, "matches were announced"),
    (takes_anybody, {"takes": False}, "takes no jobs"),
    (never_asks_back, {"hidden": "lender", "span_s": 1500.0}, "not all jobs are done"),
    (only_the_first_gateway, {"faults": ONCE["another stands by"], "span_s": 1500.0}, "not all jobs are done"),
]


@pytest.mark.parametrize(("bug", "world", "said"), MUTANTS, ids=[bug.__name__ for bug, _, _ in MUTANTS])
def test_a_broken_rule_is_seen(monkeypatch: Patch, bug: Callable[[Patch], None], world: dict[str, Any],
                               said: str) -> None:
    bug(monkeypatch)
    result = run(two_pools(**world))
    assert any(said in text for text in result.violations), result.violations
