"""Who is served first: what the three priority policies have in common, and the record kept of each user.

Theory: a policy is a pure core.  It hears who holds how much and who wants more, moves its index as time passes, and
answers with one number per user: the *effective priority*, of which less is better, as in HTCondor.

=============  ==================================  =============================  ==========================
policy         a user's index                      served                         preempts for
=============  ==================================  =============================  ==========================
FAIR_SHARE     decayed usage × factor              shares inverse to the index    an index better by a fifth
UP_DOWN        rises while running, falls while    lowest index first, slot by    any lower index
               waiting for a slot                  slot
UPDATE_PRIO    an expression of the admin's        highest Prio first, slot by    any higher Prio
                                                   slot
=============  ==================================  =============================  ==========================

A policy keeps to itself how its index moves between two moments: every number is brought up to date when it is
asked for, so nothing needs a timer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

import attrs

__all__ = ["Lease", "PriorityPolicy", "UserRecord"]


@attrs.frozen
class Lease:
    """Until when a value is in force, and what it was before; None: the default factor."""

    until_s: float
    before: float | None


@attrs.define(eq=False)
class UserRecord:
    """What the accountant knows of one user (or group).

    Attributes:
        name: the accounting name, ``alice@domain`` or ``group.alice@domain``.
        priority: the index, as the policy that wrote it means it; policy: which that was.
        factor: set by an administrator; None: the default of its kind.
        weighted_usage_s, usage_s: slot weight and slots held, times time.
        begin_s, last_s: since when and until when the user held something; 0: never.
        ceiling, floor: bounds on the weight held; negative: none.
        holding, slots: weight and number of slots held now.
        wanting: whether something more was wanted in the last cycle and not given.
        updated_s: the moment that the index is for; charged_s: the moment that the usage is for.
        leases: what of ceiling, floor and factor is so for a while only.
    """

    name: str
    priority: float = 0.5
    factor: float | None = None
    weighted_usage_s: float = 0.0
    usage_s: float = 0.0
    begin_s: float = 0.0
    last_s: float = 0.0
    ceiling: float = -1.0
    floor: float = -1.0
    policy: str = "FAIR_SHARE"
    updated_s: float = 0.0
    charged_s: float = 0.0
    holding: float = 0.0
    slots: int = 0
    wanting: bool = False
    leases: dict[str, Lease] = attrs.field(factory=dict)


class PriorityPolicy:
    """Common to all policies: the records, and the charging of usage.

    Args:
        users: what the accountant had stored; an index that another policy wrote counts as :attr:`INITIAL`.
    """

    NAME: ClassVar[str] = ""
    INITIAL: ClassVar[float] = 0.0
    BY_SHARES: ClassVar[bool] = False
    """Whether users are served by shares; else slot by slot, best index first."""
    step: float = 1.0
    """By how much a slot more makes an index worse, for the order within a cycle."""

    def __init__(self, users: Mapping[str, UserRecord] | None = None) -> None:
        self.users: dict[str, UserRecord] = dict(users or {})
        for record in self.users.values():
            if record.policy != self.NAME:
                record.policy, record.priority = self.NAME, self.INITIAL

    def new(self, name: str, now_s: float) -> UserRecord:
        """The record of a user nobody knows yet; not kept."""
        return UserRecord(name, priority=self.INITIAL, policy=self.NAME, updated_s=now_s, charged_s=now_s)

    def user(self, name: str, now_s: float) -> UserRecord:
        """The record of a user, made when there is none, up to date."""
        record = self.users.get(name)
        if record is None:
            record = self.users[name] = self.new(name, now_s)
        self._bring_up(record, now_s)
        return record

    def _bring_up(self, record: UserRecord, now_s: float) -> None:
        if record.updated_s < now_s:
            self.move(record, now_s)
        span_s = now_s - record.charged_s
        if span_s > 0.0:
            if record.slots:
                record.weighted_usage_s += record.holding * span_s
                record.usage_s += record.slots * span_s
                record.last_s = now_s
            record.charged_s = now_s

    def move(self, record: UserRecord, now_s: float) -> None:
        """Move the index to ``now_s``; sets ``updated_s``."""
        record.updated_s = now_s

    # ---- what is told

    def holds(self, changes: Mapping[str, tuple[float, int]], now_s: float) -> None:
        """Who holds which weight and how many slots from now on; for all others nothing changes."""
        for name, (weight, slots) in changes.items():
            if not slots and name not in self.users:
                continue
            record = self.user(name, now_s)
            record.holding, record.slots = weight, slots
            if slots:
                record.begin_s = record.begin_s or now_s
                record.last_s = now_s

    def wants(self, names: set[str], now_s: float) -> None:
        """Who wanted more in a cycle and did not get it."""
        for name in names:
            self.user(name, now_s)
        for record in self.users.values():
            if record.wanting != (record.name in names):
                self._bring_up(record, now_s)
                record.wanting = record.name in names

    def has_enough(self, names: Iterable[str], now_s: float) -> None:
        """These users have no idle job, and want no more."""
        for name in names:
            record = self.users.get(name)
            if record is not None and record.wanting:
                self._bring_up(record, now_s)
                record.wanting = False

    # ---- queries

    def effective(self, name: str, now_s: float) -> float:
        """The effective priority; the least is served first."""
        record = self.users.get(name)
        if record is None:
            return self.value_of(self.new(name, now_s))
        self._bring_up(record, now_s)
        return self.value_of(record)

    def value_of(self, record: UserRecord) -> float:
        """The effective priority of a record that is up to date."""
        return record.priority

    def factor(self, name: str) -> float:
        """The factor in force."""
        return 1.0

    def beats(self, wanting: float, holding: float) -> bool:
        """Whether an effective priority may preempt for another one."""
        return wanting < holding

    def advance(self, now_s: float) -> None:
        """Bring every record up to date."""
        for record in self.users.values():
            self._bring_up(record, now_s)
