"""A claim that a schedd holds."""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd, match_ads
from condor_actors.cores.rights import host_of
from condor_actors.cores.schedd.queue_operations import SaveClaim
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.messages.envelope import Address
from condor_actors.messages.realm import MARK, realm_of_host

__all__ = ["REQUEST_PATIENCE_S", "HeldClaim", "limits_of"]

REQUEST_PATIENCE_S = 30.0
"""How long a schedd waits for what a startd says of a claim."""

MOST_WEIGHT = 1_000_000
"""That a slot may say it counts for."""


def limits_of(job: ClassAd) -> str:
    """The concurrency limits of a job, as they are counted.

    They may be an expression, and the same one is something else for the next job.
    """
    found = job.find("concurrencylimits")
    return found if isinstance(found, str) else "" if found is None else job.get_str("ConcurrencyLimits")


@attrs.define(eq=False)
class HeldClaim:
    """A claim that was granted.

    Attributes:
        row: the claim as it was granted.
        ad: the slot.
        autocluster: which jobs it fits for certain.
        limits: the concurrency limits it was counted for.
        run_id: what runs on it.
        worklife_ends_s: from then on it takes no further job; 0: never.
        usable: False once it is being vacated: nothing more may start on it.
        keep_idle_s: how long it is kept when nothing fits, as its last job wishes (KeepClaimIdle).
    """

    row: SaveClaim
    ad: ClassAd
    autocluster: int = 0
    limits: str = ""
    run_id: str = ""
    usable: bool = True
    worklife_ends_s: float = 0.0
    keep_idle_s: float = 0.0

    @property
    def realm(self) -> str:
        """The pool of the startd; empty: ours."""
        startd = self.row.startd
        return realm_of_host(host_of(startd)) if MARK in startd else ""

    @property
    def address(self) -> Address:
        """The startd."""
        return Address(self.row.startd, "startd")

    def serves(self, job: Job) -> bool:
        """Whether a job is of the owner for whom the startd granted it."""
        return job.cluster.user == self.row.owner

    def fits(self, job: Job, now_s: float) -> bool:
        """Whether a job may run in the slot: it and the machine accept each other, and its limits were counted."""
        return limits_of(job.ad) == self.limits and match_ads(job.ad, self.ad, now_s)

    @property
    def weight(self) -> float:
        """What the slot counts for: its SlotWeight, else its processors; a machine's word, so no number without end."""
        value = self.ad.evaluate("SlotWeight")
        is_one = isinstance(value, (int, float)) and 0.0 <= value <= MOST_WEIGHT
        return value if is_one else min(max(0, self.ad.get_int("Cpus", 1)), MOST_WEIGHT)
