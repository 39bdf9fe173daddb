"""Capacity granted in advance: so many machines, for one user, from one moment to another (H88 section 5.3).

Theory: the pool drains ahead.  From ``ahead_s`` before a reservation begins, enough machines are set aside: nobody
else gets anything new there, and claims of others end with the job that runs on them.  When it begins, whatever of
others still runs is vacated (and may save its work); until it ends only its user is served there.  A machine whose
owner is there is never taken: it is nobody's while its owner has it, and another one is set aside in its place as
long as there is one.  What is set aside is worked out anew from the slots' ads, so a negotiator that is started again
needs to know the reservations only.

A reservation that cannot be kept is refused when it is made: fewer machines fit than it wants beside those that
overlapping ones have.

Source: Litzkow, Livny, Mutka, "Condor - A Hunter of Idle Workstations" (1988), section 5 (3).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression

__all__ = ["DropReservation", "Reservation", "Reservations", "SaveReservation"]

LONGEST_S = 366 * 86400.0
MOST = 1000


@attrs.frozen(kw_only=True)
class Reservation:
    """Machines that one user is granted from one moment to another.

    Attributes:
        name: unique; submitter: whose (``alice@dom``, or a user name that any domain fits).
        machines: how many; constraint: which, over a slot's ad; empty: any.
        from_s, until_s: when; ahead_s: how long before that nothing new of others is started on them.
        made_by: who made it.
    """

    name: str
    submitter: str
    machines: int
    constraint: str
    from_s: float
    until_s: float
    ahead_s: float = 3600.0
    made_by: str = ""

    def holds(self, now_s: float) -> bool:
        """Whether machines are set aside for it now."""
        return self.from_s - self.ahead_s <= now_s < self.until_s

    def runs(self, now_s: float) -> bool:
        """Whether it has begun and is not over."""
        return self.from_s <= now_s < self.until_s

    def is_for(self, submitter: str) -> bool:
        """Whether it is this user's."""
        return submitter == self.submitter or submitter.partition("@")[0] == self.submitter

    def to_plain(self) -> dict[str, Any]:
        """As numbers and strings."""
        return attrs.asdict(self)


@attrs.frozen
class SaveReservation:
    """Operation: keep this reservation."""

    reservation: Reservation


@attrs.frozen
class DropReservation:
    """Operation: forget this reservation."""

    name: str


