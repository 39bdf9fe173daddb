"""Everything the negotiator decides: its view of the pool, its cycles and its accountant behind one ``handle``.

=====================  ============================================================================================
event                  what it does
=====================  ============================================================================================
``AdsChanged``         the view; the accountant learns who holds what; perhaps a cycle
``RequestCycle``       a cycle soon
``Answer``             a schedd's requests, part of the cycle that gathers
``TimerFired``         ``cycle``, ``interval``, ``patience``, ``further``, ``turn-away``, ``handouts``, ``save``
``QueryTrace``         answered from the cycles' trace
``QueryPriorities``,   the accountant's
``SetPriority``
``PartnersKnown``,     :mod:`condor_actors.cores.negotiator.lending`; timer ``lending``
``QueryLending``
``MakeReservation`` …  :mod:`condor_actors.cores.negotiator.reservations`; timer ``reservations``
=====================  ============================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.announcements import vacate
from condor_actors.cores.negotiator.lending import LOOK_S
from condor_actors.cores.negotiator.negotiation_cycle import NegotiationCycle
from condor_actors.cores.negotiator.pool_view import HARD, NONE, PoolView, Slot
from condor_actors.cores.negotiator.reservations import DropReservation, Reservation, SaveReservation
from condor_actors.effects import Answer, Effect, Note, Persist, Reply, Send, SetTimer
from condor_actors.messages.admin import VacateSlots
from condor_actors.messages.advertise import AdsChanged, AdsPage
from condor_actors.messages.codec import PAGE_BYTES
from condor_actors.messages.envelope import Address, Done, Refused, TimerFired
from condor_actors.messages.negotiate import (
    CancelReservation,
    MakeReservation,
    QueryLending,
    QueryPriorities,
    QueryReservations,
    QueryTrace,
    RequestCycle,
    SetPriority,
)
from condor_actors.messages.pool import PartnersKnown
from condor_actors.numerals import numeral

__all__ = ["NegotiatorCore"]

Step = Callable[[Any, float], tuple[Effect, ...]]
RESERVATIONS_S = 10.0


class NegotiatorCore:
    """Decides everything that a negotiator does; its actor performs the effects.

    Args:
        view: the pool; cycle: when and what is matched; accountant: who holds and has held what.
    """

    def __init__(self, view: PoolView, cycle: NegotiationCycle, accountant: Accountant) -> None:
        self.view = view
        self.cycle = cycle
        self.accountant = accountant
        self._old: dict[str, Slot] | None = None
        self._meaning = NONE
        self._steps: dict[type, Step] = {
            AdsChanged: self._ads_changed,
            RequestCycle: lambda event, now_s: (Reply(Done()), *self.cycle.requested(now_s)),
            Answer: self.cycle.answered,
            TimerFired: self._timer,
            QueryTrace: self._query_trace,
            QueryPriorities: lambda event, now_s: (Reply(page_of(self.accountant.ads(now_s), event.cursor)),),
            SetPriority: self._set_priority,
            MakeReservation: self._reserve,
            CancelReservation: self._cancel_reservation,
            QueryReservations: self._list_reservations,
            PartnersKnown: self._know_partners,
            QueryLending: self._list_lending,
        }

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        step = self._steps.get(type(event))
        if step is None:
            return (Reply(Refused(code="invalid", text=f"the negotiator does not take {type(event).__name__}")),)
        return step(event, now_s)

    def started(self) -> tuple[Effect, ...]:
        """The first timers."""
        timers: tuple[Effect, ...] = (SetTimer("interval", self.cycle.settings.interval_s),
                                      SetTimer("save", self.accountant.save_every_s))
        if any(record.leases for record in self.accountant.policy.users.values()):
            timers += (SetTimer("leases", 0.0),)
        return (*timers, SetTimer("reservations", 0.0)) if self.cycle.reservations else timers

    def _ads_changed(self, event: AdsChanged, now_s: float) -> tuple[Effect, ...]:
        if event.snapshot:
            self._old = self.view.reset()
        self._meaning = max(self._meaning, self.view.apply(event.changes, self._old))
        if event.more:
            return ()
        self._old = None
        meaning, self._meaning = self._meaning, NONE
        self.accountant.learn(self.view, now_s)
        return self.cycle.wish(meaning, now_s)

    def _timer(self, event: TimerFired, now_s: float) -> tuple[Effect, ...]:
        if event.key == "cycle":
            return self.cycle.begin(now_s)
        if event.key == "interval":
            return self.cycle.regularly(now_s)
        if event.key == "further":
            return self.cycle.go_on(now_s)
        if event.key == "turn-away":
            return self.cycle.turn_away(now_s)
        if event.key == "patience":
            return self.cycle.out_of_patience(now_s)
        if event.key == "handouts":
            return self._handouts_expired(now_s)
        if event.key == "save":
            again = SetTimer("save", self.accountant.save_every_s)
            return (*self.accountant.save(now_s), again)
        if event.key == "leases":
            over = self.accountant.leases_over(now_s)
            return (*over, *self.cycle.wish(HARD, now_s)) if over else ()
        if event.key == "lending":
            return self._mind_lending(now_s)
        if event.key == "reservations":
            return self._mind_reservations(now_s)
        return (Note(f"a timer nobody set: {event.key!r}", "warn"),)

    def _handouts_expired(self, now_s: float) -> tuple[Effect, ...]:
        """Matches that nobody made use of: their slots can be given again."""
        next_s = self.view.expire_handouts(now_s)
        effects: tuple[Effect, ...] = self.cycle.wish(HARD, now_s)
        if next_s is not None:
            effects += (SetTimer("handouts", next_s - now_s + 0.001),)
        return effects

    # ---- reservations

    def _reserve(self, event: MakeReservation, now_s: float) -> tuple[Effect, ...]:
        wish = Reservation(name=event.name, submitter=event.submitter, machines=event.machines,
                           constraint=event.constraint, from_s=event.from_s, until_s=event.until_s,
                           ahead_s=max(0.0, event.ahead_s))
        problem = self.cycle.reservations.why_not(wish, [slot.ad for slot in self.view.slots.values()], now_s)
        if problem:
            return (Reply(Refused(code="invalid", text=problem)),)
        self.cycle.reservations.all[wish.name] = wish
        return (Persist(SaveReservation(wish)), Reply(Done()), Note(f"reserved: {wish}"),
                *self._mind_reservations(now_s))

    def _cancel_reservation(self, event: CancelReservation, now_s: float) -> tuple[Effect, ...]:
        if event.name not in self.cycle.reservations.all:
            return (Reply(Refused(code="not-found", text=f"there is no reservation {event.name}")),)
        self.cycle.reservations.forget(event.name)
        return (Persist(DropReservation(event.name)), Reply(Done()), Note(f"reservation {event.name} is cancelled"),
                *self._mind_reservations(now_s))

    def _list_reservations(self, event: QueryReservations, now_s: float) -> tuple[Effect, ...]:
        self.cycle.reservations.set_aside([slot.ad for slot in self.view.slots.values()], now_s)
        return (Reply(page_of([ad.to_bytes() for ad in self.cycle.reservations.ads(now_s)], event.cursor)),)

    def _mind_reservations(self, now_s: float) -> tuple[Effect, ...]:
        """Set machines aside, vacate what of others is on them, forget what is over, look again in time."""
        reservations = self.cycle.reservations
        effects: list[Effect] = [Persist(DropReservation(name)) for name in reservations.expire(now_s)]
        ads = {slot.key: slot.ad for slot in self.view.slots.values()}
        reservations.set_aside(ads.values(), now_s)
        for (address, name, finish), slots in reservations.to_end(ads, now_s).items():
            wish = VacateSlots(slots=slots, finish=finish, reason=f"the machine is reserved ({name})")
            effects += [Send(Address(address, "startd"), wish),
                        Note(f"{', '.join(slots)}: {'takes nothing new' if finish else 'vacated'} for {name}")]
        next_s = reservations.next_s(now_s)
        if next_s is not None:
            again_s = min(next_s - now_s, RESERVATIONS_S) if reservations.aside else next_s - now_s
            effects.append(SetTimer("reservations", max(0.01, again_s)))
        return (*effects, *self.cycle.wish(HARD, now_s))

    # ---- lending

    def _know_partners(self, event: PartnersKnown, now_s: float) -> tuple[Effect, ...]:
        """These are the partners now, on these terms."""
        if not self.cycle.lending.learn(event.partners, now_s):
            return ()
        return (SetTimer("lending", 0.0), *self.cycle.wish(HARD, now_s))

    def _mind_lending(self, now_s: float) -> tuple[Effect, ...]:
        """Take back what partners have no right to, and look again."""
        lending = self.cycle.lending
        if not lending.loans:
            return ()
        before = {name: loan.strikes for name, loan in lending.loans.items()}
        effects = vacate(lending.overdue(self.view, now_s))
        effects += [
            Note(f"the pool {name} has more than it was given: it gets nothing new for {loan.until_s - now_s:.0f} s",
                 "warn") for name, loan in lending.loans.items() if loan.strikes > before[name]]
        return (*effects, SetTimer("lending", LOOK_S))

    def _list_lending(self, event: QueryLending, now_s: float) -> tuple[Effect, ...]:
        return (Reply(page_of([ad.to_bytes() for ad in self.cycle.lending.ads(self.view, now_s)], event.cursor)),)

    def _query_trace(self, event: QueryTrace, now_s: float) -> tuple[Effect, ...]:
        entries = self.cycle.trace.find(event.submitter, event.job_id)
        return (Reply(page_of([entry.ad().to_bytes() for entry in entries], event.cursor)),)

    def _set_priority(self, event: SetPriority, now_s: float) -> tuple[Effect, ...]:
        """What condor_userprio sets: a ceiling may be higher now, a factor lower."""
        return (*self.accountant.set(event, now_s), *self.cycle.wish(HARD, now_s))


def page_of(ads: list[bytes], cursor: str) -> AdsPage | Refused:
    """The ads from a cursor on that fit a message."""
    start = numeral(cursor or "0")
    if start is None:
        return Refused(code="invalid", text=f"{cursor[:100]!r} is no cursor")
    size = 0
    for end in range(start, len(ads)):
        size += len(ads[end])
        if size > PAGE_BYTES and end > start:
            return AdsPage(ads=tuple(ads[start:end]), cursor=str(end))
    return AdsPage(ads=tuple(ads[start:]))
