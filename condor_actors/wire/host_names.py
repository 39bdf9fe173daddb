"""Host names as certificates and ads spell them: one spelling each, and no patterns."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address

from condor_actors.wire.nodes import BadNode, is_address

__all__ = ["canonical_host", "is_loopback", "own_names"]

LOOPBACK_NAMES = frozenset({"localhost", "localhost4", "localhost6", "ip6-localhost", "ip6-loopback", "loopback"})

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9])?")


def canonical_host(host: str) -> str:
    """The one spelling of a host name or address that certificates and ads use.

    Args:
        host: a DNS name (international ones in their ASCII form) or an IP address.

    Returns:
        The name in small letters without the final dot, or the address in its shortest form.

    Raises:
        BadNode: a pattern, an address that is no host's, or no name at all.
    """
    if is_address(host):
        address = ip_address(host)
        if address.is_unspecified or address.is_multicast:
            raise BadNode(f"{host!r} is not the address of a host")
        return str(getattr(address, "ipv4_mapped", None) or address)
    name = host.lower().removesuffix(".")
    if not name or len(name) > 253 or not all(_LABEL.fullmatch(label) for label in name.split(".")):
        raise BadNode(f"{host!r} is no host name: expected letters, digits, hyphens and dots, and no patterns")
    if name.replace(".", "").isdecimal():
        raise BadNode(f"{host!r} is neither a name nor an address")
    return name


def is_loopback(host: str) -> bool:
    """Tell whether a name or address means whichever machine one is on."""
    name = host.lower().removesuffix(".").removesuffix(".localdomain")
    return name in LOOPBACK_NAMES or name.endswith(".localhost") or (is_address(host) and ip_address(host).is_loopback)


def own_names(hosts: Iterable[str]) -> frozenset[str]:
    """The names that tell a machine from every other, in small letters; all of them where none does."""
    names = frozenset(host.lower() for host in hosts)
    return frozenset(name for name in names if not is_loopback(name)) or names
