"""What a cycle tells schedds and startds: matches, refusals, claims to vacate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from condor_actors.cores.negotiator.cycle_trace import TraceEntry
from condor_actors.cores.negotiator.fair_share_allocator import Placement, Rejected
from condor_actors.cores.negotiator.gathering import Gathering
from condor_actors.cores.negotiator.pool_view import Slot
from condor_actors.effects import Effect, Note, Send, job_note
from condor_actors.messages.admin import VacateSlots
from condor_actors.messages.envelope import Address
from condor_actors.messages.negotiate import (
    Match,
    MatchesMade,
    MatchNotice,
    Rejection,
    RequestsRejected,
)
from condor_actors.messages.realm import MARK

__all__ = ["announce", "note_of", "vacate"]

_T = TypeVar("_T")
MATCHES_BYTES = 350 * 1024
"""Of matches in one message."""
SCHEDD, STARTD = "schedd", "startd"


def announce(gathering: Gathering, inform_startd: bool) -> list[Effect]:
    """Tell schedds, and startds, what was decided since they were told last."""
    placed, rejected = gathering.placed[gathering.told[0]:], gathering.rejected[gathering.told[1]:]
    gathering.told = len(gathering.placed), len(gathering.rejected)
    informed = placed if inform_startd else ()
    abroad = [each for each in informed if MARK in each.turn.name]
    effects = _notices(gathering, abroad)  # first: a claim from there waits until its machine has heard
    for key, submitter in gathering.submitters.items():
        to = Address(submitter.schedd, SCHEDD)
        mine = [each for each in placed if each.source == key]
        for page in _pages([_match_of(each) for each in mine], lambda match: len(match.slot_ad) + 300):
            effects.append(Send(to, MatchesMade(cycle=gathering.number, submitter=submitter.name,
                                                matches=tuple(page))))
        refusals = [_rejection_of(each) for each in rejected if each.source == key]
        refusals += [Rejection(autocluster=autocluster, job_id=job_id, reason=why, causes=())
                     for barred, autocluster, job_id, why in gathering.barred if barred == key]
        for rejections in _pages(refusals, lambda refusal: len(refusal.reason) + 200 + 60 * len(refusal.causes)):
            effects.append(Send(to, RequestsRejected(cycle=gathering.number, submitter=submitter.name,
                                                     rejections=tuple(rejections))))
    gathering.barred = []
    return effects + _notices(gathering, (each for each in informed if MARK not in each.turn.name))


def _notices(gathering: Gathering, placed: Iterable[Placement]) -> list[Effect]:
    told: set[tuple[str, str]] = set()
    effects: list[Effect] = []
    for each in placed:
        slot: Slot = each.pick.candidate.slot
        submitter = gathering.submitters[each.source]
        is_foreign = MARK in submitter.name
        if is_foreign or (slot.key, submitter.key) not in told:
            told.add((slot.key, submitter.key))
            effects.append(Send(Address(slot.startd, STARTD), MatchNotice(
                slot_name=slot.key, submitter=submitter.name, schedd_address=submitter.schedd,
                cost=tuple(each.pick.cost.items()) if is_foreign else ())))
    return effects


def vacate(claims: Iterable[tuple[Slot, str]]) -> list[Effect]:
    """Have startds vacate claims, each for a reason."""
    by_startd: dict[tuple[str, str], list[str]] = {}
    for slot, reason in claims:
        by_startd.setdefault((slot.startd, reason), []).append(slot.key)
    effects: list[Effect] = []
    for (startd, reason), slots in by_startd.items():
        effects += [Send(Address(startd, STARTD), VacateSlots(slots=tuple(slots), reason=reason)),
                    Note(f"{', '.join(slots)}: vacated, {reason}")]
    return effects


def note_of(entry: TraceEntry) -> Effect:
    """What became of a request, as a line of the log."""
    who = f"{entry.submitter} of {entry.schedd_name}, jobs like this one (autocluster {entry.autocluster})"
    why = f", {entry.unmatched} rejected: {entry.reason}" if entry.reason else ""
    return job_note(entry.job_id, "matched" if entry.matched else "no match", f"{who}: {entry.matched} matched{why}")


def _match_of(placement: Placement) -> Match:
    slot, request = placement.pick.candidate.slot, placement.request
    return Match(autocluster=request.autocluster, job_id=request.job_id, slot_name=slot.key,
                 startd_address=slot.startd, slot_ad=slot.data, capability=slot.capability,
                 preempting=placement.pick.preempting)


def _rejection_of(rejected: Rejected) -> Rejection:
    return Rejection(autocluster=rejected.request.autocluster, job_id=rejected.request.job_id,
                     reason=rejected.reason, causes=rejected.causes)


def _pages(items: list[_T], size_of: Callable[[_T], int]) -> Iterable[list[_T]]:
    page: list[_T] = []
    size = 0
    for item in items:
        length = size_of(item)
        if page and size + length > MATCHES_BYTES:
            yield page
            page, size = [], 0
        page.append(item)
        size += length
    if page:
        yield page
