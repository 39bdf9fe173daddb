"""Who may act on what: the questions about rights that cores ask, answered in one place.

Theory: an identity is one value.  Nothing compares a part of it: ``alice`` of a certificate that another machine has
signed is not ``alice`` of this one, unless the administrator trusts that machine about its users
(``TRUSTED_USER_HOSTS``), in which case the wire has given her the name she has here.  Machines own no jobs.
"""

from __future__ import annotations

from collections.abc import Collection

from condor_actors.addresses import BadAddress, split_address
from condor_actors.messages.envelope import Identity

__all__ = [
    "FETCHED", "host_of", "hosts_of", "is_central_manager", "is_fetched", "is_person", "is_shadow_of",
    "is_super_user", "is_user", "speaks_for_node"
]

USER_ROLE = "user"
SHADOW_ROLE = "shadow"


def is_person(identity: Identity) -> bool:
    """Tell whether the peer is a user of this pool: a local process, or the bearer of a user's proxy certificate or
    token."""
    return identity.is_local or (identity.roles == {USER_ROLE} and not identity.realm)


def is_user(identity: Identity, user: str, uid_domain: str) -> bool:
    """Tell whether the peer is the user ``user`` of this machine.

    Args:
        identity: the peer.
        user: a login name.
        uid_domain: of this machine (UID_DOMAIN).
    """
    return is_person(identity) and identity.name == f"{user}@{uid_domain}"


def is_super_user(identity: Identity, super_users: Collection[str]) -> bool:
    """Tell whether the peer may act on every job: this process, root, or a super user on this machine.

    Args:
        identity: the peer.
        super_users: login names, or whole names with their domain (QUEUE_SUPER_USERS).
    """
    if "self" in identity.roles:
        return True
    if identity.method != "local":
        return False
    return identity.uid == 0 or identity.user in super_users or identity.name in super_users


def is_central_manager(identity: Identity) -> bool:
    """Tell whether the peer is the central manager of this pool, which has its authority; a user there is not.

    Args:
        identity: the peer.
    """
    return identity.is_machine and "collector" in identity.roles and not identity.realm


def hosts_of(identity: Identity) -> tuple[str, ...]:
    """The names of the peer's machine, as its certificate has them; empty for a peer of this machine."""
    if identity.is_local:
        return ()
    return tuple(sorted(identity.hosts or {identity.host.lower()}))


FETCHED = "fetched:"
"""How the owners of claims for work begin that a machine fetches by itself; no account's name has a colon."""


def is_fetched(owner: str) -> bool:
    """Whether a claim is for fetched work, by its owner."""
    return owner.startswith(FETCHED)


def is_shadow_of(identity: Identity, owner: str, hosts: Collection[str]) -> bool:
    """Tell whether the peer is a shadow host of ``owner`` on one machine.

    Args:
        identity: the peer.
        owner: a whole identity (``alice@dom``), as that machine's schedd names her.
        hosts: the names of the machine.
    """
    user = owner.rpartition("@")[0]
    return (bool(user) and identity.method == "tls" and identity.roles == {SHADOW_ROLE}
            and identity.host.lower() in hosts and identity.name == f"shadow:{user}@{identity.host}")


def host_of(node: str) -> str:
    """The host name or address in the node ``<host:port>``, in small letters; empty for any other kind of node."""
    if not (node.startswith("<") and node.endswith(">")):
        return ""
    try:
        host, port = split_address(node)
    except BadAddress:
        return ""
    return host.lower() if port is not None else ""


def speaks_for_node(identity: Identity, node: str) -> bool:
    """Tell whether the peer is a daemon of the machine at ``node``; a proxy that the machine has signed is none."""
    host = host_of(node)
    return identity.is_local or (bool(host) and identity.is_machine and identity.speaks_for(host))
