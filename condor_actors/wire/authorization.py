"""Who may do what: the ALLOW_ and DENY_ lists, and what holds where they are silent.

Theory: each message names a level; a level includes those it implies.

=================  ====================================================================  =====================
level              without an ALLOW_ list it belongs to                                  implies
=================  ====================================================================  =====================
READ               users of this machine; machines of the pool; their users; tokens      –
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
read its memory anyway.  An ``ALLOW_`` list replaces the column above for its level; ``DENY_`` wins over both.  What an
entry means is in :mod:`condor_actors.wire.peer_patterns`.  ``ALLOW_<LEVEL>_<SUBSYS>`` goes before ``ALLOW_<LEVEL>``.
NEGOTIATOR, ADVERTISE_* and DAEMON are for daemons: an entry that names a network, a host or everybody gives them to the
machines there, not to users and shadows of these machines; a user has them who is named.
A token's scope only takes levels away.
**Source**: HTCondor's manual, security, "Authorization".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Protocol

import attrs

from condor_actors.config import ConfigError
from condor_actors.messages.envelope import Identity, Level
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import MARK
from condor_actors.wire.partners.flock_rules import FlockRules
from condor_actors.wire.peer_patterns import Entry, parse_entry

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
OF_DAEMONS = frozenset({Level.NEGOTIATOR, Level.ADVERTISE_STARTD, Level.ADVERTISE_SCHEDD, Level.ADVERTISE_MASTER,
                        Level.DAEMON})
"""Levels in which a peer speaks for a machine: entries that name nobody mean machines alone."""
_ADVERTISING = {role: level for role, level in _ROLE_LEVELS.items() if level.value.startswith("ADVERTISE_")}
DEFAULT_HOLDERS = {
    Level.READ: "users of this machine, machines of the pool, their users and bearers of tokens",
    Level.WRITE: "users of this machine, machines of the pool, their users and bearers of tokens",
    Level.NEGOTIATOR: "machines with the role negotiator",
    Level.ADVERTISE_STARTD: "machines with the role startd",
    Level.ADVERTISE_SCHEDD: "machines with the role schedd",
    Level.ADVERTISE_MASTER: "machines with the role master",
    Level.DAEMON: "machines of the pool",
    Level.OWNER: "nobody",
    Level.CONFIG: "nobody",
    Level.ADMINISTRATOR: "machines with the role collector",
}
"""For each level, who has it where no ALLOW_ list says otherwise, in words."""



class Lists(Protocol):
    """What this module needs of a configuration."""

    @property
    def subsystem(self) -> str:
        """The daemon whose configuration it is."""

    def text(self, name: str) -> str | None:
        """A value, or None."""

    def where(self, name: str) -> tuple[str, int]:
        """File and line of a value."""

    def unusable(self, name: str, problem: str) -> ConfigError:
        """The error of a value that cannot be used."""


@attrs.frozen(kw_only=True)
class ReadList:
    """One ALLOW_ or DENY_ list as it is in force: its parameter, where that is set, its entries."""

    name: str
    file: str
    line: int
    entries: tuple[Entry, ...]

    def entry_for(self, identity: Identity) -> Entry | None:
        """The first entry that matches a peer."""
        return next((entry for entry in self.entries if entry.matches(identity)), None)

    def entry_granting(self, identity: Identity, level: Level) -> Entry | None:
        """The first entry that matches a peer and gives it ``level``."""
        needs_name = level in OF_DAEMONS and not identity.is_machine
        return next((entry for entry in self.entries if entry.matches(identity)
                     and (entry.names_user or not needs_name)), None)

    @property
    def place(self) -> str:
        """The parameter and where it is set, for people."""
        where = f"{self.file}, line {self.line}" if self.line else self.file
        return f"{self.name} ({where})" if where else self.name


@attrs.frozen(kw_only=True)
class Decision:
    """Whether a peer has a level, by which rule, and what would change a refusal."""

    allowed: bool
    rule: str
    remedy: str = ""


class Authorization:
    """The lists of one daemon.

    Args:
        config: read again by :meth:`reconfigure`.
        own_uid: the uid that has every level beside root's, the pool's account; by default the process's own.
        partners: the pools that are trusted now.

    Raises:
        ConfigError: an entry is none.
    """

    def __init__(self, config: Lists, own_uid: int | None = None,
                 partners: Callable[[], Sequence[KnownPartner]] = tuple) -> None:
        self._own_uid = os.getuid() if own_uid is None else own_uid
        self._partners = partners
        self.reconfigure(config)

    def reconfigure(self, config: Lists) -> None:
        """Take new lists.

        Raises:
            ConfigError: an entry is none; the old lists stay.
        """
        allow: dict[Level, ReadList | None] = {}
        deny: dict[Level, ReadList | None] = {}
        for level in IMPLIED_BY:
            allow[level] = _read(config, f"ALLOW_{level.value}")
            deny[level] = _read(config, f"DENY_{level.value}")
        self._allow, self._deny = allow, deny
        self._flock = FlockRules(_words(config, "FLOCK_FROM"), _words(config, "FLOCK_TO"), config.subsystem,
                                 self._partners)
        self._known: dict[tuple[Identity, Level], bool] = {}

    def allows(self, identity: Identity, level: Level) -> bool:
        """Whether ``identity`` has ``level``."""
        if identity.realm:  # which pools are trusted may change at any time
            return self.explain(identity, level).allowed
        known = self._known.get((identity, level))
        if known is None:
            if len(self._known) > 10_000:
                self._known.clear()
            known = self._known[identity, level] = self.explain(identity, level).allowed
        return known

    def explain(self, identity: Identity, level: Level) -> Decision:
        """Whether ``identity`` has ``level``, and why; the one place where it is decided."""
        if identity.method == "self":
            return Decision(allowed=True, rule="it is the daemon itself")
        if level is Level.CLIENT:
            return Decision(allowed=True, rule="anyone with a proven identity has it; messages prove their own right")
        if identity.levels is not None and not any(each.value in identity.levels for each in IMPLIED_BY[level]):
            scope = " ".join(sorted(identity.levels)) or "nothing"
            return Decision(allowed=False, rule=f"the token is good for {scope} only",
                            remedy=f"get a token with -authz {level.value}")
        if identity.method == "local" and identity.uid in (0, self._own_uid):
            return Decision(allowed=True, rule="root of this machine and the account of the daemon have every level")
        denied = self._denied(identity, level)
        if denied is not None:
            return denied
        if identity.realm and (rule := self._flock.why(identity, level)):
            return Decision(allowed=True, rule=rule)
        for higher in IMPLIED_BY[level]:
            rule = self._why(identity, higher) if higher is level or not _lacks_role(identity, level) else ""
            if rule:
                implied = "" if higher is level else f", and {higher.value} implies {level.value}"
                return Decision(allowed=True, rule=rule + implied)
        return self._refusal(identity, level)

    def _denied(self, identity: Identity, level: Level) -> Decision | None:
        listed = self._deny[level]
        entry = listed.entry_for(identity) if listed is not None else None
        if listed is None or entry is None:
            return None
        return Decision(allowed=False, rule=f"{listed.place} has {entry.text!r}",
                        remedy=f"an administrator can take {entry.text!r} out of {listed.name}")

    def _why(self, identity: Identity, level: Level) -> str:
        """The rule that grants a peer this level itself; empty: none does."""
        if self._denied(identity, level) is not None:
            return ""
        listed = self._allow[level]
        if listed is None:
            return f"without ALLOW_{level.value} it belongs to {DEFAULT_HOLDERS[level]}" if (
                level in default_levels(identity)) else ""
        entry = listed.entry_granting(identity, level)
        if entry is None or (identity.realm and MARK not in entry.text):
            return ""
        return f"{listed.place} has {entry.text!r}"

    def _refusal(self, identity: Identity, level: Level) -> Decision:
        listed = self._allow[level]
        whom = identity.name + (f"/{identity.host}" if identity.host and identity.roles != {"user"} else "")
        if identity.realm:
            return Decision(allowed=False, rule=f"neither FLOCK_FROM nor FLOCK_TO gives it to {whom}",
                            remedy=f"an administrator can add {identity.realm} to FLOCK_FROM, to run that pool's jobs, "
                                   "or to FLOCK_TO, to send jobs there")
        if listed is None:
            return Decision(allowed=False,
                            rule=f"without ALLOW_{level.value} it belongs to {DEFAULT_HOLDERS[level]}",
                            remedy=f"an administrator can set ALLOW_{level.value} = {whom}, and who else shall have it")
        entry = listed.entry_for(identity)
        if entry is not None:
            return Decision(allowed=False,
                            rule=f"{listed.place} has {entry.text!r}, which gives {level.value} to machines and to no "
                                 f"user; {whom} is not named",
                            remedy=f"an administrator can add {whom} to {listed.name}")
        return Decision(allowed=False, rule=f"{listed.place} has no entry for {whom}"
                        + (f" from {identity.address}" if identity.address else ""),
                        remedy=f"an administrator can add {whom} to {listed.name}")


def _lacks_role(identity: Identity, level: Level) -> bool:
    """Whether ``level`` is for machines with a role that this machine's certificate does not have.

    A machine that belongs to the pool has DAEMON, but advertises only the daemons that it was admitted with.
    """
    is_machine = identity.method == "tls" and bool(identity.roles)
    return is_machine and any(each is level and role not in identity.roles for role, each in _ADVERTISING.items())


def default_levels(identity: Identity) -> frozenset[Level]:
    """The levels of an identity where no ALLOW_ list says otherwise, without those they imply."""
    if identity.realm:
        return frozenset()
    if identity.method == "local" or identity.roles == {"user"}:
        return frozenset({Level.READ, Level.WRITE})
    if identity.method != "tls" or "shadow" in identity.roles or not identity.roles:
        return frozenset()
    return frozenset({Level.DAEMON, *(_ROLE_LEVELS[role] for role in identity.roles if role in _ROLE_LEVELS)})


def _words(config: Lists, name: str) -> tuple[str, ...]:
    return tuple((config.text(name) or "").replace(",", " ").split())


def _read(config: Lists, name: str) -> ReadList | None:
    specific = f"{name}_{config.subsystem.upper()}" if config.subsystem else name
    for each in dict.fromkeys((specific, name)):
        text = config.text(each)
        if text is None:
            continue
        file, line = config.where(each)
        try:
            entries = tuple(parse_entry(word) for word in text.replace(",", " ").split())
        except ValueError as error:
            raise config.unusable(each, str(error)) from None
        return ReadList(name=each, file=file, line=line, entries=entries)
    return None
