"""What is known of a cycle that is being gathered for."""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.fair_share_allocator import Placement, Rejected
from condor_actors.cores.negotiator.matchmaking import Request
from condor_actors.cores.negotiator.pool_view import Submitter

__all__ = ["Gathering"]


@attrs.define(eq=False)
class Gathering:
    """A cycle that is being gathered for.

    Attributes:
        number, began_s: of the cycle.
        awaited: (submitter, cursor) of questions without an answer yet.
        requests: what has come and is not decided yet, by submitter.
        more: where the requests of a submitter go on, when there were enough for now.
        taken: how many requests of a submitter have come.
        placed, rejected: what earlier rounds of the cycle decided.
        used_s: time that each user's requests took.
        barred: requests that the terms for other pools refuse: submitter, autocluster, job, why.
        hungry: local jobs, and how many like them, that found nothing although they may have more.
        unserved: their requests, also those with concurrency limits that leave room for them.
        told: of how many placed and rejected the schedds were told.
        is_hurried: only schedds of other pools have not answered, and they are not waited for long.
    """

    number: int
    began_s: float
    awaited: set[tuple[str, str]] = attrs.field(factory=set)
    requests: dict[str, list[Request]] = attrs.field(factory=dict)
    submitters: dict[str, Submitter] = attrs.field(factory=dict)
    more: dict[str, str] = attrs.field(factory=dict)
    taken: dict[str, int] = attrs.field(factory=dict)
    placed: list[Placement] = attrs.field(factory=list)
    rejected: list[Rejected] = attrs.field(factory=list)
    used_s: dict[str, float] = attrs.field(factory=dict)
    told: tuple[int, int] = (0, 0)
    barred: list[tuple[str, int, str, str]] = attrs.field(factory=list)
    hungry: list[tuple[ClassAd, int]] = attrs.field(factory=list)
    unserved: list[Request] = attrs.field(factory=list)
    is_hurried: bool = False
