"""Whom a user's jobs may be charged to: accounting names, and the rules of the administrator about them.

Theory: a job is charged to its ``AccountingGroup``, which is ``user`` or ``group.user``, where a group may have
sub-groups (``physics.theory.alice``).  A user charges herself, always; in whatever group where no rule speaks of
groups, as in HTCondor, else in those that CHARGE_ALLOW_GROUPS gives her, with their sub-groups; other users only where
CHARGE_ALLOW_USERS lets her.  A rule is ``who=whom``, both with ``*`` for any part.  A name that reads both as a group
with the user behind it and as another user of this machine (``a.b``) is that user's.  Super users charge whom they
like.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

import attrs

from condor_actors.classads import ClassAd

__all__ = ["CHARGED", "CHARGED_TO", "ChargeRule", "Charging", "charge_rule", "is_charged_apart"]

CHARGED = ("accountinggroup", "acctgroup", "acctgroupuser")
"""The attributes that say whom a job is charged to."""

CHARGED_TO = "accountinggroup"
"""The one of them that counts; the others are what it was made of."""

_NAME = re.compile(r"[\w.@+-]{1,256}")


def is_charged_apart(ad: ClassAd) -> bool:
    """Whether an ad says by itself, not by its cluster's, whom its job is charged to."""
    return type(ad.own.get(CHARGED_TO)) is str


@attrs.frozen
class ChargeRule:
    """One rule: who may charge whom."""

    who: str
    whom: str

    def allows(self, user: str, whom: str) -> bool:
        """Whether the rule lets ``user`` charge ``whom``."""
        return fnmatchcase(user, self.who) and fnmatchcase(whom, self.whom)


def charge_rule(text: str) -> ChargeRule:
    """Read ``who=whom``.

    Raises:
        ValueError: it is no rule.
    """
    who, equals, whom = text.partition("=")
    if not equals or not who or not whom:
        raise ValueError(f"{text!r} is no rule; expected who=whom, as in alice=physics or *=common")
    return ChargeRule(who, whom)


@attrs.frozen(kw_only=True)
class Charging:
    """The rules of a schedd.

    Attributes:
        uid_domain: of its users.
        users, groups: CHARGE_ALLOW_USERS, CHARGE_ALLOW_GROUPS; no ``groups``: every group is open to everybody.
    """

    uid_domain: str
    users: tuple[ChargeRule, ...] = ()
    groups: tuple[ChargeRule, ...] | None = None

    def objection(self, user: str, ad: ClassAd, is_user: Callable[[str], bool]) -> str:
        """Why a user may not charge his jobs as an ad's own attributes say; empty when he may.

        Args:
            user: his login name.
            ad: what he submits, or the edit he wants.
            is_user: whether there is a user of that name here.
        """
        malformed = self.malformed(ad)
        if malformed:
            return malformed
        for key in CHARGED:
            value = ad.own.get(key)
            if value is None:
                continue
            name = ad.spelling(key)
            assert isinstance(value, str)
            refused = self._group(user, value) if key == "acctgroup" else self._name(user, value, is_user)
            if refused:
                return f"{name} = \"{value}\": {refused}"
        return ""

    @staticmethod
    def malformed(ad: ClassAd) -> str:
        """Why the accounting names that an ad carries are not valid for any user; empty when they are."""
        for key in CHARGED:
            value = ad.own.get(key)
            if value is not None and (not isinstance(value, str) or not _NAME.fullmatch(value)):
                return (f"{ad.spelling(key)} must be a name of letters, digits, '.', '_', '-', '@' and '+', at most "
                        '256, in quotation marks: "physics.alice"')
        return ""

    def _name(self, user: str, charged: str, is_user: Callable[[str], bool]) -> str:
        bare = charged.removesuffix(f"@{self.uid_domain}")
        if bare == user:
            return ""
        if any(rule.allows(user, bare) for rule in self.users):
            return ""
        words = bare.removesuffix(f".{user}").split(".")
        longer = (".".join((*words[first:], user)) for first in range(len(words)))
        if bare.endswith(f".{user}") and not any(is_user(each) for each in longer):
            return self._group(user, ".".join(words))
        unknown = "" if is_user(bare.rpartition(".")[2]) else ", who is no user of this machine"
        return f"{user} may not charge {charged}{unknown}; the administrator allows that with CHARGE_ALLOW_USERS"

    def _group(self, user: str, group: str) -> str:
        if self.groups is None:
            return ""
        parents = [group]
        while "." in parents[-1]:
            parents.append(parents[-1].rpartition(".")[0])
        if any(rule.allows(user, each) for rule in self.groups for each in parents):
            return ""
        return f"{user} may not charge the group {group}; the administrator allows that with CHARGE_ALLOW_GROUPS"
