"""The claims of a schedd: asked for after a match, used for one job after the other, renewed, given back.

Theory: a match names an autocluster; the first job of it that is free is reserved and shown to the startd.  A granted
claim starts that job; when its run ends, the claim takes the next job of the same submitter that fits, without asking
anyone: one of the same autocluster fits for certain, others are matched against the slot here.  A claim that nothing
fits is released.  All claims are rows of the store, so a restarted schedd still holds them.

============ ============================================================================
a claim is
============ ============================================================================
asked for    a job is reserved; the startd has not answered
used         a run is on it
waiting      its next job may not start yet (JOB_START_DELAY)
gathered     it waits for the others of a gang (:mod:`condor_actors.cores.schedd.gangs.gathering`)
promised     it waits for others that it is joined with (:mod:`condor_actors.cores.schedd.claims.joined_claims`)
idle         nothing fits, and the last job wished to keep it (KeepClaimIdle)
============ ============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Protocol

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.checkpoint_seals import key_of_owner
from condor_actors.cores.flocking import FlockLevels, home_name
from condor_actors.cores.rights import host_of, speaks_for_node
from condor_actors.cores.schedd.claims.checked_grant import BadGrant, CheckedGrant
from condor_actors.cores.schedd.claims.held_claim import REQUEST_PATIENCE_S, HeldClaim, limits_of
from condor_actors.cores.schedd.claims.joined_claims import JoinedClaims
from condor_actors.cores.schedd.claims.lease_renewals import LeaseRenewals
from condor_actors.cores.schedd.claims.released_claims import ReleasedClaims
from condor_actors.cores.schedd.claims.start_pacing import StartPacing
from condor_actors.cores.schedd.claims.unreachable_startds import UnreachableStartds
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.gangs.gathering import GROUP_STEP, Gathering
from condor_actors.cores.schedd.gangs.groups import groups_of
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queue_operations import DropClaim, SaveClaim
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.effects import Note, job_note
from condor_actors.messages.claim import (
    ClaimGranted,
    ClaimRefused,
    ClaimRevoked,
    ClaimsKept,
    ClaimsRenewed,
    DeclineMatch,
    RequestClaim,
)
from condor_actors.messages.envelope import Address, AskFailed, Identity
from condor_actors.messages.negotiate import Match, MatchesMade
from condor_actors.messages.realm import node_abroad, realm_of_host
from condor_actors.numerals import job_numbers

__all__ = ["ClaimTable", "RunStarter"]

CROWD, CROWD_S = 250, 5.0
"""So many claims asked for at once add so much to the patience, in steps: those of a cycle that fail do so together."""
DOUBTED_PATIENCE_S = 5.0
"""For a match that was made before the negotiator heard of the doubt; its slot is kept for us longer than that, so the
next cycle gives us another."""
CANDIDATES = 20
"""Autoclusters tried for a free claim before it is given back."""
FLOCK_ASIDE_S = 600.0
"""So long a pool gets no jobs of whose offered machines none answers."""
REUSE_PATIENCE_S = 30.0
"""How long a job may wait behind later ones of a claim's own autocluster."""


class RunStarter(Protocol):
    """What the claims need of the runs."""

    @property
    def running(self) -> int:
        """How many there are."""

    def start(self, job: Job, claim: HeldClaim) -> None:
        """Begin a run."""

    def start_gang(self, job: Job, claims: Sequence[HeldClaim]) -> None:
        """Begin a run with a member on each claim."""

    def claim_gone(self, run_id: str, reason: str) -> None:
        """The claim of a run is over, or nothing is left of the run."""


@attrs.frozen
class _Asked:
    """A claim asked for and not answered."""

    job: Job
    match: Match
    submitter: str
    at_s: float = 0.0


