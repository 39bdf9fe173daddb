"""Gathering the claims of a gang: all or none, without a deadlock.

Theory: a schedd gathers for one gang at a time, so two of its gangs never wait for each other's machines.  What it has
gathered stands idle meanwhile, for UNUSED_CLAIM_TIMEOUT at most; all other slots go on with other jobs (backfill).  A
gang that is not whole by then gives everything back and stands aside, longer after each failure and by a random part of
that time, so that of two schedds whose gangs each hold what the other needs one gives way while the other goes on.  A
claim of the same submitter that becomes free joins the gang before it takes another job, without asking anyone.

============== ==================================================================
the gang is    leaves it by
============== ==================================================================
nobody         a claim for a gang is asked for, or one that is free fits it
gathered for   whole → begun; too late, held, removed, edited → nobody
============== ==================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from condor_actors.classads import ClassAd, match_ads
from condor_actors.cores.schedd.claims.held_claim import HeldClaim, limits_of
from condor_actors.cores.schedd.gangs.gang import size_of
from condor_actors.cores.schedd.gangs.groups import Group, assignment, groups_of
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.state_table import InvariantBroken

if TYPE_CHECKING:
    from condor_actors.cores.schedd.autoclusters import Autocluster
    from condor_actors.cores.schedd.queued_job import Job

__all__ = ["GROUP_STEP", "Gathering"]

GROUP_STEP = 1 << 40
"""What the autocluster's number of a request has more for each group of a gang's nodes."""

MOST_TURNS = 6
"""A gang that has failed this often or more waits for this multiple of UNUSED_CLAIM_TIMEOUT."""


class Gathering:
    """Gathers the claims of one gang after the other.

    Args:
        context, transitions: of the schedd.
        begin: begins a gang on claims, by node; False: it may not begin now, and is offered them again later.
        free: what a claim is given to that the gang does not use.

    Attributes:
        job: for whom claims are gathered; None: nobody.
        claims: those that are there, in the order they came.
    """

    def __init__(self, context: ScheddContext, transitions: JobTransitions,
                 begin: Callable[[Job, list[HeldClaim]], bool], free: Callable[[HeldClaim], None]) -> None:
        self._context = context
        self._transitions = transitions
        self._begin = begin
        self._free = free
        self.job: Job | None = None
        self.claims: list[HeldClaim] = []
        self._fits: list[frozenset[int]] = []
        """By claim, the groups that it serves."""
        self._asked: dict[int, int] = {}
        """By group, how many are asked for."""
        self._serial = 0
        self._failures: dict[str, int] = {}

    def of_cluster_class(self, autocluster: Autocluster) -> Job | None:
        """For which job of an autocluster claims are asked for: the one that is gathered for comes first."""
        job = self.job
        return job if job is not None and job.autocluster == autocluster.number and job.order is not None \
            else autocluster.head()

    def wanted(self, job: Job) -> list[tuple[int, int]]:
        """How many more claims may be asked for in the name of a gang now: by group, with the count."""
        if self.job not in (None, job):
            return []
        groups = groups_of(job.ad)
        sizes = [group.size for group in groups]
        placed = assignment(sizes, self._fits) or [[] for _ in sizes]
        asked = self._asked if self.job is job else {}
        counts = [size - len(placed[n]) - asked.get(n, 0) for n, size in enumerate(sizes)]
        return [(n, count) for n, count in enumerate(counts) if count > 0]

    @staticmethod
    def text_of(job: Job, group: int) -> bytes:
        """The ad of a gang's nodes of a group."""
        return job.text + groups_of(job.ad)[group].text

    def ask(self, job: Job, group: int) -> bytes:
        """A claim is about to be asked for in a gang's name, for a group of nodes; the ad to show (empty: do not)."""
        if any(number == group for number, _ in self.wanted(job)):
            self._take(job)
            self._asked[group] = self._asked.get(group, 0) + 1
            return self.text_of(job, group)
        return b""

    def answered(self, job: Job, group: int) -> None:
        """A claim that was asked for was granted, or not."""
        if self.job is job and self._asked.get(group):
            self._asked[group] -= 1

    def _take(self, job: Job) -> None:
        if self.job is None:
            self.job = job
            self._serial += 1
            self._context.remember(job, "gathering", f"claims are gathered for its {size_of(job.ad)} nodes")
            self._context.timer(("gang", self._serial), self._context.settings.unused_claim_s)

    def takes(self, claim: HeldClaim, job: Job | None = None, group: int = -1) -> bool:
        """A claim that nothing runs on joins the gang where it may.

        Args:
            claim: a free one.
            job: the gang that it would be the first of, where none is gathered for.
            group: of its nodes, for which the startd has just granted the claim; below 0: it was another's before.
        """
        gang = self.job or job
        if gang is None or (job is not None and gang is not job) or claim in self.claims or not gang.ready:
            return False
        if self.job is None and gang.order is None:  # it stands aside
            return False
        if len(self.claims) >= size_of(gang.ad) or not claim.usable or claim.realm or not claim.serves(gang):
            return False
        if claim.row.submitter != gang.submitter or limits_of(gang.ad) != claim.limits:
            return False
        groups = groups_of(gang.ad)
        known = group if group >= 0 else 0 if claim.autocluster == gang.autocluster else -1  # its ad may be an old one
        fits = frozenset(n for n, each in enumerate(groups) if n == known or self._fit(gang, each, claim))
        if not fits or assignment([each.size for each in groups], [*self._fits, fits]) is None:
            return False
        self._take(gang)
        self.claims.append(claim)
        self._fits.append(fits)
        self._tell()
        self.try_begin()
        return True

    def _fit(self, gang: Job, group: Group, claim: HeldClaim) -> bool:
        """Whether a slot serves a group."""
        ad = ClassAd.from_bytes(gang.text + group.text) if group.text else gang.ad
        return bool(match_ads(ad, claim.ad, self._context.now_s))

    def _tell(self) -> None:
        """The job's ad says how far it is, for condor_q."""
        if self.job is not None:
            self._context.queue.set(self.job, GangClaims=len(self.claims))

    def try_begin(self) -> None:
        """Begin the gang if it is whole."""
        job = self.job
        if job is None or len(self.claims) < size_of(job.ad):
            return
        placed = assignment([group.size for group in groups_of(job.ad)], self._fits)
        assert placed is not None
        if self._begin(job, [self.claims[each] for group in placed for each in group]):
            self._failures.pop(job.name, None)
            self._nobody()

    def lost(self, claim: HeldClaim) -> None:
        """A claim is ours no more."""
        if claim in self.claims:
            del self._fits[self.claims.index(claim)]
            self.claims.remove(claim)
            self._tell()

    def timeout(self, serial: int) -> None:
        """The gang had its time."""
        job = self.job
        if job is None or serial != self._serial:
            return
        failures = self._failures[job.name] = min(self._failures.get(job.name, 0) + 1, MOST_TURNS)
        hold_s = self._context.settings.unused_claim_s
        delay_s = hold_s * failures * (0.5 + self._context.random.random())
        reason = (f"{len(self.claims)} of the {size_of(job.ad)} machines of the gang were there within {hold_s:g} s "
                  f"(UNUSED_CLAIM_TIMEOUT); it stands aside for {delay_s:.0f} s")
        job.ad.store("LastRejMatchReason", reason)
        job.ad.store("LastRejMatchTime", int(self._context.now_s))
        self._transitions.withdraw(job)
        self._end()
        self._transitions.requeue(job, delay_s)
        self._context.remember(job, "gave way", reason)

    def check(self) -> None:
        """The gang may have been held, removed, or charged to another in this turn."""
        job = self.job
        if job is not None and (not job.ready or job.cluster.jobs.get(job.proc) is not job
                                or any(claim.row.submitter != job.submitter for claim in self.claims)):
            self._end()

    def _end(self) -> None:
        claims = list(self.claims)
        self._tell_none()
        self._nobody()
        for claim in claims:
            self._free(claim)

    def _tell_none(self) -> None:
        if self.job is not None and self.job.cluster.jobs.get(self.job.proc) is self.job:
            self._context.queue.unset(self.job, "GangClaims")

    def _nobody(self) -> None:
        self._tell_none()
        self.job = None
        self.claims = []
        self._fits = []
        self._asked = {}

    def validate(self) -> None:
        """Check what holds between two turns.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        if self.job is None:
            if self.claims or self._fits or self._asked:
                raise InvariantBroken(f"{len(self.claims)} claims are gathered for nobody")
            return
        if len({id(claim) for claim in self.claims}) != len(self.claims) or len(self.claims) > size_of(self.job.ad):
            raise InvariantBroken(f"the gang {self.job.name} has gathered a claim twice, or too many")
        if assignment([group.size for group in groups_of(self.job.ad)], self._fits) is None:
            raise InvariantBroken(f"the gang {self.job.name} has gathered a claim that has no place in it")
        for claim in self.claims:
            if claim.run_id or not claim.usable or not claim.serves(self.job):
                raise InvariantBroken(f"the gang {self.job.name} has gathered the claim {claim.row.claim_id}, which it "
                                      "cannot use")
