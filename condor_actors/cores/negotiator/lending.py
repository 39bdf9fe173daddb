"""What this pool lends to its partners, each on its own terms, and how it takes that back.

Theory: a partner is one submitter group: what all its users hold, and what they were given that no ad shows yet, is
measured against its quota.  Nothing that the partner says is believed for that; the slots' own ads count.

============================  ========================================================================================
when                          what is done
============================  ========================================================================================
a request of a partner's      refused when its user or its kind of job is not admitted, outside the hours, in a penalty
a slot for it                 only one that is lent to that partner, only up to the quota
local jobs found nothing      as few foreign claims as let them run are vacated (with a checkpoint, where the job has
                              one); of the youngest first, since they lose least
the hours are over, a user    what the partner holds is vacated
is not admitted any more
more is held than the quota   the youngest claims are vacated; when the terms were not just made narrower, the partner
                              has taken more than it was given: it gets nothing new for a minute, then two, four …
============================  ========================================================================================

Local jobs that cannot run on what would be vacated, or may not have more, take nothing back.  Partners whose rank is
``alike`` share the pool with local users by priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import attrs

from condor_actors.classads import ClassAd, match_ads
from condor_actors.cores.flock_terms import Judge
from condor_actors.cores.negotiator.pool_view import PoolView, Slot
from condor_actors.messages.pool import KnownPartner
from condor_actors.messages.realm import MARK, parted

__all__ = ["LOOK_S", "NOT_LENT", "Lending", "Loan"]

LOOK_S = 5.0
"""So often what partners hold is compared with their terms."""
SETTLING_S = 120.0
"""After terms have changed, or the negotiator has begun, a partner may hold too much without a fault of its own."""
TOLD_S = 30.0
"""A claim that was to be vacated, and is there still, is vacated again after this long."""
PENALTY_S, LONGEST_PENALTY_S = 60.0, 3600.0
EPSILON = 1e-6
NOT_LENT = "are not lent to your pool"


@attrs.define(eq=False)
class Loan:
    """What is known of one partner.

    Attributes:
        judge: its terms; since_s: since when they are so.
        held: weight that its users have; pending: and that they were given, which no ad shows yet.
        refused: requests that its terms refused; reclaimed: claims taken back for local jobs.
        strikes: how often it had more than it was given; until_s: it gets nothing new before.
    """

    judge: Judge
    since_s: float
    held: float = 0.0
    pending: float = 0.0
    refused: int = 0
    reclaimed: int = 0
    strikes: int = 0
    until_s: float = 0.0


class Lending:
    """Judges partners' requests and holdings.

    Attributes:
        loans: by the partner's name.
    """

    def __init__(self) -> None:
        self.loans: dict[str, Loan] = {}
        self._told: dict[str, tuple[str, float]] = {}
        """Claims that were to be vacated: slot to its user, and until when that is not said again."""
        self._now_s = 0.0

    def learn(self, partners: Iterable[KnownPartner], now_s: float) -> bool:
        """These are the partners now; returns whether that, or a term, is new."""
        before, self.loans = self.loans, {}
        is_new = False
        for each in partners:
            old = before.get(each.name)
            if old is None:
                old = Loan(Judge(each.terms), now_s)
            elif old.judge.terms != each.terms:
                old.judge, old.since_s, is_new = Judge(each.terms), now_s, True
            self.loans[each.name] = old
        return is_new or before.keys() != self.loans.keys()

    # ---- a cycle

    def begin(self, view: PoolView, now_s: float) -> None:
        """A decision begins: count what each partner has."""
        self._now_s = now_s
        for loan in self.loans.values():
            loan.held = loan.pending = 0.0
        for user, (weight, _) in view.held.items():
            loan_of = self._loan(user)
            if loan_of is not None:
                loan_of.held += weight
        for user, weight in view.promised():
            loan_of = self._loan(user)
            if loan_of is not None:
                loan_of.pending += weight

    def why_not(self, submitter: str, job: ClassAd, now_s: float) -> str:
        """Why a request gets nothing here, whatever is free; empty: it may."""
        account, realm = parted(submitter)
        if not realm:
            return ""
        loan = self.loans.get(realm)
        if loan is None:
            return f"the terms for the pool {realm} are not known here (condor_flock list)"
        why = self._objection(loan, account, job, now_s)
        loan.refused += bool(why)
        return why

    @staticmethod
    def _objection(loan: Loan, account: str, job: ClassAd, now_s: float) -> str:
        if now_s < loan.until_s:
            return "your pool has taken more than it was given, and gets nothing new for a while"
        if not loan.judge.times.holds(now_s):
            return "machines are not lent to your pool at this time"
        if not loan.judge.admits(account):
            return "its user is not admitted by the pool that was asked"
        return "" if loan.judge.takes(job, now_s) else "the pool that was asked takes no such jobs of your pool"

    def lends(self, slot: ClassAd, submitter: str) -> bool:
        """Whether a slot may be given to a submitter."""
        loan = self._loan(submitter)
        return loan is None or loan.judge.lends(slot, self._now_s)

    def permits(self, submitter: str, weight: float) -> bool:
        """Whether a submitter's pool may have so much more."""
        loan = self._loan(submitter)
        if loan is None or loan.judge.terms.quota < 0.0:
            return True
        return loan.held + loan.pending + weight <= loan.judge.terms.quota + EPSILON

    def give(self, submitter: str, weight: float) -> None:
        """A submitter was given so much."""
        loan = self._loan(submitter)
        if loan is not None:
            loan.pending += weight

    def is_below(self, submitter: str) -> bool:
        """Whether a submitter comes after all local ones."""
        if MARK not in submitter:
            return False
        loan = self._loan(submitter)
        return loan is None or loan.judge.is_below

    def _loan(self, user: str) -> Loan | None:
        return self.loans.get(parted(user)[1]) if MARK in user else None

    # ---- taking back

    def is_lent(self, view: PoolView) -> bool:
        """Whether anything is lent that local jobs could take back."""
        return any(MARK in user and self.is_below(user) for user in view.held)

    def reclaim(self, view: PoolView, wanting: Sequence[tuple[ClassAd, int]], now_s: float) -> tuple[Slot, ...]:
        """Foreign claims to be vacated so that local jobs can run.

        Args:
            view: the pool.
            wanting: local jobs that found nothing: the ad of the first, and how many are like it.
            now_s: the time.
        """
        self._forget(view, now_s)
        coming = len(self._told)
        places = self._places(view)
        chosen: list[Slot] = []
        for job, count in wanting:
            served = min(coming, count)
            coming -= served
            for _ in range(count - served):
                found = next((found for place in places if (found := place.room_for(job, now_s))), None)
                if found is None:
                    break
                chosen += found
        for slot in chosen:
            loan = self._loan(slot.user)
            if loan is not None:
                loan.reclaimed += 1
        return self._tell(chosen, now_s)

    def _places(self, view: PoolView) -> list[_Place]:
        """What is lent, machine by machine."""
        places: dict[str, _Place] = {}
        for slot in self._lent(view):
            if self.is_below(slot.user) and slot.key not in self._told:
                above = view.slots.get(slot.ad.get_str("ParentSlotName"))
                key = slot.key if above is None else above.key
                places.setdefault(key, _Place(above)).loans.append(slot)
        for place in places.values():
            place.loans.sort(key=_age)
        return sorted(places.values(), key=lambda place: _age(place.loans[0]))

    @staticmethod
    def _lent(view: PoolView) -> Iterator[Slot]:
        return (slot for slot in view.slots.values() if slot.holds and slot.state == "Claimed" and MARK in slot.user)

    def overdue(self, view: PoolView, now_s: float) -> tuple[tuple[Slot, str], ...]:
        """Claims that a partner has no right to now, each with the reason why it is vacated."""
        self._forget(view, now_s)
        found: dict[str, tuple[Slot, str]] = {}
        holdings: dict[str, list[Slot]] = {}
        for slot in self._lent(view):
            account, realm = parted(slot.user)
            loan = self.loans.get(realm)
            if loan is None:
                continue  # the startd has it leave when it is trusted no longer
            holdings.setdefault(realm, []).append(slot)
            if not loan.judge.times.holds(now_s):
                found[slot.key] = slot, f"the hours in which machines are lent to {realm} are over"
            elif not loan.judge.admits(account):
                found[slot.key] = slot, f"{account} of {realm} is not admitted"
        for realm, slots in holdings.items():
            for slot in self._excess(self.loans[realm], slots, now_s):
                found.setdefault(slot.key, (slot, f"the pool {realm} has more than its quota"))
        reasons = {key: why for key, (_, why) in found.items()}
        return tuple((slot, reasons[slot.key]) for slot in self._tell([slot for slot, _ in found.values()], now_s))

    def _excess(self, loan: Loan, slots: list[Slot], now_s: float) -> list[Slot]:
        """The youngest claims above the quota; a strike when nothing but the partner can have caused them."""
        quota = loan.judge.terms.quota
        total = sum(slot.weight() for slot in slots)
        if quota < 0.0 or total <= quota + EPSILON:
            return []
        if now_s - loan.since_s > SETTLING_S and now_s >= loan.until_s:
            loan.strikes += 1
            loan.until_s = now_s + min(LONGEST_PENALTY_S, PENALTY_S * 2.0 ** (loan.strikes - 1))
        excess = []
        for slot in sorted(slots, key=_age):
            if total <= quota + EPSILON:
                break
            total -= slot.weight()
            excess.append(slot)
        return excess

    def _forget(self, view: PoolView, now_s: float) -> None:
        """Forget what was vacated, and what was told too long ago."""
        self._told = {
            key: (user, until_s) for key, (user, until_s) in self._told.items()
            if until_s > now_s and (slot := view.slots.get(key)) is not None and slot.user == user}

    def _tell(self, slots: Iterable[Slot], now_s: float) -> tuple[Slot, ...]:
        new = tuple(slot for slot in slots if slot.key not in self._told)
        self._told.update((slot.key, (slot.user, now_s + TOLD_S)) for slot in new)
        return new

    # ---- for people

    def ads(self, view: PoolView, now_s: float) -> list[ClassAd]:
        """One ad for each partner: its terms in short, what it has, what was refused."""
        self.begin(view, now_s)
        return [ClassAd({
            "MyType": "Lending", "TargetType": "none", "Name": name, "Quota": loan.judge.terms.quota,
            "Rank": loan.judge.terms.rank, "Times": loan.judge.terms.times,
            "IsOpen": loan.judge.times.holds(now_s), "WeightHeld": loan.held, "WeightPending": loan.pending,
            "Refused": loan.refused, "Reclaimed": loan.reclaimed, "Strikes": loan.strikes,
            "PenaltyUntil": int(loan.until_s) if loan.until_s > now_s else 0,
        }) for name, loan in sorted(self.loans.items())]


