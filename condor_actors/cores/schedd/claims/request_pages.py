"""What a schedd's submitters want, as it is told to negotiators page by page."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain

from condor_actors.cores.flocking import FlockLevels, home_name
from condor_actors.cores.schedd.autoclusters import Listing, was_refused
from condor_actors.cores.schedd.claims.unreachable_startds import UnreachableStartds
from condor_actors.cores.schedd.gangs.gang import is_gang
from condor_actors.cores.schedd.gangs.gathering import GROUP_STEP, Gathering
from condor_actors.cores.schedd.gangs.groups import largest_text
from condor_actors.cores.schedd.job_transitions import JobTransitions
from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.messages.negotiate import NegotiateRequests, ResourceRequest, ResourceRequests

__all__ = ["RequestPages"]

REQUEST_BYTES = 400_000
MOST_SIGNIFICANT = 200
"""Attributes that another pool's negotiator tells jobs apart by."""
MOST_DIGITS = 12
"""Of a cursor: a longer one is none of ours."""


class RequestPages:
    """Answers the negotiators of our pool and of others.

    Args:
        context: of the schedd.
        transitions: what jobs that have become others are offered by.
        flock: which submitters are offered to which pools.
        unreachable: the startds that negotiators are asked to avoid.
        room: how many more claims may be asked for.
        gangs: for which gang claims are gathered.

    Attributes:
        cut: submitters who want more than they could say the last time.
    """

    def __init__(self, context: ScheddContext, transitions: JobTransitions, flock: FlockLevels,
                 unreachable: UnreachableStartds, room: Callable[[], int],
                 gangs: Gathering) -> None:
        self._context = context
        self._transitions = transitions
        self._flock = flock
        self._unreachable = unreachable
        self._room = room
        self._gangs = gangs
        self._listings: dict[tuple[str, str], Listing] = {}
        self._significant: dict[str, tuple[str, ...]] = {}
        """What tells jobs apart to the negotiators of each pool."""
        self.cut: set[str] = set()

    def page(self, question: NegotiateRequests, realm: str = "") -> ResourceRequests:
        """What a submitter wants, best first.

        Args:
            question: of a negotiator.
            realm: the pool that this serves; empty: ours.
        """
        context = self._context
        submitter = home_name(question.submitter, realm)
        if not self._flock.reaches(submitter, realm):
            return ResourceRequests(submitter=question.submitter, requests=())
        key = submitter, realm
        settings, autoclusters = context.settings, context.autoclusters
        autoclusters.always, autoclusters.never = settings.more_significant, settings.less_significant
        autoclusters.only = settings.only_significant
        named = question.significant_attributes
        if realm:  # what another pool's negotiators have named stays: each change costs a look at all jobs
            deciding = sorted(self._flock.attributes(realm))
            named = tuple(dict.fromkeys((*deciding, *self._significant.get(realm, ()), *map(str.lower, named))))
            named = named[:MOST_SIGNIFICANT]
        self._significant[realm] = named
        significant = chain.from_iterable(self._significant.values())
        if displaced := autoclusters.learn(significant, context.queue.jobs()):
            self._transitions.offer_anew(deque(displaced))
        page = question.cursor
        listing = self._listing(key, int(page) if page.isdecimal() and len(page) < MOST_DIGITS else 0)
        found: list[ResourceRequest] = []
        size = 0
        while listing.room > 0 and listing.next < len(listing.autoclusters):
            autocluster = listing.autoclusters[listing.next]
            job = self._gangs.of_cluster_class(autocluster)
            coming = largest_text(job) if job is not None else 0
            if len(found) >= question.limit or (found and size + coming > REQUEST_BYTES):
                self._listings[key] = listing
                return self._answer(question, found, str(listing.next))
            listing.next += 1
            if job is None or (realm and not self._flock.sends(realm, job.ad, context.now_s)):
                continue
            if is_gang(job.ad):
                for request in () if realm else self._of_gang(job, autocluster.number, listing):
                    if found and size + len(request.job_ad) > REQUEST_BYTES:
                        break  # the other groups' turn comes when these have their claims
                    size += len(request.job_ad) + 40
                    found.append(request)
                continue
            count = min(listing.room, autocluster.waiting)
            listing.room -= 0 if was_refused(job) else count
            text = job.text
            size += len(text) + 40
            found.append(ResourceRequest(autocluster=autocluster.number, job_id=job.name, count=count, job_ad=text))
        if listing.next < len(listing.autoclusters):
            self.cut.add(key[0])
        return self._answer(question, found)

    def _answer(self, question: NegotiateRequests, found: list[ResourceRequest], cursor: str = "") -> ResourceRequests:
        return ResourceRequests(submitter=question.submitter, requests=tuple(found), cursor=cursor,
                                avoided=self._unreachable.named(), disbelieved=self._unreachable.set_aside())

    def _of_gang(self, job: Job, autocluster: int, listing: Listing) -> Iterator[ResourceRequest]:
        """One request for each group of its nodes; machines of other pools are too far for one."""
        for group, wanted in self._gangs.wanted(job):
            count = min(listing.room, wanted)
            if count > 0:
                yield ResourceRequest(autocluster=autocluster + group * GROUP_STEP, job_id=job.name, count=count,
                                      job_ad=self._gangs.text_of(job, group))
                listing.room -= 0 if was_refused(job) else count

    def _listing(self, key: tuple[str, str], cursor: int) -> Listing:
        """Where the last page for a submitter and a pool ended, or from the beginning."""
        listing = self._listings.pop(key, None)
        if cursor and listing is not None and listing.next == cursor:
            return listing
        context = self._context
        wanting = [autocluster for autocluster, _ in context.autoclusters.of_submitter(key[0])]
        return Listing(wanting, cursor, self._room() - sum(autocluster.waiting for autocluster in wanting[:cursor]))
