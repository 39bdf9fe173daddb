"""A ceiling, floor or factor that an administrator has set for a while only.

Theory: a lease keeps the value that was in force before it, with the record of its user, so it outlives a negotiator
that is killed; when its time is over, or when it is cancelled, that value comes back.  While there is one, the value
is not set in another way: what was set would be lost when the lease ends.

**Source**: the manual, condor_userprio (``-duration``, ``-cancelceilinglease`` and the like).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from condor_actors.cores.negotiator.user_priority import Lease, UserRecord

__all__ = ["LEASED", "end_leases", "lease_ad", "lease_problem", "leases_from_plain", "leases_to_plain",
           "next_end_s"]  # fmt: skip

LEASED: dict[str, tuple[str, str]] = {
    "ceiling": ("CeilingLeaseExpiration", "CeilingPreLeaseValue"),
    "floor": ("FloorLeaseExpiration", "FloorPreLeaseValue"),
    "factor": ("PriorityFactorLeaseExpiration", "PriorityFactorPreLeaseValue"),
}
"""What may be set for a while, and the attributes that tell of it in a user's ad."""


def lease_problem(record: UserRecord, what: str, duration_s: float) -> str:
    """Why a value cannot be set, now or for so long; empty: it can."""
    if not 0.0 <= duration_s < float("inf"):
        return f"a lease lasts for a number of seconds above 0, not {duration_s:g}"
    if duration_s and what not in LEASED:
        return f"{what} is not set for a while; only {', '.join(sorted(LEASED))} are"
    lease = record.leases.get(what)
    if lease is not None:
        return (f"the {what} of {record.name} is set for a while, until {int(lease.until_s)} (seconds since 1970); "
                f"cancel that first: condor_userprio -cancel{what}lease {record.name}")
    return ""


def end_leases(records: Iterable[UserRecord], now_s: float) -> list[str]:
    """Put back what was in force before the leases that are over; a line for each of these."""
    told = []
    for record in records:
        for what, lease in list(record.leases.items()):
            if lease.until_s <= now_s:
                setattr(record, what, lease.before)
                del record.leases[what]
                back = "its default" if lease.before is None else f"{lease.before:g}"
                told.append(f"the {what} of {record.name} is {back} again: its time is over")
    return told


def next_end_s(records: Iterable[UserRecord]) -> float | None:
    """When the next lease ends; None: there is none."""
    return min((lease.until_s for record in records for lease in record.leases.values()), default=None)


def lease_ad(record: UserRecord) -> dict[str, Any]:
    """What a user's ad says of its leases."""
    facts: dict[str, Any] = {}
    for what, lease in record.leases.items():
        until, before = LEASED[what]
        facts[until] = int(lease.until_s)
        if lease.before is not None:
            facts[before] = lease.before
    return facts


def leases_to_plain(leases: Mapping[str, Lease]) -> dict[str, list[float | None]]:
    """As they are stored: ``{what: [until_s, before]}``."""
    return {what: [lease.until_s, lease.before] for what, lease in leases.items()}


def leases_from_plain(plain: Mapping[str, list[Any]]) -> dict[str, Lease]:
    """The leases that were stored."""
    return {what: Lease(float(until_s), before) for what, (until_s, before) in plain.items() if what in LEASED}
