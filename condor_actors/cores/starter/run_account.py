"""Whether a job may run as its owner here: its user's domain has to be ours, and its submit machine in that domain.

Theory: a user of our UID_DOMAIN is a user of this machine.  Which domain a user is of, the submit machine says; so a
machine may only say it of the domain that its own name is in, unless it is trusted with any (TRUST_UID_DOMAIN), or it
is this machine itself (TRUST_LOCAL_UID_DOMAIN).
"""

from __future__ import annotations

from collections.abc import Collection

import attrs

__all__ = ["DomainTrust"]


@attrs.frozen
class DomainTrust:
    """Who is believed about our domain.

    Attributes:
        domain: UID_DOMAIN; empty: nobody is.
        any_host: whichever submit machine it is; own_host: this machine.
    """

    domain: str = ""
    any_host: bool = False
    own_host: bool = True

    def covers(self, domain: str, hosts: Collection[str], own_hosts: Collection[str]) -> bool:
        """Whether a user of ``domain`` is one of ours, on the word of a machine.

        Args:
            hosts: the names of the submit machine, by its certificate; none: it is this machine.
            own_hosts: the names of this machine.
        """
        if not domain or domain.lower() != self.domain.lower():
            return False
        names = {host.lower().rstrip(".") for host in hosts}
        if self.any_host or (self.own_host and (not names or names & {host.lower() for host in own_hosts})):
            return True
        ours = self.domain.lower()
        return any(name == ours or name.endswith(f".{ours}") for name in names)