class Reservations:
    """All of them, and which machines are set aside for each.

    Args:
        known: those that are kept.
    """

    def __init__(self, known: Iterable[Reservation] = ()) -> None:
        self.all = {each.name: each for each in known}
        self.aside: dict[str, Reservation] = {}
        """Machine to the reservation that it is set aside for."""
        self.told: set[tuple[str, str, bool]] = set()
        """Reservation, claim, and whether it was let finish."""

    def __bool__(self) -> bool:
        return bool(self.all)

    def why_not(self, wish: Reservation, slots: Iterable[ClassAd], now_s: float) -> str:
        """Why a reservation cannot be made; empty: it can."""
        if wish.name in self.all:
            return f"there is a reservation {wish.name} already"
        if len(self.all) >= MOST:
            return f"there are {MOST} reservations already"
        if not wish.machines > 0 or not now_s < wish.until_s or not wish.from_s < wish.until_s <= now_s + LONGEST_S:
            return "it wants no machine, or no time to come, or begins after it ends, or ends in over a year"
        try:
            expression = parse_expression(wish.constraint) if wish.constraint else None
        except ClassAdSyntaxError as error:
            return f"the constraint cannot be read: {error}"
        fitting = set(_machines(slots, expression, now_s))
        taken = sum(each.machines for each in self.all.values()
                    if each.from_s - each.ahead_s < wish.until_s and wish.from_s - wish.ahead_s < each.until_s)
        if len(fitting) - taken < wish.machines:
            return (f"{len(fitting)} machines fit, and {taken} are promised to others in that time: "
                    f"{max(0, len(fitting) - taken)} of {wish.machines} could be had")
        return ""

    def expire(self, now_s: float) -> tuple[str, ...]:
        """Forget what is over; the names."""
        over = tuple(name for name, each in self.all.items() if each.until_s <= now_s)
        for name in over:
            self.forget(name)
        return over

    def forget(self, name: str) -> None:
        """A reservation is over or cancelled."""
        self.all.pop(name, None)
        self.aside = {machine: each for machine, each in self.aside.items() if each.name != name}
        self.told = {item for item in self.told if item[0] != name}

    def next_s(self, now_s: float) -> float | None:
        """When something changes next; None: never."""
        moments = [when_s for each in self.all.values() for when_s in (each.from_s - each.ahead_s, each.from_s,
                                                                       each.until_s)
                   if when_s > now_s]
        return min(moments, default=None)

    def set_aside(self, slots: Iterable[ClassAd], now_s: float) -> None:
        """Choose the machines: those chosen before stay, unless their owner is back; of others the least used first."""
        slots = list(slots)
        aside: dict[str, Reservation] = {}
        for each in sorted(self.all.values(), key=lambda one: (one.from_s, one.name)):
            if not each.holds(now_s):
                continue
            fitting = _machines(slots, parse_expression(each.constraint) if each.constraint else None, now_s)
            usable = {machine: rank for machine, rank in fitting.items() if rank is not None and machine not in aside}
            before = [machine for machine, one in self.aside.items() if one.name == each.name and machine in usable]
            rest = sorted((machine for machine in usable if machine not in before), key=lambda name: (usable[name],
                                                                                                      name))
            for machine in [*before, *rest][:each.machines]:
                aside[machine] = each
        self.aside = aside

    def may_use(self, machine: str, submitter: str) -> bool:
        """Whether a user may get something new on a machine now."""
        holder = self.aside.get(machine)
        return holder is None or holder.is_for(submitter)

    def to_end(self, slots: Mapping[str, ClassAd], now_s: float) -> dict[tuple[str, str, bool], tuple[str, ...]]:
        """Claims of others that have to go, each told once.

        Returns:
            (address of a startd, reservation, whether what runs may finish) to the slots there: it may until the
            reservation begins.
        """
        found: dict[tuple[str, str, bool], list[str]] = {}
        for key, ad in slots.items():
            holder = self.aside.get(ad.get_str("Machine"))
            user = ad.get_str("RemoteUser")
            if holder is None or not user or holder.is_for(user):
                continue
            finish = not holder.runs(now_s)
            mark = (holder.name, ad.get_str("PublicClaimId") or key, finish)
            if mark not in self.told:
                self.told.add(mark)
                found.setdefault((ad.get_str("MyAddress"), holder.name, finish), []).append(key)
        return {where: tuple(names) for where, names in found.items()}

    def ads(self, now_s: float) -> list[ClassAd]:
        """For condor_reserve list."""
        found = []
        for each in sorted(self.all.values(), key=lambda one: (one.from_s, one.name)):
            machines = sorted(machine for machine, one in self.aside.items() if one.name == each.name)
            state = "running" if each.runs(now_s) else "draining" if each.holds(now_s) else "waiting"
            found.append(ClassAd({
                "MyType": "Reservation", "Name": each.name, "User": each.submitter, "Machines": each.machines,
                "Constraint": each.constraint, "From": int(each.from_s), "Until": int(each.until_s),
                "Ahead": int(each.ahead_s), "MadeBy": each.made_by, "State": state, "SetAside": ",".join(machines)}))
        return found


def _machines(slots: Iterable[ClassAd], constraint: Expr | None, now_s: float) -> dict[str, float | None]:
    """Machines whose slots fit, with how much of them is used; None: their owner is there."""
    found: dict[str, float | None] = {}
    for ad in slots:
        if constraint is not None and not is_true(constraint.evaluate(ad, None, now_s)):
            continue
        machine = ad.get_str("Machine")
        used = float(ad.get_int("Cpus", 1)) if ad.get_str("RemoteUser") else 0.0
        known = found.get(machine, 0.0)
        has_owner = ad.get_str("State") == "Owner" or "OwnerPausedUntil" in ad or ad.get_bool("Draining")
        found[machine] = None if has_owner or (machine in found and known is None) else (known or 0.0) + used
    return found
