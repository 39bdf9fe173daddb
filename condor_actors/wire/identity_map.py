"""CERTIFICATE_MAPFILE: the local name of a peer that authenticated under another one.

One rule a line, the first that fits counts; who fits none keeps the name that he proved::

    # method    proved name             name here
    SSL         "^alice@laptop\\.trio$"  alice@trio
    SSL         /^(.*)@desk[0-9]+\\.trio$/  \\1
    IDTOKENS    /^robot@physics$/        robot@trio
    FS          /^daily$/                reports
    @include    /etc/condor/more_names

The second field is a regular expression between quotes or slashes (``i`` behind the last: letters of either case); with
CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS only what stands between slashes is one.  The proved name is ``user@host`` of a
user's certificate and ``/O=<pool>/CN=<host>`` of a machine's (SSL), the subject of a token (IDTOKENS), the login name
at a local socket (FS).  A name here without a domain gets the UID_DOMAIN.  Roles and rights of a machine, and the user
id of a local process, stay what they are.

**Source**: HTCondor's manual, security, "The Unified Map File for Authentication".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from condor_actors.classads.builtins.user_maps import Rule, UserMap, UserMapError, pattern_of, read_rules
from condor_actors.config import ConfigError
from condor_actors.messages.envelope import Identity
from condor_actors.written_text import read_plain

PARAMETER = "CERTIFICATE_MAPFILE"
METHODS = {"local": "FS", "tls": "SSL", "token": "IDTOKENS"}
"""What the methods of identities are called in the file."""

_SAME_METHOD = {"TOKEN": "IDTOKENS", "TOKENS": "IDTOKENS", "IDTOKEN": "IDTOKENS"}
_OTHER_METHODS = frozenset({"KERBEROS", "PASSWORD", "NTSSPI", "CLAIMTOBE", "ANONYMOUS", "SCITOKENS", "MUNGE", "GSI",
                            "FS_REMOTE"})
_NAME_HERE = re.compile(r"[^\x00-\x20\x7f@:/*?,]+(@[^\x00-\x20\x7f@:/*?,]+)?")
MOST_FILES = 32


class BadMapping(ValueError):
    """A rule whose result is not a name."""


class IdentityMap:
    """The rules of one process.

    Args:
        rules: in their order.
        uid_domain: of names here that have none.
    """

    def __init__(self, rules: tuple[Rule, ...], uid_domain: str) -> None:
        self._map = UserMap(rules)
        self._is_empty = not rules
        self._uid_domain = uid_domain

    @classmethod
    def of(cls, config: Any) -> IdentityMap:
        """As configured.

        Raises:
            ConfigError: the file cannot be read, or a line of it is no rule, with the place.
        """
        path = config.text(PARAMETER)
        rules: tuple[Rule, ...] = ()
        if path:
            literal = config.boolean("CERTIFICATE_MAPFILE_ASSUME_HASH_KEYS")
            rules = tuple(_read(Path(path), literal, [], config))
        return cls(rules, config.needed_text("UID_DOMAIN"))

    def name_here(self, identity: Identity) -> str:
        """The name that a rule gives to a peer; empty: none does.

        Raises:
            BadMapping: it is no name.
        """
        method = METHODS.get(identity.method)
        if self._is_empty or method is None or "shadow" in identity.roles or identity.realm:
            return ""
        found = self._map.find(proved_name(identity), method)
        if found is None:
            return ""
        if not _NAME_HERE.fullmatch(found):
            raise BadMapping(f"{PARAMETER} makes {found!r} of {proved_name(identity)}, which is no name")
        return found if "@" in found else f"{found}@{self._uid_domain}"


def proved_name(identity: Identity) -> str:
    """What the second field of a rule is compared with."""
    if identity.method == "local":
        return identity.user
    if identity.method == "tls" and identity.roles != {"user"}:
        return f"/O={identity.name.partition('@')[2]}/CN={identity.host}"
    return identity.name


def _read(path: Path, literal: bool, before: list[Path], config: Any) -> Iterator[Rule]:
    if len(before) >= MOST_FILES or path in before:
        raise ConfigError("@include goes round in circles, or too deep", file=str(path), name=PARAMETER)
    try:
        files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
        texts = [(each, read_plain(each).decode(errors="surrogateescape")) for each in files]
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "") or error
        raise config.unusable(PARAMETER, f"cannot read the map of identities {path}: {why}", "a readable file",
                              value=os.fspath(path)) from None
    before.append(path)
    for file_name, text in texts:
        yield from _rules_of(file_name, text, literal, before, config)


def _rules_of(path: Path, text: str, literal: bool, before: list[Path], config: Any) -> Iterator[Rule]:
    lines = text.splitlines()
    included = {number: line.split(None, 1)[1].strip() for number, line in enumerate(lines, 1)
                if line.lstrip().startswith("@include") and len(line.split(None, 1)) == 2}
    plain = "\n".join("" if number in included else line for number, line in enumerate(lines, 1))
    try:
        rules = dict(read_rules(plain))
        for number in sorted({*rules, *included}):
            if number in included:
                yield from _read(path.parent / included[number], literal, before, config)
            else:
                yield _checked(rules[number], number, literal)
    except UserMapError as error:
        raise ConfigError(str(error), file=str(path), line=error.line, name=PARAMETER) from None


def _checked(rule: Rule, line: int, literal: bool) -> Rule:
    method = _SAME_METHOD.get(rule.method.upper(), rule.method.upper())
    if method != "*" and method not in METHODS.values() and method not in _OTHER_METHODS:
        raise UserMapError(f"{rule.method} is no method of authentication; expected SSL, IDTOKENS, FS or *", line)
    if "," in rule.groups:
        raise UserMapError("a rule is a method, a proved name and one name here", line)
    if rule.flags is None and not literal:
        if pattern_of(rule.user, "") is None:
            raise UserMapError(f"{rule.user!r} is no regular expression", line)
        return attrs.evolve(rule, method=method, flags="")
    return attrs.evolve(rule, method=method)
