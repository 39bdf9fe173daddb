"""What must hold between pools whatever their partners do, and however gateways fail.

Theory: unlike the rules of lending these hold at every moment, under faults, too: they say what a partner can take, not
what it is to be given.  They are held against the network (who is connected with whom, which claims and matches are
told) and against what gateways carry, not against what daemons believe.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from condor_actors.daemons.gateway.gateway import GatewayDaemon
from condor_actors.messages.claim import ClaimGranted
from condor_actors.messages.envelope import Envelope
from condor_actors.messages.negotiate import MatchNotice

if TYPE_CHECKING:
    from condor_actors.simulation.world.pool import Pool
    from condor_actors.simulation.world.process import Process

__all__ = ["PartnerChecker"]

GRACE_S = 5.0
"""What a partner may have saved up, and a little: seconds' worth of circuits."""


class PartnerChecker:
    """Looks at what goes between pools."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._with_gateways = {spec.pool for spec in pool.scenario.machines if spec.gateway}
        self._matches: Counter[str] = Counter()
        self._grants: Counter[str] = Counter()
        self._seen: set[str] = set()
        self._taken: dict[tuple[str, str, int], tuple[float, int]] = {}

    def joined(self, one: Process, other: Process) -> None:
        """Two processes have a connection: of two pools, both must be gateways where there are any."""
        here, there = one.machine.spec.pool, other.machine.spec.pool
        if here != there and {here, there} <= self._with_gateways and {one.kind, other.kind} != {"gateway"}:
            self._pool.violate(f"{one.title} of {here} has a connection with {other.title} of {there}")

    def carried(self, sender: Process, target: Process, envelope: Envelope) -> None:
        """A match is announced to a machine, or a claim is granted to another pool's schedd."""
        if envelope.message_id in self._seen:
            return
        if envelope.kind == MatchNotice.KIND:
            self._seen.add(envelope.message_id)
            self._matches[target.machine.name] += 1
        elif envelope.kind == ClaimGranted.KIND and sender.machine.spec.pool != target.machine.spec.pool:
            self._seen.add(envelope.message_id)
            self._granted(sender, target)

    def _granted(self, lender: Process, guest: Process) -> None:
        machine, realm = lender.machine, guest.machine.spec.pool
        self._grants[machine.name] += 1
        if realm not in machine.spec.config.get("FLOCK_FROM", "").split():
            self._pool.violate(f"{machine.name} has granted a claim to {realm}, from which {machine.spec.pool} takes "
                               "no jobs")
        if self._grants[machine.name] > self._matches[machine.name]:
            self._pool.violate(f"{machine.name} has granted {self._grants[machine.name]} claims to other pools, and "
                               f"{self._matches[machine.name]} matches were announced to it")

    def look(self) -> None:
        """Whether gateways carry for nobody more than they say."""
        if self._with_gateways:
            for machine in self._pool.machines.values():
                for process in machine.processes.values():
                    daemon = process.daemon
                    if isinstance(daemon, GatewayDaemon):
                        self._look_at(process, daemon)

    def _look_at(self, process: Process, daemon: GatewayDaemon) -> None:
        settings, now_s, post = daemon.limits.settings, process.clock.seconds(), process.post
        assert post is not None
        for realm, taken in post.accepted.items():
            account = daemon.limits._accounts.get(realm)
            streams = account.streams if account is not None else 0
            before_s, before = self._taken.get((process.title, realm, process.pid), (process.birth_s, 0))
            self._taken[process.title, realm, process.pid] = now_s, taken
            if streams > settings.most_streams or taken - before > settings.most_per_s * (now_s - before_s + GRACE_S):
                self._pool.violate(f"{process.title} carries {streams} circuits that {realm} wanted, and took "
                                   f"{taken - before} in {now_s - before_s:.0f} s")
