"""Matches with submitters of other pools that the negotiator has announced, and no claim has used yet.

Theory: the right to claim a part of a partitionable slot is good for as many parts as there are matches, and a schedd
of this pool is trusted to ask for no more.  Another pool's is not: each of its requests needs a match that this pool's
own negotiator has announced, and may take no more of the slot than was announced.
"""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd
from condor_actors.messages.negotiate import MatchNotice
from condor_actors.messages.realm import MARK

__all__ = ["AnnouncedMatches"]

GOOD_S = 60.0
MOST = 10_000


@attrs.frozen
class _Match:
    """What a claim may take, and until when it may be asked for."""

    cost: tuple[tuple[str, int], ...]
    until_s: float


class AnnouncedMatches:
    """Keeps them, each for one claim."""

    def __init__(self) -> None:
        self._matches: dict[tuple[str, str], list[_Match]] = {}

    def announce(self, notice: MatchNotice, now_s: float) -> None:
        """The negotiator has given a slot to another pool's submitter."""
        self._matches = {key: left for key, all_of in self._matches.items()
                         if (left := [each for each in all_of if each.until_s > now_s])}
        if sum(map(len, self._matches.values())) < MOST:
            self._matches.setdefault((notice.slot_name, notice.submitter), []).append(
                _Match(notice.cost, now_s + GOOD_S))

    def knows(self, slot_name: str, submitter: str, now_s: float) -> bool:
        """Whether a match of a slot with a submitter was announced and not used."""
        return any(each.until_s > now_s for each in self._matches.get((slot_name, submitter), ()))

    def why_not(self, slot_name: str, submitter: str, job: ClassAd, slot: ClassAd, now_s: float) -> str:
        """Why a request is not granted; empty: it may be, and the match that allows it is used up by that.

        Args:
            slot_name: the slot requested; submitter: for whom, as this pool calls it.
            job: the first one; slot: the slot's ad.
            now_s: the time.
        """
        if MARK not in submitter:
            return ""
        known = self._matches.get((slot_name, submitter), [])
        fitting = [each for each in known if each.until_s > now_s]
        for each in fitting:
            if all(_takes(job, slot, name) <= amount for name, amount in each.cost):
                known.remove(each)
                return ""
        return "it wants more of the slot than it was given" if fitting else "no match with it was announced"


def _takes(job: ClassAd, slot: ClassAd, name: str) -> float:
    value = job.evaluate(f"Request{name}", slot)
    return float(value) if isinstance(value, (int, float)) else 0.0
