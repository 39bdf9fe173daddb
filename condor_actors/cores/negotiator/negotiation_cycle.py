"""The negotiator's core: when a cycle begins, whom it asks, and what comes of it.

Theory: a cycle has two phases.  *Gathering* asks every schedd that has a submitter with idle jobs what it wants, all at
the same time, page by page.  When all have answered (or the patience is at an end) the *decision* follows in one step
(:mod:`condor_actors.cores.negotiator.fair_share_allocator`), on the view of the pool as it is at that moment, and its
results leave together.

=============  ===================================================================================================
state          what begins or ends it
=============  ===================================================================================================
``IDLE``       until the timer ``cycle`` runs out: soon after more is wanted or more is free, and every
               NEGOTIATOR_INTERVAL
``GATHERING``  until all asked have answered, or the timer ``patience`` runs out; what happens meanwhile asks for
               another cycle afterwards.  A schedd is asked for as many requests as there are slots to give; when
               these are decided and slots are left, the cycle goes on with a further round; and so it does for
               users whose requests take long (:mod:`condor_actors.cores.negotiator.time_budget`), when the others have
               been told (timer ``further``)
=============  ===================================================================================================

A cycle that has nobody to serve or nothing to give is not begun.  In a pool that has partners, those who want something
are told so at once when there is nothing to give (timer ``turn-away``, :mod:`condor_actors.cores.negotiator.refusals`):
their schedds offer the jobs to the next pool.  The time that a decision takes delays the next, so
that the negotiator never uses more than half of a processor, and a twentieth for changes that only may matter.

Source: T89 section 9.3, HTCondor's manual, "Negotiation".
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator

from condor_actors.classads import ClassAd, ClassAdSyntaxError, is_true
from condor_actors.cores.flocking import foreign_job
from condor_actors.cores.negotiator.announcements import announce, note_of, vacate
from condor_actors.cores.negotiator.concurrency_limits import ConcurrencyLimits, limits_of
from condor_actors.cores.negotiator.cycle_settings import CycleRules, CycleSettings
from condor_actors.cores.negotiator.cycle_trace import CycleTrace, TraceEntry
from condor_actors.cores.negotiator.fair_share_allocator import FairShareAllocator, Placement, Rejected, UserTurn
from condor_actors.cores.negotiator.gathering import Gathering
from condor_actors.cores.negotiator.group_quotas import GroupBudget
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.matchmaking import PUT_OFF, SHARE_USED_UP, Matchmaker, Request
from condor_actors.cores.negotiator.pool_view import HANDOUT_S, HARD, NONE, PoolView, Submitter
from condor_actors.cores.negotiator.refusals import Refusals
from condor_actors.cores.negotiator.reservations import Reservations
from condor_actors.cores.negotiator.significant_attributes import SignificantAttributes
from condor_actors.cores.negotiator.time_budget import TimeBudget
from condor_actors.cores.negotiator.user_priority import PriorityPolicy
from condor_actors.cores.negotiator.waking.demand import WakingDemand
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, Note, SetTimer
from condor_actors.messages.envelope import Address, AskFailed, Refused
from condor_actors.messages.negotiate import (
    NegotiateRequests,
    ResourceRequests,
)
from condor_actors.messages.realm import MARK

__all__ = ["CycleState", "NegotiationCycle"]

SOFT_REST = 20.0
FOREIGN_PATIENCE_S = 0.5
"""How long a decision waits for schedds of other pools, when those of this one have answered."""
SCHEDD = "schedd"


class CycleState(enum.Enum):
    """The states of a negotiation cycle, as the table in the module's header names them."""

    IDLE = "idle"
    GATHERING = "gathering"


