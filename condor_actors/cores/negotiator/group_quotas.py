"""Accounting groups and what each is entitled to.

Theory: groups form a tree by the dots in their names; a user belongs to the longest group that its accounting name
begins with, or to none.  A group's quota is a weight (GROUP_QUOTA_<group>) or a fraction of its parent's
(GROUP_QUOTA_DYNAMIC_<group>); what its sub-groups and users hold counts against it and against all groups above it.

A cycle serves in two rounds: first every group within its quota, the group that is furthest below it first; then, from
what is left, the users of groups that accept surplus, and those of no group, together by their shares.

Source: HTCondor's manual, "Group Accounting", "Accounting Groups with Hierarchical Group Quotas".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from condor_actors.classads import ClassAd, Expr
from condor_actors.messages.realm import MARK

__all__ = ["Group", "GroupBudget", "GroupTree", "NO_GROUP"]

NO_GROUP = "<none>"
EPSILON = 1e-9
LAST = 3.4e38


@attrs.frozen(kw_only=True)
class Group:
    """One group as configured: ``quota`` in weight or ``fraction`` of its parent's; with neither, entitled to 0."""

    name: str
    quota: float | None = None
    fraction: float | None = None
    accept_surplus: bool = False

    @property
    def parent(self) -> str:
        """The group above; empty for one at the top."""
        return self.name.rpartition(".")[0]


@attrs.frozen(kw_only=True)
class GroupTree:
    """All groups by lower-case name, and the order of serving them."""

    groups: Mapping[str, Group] = attrs.field(factory=dict)
    sort: Expr | None = None
    allow_oversubscription: bool = True

    @classmethod
    def of(cls, groups: Iterable[Group], sort: Expr | None = None, *, allow_oversubscription: bool = True) -> GroupTree:
        """A tree of these groups."""
        return cls(groups={group.name.lower(): group for group in groups}, sort=sort,
                   allow_oversubscription=allow_oversubscription)

    def group_of(self, user: str) -> str:
        """The lower-case name of a user's group; empty when it is in none, as users of other pools are."""
        if MARK in user:
            return ""
        account = user.partition("@")[0].lower()
        while account:
            if account in self.groups:
                return account
            account = account.rpartition(".")[0]
        return ""

    def line_of(self, group: str) -> list[Group]:
        """A group and those above it, nearest first."""
        line = []
        while group:
            if group in self.groups:
                line.append(self.groups[group])
            group = group.rpartition(".")[0]
        return line

    def quotas(self, pool_weight: float) -> dict[str, float]:
        """What each group is entitled to in a pool of that weight."""
        found: dict[str, float] = {}
        for name in sorted(self.groups, key=lambda name: name.count(".")):
            group = self.groups[name]
            above = found.get(group.parent.lower(), pool_weight)
            if group.quota is not None:
                found[name] = group.quota
            elif group.fraction is not None:
                found[name] = group.fraction * above
            else:
                found[name] = 0.0
        if not self.allow_oversubscription:
            self._cut_down(found, pool_weight)
        return found

    def _cut_down(self, quotas: dict[str, float], pool_weight: float) -> None:
        """Scale quotas down where sub-groups together have more than their parent."""
        for parent in ["", *sorted(quotas, key=lambda name: name.count("."))]:
            children = [name for name in quotas if name.rpartition(".")[0] == parent]
            limit = quotas[parent] if parent else pool_weight
            total = sum(quotas[name] for name in children)
            if total > limit:
                for name in children:
                    quotas[name] *= limit / total


class GroupBudget:
    """What the groups hold and may still get within one cycle.

    Args:
        tree: the groups; pool_weight: of the whole pool; held: weight by user before the cycle.
    """

    def __init__(self, tree: GroupTree, pool_weight: float, held: Mapping[str, float]) -> None:
        self.tree = tree
        self.quotas = tree.quotas(pool_weight)
        self.used: dict[str, float] = dict.fromkeys(tree.groups, 0.0)
        self.surplus_round = False
        for user, weight in held.items():
            self.add(user, weight)

    def add(self, user: str, weight: float) -> None:
        """A user holds so much more."""
        for group in self.tree.line_of(self.tree.group_of(user)):
            self.used[group.name.lower()] += weight

    def permits(self, user: str, weight: float) -> bool:
        """Whether a user's groups leave room for so much more, in the round that is being served."""
        for group in self.tree.line_of(self.tree.group_of(user)):
            if self.surplus_round and group.accept_surplus:
                continue
            if self.used[group.name.lower()] + weight > self.quotas[group.name.lower()] + EPSILON:
                return False
        return True

    def order(self, groups: Iterable[str]) -> Sequence[str]:
        """Groups in the order in which they are served; users of no group (the empty name) last."""
        return sorted(groups, key=lambda name: (self._key(name), name))

    def _key(self, name: str) -> float:
        used, quota = self.used.get(name, 0.0), self.quotas.get(name, 0.0)
        if self.tree.sort is None:
            return LAST if not name else used / quota if quota > 0.0 else LAST / 2
        ad = ClassAd({"AccountingGroup": name or NO_GROUP, "GroupQuota": quota, "GroupResourcesInUse": used})
        value = self.tree.sort.evaluate(ad, None, 0.0)
        return float(value) if isinstance(value, (int, float)) else LAST
