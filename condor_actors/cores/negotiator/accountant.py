"""The accountant: who holds what now, who has held what, and what administrators have decreed about it.

Theory: holding is read from the slot ads of claimed slots, at the moment when an ad changes; between two changes it is
constant, so usage and priorities are exact without polling.  Records are saved every few minutes, whenever an
administrator changes one, and at the end; after ``kill -9`` the usage of the last minutes is lost, nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.group_quotas import GroupTree
from condor_actors.cores.negotiator.limit_leases import LEASED, end_leases, lease_ad, lease_problem, next_end_s
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.cores.negotiator.user_priority import Lease, PriorityPolicy, UserRecord
from condor_actors.effects import Effect, Note, Persist, Reply, SetTimer
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.negotiate import SetPriority

__all__ = ["Accountant", "ForgetUsers", "SaveUsers"]

NOTHING = (0, 0)


@attrs.frozen
class SaveUsers:
    """Operation: these records are so now; ``may_wait``: the receiver may keep them in memory and store them later."""

    records: tuple[UserRecord, ...]
    may_wait: bool = False


@attrs.frozen
class ForgetUsers:
    """Operation: these users were never here."""

    names: tuple[str, ...]


class Accountant:
    """Keeps each submitter's usage, priority, factor, and the limits that administrators have set.

    Args:
        policy: the priorities in force.
        save_every_s: between two savings.
    """

    def __init__(self, policy: PriorityPolicy, save_every_s: float = 60.0) -> None:
        self.policy = policy
        self.save_every_s = save_every_s
        self._saved: dict[str, tuple[object, ...]] = {}
        self._demand: Mapping[str, tuple[int, int]] = {}
        self._pool_weight = 0.0
        self.groups = GroupTree()

    # ---- holding

    def learn(self, view: PoolView, now_s: float) -> None:
        """Learn of the users whose slots or wishes have changed what they hold and want."""
        self._demand, self._pool_weight = view.demand, view.total_weight
        users, view.users = view.users, {}
        self.policy.has_enough([name for name in users if not view.demand.get(name, NOTHING)[0]], now_s)
        self.policy.holds({name: view.held.get(name, (0.0, 0)) for name in users}, now_s)

    def _requested(self, name: str) -> float:
        return float(self._demand.get(name, NOTHING)[1])

    # ---- saving

    def save(self, now_s: float, *, may_wait: bool = True) -> tuple[Effect, ...]:
        """Save what has changed since the last time; soon, or before anyone hears of it."""
        self.policy.advance(now_s)
        changed = []
        for record in self.policy.users.values():
            state = (record.priority, record.policy, record.factor, record.weighted_usage_s, record.usage_s,
                     record.begin_s, record.last_s, record.ceiling, record.floor, tuple(record.leases.items()))
            if self._saved.get(record.name) != state:
                self._saved[record.name] = state
                changed.append(attrs.evolve(record, leases=dict(record.leases)))
        return (Persist(SaveUsers(tuple(changed), may_wait)),) if changed else ()

    # ---- administrators

    def set(self, event: SetPriority, now_s: float) -> tuple[Effect, ...]:
        """What condor_userprio decrees."""
        if event.what == "reset-all":
            for each in self.policy.users.values():
                each.weighted_usage_s = each.usage_s = 0.0
            return (*self.save(now_s, may_wait=False), Reply(Done()), Note("the usage of all users was reset"))
        if event.what == "delete":
            if self.policy.users.pop(event.submitter, None) is None:
                return (Reply(Refused(code="not-found", text=f"there is no user {event.submitter!r}")),)
            self._saved.pop(event.submitter, None)
            return (Persist(ForgetUsers((event.submitter,))), Reply(Done()), Note(f"{event.submitter} was deleted"))
        if event.what.startswith("cancel-"):
            return self._cancel(event.submitter, event.what.removeprefix("cancel-"), now_s)
        change = CHANGES.get(event.what)
        if change is None:
            text = f"{event.what!r} cannot be set; expected one of {', '.join(sorted(CHANGES))}, delete, reset-all"
            return (Reply(Refused(code="invalid", text=text)),)
        over = self._end_leases(now_s)
        record = self.policy.users.get(event.submitter)
        if record is None:
            if "@" not in event.submitter and "." not in event.submitter:
                text = f"{event.submitter!r} is no accounting name; expected user@domain"
                return (Reply(Refused(code="invalid", text=text)),)
            record = self.policy.new(event.submitter, now_s)
        self.policy.effective(event.submitter, now_s)
        before = getattr(record, event.what, None)
        problem = lease_problem(record, event.what, event.duration_s) or change(record, event.value)
        if problem:
            return (*over, Reply(Refused(code="invalid", text=problem)))
        text = f"{event.what} of {event.submitter} set to {event.value:g}"
        if event.duration_s:
            record.leases[event.what] = Lease(now_s + event.duration_s, before)
            text += f" for {event.duration_s:g} s"
        self.policy.users[event.submitter] = record
        return (*over, *self.save(now_s, may_wait=False), *self.await_leases(now_s), Reply(Done()), Note(text))

    # ---- what is set for a while

    def _cancel(self, submitter: str, what: str, now_s: float) -> tuple[Effect, ...]:
        over = self._end_leases(now_s)
        record = self.policy.users.get(submitter)
        lease = record.leases.pop(what, None) if record is not None else None
        if record is None or lease is None:
            kind = what if what in LEASED else repr(what)
            text = f"the {kind} of {submitter} is not set for a while: there is no lease to cancel"
            return (*over, Reply(Refused(code="not-found", text=text)))
        self.policy.effective(submitter, now_s)
        setattr(record, what, lease.before)
        text = f"the {what} lease of {submitter} is cancelled"
        return (*over, *self.save(now_s, may_wait=False), Reply(Done()), Note(text))

    def await_leases(self, now_s: float) -> tuple[Effect, ...]:
        """The timer for the next lease that ends."""
        next_s = next_end_s(self.policy.users.values())
        return (SetTimer("leases", max(0.0, next_s - now_s)),) if next_s is not None else ()

    def leases_over(self, now_s: float) -> tuple[Effect, ...]:
        """Some may be."""
        return (*self._end_leases(now_s), *self.await_leases(now_s))

    def _end_leases(self, now_s: float) -> tuple[Effect, ...]:
        self.policy.advance(now_s)
        told = end_leases(self.policy.users.values(), now_s)
        return (*self.save(now_s, may_wait=False), *(Note(line) for line in told)) if told else ()

    # ---- answers

    def ads(self, now_s: float) -> list[bytes]:
        """One ad of kind Accounting per group and per user, best priority first."""
        return [*self._group_ads(now_s), *self._user_ads(now_s)]

    def _user_ads(self, now_s: float) -> list[bytes]:
        return [self.ad(record, now_s).to_bytes() for record in sorted(
            self.policy.users.values(), key=lambda record: (self.policy.effective(record.name, now_s), record.name))]

    def _group_ads(self, now_s: float) -> list[bytes]:
        """What each accounting group is entitled to, holds and wants, its sub-groups included."""
        quotas = self.groups.quotas(self._pool_weight)
        sums = {name: [0.0, 0.0, 0.0] for name in quotas}
        for record in self.policy.users.values():
            for group in self.groups.line_of(self.groups.group_of(record.name)):
                of_group = sums[group.name.lower()]
                of_group[0] += record.holding
                of_group[1] += record.weighted_usage_s
                of_group[2] += self._requested(record.name)
        return [ClassAd({
            "MyType": "Accounting", "TargetType": "none", "Name": self.groups.groups[name].name,
            "IsAccountingGroup": True, "AccountingGroup": self.groups.groups[name].name,
            "ConfigQuota": quota, "EffectiveQuota": quota, "SubtreeQuota": quota, "WeightedResourcesUsed": held,
            "WeightedAccumulatedUsage": used_s, "Requested": requested, "LastUpdate": int(now_s),
            "SurplusPolicy": "yes" if self.groups.groups[name].accept_surplus else "no",
        }).to_bytes() for (name, quota), (held, used_s, requested) in zip(quotas.items(), sums.values(), strict=True)]

    def ad(self, record: UserRecord, now_s: float) -> ClassAd:
        """A user's ad."""
        effective = self.policy.effective(record.name, now_s)
        return ClassAd({
            "MyType": "Accounting", "TargetType": "none", "Name": record.name, "Priority": effective,
            "PriorityFactor": self.policy.factor(record.name), "RealPriority": record.priority,
            "PriorityPolicy": record.policy,
            "ResourcesUsed": record.slots, "WeightedResourcesUsed": record.holding,
            "WeightedAccumulatedUsage": record.weighted_usage_s, "AccumulatedUsage": record.usage_s,
            "BeginUsageTime": int(record.begin_s), "LastUsageTime": int(record.last_s),
            "Requested": self._requested(record.name), "UnchargedTime": 0, "WeightedUnchargedTime": 0.0,
            "Ceiling": record.ceiling, "Floor": record.floor, "IsAccountingGroup": False,
            "AccountingGroup": _group(record.name), "LastUpdate": int(record.updated_s), **lease_ad(record),
        })


def _group(name: str) -> str:
    account = name.partition("@")[0]
    return account.rpartition(".")[0] or "<none>"


def _at_least(least: float, name: str) -> Callable[[UserRecord, float], str]:
    def change(record: UserRecord, value: float) -> str:
        if not value >= least:
            return f"{name} must be at least {least:g}, not {value:g}"
        setattr(record, name, value)
        return ""

    return change


def _usage(record: UserRecord, value: float) -> str:
    if not value >= 0.0:
        return f"usage cannot be negative ({value:g})"
    record.weighted_usage_s = value
    return ""


def _reset(record: UserRecord, value: float) -> str:
    record.weighted_usage_s = record.usage_s = 0.0
    return ""


CHANGES: dict[str, Callable[[UserRecord, float], str]] = {
    "factor": _at_least(1.0, "factor"),
    "priority": _at_least(0.5, "priority"),
    "usage": _usage,
    "begin": _at_least(0.0, "begin_s"),
    "last": _at_least(0.0, "last_s"),
    "ceiling": _at_least(-1.0, "ceiling"),
    "floor": _at_least(-1.0, "floor"),
    "reset": _reset,
}
"""What ``SetPriority.what`` may be, and what it does."""