@attrs.define(eq=False)
class _Place:
    """A machine, or a slot of fixed size, that is lent: what is above the claims, and these, the youngest first."""

    above: Slot | None
    loans: list[Slot] = attrs.field(factory=list)

    def room_for(self, job: ClassAd, now_s: float) -> list[Slot]:
        """As few claims as must go for the job to run here; they are no longer of the place.  None: it could not."""
        if self.above is None:
            if self.loans and match_ads(job, _free(self.loans[0].ad), now_s):
                return [self.loans.pop()]
            return []
        ad = self.above.ad.copy()
        for index, slot in enumerate(self.loans):
            for name in slot.resources:
                ad[name] = ad.get_int(name) + slot.amount(name)
            if _fits(job, ad, self.above.resources, now_s):
                gone, self.loans = self.loans[:index + 1], self.loans[index + 1:]
                return gone
        return []


def _free(ad: ClassAd) -> ClassAd:
    """A slot's ad as it is when nobody has it."""
    free = ad.copy()
    free["State"], free["Activity"] = "Unclaimed", "Idle"
    return free


def _fits(job: ClassAd, ad: ClassAd, resources: Iterable[str], now_s: float) -> bool:
    for name in resources:
        wanted = job.evaluate(f"Request{name}", ad)
        if isinstance(wanted, (int, float)) and wanted > ad.get_int(name):
            return False
    return match_ads(job, ad, now_s)


def _age(slot: Slot) -> tuple[float, str]:
    """The youngest claim first."""
    began_s = max(slot.ad.get_float("JobStart"), slot.ad.get_float("EnteredCurrentState"))
    return -began_s, slot.key