class NegotiationCycle:
    """Begins cycles, asks schedds for their requests, and hands out matches.

    Args:
        settings, match_settings: the configuration.
        view: the pool; priorities: the policy in force.
        rules: accounting groups and concurrency limits.
        stopwatch: seconds, for what a user's requests take beside the steps of their evaluations.
    """

    def __init__(self, settings: CycleSettings, match_settings: MatchSettings, view: PoolView,
                 priorities: PriorityPolicy, rules: CycleRules | None = None,
                 stopwatch: Callable[[], float] = lambda: 0.0) -> None:
        self.settings = settings
        self._stopwatch = stopwatch
        self._slow: set[str] = set()
        self.view = view
        self.priorities = priorities
        self.state = CycleState.IDLE
        self.cycle = 0
        self.trace = CycleTrace(settings.trace_cycles)
        self.significant = SignificantAttributes(match_settings)
        self.rules = rules or CycleRules()
        self.busy_s = 0.0
        self.last: dict[str, float] = {}
        self._match_settings = match_settings
        self._now_s = 0.0
        self._matchmaker = Matchmaker(match_settings, self._priority_of, self._beats)
        self.reservations = self._matchmaker.reservations
        self.lending = self._matchmaker.lending
        self.waking = WakingDemand()
        self._gathering: Gathering | None = None
        self._refusals = Refusals()
        self._wished = NONE
        self._due_s = float("inf")
        self._began_s = self._ended_s = 0.0

    def reconfigure(self, settings: CycleSettings, match_settings: MatchSettings, rules: CycleRules,
                    priorities: PriorityPolicy) -> None:
        """Take a new configuration; a cycle that runs ends under it."""
        self.settings = settings
        self.trace.kept = settings.trace_cycles
        self.rules = rules
        self.priorities = priorities
        self._match_settings = match_settings
        self.significant = SignificantAttributes(match_settings)
        self._matchmaker = Matchmaker(match_settings, self._priority_of, self._beats)
        self._matchmaker.reservations = self.reservations
        self._matchmaker.lending = self.lending
        self.view.changed.update(dict.fromkeys(self.view.slots))
        self.view.fresh.update(dict.fromkeys(self.view.slots))

    def keep(self, reservations: Reservations) -> None:
        """Honour these from now on."""
        self.reservations = self._matchmaker.reservations = reservations

    def _priority_of(self, user: str) -> float:
        return self.priorities.effective(user, self._now_s)

    def _beats(self, wanting: float, holding: float) -> bool:
        return self.priorities.beats(wanting, holding)

    # ---- when

    def wish(self, kind: int, now_s: float) -> tuple[Effect, ...]:
        """Something happened: ``HARD`` or ``SOFT`` reason for a cycle."""
        if kind == NONE:
            return ()
        if self.state is CycleState.GATHERING:
            self._wished = max(self._wished, kind)
            return ()
        if not self._worth_it(now_s):
            return self._refusals.planned(now_s, self.settings.delay_s) if kind == HARD and self.lending.loans else ()
        delay_s = self.settings.delay_s if kind == HARD else self.settings.soft_delay_s
        rest_s = self.busy_s if kind == HARD else SOFT_REST * self.busy_s
        due_s = max(now_s + delay_s, self._began_s + self.settings.min_interval_s, self._ended_s + rest_s)
        if due_s >= self._due_s:
            return ()
        self._due_s = due_s
        return (SetTimer("cycle", max(0.0, due_s - now_s)),)

    def _wanting(self) -> Iterator[Submitter]:
        """The submitters with idle jobs that this negotiator serves."""
        constraint = self._match_settings.submitter_constraint
        return (each for each in self.view.wanting() if constraint is None or is_true(constraint.evaluate(each.ad)))

    def _worth_it(self, now_s: float) -> bool:
        """Whether anyone wants something and anything could be given."""
        if next(self._wanting(), None) is None:
            return False
        self._matchmaker.begin(self.view, now_s)
        if len(self._matchmaker.candidates) > 0 or self.view.sleeping:
            return True
        return self.lending.is_lent(self.view) and any(MARK not in each.name for each in self._wanting())

    def requested(self, now_s: float) -> tuple[Effect, ...]:
        """A schedd asks for a cycle: it wants more, though its ad may not show that."""
        self._refusals.forget()
        return self.wish(HARD, now_s)

    def turn_away(self, now_s: float) -> tuple[Effect, ...]:
        """The timer ``turn-away`` ran out: if there is nothing to give still, tell those who want something."""
        self._refusals.due_s = float("inf")
        if self.state is CycleState.GATHERING or self._worth_it(now_s):
            return ()
        return self._refusals.tell(self._wanting(), self.cycle, now_s)

    def regularly(self, now_s: float) -> tuple[Effect, ...]:
        """NEGOTIATOR_INTERVAL has passed."""
        self.view.new_interval()
        again = SetTimer("interval", self.settings.interval_s)
        wished = self.requested(now_s)
        if self.state is CycleState.IDLE and self._due_s == float("inf"):
            self.priorities.wants({each.name for each in self._wanting()}, now_s)
        return (again, *wished)

    # ---- gathering

    def begin(self, now_s: float) -> tuple[Effect, ...]:
        """The timer ``cycle`` ran out: ask everybody."""
        self._due_s = float("inf")
        if self.state is CycleState.GATHERING:
            return ()
        if not self._worth_it(now_s):
            return ()
        self.cycle += 1
        self.state = CycleState.GATHERING
        self._wished = NONE
        self._began_s = now_s
        gathering = self._gathering = Gathering(self.cycle, now_s)
        self.significant.learn(self.view)
        effects: list[Effect] = []
        for submitter in self._wanting():
            gathering.submitters[submitter.key] = submitter
            effects.append(self._ask(gathering, submitter, ""))
        return (*effects, SetTimer("patience", self.settings.patience_s))

    def _ask(self, gathering: Gathering, submitter: Submitter, cursor: str) -> Effect:
        tag = ("requests", gathering.number, submitter.key, cursor)
        gathering.awaited.add((submitter.key, cursor))
        question = NegotiateRequests(
            cycle=gathering.number, submitter=submitter.name, significant_attributes=self.significant.names,
            limit=self.settings.list_size, cursor=cursor,
        )
        return Ask(Address(submitter.schedd, SCHEDD), question, self.settings.timeout_s, tag)

    def answered(self, answer: Answer, now_s: float) -> tuple[Effect, ...]:
        """A schedd said what it wants, or that it cannot."""
        _, cycle, key, cursor = answer.tag
        gathering = self._gathering
        if gathering is None or gathering.number != cycle:
            return self.wish(HARD, now_s) if isinstance(answer.message, ResourceRequests) else ()
        gathering.awaited.discard((key, cursor))
        effects: list[Effect] = []
        submitter = gathering.submitters[key]
        message = answer.message
        if isinstance(message, ResourceRequests):
            effects += self._take_requests(gathering, submitter, message)
        elif isinstance(message, (Refused, AskFailed)):
            effects.append(Note(f"{submitter.schedd_name} did not say what {submitter.name} wants: "
                                f"{getattr(message, 'text', '')}", "warn"))
        if not gathering.awaited:
            return (*effects, *self.decide(now_s))
        if not gathering.is_hurried and all(MARK in gathering.submitters[key].name for key, _ in gathering.awaited):
            gathering.is_hurried = True
            effects.append(SetTimer("patience", FOREIGN_PATIENCE_S))
        return tuple(effects)

    def _take_requests(self, gathering: Gathering, submitter: Submitter, message: ResourceRequests) -> list[Effect]:
        requests = gathering.requests.setdefault(submitter.key, [])
        effects: list[Effect] = []
        constraint = self._match_settings.job_constraint
        avoided, disbelieved = frozenset(message.avoided), frozenset(message.disbelieved)
        for each in message.requests:
            try:
                ad = ClassAd.from_bytes(each.job_ad)
            except ClassAdSyntaxError as error:
                effects.append(Note(f"the request {each.job_id} of {submitter.name} cannot be read: {error}", "warn"))
                continue
            foreign_job(ad, submitter.name)
            why_not = self.lending.why_not(submitter.name, ad, self._began_s)
            limits: dict[str, float] = {}
            try:
                limits = limits_of(ad)
            except ValueError as error:
                why_not = str(error)
            if why_not:
                gathering.barred.append((submitter.key, each.autocluster, each.job_id, why_not))
                continue
            if each.count > 0 and (constraint is None or is_true(constraint.evaluate(ad))):
                count = each.count if self.settings.use_counts else 1
                requests.append(Request(each.autocluster, each.job_id, count, ad, submitter.name,
                                        limits=limits, avoided=avoided, disbelieved=disbelieved))
        taken = gathering.taken[submitter.key] = gathering.taken.get(submitter.key, 0) + len(message.requests)
        if message.cursor and taken < self.settings.most_requests:
            enough = 2 * len(self._matchmaker.candidates) + self.settings.list_size
            if sum(request.left for request in requests) < enough:
                effects.append(self._ask(gathering, submitter, message.cursor))
            else:
                gathering.more[submitter.key] = message.cursor
        return effects

    def out_of_patience(self, now_s: float) -> tuple[Effect, ...]:
        """The timer ``patience`` ran out: decide with what has come."""
        gathering = self._gathering
        if gathering is None:
            return ()
        late = sorted({gathering.submitters[key].schedd_name for key, _ in gathering.awaited})
        note = Note(f"cycle {gathering.number} goes on without {', '.join(late)}", "warn")
        return (note, *self.decide(now_s))

    # ---- deciding

    def decide(self, now_s: float) -> tuple[Effect, ...]:
        """Everything that was asked for is here: place it, and go on where more is wanted and something is left."""
        gathering = self._gathering
        assert gathering is not None
        self._now_s = now_s
        self.view.expire_handouts(now_s)
        if self.reservations:
            self.reservations.set_aside([slot.ad for slot in self.view.slots.values()], now_s)
        self._matchmaker.begin(self.view, now_s)
        self.lending.begin(self.view, now_s)
        turns = self._turns(gathering, now_s)
        self._spin(gathering, turns, now_s)
        late = self._put_off(gathering, turns, now_s)
        questions = self._further(gathering, turns) if len(self._matchmaker.candidates) else []
        gathering.requests = late
        if questions:
            return (*self._tell(gathering), *questions, SetTimer("patience", self.settings.patience_s))
        if late:
            return (*self._tell(gathering), SetTimer("further", 0.0))
        return self._finish(gathering, now_s)

    def go_on(self, now_s: float) -> tuple[Effect, ...]:
        """The timer ``further`` ran out: serve those who were put off."""
        gathering = self._gathering
        return () if gathering is None or gathering.awaited else self.decide(now_s)

    def _put_off(self, gathering: Gathering, turns: list[UserTurn], now_s: float) -> dict[str, list[Request]]:
        """What waits for a further turn, by submitter: nothing of who has had enough, or whom others would wait for."""
        settings = self.settings
        late: dict[str, list[Request]] = {}
        over = self._wished == HARD or now_s - gathering.began_s >= settings.longest_s
        for turn in turns:
            used_s = gathering.used_s[turn.name] = gathering.used_s.get(turn.name, 0.0) + turn.budget.used_s
            if not turn.put_off:
                continue
            self._slow.add(turn.name)
            for source, request in turn.requests[turn.at:]:
                if over or used_s >= settings.submitter_s:
                    gathering.rejected.append(Rejected(turn, source, request, PUT_OFF, ()))
                else:
                    request.heap, request.seen, request.hurried = None, 0, False
                    late.setdefault(source, []).append(request)
        return late

    def _further(self, gathering: Gathering, turns: list[UserTurn]) -> list[Effect]:
        """Questions for the requests of submitters that could take more than they had asked for so far."""
        sated = {each.turn.name for each in gathering.rejected if each.reason == SHARE_USED_UP}
        more, gathering.more, gathering.requests, gathering.awaited = gathering.more, {}, {}, set()
        return [
            self._ask(gathering, gathering.submitters[key], cursor) for key, cursor in more.items()
            if gathering.submitters[key].name not in sated
        ]

    def _finish(self, gathering: Gathering, now_s: float) -> tuple[Effect, ...]:
        """Tell everybody what the cycle decided."""
        self._gathering = None
        self.state = CycleState.IDLE
        self._ended_s = now_s
        placed, rejected = gathering.placed, gathering.rejected
        effects: list[Effect] = [CancelTimer("patience"), *self._note_trace(gathering, placed, rejected, now_s)]
        idle = {name for each in rejected if self.view.demand.get(name := each.turn.name, (0, 0))[0]}
        self.priorities.wants(idle, now_s)
        self._slow &= {name for name, used_s in gathering.used_s.items() if used_s >= self.settings.slice_s}
        effects += self._tell(gathering)
        effects += self._reclaim(gathering, now_s)
        effects += self._wake(gathering, now_s)
        self.last = {
            "LastNegotiationCycleNumber0": float(gathering.number), "LastNegotiationCycleTime0": gathering.began_s,
            "LastNegotiationCycleEnd0": now_s, "LastNegotiationCycleMatches0": float(len(placed)),
            "LastNegotiationCycleRejections0": float(len(rejected)),
            "LastNegotiationCycleActiveSubmitterCount0": float(len(gathering.taken)),
            "LastNegotiationCycleTotalSlots0": float(len(self.view.slots)),
        }
        next_s = self.view.expire_handouts(now_s)
        if next_s is not None:
            effects.append(SetTimer("handouts", next_s - now_s + 0.001))
        if placed or rejected:
            effects.append(Note(f"cycle {gathering.number}: {len(placed)} matches, {len(rejected)} requests refused",
                                "info" if placed else "debug"))
        return (*effects, *self.wish(self._wished, now_s))

    def _reclaim(self, gathering: Gathering, now_s: float) -> list[Effect]:
        """Take machines back from other pools for local jobs that found none."""
        if not gathering.hungry or not self.lending.is_lent(self.view):
            return []
        slots = self.lending.reclaim(self.view, gathering.hungry, now_s)
        return vacate((slot, "local jobs want the machine") for slot in slots)

    def _wake(self, gathering: Gathering, now_s: float) -> list[Effect]:
        """Have machines that sleep dated for the local jobs that found none that is awake."""
        if not gathering.unserved or not self.view.sleeping:
            return []
        constraint = self._match_settings.slot_constraint
        sleeping = {key: slot for key, slot in self.view.sleeping.items()
                    if constraint is None or is_true(constraint.evaluate(slot.ad, None, now_s))}
        with TimeBudget(self.settings.slice_s, self._stopwatch) as budget:
            return self.waking.tell(sleeping, gathering.unserved, now_s, budget.has_more)

    def _tell(self, gathering: Gathering) -> list[Effect]:
        return announce(gathering, self.settings.inform_startd)

    def _spin(self, gathering: Gathering, turns: list[UserTurn], now_s: float) -> None:
        view, rules = self.view, self.rules
        budget = None
        if rules.groups.groups:
            budget = GroupBudget(rules.groups, view.total_weight, view.had())
        allocator = FairShareAllocator(self._matchmaker, self.priorities, now_s + HANDOUT_S,
                          lambda: ConcurrencyLimits(rules.limit_of, view), budget)
        allocator.serve(turns, view.total_weight)
        gathering.placed += allocator.placed
        gathering.rejected += allocator.rejected
        gathering.hungry += [
            (each.request.ad, each.request.left) for each in allocator.rejected
            if MARK not in each.turn.name and each.reason != SHARE_USED_UP and not each.request.limits
            and allocator.may_have(each.turn, 1.0)]
        gathering.unserved += [
            each.request for each in allocator.rejected
            if MARK not in each.turn.name and each.reason not in (SHARE_USED_UP, PUT_OFF)
            and (not each.request.limits or not allocator.limits.why_not(each.request.limits))
            and allocator.may_have(each.turn, 1.0)]

    def _turns(self, gathering: Gathering, now_s: float) -> list[UserTurn]:
        """The users, each with the requests of all its schedds; the jobs are told their submitter's priority."""
        turns: dict[str, UserTurn] = {}
        had = self.view.had()
        for key, requests in gathering.requests.items():
            submitter = gathering.submitters[key]
            turn = turns.get(submitter.name)
            if turn is None:
                record = self.priorities.users.get(submitter.name)
                turn = turns[submitter.name] = UserTurn(
                    submitter.name, self.priorities.effective(submitter.name, now_s),
                    holding=had.get(submitter.name, 0.0),
                    ceiling=record.ceiling if record is not None else -1.0, is_slow=submitter.name in self._slow,
                    budget=TimeBudget(min(self.settings.slice_s, self.settings.submitter_s), self._stopwatch),
                )
            for request in requests:
                request.priority = turn.priority
                request.ad["SubmitterUserPrio"] = turn.priority
                request.ad["SubmitterUserResourcesInUse"] = turn.holding
                turn.requests.append((key, request))
        return list(turns.values())

    def _note_trace(self, gathering: Gathering, placed: Iterable[Placement], rejected: Iterable[Rejected],
                    now_s: float) -> Iterable[Effect]:
        """Keep what was decided; what is news is a line of the log."""
        matched: dict[int, int] = {}
        requests: dict[int, tuple[str, Request]] = {}
        for each in placed:
            matched[id(each.request)] = matched.get(id(each.request), 0) + 1
            requests[id(each.request)] = (each.source, each.request)
        refused = {id(each.request): each for each in rejected}
        requests.update((id(each.request), (each.source, each.request)) for each in rejected)
        for key, (source, request) in requests.items():
            why = refused.get(key)
            entry = TraceEntry(
                cycle=gathering.number, when_s=now_s, submitter=request.submitter,
                schedd_name=gathering.submitters[source].schedd_name, autocluster=request.autocluster,
                job_id=request.job_id, matched=matched.get(key, 0), unmatched=request.left,
                reason=why.reason if why is not None else "", causes=why.causes if why is not None else (),
            )
            if self.trace.note(entry):
                yield note_of(entry)
        self.trace.forget_before(gathering.number)