class ClaimTable:
    """Asks for claims, renews, reuses and releases them."""

    def __init__(self, context: ScheddContext, transitions: JobTransitions, flock: FlockLevels) -> None:
        self._context = context
        self._transitions = transitions
        self._flock = flock
        self.runs: RunStarter
        self.flocked: dict[str, int] = {}
        """How many runs each submitter has in other pools."""
        self.held: dict[str, HeldClaim] = {}
        self._asked: dict[int, _Asked] = {}
        self._serial = 0
        self._idle: dict[str, HeldClaim] = {}
        """Those that nothing runs on."""
        self._paused: dict[str, HeldClaim] = {}
        self.unreachable = UnreachableStartds(context)
        self.released = ReleasedClaims(context, self.unreachable)
        self._renewals = LeaseRenewals(context)
        self._pacing = StartPacing(context)
        self.gathering = Gathering(context, transitions, self._begin_gang, self.use)
        self.joined = JoinedClaims(context, self)
        self.accepting = True

    def _holding(self, row: SaveClaim) -> HeldClaim:
        ad = ClassAd.from_bytes(row.slot_ad)
        worklife_s = ad.get_int("ClaimWorklife", -1)
        return HeldClaim(row, ad, worklife_ends_s=self._context.now_s + worklife_s if worklife_s >= 0 else 0.0)

    def restore(self, rows: Iterable[SaveClaim]) -> None:
        """Take over the claims that the store had."""
        for row in rows:
            self._hold(self._holding(row))

    def _hold(self, claim: HeldClaim) -> None:
        self.held[claim.row.claim_id] = self._idle[claim.row.claim_id] = claim

    def occupy(self, claim: HeldClaim, run_id: str) -> None:
        """A run begins on a claim."""
        if claim.realm and not claim.run_id:
            self.flocked[claim.row.submitter] = self.flocked.get(claim.row.submitter, 0) + 1
        claim.run_id = run_id
        self._idle.pop(claim.row.claim_id, None)
        self._paused.pop(claim.row.claim_id, None)

    def vacate(self, claim: HeldClaim) -> None:
        """The run on a claim is over."""
        if claim.realm and claim.run_id:
            self.flocked[claim.row.submitter] -= 1
            if not self.flocked[claim.row.submitter]:
                del self.flocked[claim.row.submitter]
        claim.run_id = ""
        if claim.row.claim_id in self.held:
            self._idle[claim.row.claim_id] = claim

    def started(self) -> None:
        """The schedd runs: keep the claims alive that have runs, give the others back."""
        self.release_idle("the schedd was started again")
        self.renew()

    # ---- the negotiator

    @property
    def room(self) -> int:
        """How many more claims may be asked for."""
        if not self.accepting:
            return 0
        return self._context.settings.max_jobs_running - self.runs.running - len(self._asked)

    def matched(self, message: MatchesMade, realm: str = "") -> None:
        """Ask for the slots we were matched with, which are machines of the pool ``realm``; empty: ours."""
        submitter = home_name(message.submitter, realm)
        for match in message.matches:
            match = attrs.evolve(match, startd_address=node_abroad(match.startd_address, realm))
            job = self._job_for(match, submitter)
            text = self._wanted(job, match, submitter, realm) if job is not None else b""
            if job is None or not text:
                self._context.tell(Address(match.startd_address, "startd"), DeclineMatch(
                    slot_name=match.slot_name, capability=match.capability, submitter=submitter))
                continue
            self._serial += 1
            self._asked[self._serial] = _Asked(job, match, submitter, self._context.now_s)
            context = self._context
            context.queue.set(job, NumJobMatches=job.ad.get_int("NumJobMatches") + 1, LastMatchTime=int(context.now_s))
            patience_s = DOUBTED_PATIENCE_S if match.startd_address in self.unreachable else REQUEST_PATIENCE_S
            patience_s += CROWD_S * (len(self._asked) // CROWD)
            context.ask(
                Address(match.startd_address, "startd"),
                RequestClaim(slot_name=match.slot_name, capability=match.capability, job_ad=text,
                             owner=job.cluster.user, submitter=submitter, schedd_name=context.settings.name,
                             lease_s=context.settings.claim_lease_s, schedd_node=context.my_address,
                             checkpoint_key=key_of_owner(context.checkpoint_key, job.cluster.user)),
                patience_s, ("claim", self._serial),
            )

    def _wanted(self, job: Job, match: Match, submitter: str, realm: str) -> bytes:
        """The ad with which a slot is asked for, for a job that waits for it now; empty: it is not wanted."""
        if (self.room <= 0 or not self._flock.reaches(submitter, realm)
                or not self._flock.sends(realm, job.ad, self._context.now_s)):
            return b""
        if is_gang(job.ad):  # it stands where it stood until all its claims are there
            return b"" if realm else self.gathering.ask(job, match.autocluster // GROUP_STEP)
        self._transitions.withdraw(job)
        job.reserved = True
        return job.text

    def _job_for(self, match: Match, submitter: str) -> Job | None:
        autocluster = self._context.autoclusters.by_number.get(match.autocluster)
        if autocluster is not None and autocluster.submitter == submitter and autocluster.waiting:
            return self.gathering.of_cluster_class(autocluster)
        numbers = job_numbers(match.job_id)
        job = self._context.queue.job(*numbers) if numbers is not None else None
        if job is None or not job.ready or job.order is None:
            return None
        own = self._context.autoclusters.by_number.get(job.autocluster)
        return job if own is not None and own.submitter == submitter else None

    # ---- the startd

    def answered(self, serial: int, message: Any) -> None:
        """A startd has answered (or not) what we asked for."""
        asked = self._asked.pop(serial, None)
        if asked is None:
            return
        asked.job.reserved = False
        if is_gang(asked.job.ad):
            self.gathering.answered(asked.job, asked.match.autocluster // GROUP_STEP)
        self.unreachable.on_reply(asked.match.startd_address, message)
        self._judge_pool(realm_of_host(host_of(asked.match.startd_address)), message)
        if not isinstance(message, ClaimGranted):
            reason = message.reason if isinstance(message, ClaimRefused) else getattr(message, "text", str(message))
            self._context.remember(asked.job, "refused", f"{asked.match.slot_name} was not granted: {reason}")
            self._transitions.offer(asked.job)
            if isinstance(message, AskFailed):
                self.unreachable.wish_cycle()
            return
        claim = self.believed(message, asked.match.slot_name, asked.match.startd_address, asked.job, asked.submitter)
        if claim is None:
            self._transitions.offer(asked.job)
            return
        if (spans := self._context.queue.spans) is not None:
            spans.claimed(asked.job, asked.at_s, self._context.now_s, asked.match.slot_name)
        claim.autocluster = asked.match.autocluster
        self._transitions.offer(asked.job)
        if not is_gang(asked.job.ad):
            self.use(claim, asked.job)
        elif not self.gathering.takes(claim, asked.job, asked.match.autocluster // GROUP_STEP):
            self.use(claim)

    def believed(self, message: ClaimGranted, slot_name: str, startd: str, job: Job,
                  submitter: str) -> HeldClaim | None:
        """The claim that was granted for a job, held from now on; None: the grant is not to be believed."""
        if message.claim_id in self.held or message.claim_id in self.released:
            self._context.note(f"{startd} grants a claim that another startd has granted", "warn")
            return None
        try:
            grant = CheckedGrant(message, slot_name, startd)
        except BadGrant as error:
            text = f"the grant of {slot_name} is not believed: {error}"
            self.unreachable.disbelieve(startd, text)
            self._context.remember(job, "refused", text)
            return None
        self.unreachable.believe(startd)
        row = grant.row(submitter, job.cluster.user)
        claim = self._holding(row)
        claim.limits = limits_of(job.ad)
        self._hold(claim)
        self._renewals.changed(row.startd)
        self._context.persist(row)
        return claim

    def _judge_pool(self, realm: str, answer: Any) -> None:
        """Set a pool aside whose offers come to nothing."""
        if self._flock.answered(realm, not isinstance(answer, AskFailed)):
            self._context.note(f"nobody answers for machines that the pool {realm} offers: no jobs go there for "
                               f"{FLOCK_ASIDE_S:.0f} s", "warn")
            self._context.timer(("flock-aside", realm), FLOCK_ASIDE_S)

    def revoked(self, message: ClaimRevoked, identity: Identity) -> None:
        """The startd takes a claim back."""
        claim = self.held.get(message.claim_id)
        if claim is None:
            return
        if not speaks_for_node(identity, claim.row.startd):
            self._context.note(f"{identity.host} takes back a claim of {claim.row.startd}: ignored", "warn")
            return
        claim.usable = False
        text = f"{claim.row.slot_name} is taken back: {message.reason}"
        self._context.out.append(job_note(claim.run_id, "taken back", text) if claim.run_id else Note(text))
        if message.final:
            self._gone(claim, message.reason)
        elif message.lost and claim.run_id:
            self.runs.claim_gone(claim.run_id, message.reason)
        elif not claim.run_id:
            self.release(claim, "nothing runs on it")

    def _gone(self, claim: HeldClaim, reason: str) -> None:
        """The startd has no such claim any more: what runs on it has ended, or nobody will ever know how."""
        claim.usable = False
        if claim.run_id:
            self.runs.claim_gone(claim.run_id, reason)
        else:
            self.forget(claim)

    # ---- use

    def use(self, claim: HeldClaim, first: Job | None = None) -> None:
        """Run something on a free claim, or give it back."""
        if claim.run_id or claim in self.gathering.claims:
            return
        if not claim.usable or not self.accepting:
            self.release(claim, "not to be used again")
            return
        if self.runs.running >= self._context.settings.max_jobs_running:
            self.release(claim, "MAX_JOBS_RUNNING")
            return
        if self.joined.takes(claim):
            return
        if first is None and 0.0 < claim.worklife_ends_s <= self._context.now_s:
            self.release(claim, "CLAIM_WORKLIFE is over")
            return
        if first is None or not first.ready or first.order is None or not claim.serves(first):
            if self.gathering.takes(claim):
                return
            first = self._next(claim)
        job = first
        if job is not None and is_gang(job.ad):
            if not self.gathering.takes(claim, job):
                self._rest(claim)
            return
        if job is None:
            self._rest(claim)
            return
        if not self._pacing.may_start(job):
            self._paused[claim.row.claim_id] = claim
            return
        self._transitions.withdraw(job)
        claim.autocluster = job.autocluster
        claim.keep_idle_s = job.ad.get_float("KeepClaimIdle", self._context.settings.keep_claim_idle_s)
        self.runs.start(job, claim)
        self._pacing.started(job)

    def owner_starts_again(self, owner: str) -> None:
        """The time after a job of an owner is over: his next ones may start, up to one that spaces them again."""
        self._pacing.spaced.pop(owner, None)
        self.gathering.try_begin()
        for claim_id, claim in tuple(self._paused.items()):
            if owner in self._pacing.spaced:
                break
            if claim.row.owner.partition("@")[0] == owner and self._paused.pop(claim_id, None) is not None:
                self.use(claim)

    def _next(self, claim: HeldClaim) -> Job | None:
        """The best job of the claim's owner and submitter that fits the slot."""
        candidates = self._context.autoclusters.candidates(
            claim.row.submitter, claim.autocluster, self._context.now_s - REUSE_PATIENCE_S)
        for job, fits in islice((each for each in candidates if self.may_serve(claim, each[0])), CANDIDATES):
            if fits or claim.fits(job, self._context.now_s):
                return job
        return None

    def may_serve(self, claim: HeldClaim, job: Job) -> bool:
        """Whether a free claim may be tried for a job: its owner's, and of gangs only the one that is gathered for."""
        if not claim.serves(job):
            return False
        if claim.realm and not self._flock.sends(claim.realm, job.ad, self._context.now_s):
            return False  # by the terms for that pool
        return not is_gang(job.ad) or (not claim.realm and bool(self.gathering.wanted(job)))

    def _begin_gang(self, job: Job, claims: Sequence[HeldClaim]) -> bool:
        """All claims of a gang are there: it begins, if it may now."""
        if not self.accepting or self.runs.running + len(claims) > self._context.settings.max_jobs_running:
            return False
        if not self._pacing.may_start(job):
            return False
        self._transitions.withdraw(job)
        for node, claim in enumerate(claims):  # of other groups nothing is known for certain but who they were
            claim.autocluster = job.autocluster if node < groups_of(job.ad)[0].size else 0
            claim.keep_idle_s = job.ad.get_float("KeepClaimIdle", self._context.settings.keep_claim_idle_s)
        self.runs.start_gang(job, claims)
        self._pacing.started(job)
        self.unreachable.wish_cycle()
        return True

    def gang_timeout(self, serial: int) -> None:
        """What was gathered has stood idle long enough."""
        self.gathering.timeout(serial)
        self.unreachable.wish_cycle()

    def _rest(self, claim: HeldClaim) -> None:
        if claim.keep_idle_s > 0.0:
            self._context.timer(("idle-claim", claim.row.claim_id), claim.keep_idle_s)
        else:
            self.release(claim, "no more jobs fit")

    def idle_timeout(self, claim_id: str) -> None:
        """An idle claim was kept long enough."""
        claim = self.held.get(claim_id)
        if claim is not None and not (claim.run_id or claim in self.gathering.claims or claim in self.joined):
            self.release(claim, "no more jobs fit")

    def offer_idle(self) -> None:
        """New jobs are there: idle claims may have them."""
        for claim_id, claim in tuple(self._idle.items()):
            if claim.usable and claim_id not in self._paused:
                self.use(claim)

    @property
    def has_idle(self) -> bool:
        """Whether any claim has neither a run nor is paused."""
        return bool(self._idle)

    def starts_again(self) -> None:
        """A JOB_START_DELAY is over: use the claims that wait, or give them back when no job is left, up to a start
        that has to wait again."""
        self._pacing.delay_over()
        self.gathering.try_begin()
        for claim_id in tuple(self._paused):
            if not self._pacing.exhausted and claim_id in self._paused:
                self.use(self._paused.pop(claim_id))

    # ---- the end

    def release(self, claim: HeldClaim, reason: str) -> None:
        """Give a claim back; a startd that cannot be reached is told again, as long as it might keep the claim."""
        self.released.add(claim, reason)
        self.forget(claim)

    def forget(self, claim: HeldClaim) -> None:
        """A claim is no longer ours."""
        if self.held.pop(claim.row.claim_id, None) is not None:
            self._idle.pop(claim.row.claim_id, None)
            self._paused.pop(claim.row.claim_id, None)
            self._renewals.changed(claim.row.startd)
            self.gathering.lost(claim)
            self.joined.lost(claim)
            self._context.persist(DropClaim(claim.row.claim_id))

    def release_idle(self, reason: str) -> None:
        """Give back everything that nothing runs on."""
        for claim in tuple(self._idle.values()):
            self.release(claim, reason)

    def renew(self) -> None:
        """The leases of all our claims start anew."""
        self._renewals.send(self.held.values())

    def reconcile(self, question: ClaimsKept, identity: Identity) -> None:
        """A startd was started again: it is where it says now, and may forget what we do not hold."""
        self._renewals.reconcile(question, identity, self.held, self.unreachable)

    def renewed(self, startd: str, message: Any) -> None:
        """Some of them may be gone."""
        self.unreachable.on_reply(startd, message)
        if not isinstance(message, ClaimsRenewed):
            return
        for claim_id in message.gone:
            claim = self.held.get(claim_id)
            if claim is not None:
                self._gone(claim, "the startd does not know the claim")

    # ---- what always holds

    def validate(self) -> None:
        """Check what holds between two turns: each claim is used once, each reserved job asked for once.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        for claim_id, claim in self.held.items():
            if claim.row.claim_id != claim_id:
                raise InvariantBroken(f"the claim {claim.row.claim_id} is kept as {claim_id}")
            if claim_id in self.released:
                raise InvariantBroken(f"the claim {claim_id} is given back, and still held")
            if not claim.run_id and not claim.usable:
                raise InvariantBroken(f"the claim {claim_id} is not to be used again and nothing runs on it")
        self.gathering.validate()
        self.joined.validate(self.held)
        if not {claim.row.claim_id for claim in self.gathering.claims} <= self._idle.keys():
            raise InvariantBroken("a claim is gathered for a gang, and runs already or is not held")
        asked = [each.job for each in self._asked.values() if not is_gang(each.job.ad)]
        if len(set(asked)) != len(asked):
            raise InvariantBroken("two claims are asked for in the name of one job: "
                                  f"{', '.join(sorted(job.name for job in asked))}")
        reserved = {job for job in self._context.queue.jobs() if job.reserved}
        if not reserved <= set(asked) or not all(job.reserved for job in asked):
            raise InvariantBroken(f"reserved are {sorted(job.name for job in reserved)}, claims are asked for in the "
                                  f"name of {sorted(job.name for job in asked)}")
        self._renewals.validate(self.held.values())
        if not self._paused.keys() <= self._idle.keys():
            raise InvariantBroken("a claim waits for JOB_START_DELAY, and runs already or is not held")
        idle = {claim_id for claim_id, claim in self.held.items() if not claim.run_id}
        if self._idle.keys() != idle:
            raise InvariantBroken(f"{sorted(self._idle)} are kept as idle claims, {sorted(idle)} are")
