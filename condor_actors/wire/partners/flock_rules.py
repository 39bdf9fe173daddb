"""What the machines and users of partners may do here: FLOCK_FROM and FLOCK_TO in levels of authorisation.

================================  ============================================================================
who                               has
================================  ============================================================================
a schedd of FLOCK_FROM            ADVERTISE_SCHEDD: it advertises submitters and asks for claims; READ
a negotiator of a FLOCK_TO pool   at a schedd NEGOTIATOR: it is told what is wanted
a startd of a FLOCK_TO pool       at a schedd ADVERTISE_STARTD: it takes back the claims it has granted
users of either                   READ
everybody else there              nothing but CLIENT, where the message proves its own right
================================  ============================================================================

An ``ALLOW_`` list covers a peer of another pool only by an entry with a ``%`` in it; a ``DENY_`` list means them as it
means anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import attrs

from condor_actors.messages.envelope import Identity, Level
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import parted

__all__ = ["FlockRules"]


@attrs.frozen
class FlockRules:
    """The rules of one daemon.

    Attributes:
        sources: FLOCK_FROM: names of partners, or patterns of their hosts.
        targets: FLOCK_TO.
        subsystem: of the daemon.
        partners: the pools that are trusted now.
    """

    sources: Sequence[str] = ()
    targets: Sequence[str] = ()
    subsystem: str = ""
    partners: Callable[[], Sequence[KnownPartner]] = tuple

    def why(self, identity: Identity, level: Level) -> str:
        """The rule that grants a peer of another pool a level; empty: none."""
        is_source, is_target = self._is_source(identity), self._is_target(identity)
        at_schedd = self.subsystem.lower() == "schedd"
        if level is Level.READ and "shadow" not in identity.roles and (is_source or is_target):
            return f"{'FLOCK_FROM' if is_source else 'FLOCK_TO'} names the pool {identity.realm}"
        if level is Level.ADVERTISE_SCHEDD and is_source and "schedd" in identity.roles:
            return f"FLOCK_FROM names the pool {identity.realm} or this schedd"
        if at_schedd and is_target and ((level is Level.NEGOTIATOR and "negotiator" in identity.roles)
                                        or (level is Level.ADVERTISE_STARTD and "startd" in identity.roles)):
            return f"FLOCK_TO names the pool {identity.realm}"
        return ""

    def _is_source(self, identity: Identity) -> bool:
        hosts = {parted(host)[0] for host in identity.hosts or {identity.host.lower()}}
        return any(word.lower() == identity.realm or any(fnmatchcase(host, word.lower()) for host in hosts)
                   for word in self.sources)

    def _is_target(self, identity: Identity) -> bool:
        pool = next((each for each in self.partners() if each.name == identity.realm), None)
        return pool is not None and any(pool.is_called(word) for word in self.targets)
