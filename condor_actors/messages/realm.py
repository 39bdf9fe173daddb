"""Names in other pools: ``10.0.0.5%physics`` is the machine that the pool ``physics`` calls ``10.0.0.5``.

Theory: a host name or an address means something within one pool only.  What a peer of another pool says of itself gets
that pool's name behind a ``%``, here, by the certificate it showed; no host or user of this pool has a ``%`` in its
name.  So nothing that compares names can take one pool's machine or user for another's.  Imports little: the tools
load it.
"""

from __future__ import annotations

from condor_actors.patterns import late

__all__ = ["MARK", "abroad", "is_realm", "node_abroad", "parted", "realm_of_host"]

MARK = "%"
LINK_LOCAL = "fe80:"
"""Of these addresses what follows the mark is a network interface."""

_REALM = late(r"[a-z0-9][a-z0-9_.-]{0,62}")


def is_realm(name: str) -> bool:
    """Tell whether a pool of this name can have partners: small letters, digits, and ``_ . -`` between them."""
    return _REALM.fullmatch(name) is not None


def abroad(name: str, realm: str) -> str:
    """A name of another pool as this one has it.

    Args:
        name: of a host or user; a mark in it is the peer's doing, and loses its meaning.
        realm: the pool; empty: this one.
    """
    return f"{name.replace(MARK, '_')}{MARK}{realm}" if realm else name


def parted(name: str) -> tuple[str, str]:
    """A name, and the pool that has it; empty: this one."""
    own, mark, realm = name.rpartition(MARK)
    return (own, realm) if mark else (name, "")


def realm_of_host(host: str) -> str:
    """The pool that a host name or address is of; empty: this one."""
    return "" if host.startswith(LINK_LOCAL) else parted(host)[1]


def node_abroad(node: str, realm: str) -> str:
    """The node of another pool, as its daemons name it, for this pool to dial.

    Args:
        node: ``<host:port>``; anything else is of no use here, and becomes empty.
        realm: the pool; empty: this one, and the node stays as it is.
    """
    if not realm:
        return node
    host, colon, port = node.removeprefix("<").partition("?")[0].removesuffix(">").rpartition(":")
    if not node.startswith("<") or not colon or not host or MARK in host:
        return ""
    bare = host.strip("[]")
    named = abroad(bare, realm)
    return f"<[{named}]:{port}>" if ":" in bare else f"<{named}:{port}>"
