"""When a machine fetches work, and what it tells of it: one small machine for each of its slots.

Theory: a slot that is offered to the pool and that nobody has may fetch work as well.  A program of the site is run for
it and prints a job, or nothing.  The job asks for the slot as a schedd's would: the same checks, the same policy, the
same claim.  So whatever holds of claims holds of these, and the owner's wishes first of all.  One that was granted is a
run of its own (:mod:`condor_actors.cores.fetched_work.fetched_run`), and the slot's machine rests until it is over.

==========  ===========================================================================================
resting     the timer says when the next look is
fetching    the program runs that fetches work
asking      the startd was asked for a claim
==========  ===========================================================================================

**Source**: HTCondor's manual, "Hooks that fetch work": the four hooks and FetchWorkDelay.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from condor_actors.classads import ClassAd, Expr
from condor_actors.config.settings import setting
from condor_actors.cores.fetched_work.fetched_job import BadFetchedJob, owner_of, read_fetched, texts_of
from condor_actors.cores.state_table import ignore, total_table
from condor_actors.effects import Answer, Ask, CancelTimer, Effect, Note, SetTimer
from condor_actors.messages.claim import ClaimGranted, ClaimRefused, RequestClaim
from condor_actors.messages.envelope import Address, TimerFired

__all__ = ["BeginRun", "FetchHooks", "FetchSettings", "Fetching", "HookEnded", "Offer", "RunHook", "RunIsOver", "State",
           "StopHook", "TABLE"]

STARTD = Address("", "startd")
USUAL_DELAY_S, MOST_DELAY_S = 300.0, 1e9
FETCH_S, TOLD_S = 600.0, 60.0
"""How long a program may take that fetches work, and one that is only told."""
ASK_S = 120.0
LEASE_S = 600.0
MOST_TELLING = 100
"""So many programs that are only told run at once."""


class State(enum.Enum):
    """What a slot is doing about fetched work."""

    RESTING = "resting"
    FETCHING = "fetching"
    ASKING = "asking"


@attrs.frozen(kw_only=True)
class FetchHooks:
    """The programs of one keyword; an empty path: there is none.

    Attributes:
        keyword: in capitals.
        fetch: prints a job; reply: is told whether it was taken; evict: is told that it was driven out.
    """

    keyword: str
    fetch: str
    reply: str = ""
    evict: str = ""


@attrs.frozen(kw_only=True)
class FetchSettings:
    """What the configuration says.

    Attributes:
        hooks: by keyword in capitals, those that fetch.
        keyword: of all slots (STARTD_JOB_HOOK_KEYWORD); keywords: by the number of a slot (SLOT<N>_JOB_HOOK_KEYWORD).
        delay: FetchWorkDelay, evaluated in the slot's ad; None: 300 s.
        poll_s: how often it is looked whether a slot is free.
        domain: UID_DOMAIN.
    """

    hooks: Mapping[str, FetchHooks] = attrs.field(factory=dict)
    keyword: str = ""
    keywords: Mapping[int, str] = attrs.field(factory=dict)
    delay: Expr | None = None
    poll_s: float = setting("POLLING_INTERVAL")
    domain: str = ""

    def of_slot(self, number: int) -> FetchHooks | None:
        """The hooks of a slot; None: it fetches nothing."""
        return self.hooks.get((self.keywords.get(number) or self.keyword).upper())


@attrs.frozen(kw_only=True)
class Offer:
    """A slot as it is now.

    Attributes:
        number: of the slot; ad: of it.
        capability: the right to ask for it.
        is_free: whether it is offered, and something of it is left.
    """

    name: str
    number: int
    ad: ClassAd
    capability: str
    is_free: bool


# ---- events and effects


@attrs.frozen(kw_only=True)
class HookEnded:
    """A program is over: what it has printed, its status (negative: minus the signal), and why it could not begin."""

    run: int
    printed: bytes = b""
    is_cut: bool = False
    status: int = 0
    problem: str = ""


@attrs.frozen(kw_only=True)
class RunIsOver:
    """A run of a fetched job is over, or is being driven out.

    Attributes:
        slot: the name of the slot that fetched it.
        job, slot_ad: as they were.
        driven_out: whether it did not end by itself: the hook for that is run.
        is_last: whether nothing follows: the next job may be fetched.
        reason: for the log.
    """

    slot: str
    job: bytes
    slot_ad: bytes
    driven_out: bool
    is_last: bool
    reason: str = ""


@attrs.frozen(kw_only=True)
class RunHook(Effect):
    """Run a program; one :class:`HookEnded` follows."""

    run: int
    title: str
    program: str
    arguments: tuple[str, ...] = ()
    stdin: bytes


@attrs.frozen
class StopHook(Effect):
    """End a program at once."""

    run: int


@attrs.frozen(kw_only=True)
class BeginRun(Effect):
    """A claim was granted for a fetched job: run it."""

    slot: str
    granted: ClaimGranted
    job: bytes


@attrs.define(eq=False, kw_only=True)
class _Course:
    """One slot.

    Attributes:
        run: of the program that fetches for it; job: what it fetched.
        fetched_s: when it was run last.
    """

    slot: str
    state: State = State.RESTING
    run: int = 0
    hooks: FetchHooks | None = None
    job: ClassAd | None = None
    fetched_s: float = 0.0


class Fetching:
    """The core; see the module.

    Args:
        settings: of the configuration.
        offers: the slots that may fetch work as they are now, by name.
        first_run: the first number of a program's run.
    """

    def __init__(self, settings: FetchSettings, offers: Callable[[], Mapping[str, Offer]], first_run: int = 1) -> None:
        self.settings = settings
        self._offers = offers
        self._courses: dict[str, _Course] = {}
        self._runs = first_run
        self._serial = 0
        self._telling: set[int] = set()
        self._now_s = 0.0
        self._effects: list[Effect] = []

    # ---- turns

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        self._begin_turn(now_s)
        self._look_for_slots()
        return tuple(self._effects)

    def reconfigure(self, settings: FetchSettings, now_s: float) -> tuple[Effect, ...]:
        """Other settings: for slots that rest at once, for the others when they do."""
        self._begin_turn(now_s)
        self.settings = settings
        self._look_for_slots()
        return tuple(self._effects)

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""
        self._begin_turn(now_s)
        if isinstance(event, RunIsOver):
            self._run_over(event)
        elif isinstance(event, HookEnded):
            self._effects.append(CancelTimer(("late", event.run)))
            self._telling.discard(event.run)
            for course in self._courses.values():
                if course.run == event.run:
                    self._step(course, HookEnded, event)
        elif isinstance(event, TimerFired) and event.key[0] == "late":
            self._effects.append(StopHook(event.key[1]))
        else:
            name = event.tag if isinstance(event, Answer) else event.key[1]
            if name in self._courses:
                self._step(self._courses[name], type(event), event)
        return tuple(self._effects)

    def _begin_turn(self, now_s: float) -> None:
        self._now_s, self._effects = now_s, []

    def _step(self, course: _Course, key: Any, event: Any) -> None:
        TABLE[course.state, key](self, course, event)

    def _look_for_slots(self) -> None:
        """Each slot has its course."""
        for offer in self._offers().values():
            if offer.name not in self._courses:
                self._courses[offer.name] = _Course(slot=offer.name)
                self._rest(self._courses[offer.name], 0.0)

    # ---- steps

    def _due(self, course: _Course, event: Any) -> None:
        """Fetch, if the slot is free and has hooks."""
        offer = self._offers().get(course.slot)
        course.hooks = self.settings.of_slot(offer.number) if offer is not None else None
        if offer is None or course.hooks is None or not offer.is_free:
            self._rest(course, self.settings.poll_s)
            return
        course.state, course.fetched_s = State.FETCHING, self._now_s
        course.run = self._run("HOOK_FETCH_WORK", course.hooks, course.hooks.fetch, (), offer.ad.to_bytes(), FETCH_S)

    def _fetched(self, course: _Course, event: HookEnded) -> None:
        """The program is over: ask for the slot, if it has printed a job."""
        course.run = 0
        assert course.hooks is not None
        title, offer, job = f"{course.hooks.keyword}_HOOK_FETCH_WORK", self._offers().get(course.slot), None
        self._serial = max(self._serial + 1, int(self._now_s * 1000))
        try:
            if event.problem or event.status:
                raise BadFetchedJob(event.problem or f"it ended with status {event.status}: what it printed does not "
                                    "count")
            if event.is_cut:
                raise BadFetchedJob("it prints too much")
            job = read_fetched(event.printed, course.hooks.keyword, self._serial)
        except BadFetchedJob as error:
            self._note(course, f"{title}: {error}", "warn")
        if job is None or offer is None:
            self._wait(course, offer)
            return
        course.state, course.job = State.ASKING, job
        owner = owner_of(course.hooks.keyword, self.settings.domain)
        self._effects.append(Ask(STARTD, RequestClaim(
            slot_name=course.slot, capability=offer.capability, job_ad=job.to_bytes(), owner=owner, submitter=owner,
            schedd_name="fetched-work", lease_s=LEASE_S), ASK_S, course.slot))

    def _answered(self, course: _Course, event: Answer) -> None:
        """The startd has granted the slot, or not."""
        job, course.job, course.state = course.job, None, State.RESTING
        offer, hooks = self._offers().get(course.slot), course.hooks
        assert job is not None
        assert hooks is not None
        granted = isinstance(event.message, ClaimGranted)
        slot_ad = event.message.slot_ad if granted else offer.ad.to_bytes() if offer is not None else b""
        word = "accept" if granted else "reject"
        self._tell("HOOK_REPLY_FETCH", hooks, hooks.reply, (word,), job.to_bytes(), slot_ad)
        name = f"the fetched job {job.get_int('ClusterId')}.{job.get_int('ProcId')}"
        if granted:
            self._effects.append(BeginRun(slot=course.slot, granted=event.message, job=job.to_bytes()))
            self._note(course, f"{name} has {event.message.slot_name}")
        else:
            why = event.message.reason if isinstance(event.message, ClaimRefused) else str(event.message)
            self._note(course, f"{name} is not taken: {why}")
        self._wait(course, offer)

    def _run_over(self, event: RunIsOver) -> None:
        """A run has ended: its slot may fetch the next job."""
        course = self._courses.get(event.slot)
        offer = self._offers().get(event.slot)
        hooks = self.settings.of_slot(offer.number) if offer is not None else None
        if event.driven_out and hooks is not None:
            self._tell("HOOK_EVICT_CLAIM", hooks, hooks.evict, (), event.job, event.slot_ad)
        if course is None:
            return
        if event.reason:
            self._note(course, event.reason)
        if event.is_last and course.state is State.RESTING:
            ad = offer.ad.copy() if offer is not None else ClassAd()
            ad.update({"State": "Claimed", "Activity": "Idle"})
            self._rest(course, max(0.0, course.fetched_s + self._delay(ad) - self._now_s))

    # ---- parts of steps

    def _wait(self, course: _Course, offer: Offer | None) -> None:
        """The next time is FetchWorkDelay after the last."""
        course.state = State.RESTING
        delay_s = self._delay(offer.ad if offer is not None else ClassAd())
        self._rest(course, max(0.0, course.fetched_s + delay_s - self._now_s))

    def _delay(self, ad: ClassAd) -> float:
        value = self.settings.delay.evaluate(ad, None, self._now_s) if self.settings.delay is not None else None
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST_DELAY_S:
            return float(value)
        return USUAL_DELAY_S

    def _rest(self, course: _Course, delay_s: float) -> None:
        course.state = State.RESTING
        self._effects.append(SetTimer(("due", course.slot), max(0.5, delay_s)))

    def _tell(self, what: str, hooks: FetchHooks, program: str, arguments: tuple[str, ...], job: bytes,
              slot: bytes) -> None:
        """Run a program that is only told."""
        if not program:
            return
        if len(self._telling) >= MOST_TELLING:
            self._effects.append(Note(f"{hooks.keyword}_{what} is not run: {MOST_TELLING} such programs run already",
                                      "warn"))
            return
        self._telling.add(self._run(what, hooks, program, arguments, texts_of(job, slot), TOLD_S))

    def _run(self, what: str, hooks: FetchHooks, program: str, arguments: tuple[str, ...], stdin: bytes,
             most_s: float) -> int:
        run, self._runs = self._runs, self._runs + 1
        self._effects += [RunHook(run=run, title=f"{hooks.keyword}_{what}", program=program, arguments=arguments,
                                  stdin=stdin), SetTimer(("late", run), most_s)]
        return run

    def _note(self, course: _Course, text: str, level: str = "info") -> None:
        self._effects.append(Note(f"{course.slot}: {text}", level))


_NO_HOOK = ignore("no program runs for it")
_NOT_ASKED = ignore("the startd was not asked")
_BUSY = ignore("it is at it")

_Step = Callable[[Fetching, _Course, Any], None]
_ROWS: dict[type | str, tuple[_Step | ignore, ...]] = {
    # resting, fetching, asking
    TimerFired: (Fetching._due, _BUSY, _BUSY),
    HookEnded: (_NO_HOOK, Fetching._fetched, _NO_HOOK),
    Answer: (_NOT_ASKED, _NOT_ASKED, Fetching._answered),
}
TABLE: Final = total_table("a slot that fetches work", State, _ROWS)
