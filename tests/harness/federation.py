"""Two pools whose machines cannot reach one another, and their gateways.

Each pool has a wire of its own, and the same private addresses as the other; only the gateways hang on a third wire.
One of math's stands by.
Nothing is forwarded between the wires: a packet from a machine of one pool cannot get to one of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import attrs

from tests.harness.namespaces import Machine, Wire, a_wire
from tests.pool_fixture import Host

__all__ = ["GATEWAY", "Federation", "a_federation", "introduce"]

GATEWAY = "GATEWAY_HOST = 10.88.7.2\n"
TWO_GATEWAYS = "GATEWAY_HOST = 10.88.7.2, 10.88.7.3\n"
BOTH_WAYS = "GATEWAY.BIND_ALL_INTERFACES = true\n"


@attrs.frozen(kw_only=True)
class Federation:
    """Two pools and their gateways; ``math`` sends jobs, ``physics`` runs them."""

    inside: Wire
    outside: Wire
    math: Machine
    math_gateway: Machine
    standby: Machine
    physics: Machine
    physics_gateway: Machine

    def machines(self) -> tuple[Machine, ...]:
        """All of them."""
        return self.math, self.math_gateway, self.standby, self.physics, self.physics_gateway

    def logs(self, lines: int = 12) -> str:
        """The ends of all logs."""
        return "\n".join(f"=== {machine.name}\n{machine.logs(lines)}" for machine in self.machines())


def introduce(host: Host, guest: Host, *options: str) -> None:
    """Have one pool trust another."""
    invited = guest.tool("condor_flock", "invite", *options)
    (fingerprint,) = re.findall(r"^ *((?:[0-9a-f]{2}:)+[0-9a-f]{2})$", invited.stderr, re.MULTILINE)
    host.run("condor_flock", "accept", invited.stdout.strip(), "--fingerprint", fingerprint)


@contextmanager
def a_federation(config: str = "", physics_environment: Mapping[str, str] | None = None,
                 physics_packages: str = "") -> Iterator[Federation]:
    """Of the gateways only that of physics dials: math's is behind a firewall that lets it in, so to say.

    Args:
        config: of all machines, beside what makes them these pools'.
        physics_environment: variables of all that runs in physics, such as those that give it another clock.
        physics_packages: where physics' daemons find this package, if not where the tests do.
    """
    with a_wire("m") as first, a_wire("p") as second, a_wire("z") as outside:
        second.environment = dict(physics_environment or {})
        second.packages = physics_packages
        math = first.manager(
            "math", f"DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD\nFLOCK_TO = physics\n{TWO_GATEWAYS}{config}",
            "math")
        physics = second.manager("physics", f"FLOCK_FROM = math\n{GATEWAY}{config}", "physics")
        made = Federation(
            inside=first, outside=outside, math=math, physics=physics,
            math_gateway=first.member(math, "mathgate", "master,gateway",
                                      f"{TWO_GATEWAYS}{BOTH_WAYS}FLOCK_TO = physics\n{config}", outside),
            standby=first.member(math, "standby", "master,gateway",
                                 f"{TWO_GATEWAYS}{BOTH_WAYS}FLOCK_TO = physics\n{config}", outside),
            physics_gateway=second.member(physics, "physgate", "master,gateway",
                                          f"{GATEWAY}{BOTH_WAYS}FLOCK_FROM = math\n{config}", outside))
        introduce(physics, math, "--gateway", f"{made.math_gateway.outside},{made.standby.outside}")
        introduce(math, physics, "--gateway", "none")
        (math.work / "word").write_text("hello\n")
        yield made
