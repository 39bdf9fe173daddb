"""Claims of one partitionable slot that are kept until one claim is made of them for a job (condor_now of several).

Theory: each claim is kept when its run is over.  When nothing runs on any of them, the startd is asked to join them
for the job, and they are over whatever it answers.  A promise that cannot be kept, because a claim was lost or the job
needs none any more, lets go of the claims.  What is promised is remembered for as long as this schedd lives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.claims.held_claim import REQUEST_PATIENCE_S, HeldClaim
from condor_actors.cores.schedd.claims.unreachable_startds import UnreachableStartds
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.claim import ClaimGranted, ClaimRefused, JoinClaims

__all__ = ["JoinedClaims", "Promise", "sum_of"]


@attrs.define(eq=False)
class Promise:
    """A job that is to have the slots of several claims.

    Attributes:
        job: the job.
        claims: those that are still ours.
        slot_name, startd: of the first one; submitter: in whose name they are charged for.
        asked: whether the startd was asked.
    """

    job: Job
    claims: list[HeldClaim]
    slot_name: str
    startd: str
    submitter: str
    asked: bool = False


class Claims(Protocol):
    """What of the schedd's claims is needed here."""

    unreachable: UnreachableStartds

    def release(self, claim: HeldClaim, reason: str) -> None:
        """Give a claim back."""

    def believed(self, message: ClaimGranted, slot_name: str, startd: str, job: Job,
                 submitter: str) -> HeldClaim | None:
        """The claim that was granted for a job; None: the grant is not to be believed."""

    def use(self, claim: HeldClaim, first: Job | None = None) -> None:
        """Run something on a free claim, the first job before any other."""


class JoinedClaims:
    """Keeps claims for jobs that need several, and has them joined.

    Args:
        context: of the schedd.
        claims: all of the schedd's.
    """

    def __init__(self, context: ScheddContext, claims: Claims) -> None:
        self._context = context
        self._claims = claims
        self._by_claim: dict[str, Promise] = {}
        self._asked: dict[int, Promise] = {}
        self._serial = 0

    def __contains__(self, claim: HeldClaim) -> bool:
        return claim.row.claim_id in self._by_claim

    def promise(self, job: Job, claims: Sequence[HeldClaim]) -> None:
        """A job is to have the slots of these claims, when what runs on them is over."""
        row = claims[0].row
        promise = Promise(job, list(claims), row.slot_name, row.startd, row.submitter)
        self._by_claim.update((claim.row.claim_id, promise) for claim in claims)

    def takes(self, claim: HeldClaim) -> bool:
        """Whether a claim on which nothing runs is kept for a job; the last one has them joined."""
        promise = self._by_claim.get(claim.row.claim_id)
        if promise is None or promise.asked:
            return promise is not None
        job = promise.job
        if not job.ready or job.order is None:
            self._break(promise, "it is no longer idle")
            return False
        if any(each.run_id for each in promise.claims):
            return True
        self._serial += 1
        promise.asked = True
        self._asked[self._serial] = promise
        pairs = tuple((each.row.claim_id, each.row.secret) for each in promise.claims)
        self._context.ask(claim.address, JoinClaims(claims=pairs, job_ad=job.text), REQUEST_PATIENCE_S,
                          ("join", self._serial))
        return True

    def answered(self, serial: int, message: Any) -> None:
        """A startd has made one claim of several, or not: those that were are over."""
        promise = self._asked.pop(serial, None)
        if promise is None:
            return
        job, claims = promise.job, self._claims
        claims.unreachable.on_reply(promise.startd, message)
        for old in promise.claims:
            del self._by_claim[old.row.claim_id]
            claims.release(old, "joined with others")
        if not isinstance(message, ClaimGranted):
            reason = message.reason if isinstance(message, ClaimRefused) else getattr(message, "text", str(message))
            self._context.remember(job, "refused", f"the slots were not joined: {reason}")
            return
        claim = claims.believed(message, promise.slot_name, promise.startd, job, promise.submitter)
        if claim is not None:
            claim.autocluster = job.autocluster
            claims.use(claim, job)

    def lost(self, claim: HeldClaim) -> None:
        """A claim is ours no more."""
        promise = self._by_claim.pop(claim.row.claim_id, None)
        if promise is not None:
            promise.claims.remove(claim)
            if not promise.asked:
                self._break(promise, f"the claim of {claim.row.slot_name} is lost")

    def _break(self, promise: Promise, reason: str) -> None:
        self._context.remember(promise.job, "now", f"the slots that it was to have are not joined: {reason}")
        for claim in promise.claims:
            del self._by_claim[claim.row.claim_id]
            if not claim.run_id:
                self._context.timer(("idle-claim", claim.row.claim_id), 0.0)

    def validate(self, held: Mapping[str, HeldClaim]) -> None:
        """Check that claims which are kept are held, each for one job.

        Args:
            held: all claims of the schedd, by id.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        for claim_id, promise in self._by_claim.items():
            claim = held.get(claim_id)
            if claim is None or claim not in promise.claims or (promise.asked and claim.run_id):
                raise InvariantBroken(f"the claim {claim_id} is promised to {promise.job.name}, and not kept for it")


def sum_of(claims: Sequence[HeldClaim]) -> ClassAd:
    """The ad of a slot with the resources of all their slots."""
    ad = ClassAd.from_bytes(claims[0].row.slot_ad)
    for name in ad.get_str("MachineResources").split():
        ad[name] = sum(claim.ad.get_int(name) for claim in claims)
    return ad
