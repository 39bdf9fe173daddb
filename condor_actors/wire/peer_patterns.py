"""Entries of ALLOW_ and DENY_ lists: whom and where from they mean.

==========================  ===========================================================================
entry                       means
==========================  ===========================================================================
``alice@physics``           that user, from anywhere
``*@physics/desk1.physics``  any user of the domain, with a certificate of that machine
``*/*.physics``, ``desk*``   any peer with a certificate of such a host
``10.1.0.0/16``             any peer that connects from that network; also ``10.1.0.0/255.255.0.0``, ``10.1.*``
``alice@physics/10.1.*``    that user, from that network
``fd00:1::/32``, ``fd00:1:*``  the same in IPv6; ``[::1]``
``*``                       everybody
==========================  ===========================================================================

An entry *names* a user when what stands before the ``@`` has no pattern in it.  Levels of daemons
(:data:`condor_actors.wire.authorization.OF_DAEMONS`) are given to people by such entries alone.
A host *name* is one of the certificate.  An *address* is the real one at the other end of the link, whatever the peer
says of itself; a local socket counts as ``127.0.0.1`` and ``localhost``.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import attrs

from condor_actors.messages.envelope import Identity

__all__ = ["Entry", "Network", "parse_entry", "parse_network"]

Network = IPv4Network | IPv6Network
LOOPBACK = IPv4Address("127.0.0.1")
_ADDRESS_LIKE = re.compile(r"\[?([0-9]{1,3}(\.[0-9*]*)+|[0-9a-f]*:[0-9a-f:.*]*)\]?(/[^/]*)?")
_V4_PREFIX = re.compile(r"((?:[0-9]{1,3}\.){1,3})\*(?:\.\*)*")
_V6_PREFIX = re.compile(r"((?:[0-9a-f]{1,4}:){1,7})\*")


@attrs.frozen
class Entry:
    """One entry of a list.

    Attributes:
        text: as it stands there.
        user: a pattern of identities, in small letters.
        host: a pattern of host names, in small letters; ``network`` in its place when that is not None.
        network: of addresses.
    """

    text: str
    user: str
    host: str
    network: Network | None = None

    @property
    def names_user(self) -> bool:
        """Whether it means one user, not all peers of some place."""
        user, at, _ = self.user.partition("@")
        return bool(at) and not any(letter in user for letter in "*?[")

    def matches(self, identity: Identity) -> bool:
        """Whether it means ``identity``."""
        if not fnmatchcase(identity.name.lower(), self.user):
            return False
        if self.network is not None:
            address = address_of(identity)
            return address is not None and address in self.network
        return fnmatchcase(identity.host.lower() or ("localhost" if identity.is_local else ""), self.host)


def address_of(identity: Identity) -> IPv4Address | IPv6Address | None:
    """The address at the other end of the link; None when it is not known."""
    if identity.is_local:
        return LOOPBACK
    try:
        found = ip_address(identity.address.partition("%")[0])
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def parse_entry(text: str) -> Entry:
    """An entry of an ALLOW_ or DENY_ list.

    Raises:
        ValueError: what looks like a network is none.
    """
    lower = text.lower()
    if "@" not in text and _ADDRESS_LIKE.fullmatch(lower):
        return Entry(text, "*", "", parse_network(lower))
    user, slash, host = lower.partition("/")
    if not slash:
        return Entry(text, lower, "*") if "@" in text else Entry(text, "*", lower)
    if _ADDRESS_LIKE.fullmatch(host):
        return Entry(text, user or "*", "", parse_network(host))
    return Entry(text, user or "*", host or "*")


def parse_network(text: str) -> Network:
    """A network: ``10.1.0.0/16``, ``10.1.*``, ``fd00:1::/32``, one address.

    Raises:
        ValueError: it is none.
    """
    four, six = _V4_PREFIX.fullmatch(text), _V6_PREFIX.fullmatch(text)
    if four is not None:
        octets = four[1].rstrip(".").split(".")
        text = ".".join((octets + ["0"] * 4)[:4]) + f"/{8 * len(octets)}"
    elif six is not None:
        groups = six[1].rstrip(":").split(":")
        text = ":".join((groups + ["0"] * 8)[:8]) + f"/{16 * len(groups)}"
    try:
        return ip_network(text.replace("[", "").replace("]", ""), strict=False)
    except ValueError:
        raise ValueError(f"{text} is no network; expected 10.1.0.0/16, 10.1.*, fd00:1::/32 or one address") from None
