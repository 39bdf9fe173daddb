"""Who may do what: the ALLOW_ and DENY_ lists, and what holds where they are silent.

Theory: each message names a level; a level includes those it implies.

=================  ====================================================================  =====================
level              without an ALLOW_ list it belongs to                                  implies
=================  ====================================================================  =====================
READ               users of this machine; machines of the pool; their users' proxies     –
WRITE              the same                                                              READ
NEGOTIATOR         machines with the role negotiator                                     READ
ADVERTISE_*        machines with the role startd, schedd, master                         –
DAEMON             machines of the pool                                                  WRITE, ADVERTISE_* of
                                                                                         the certificate's roles
OWNER              –                                                                     READ
CONFIG             –                                                                     READ
ADMINISTRATOR      machines with the role collector (the central manager)                WRITE, OWNER
CLIENT             everybody who could prove an identity                                 –
=================  ====================================================================  =====================

Root of this machine and the account a daemon runs under have every level there, whatever the lists say: they could
read its memory anyway.  An ``ALLOW_`` list replaces the column above for its level; ``DENY_`` wins over both.  An
entry is ``user@domain``, ``user@domain/host``, ``*/host``, ``host`` or ``*``, each part with ``*`` as a wildcard; host
is the one in the certificate.  ``ALLOW_<LEVEL>_<SUBSYS>`` goes before ``ALLOW_<LEVEL>``.
**Source**: HTCondor's manual, security, "Authorization".
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import Protocol

import attrs

from condor_actors.config import ConfigError
from condor_actors.messages.envelope import Identity, Level

IMPLIED_BY: dict[Level, tuple[Level, ...]] = {
    Level.READ: (Level.READ, Level.WRITE, Level.NEGOTIATOR, Level.ADMINISTRATOR, Level.DAEMON, Level.OWNER,
                 Level.CONFIG),
    Level.WRITE: (Level.WRITE, Level.ADMINISTRATOR, Level.DAEMON),
    Level.NEGOTIATOR: (Level.NEGOTIATOR,),
    Level.ADVERTISE_STARTD: (Level.ADVERTISE_STARTD, Level.DAEMON),
    Level.ADVERTISE_SCHEDD: (Level.ADVERTISE_SCHEDD, Level.DAEMON),
    Level.ADVERTISE_MASTER: (Level.ADVERTISE_MASTER, Level.DAEMON),
    Level.DAEMON: (Level.DAEMON,),
    Level.OWNER: (Level.OWNER, Level.ADMINISTRATOR),
    Level.CONFIG: (Level.CONFIG,),
    Level.ADMINISTRATOR: (Level.ADMINISTRATOR,),
}
"""For each level, the levels that give it."""

_ROLE_LEVELS = {
    "negotiator": Level.NEGOTIATOR, "startd": Level.ADVERTISE_STARTD, "schedd": Level.ADVERTISE_SCHEDD,
    "master": Level.ADVERTISE_MASTER, "collector": Level.ADMINISTRATOR,
}
_ADVERTISING = {role: level for role, level in _ROLE_LEVELS.items() if level.value.startswith("ADVERTISE_")}
_NETWORK = re.compile(r"[0-9a-fA-F:.]+/[0-9.]+")


class Lists(Protocol):
    """What this module needs of a configuration."""

    @property
    def subsystem(self) -> str:
        """The daemon whose configuration it is."""

    def text(self, name: str) -> str | None:
        """A value, or None."""

    def where(self, name: str) -> tuple[str, int]:
        """File and line of a value."""


@attrs.frozen
class Entry:
    """One entry of a list: patterns of user and host, in small letters."""

    user: str
    host: str

    def matches(self, identity: Identity) -> bool:
        """Whether it means ``identity``."""
        host = identity.host.lower() or "localhost"
        return fnmatchcase(identity.name.lower(), self.user) and fnmatchcase(host, self.host)


def parse_entry(text: str) -> Entry:
    """An entry of an ALLOW_ or DENY_ list.

    Raises:
        ValueError: it is a network, which says nothing here: certificates name machines, not addresses.
    """
    if _NETWORK.fullmatch(text):
        raise ValueError(f"{text} is a network; expected identities such as alice@{{domain}} or */{{host}}")
    user, slash, host = text.lower().partition("/")
    if slash:
        return Entry(user or "*", host or "*")
    if "@" in text:
        return Entry(user, "*")
    return Entry("*", user)


class Authorization:
    """The lists of one daemon.

    Args:
        config: read again by :meth:`reconfigure`.
        own_uid: the uid that has every level beside root's, the pool's account; by default the process's own.

    Raises:
        ConfigError: an entry is none.
    """

    def __init__(self, config: Lists, own_uid: int | None = None) -> None:
        self._own_uid = os.getuid() if own_uid is None else own_uid
        self.reconfigure(config)

    def reconfigure(self, config: Lists) -> None:
        """Take new lists.

        Raises:
            ConfigError: an entry is none; the old lists stay.
        """
        allow, deny = {}, {}
        for level in IMPLIED_BY:
            allow[level] = _read(config, f"ALLOW_{level.value}")
            deny[level] = _read(config, f"DENY_{level.value}")
        self._allow, self._deny = allow, deny
        self._known: dict[tuple[Identity, Level], bool] = {}

    def allows(self, identity: Identity, level: Level) -> bool:
        """Whether ``identity`` has ``level``."""
        known = self._known.get((identity, level))
        if known is None:
            if len(self._known) > 10_000:
                self._known.clear()
            known = self._known[identity, level] = self._decide(identity, level)
        return known

    def _decide(self, identity: Identity, level: Level) -> bool:
        if identity.method == "self" or level is Level.CLIENT:
            return True
        if identity.levels is not None and not any(each.value in identity.levels for each in IMPLIED_BY[level]):
            return False
        if identity.method == "local" and identity.uid in (0, self._own_uid):
            return True
        if any(entry.matches(identity) for entry in self._deny[level] or ()):
            return False
        return any(self._has(identity, higher) for higher in IMPLIED_BY[level]
                   if higher is level or not _lacks_role(identity, level))

    def _has(self, identity: Identity, level: Level) -> bool:
        if any(entry.matches(identity) for entry in self._deny[level] or ()):
            return False
        listed = self._allow[level]
        if listed is not None:
            return any(entry.matches(identity) for entry in listed)
        return level in default_levels(identity)


def _lacks_role(identity: Identity, level: Level) -> bool:
    """Whether ``level`` is for machines with a role that this machine's certificate does not have.

    A machine that belongs to the pool has DAEMON, but advertises only the daemons that it was admitted with.
    """
    is_machine = identity.method == "tls" and bool(identity.roles)
    return is_machine and any(each is level and role not in identity.roles for role, each in _ADVERTISING.items())


def default_levels(identity: Identity) -> frozenset[Level]:
    """The levels of an identity where no ALLOW_ list says otherwise, without those they imply."""
    if identity.method == "local" or identity.roles == {"user"}:
        return frozenset({Level.READ, Level.WRITE})
    if identity.method != "tls" or "shadow" in identity.roles or not identity.roles:
        return frozenset()
    return frozenset({Level.DAEMON, *(_ROLE_LEVELS[role] for role in identity.roles if role in _ROLE_LEVELS)})


def _read(config: Lists, name: str) -> tuple[Entry, ...] | None:
    specific = f"{name}_{config.subsystem.upper()}" if config.subsystem else name
    for each in dict.fromkeys((specific, name)):
        text = config.text(each)
        if text is None:
            continue
        try:
            return tuple(parse_entry(word) for word in text.replace(",", " ").split())
        except ValueError as error:
            file, line = config.where(each)
            raise ConfigError(f"{each}: {error}", file=file, line=line or None, name=each, value=text) from None
    return None
