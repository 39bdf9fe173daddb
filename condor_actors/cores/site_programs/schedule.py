"""When programs of the site run, and what of their output is told: one small machine for each.

Theory: a program rests until its timer fires, waits while those that run are too many, runs, and is ended at the
latest by SIGKILL.  Each run has a number, so that the word of a run that is over means nothing any more.

==========  ===================================================================================================
resting     none runs; the timer, if there is one, says when the next one begins
waiting     it is to run; the loads of the others leave no room
running     one runs
ending      it was sent SIGTERM; SIGKILL follows
==========  ===================================================================================================

Programs on demand have no timer: they run when the machine is to measure its speed, and end at the latest when it is
wanted (:class:`Demanded`); when all of them rest, the daemon is told (:class:`DemandOver`).

**Source**: HTCondor's manual, "Daemon ClassAd Hooks", for the modes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any, Final

import attrs

from condor_actors.classads import ClassAd, is_true
from condor_actors.cores.site_programs.output import OutputReader, Printed
from condor_actors.cores.site_programs.programs import (
    Mode,
    Publish,
    SiteAd,
    SiteAdsTold,
    SiteProgram,
    SiteSettings,
)
from condor_actors.cores.state_table import InvariantBroken, ignore, total_table
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer
from condor_actors.messages.envelope import TimerFired

__all__ = ["MOST_BYTES", "Changed", "DemandOver", "Demanded", "HangUp", "ProgramEnded", "ProgramWrote", "SiteSchedule",
           "StartProgram", "State", "StopProgram", "TABLE", "TellAds", "TellDemandOver"]

END_S = 10.0
"""How long a program that was sent SIGTERM has."""
MOST_BYTES: Final = 64 * 1024
"""So much text all ads of all programs have together: each slot's ad may carry it."""
MOST_ADS = 200


class State(enum.Enum):
    """What becomes of a program."""

    RESTING = "resting"
    WAITING = "waiting"
    RUNNING = "running"
    ENDING = "ending"


# ---- events and effects


@attrs.frozen(kw_only=True)
class ProgramWrote:
    """A piece of what a run has printed."""

    name: str
    run: int
    data: bytes


@attrs.frozen(kw_only=True)
class ProgramEnded:
    """A run is over, or could not begin.

    Attributes:
        status: its exit status; negative: minus the signal.
        problem: why it could not begin; empty: it did.
        said: the end of its standard error.
    """

    name: str
    run: int
    status: int = 0
    problem: str = ""
    said: str = ""


@attrs.frozen
class Changed:
    """The configuration was read again."""

    settings: SiteSettings


@attrs.frozen
class Demanded:
    """Programs on demand are to run now; ``on`` is false: those that run are to end."""

    on: bool


@attrs.frozen
class DemandOver:
    """Told to the daemon: what was demanded has been done, as far as it can be."""


@attrs.frozen(kw_only=True)
class StartProgram(Effect):
    """Start a run; :class:`ProgramWrote` and one :class:`ProgramEnded` follow."""

    program: SiteProgram
    run: int


@attrs.frozen(kw_only=True)
class StopProgram(Effect):
    """End a run and all its processes: by SIGTERM, or (``fast``) by SIGKILL."""

    name: str
    run: int
    fast: bool


@attrs.frozen(kw_only=True)
class HangUp(Effect):
    """Send SIGHUP to the first process of a run."""

    name: str
    run: int


@attrs.frozen(kw_only=True)
class TellAds(Effect):
    """Tell the daemon what programs say."""

    told: SiteAdsTold


@attrs.frozen
class TellDemandOver(Effect):
    """Tell the daemon :class:`DemandOver`."""


@attrs.define(eq=False, kw_only=True)
class _Course:
    """One program and what becomes of it.

    Attributes:
        run: the number of its last run.
        again: it is to run at once when this run has ended.
        gone: it is in the configuration no longer, and ends.
    """

    program: SiteProgram
    state: State = State.RESTING
    run: int = 0
    reader: OutputReader | None = None
    again: bool = False
    gone: bool = False


class SiteSchedule:
    """The core; see the module.

    Args:
        settings: of the configuration.
        facts: gives the ad that conditions are evaluated in.
    """

    def __init__(self, settings: SiteSettings, facts: Callable[[], ClassAd]) -> None:
        self._settings = settings
        self._facts = facts
        self._courses = {each.name: _Course(program=each) for each in settings.programs}
        self._ads: dict[tuple[str, str], SiteAd] = {}
        self._runs = 0
        self._is_demanded = False
        self._now_s = 0.0
        self._effects: list[Effect] = []

    # ---- turns

    def start(self, now_s: float, *, demanded: bool = False) -> tuple[Effect, ...]:
        """The first turn: all of them run, those on demand if they are demanded."""
        self._begin_turn(now_s)
        self._is_demanded = demanded
        for course in tuple(self._courses.values()):
            if demanded or course.program.mode is not Mode.ON_DEMAND:
                self._step(course, "timer due", None)
        self._mind_demand()
        return tuple(self._effects)

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from ``event`` at ``now_s``."""
        self._begin_turn(now_s)
        if isinstance(event, Changed):
            self._change(event.settings)
        elif isinstance(event, Demanded):
            self._is_demanded = event.on
            for each in tuple(self._courses.values()):
                if each.program.mode is Mode.ON_DEMAND:
                    self._step(each, "demanded" if event.on else "demand over", event)
            self._fill()
        elif isinstance(event, TimerFired):
            what, name = event.key
            course = self._courses.get(name)
            if course is not None:
                self._step(course, f"timer {what}", event)
        else:
            course = self._courses.get(event.name)
            if course is not None and course.run == event.run:
                self._step(course, type(event), event)
        self._mind_demand()
        return tuple(self._effects)

    def _mind_demand(self) -> None:
        """Tell when nothing of what was demanded is under way any more."""
        if self._is_demanded and not any(course.state is not State.RESTING for course in self._courses.values()
                                         if course.program.mode is Mode.ON_DEMAND):
            self._is_demanded = False
            self._effects.append(TellDemandOver())

    def _begin_turn(self, now_s: float) -> None:
        self._now_s, self._effects = now_s, []

    def _step(self, course: _Course, key: Any, event: Any) -> None:
        TABLE[course.state, key](self, course, event)

    # ---- what is seen from outside

    @property
    def ads(self) -> tuple[SiteAd, ...]:
        """Those that hold now, in the order of the list of programs."""
        places = {name: place for place, name in enumerate(self._courses)}
        return tuple(sorted(self._ads.values(), key=lambda ad: places[ad.program]))

    def validate(self) -> None:
        """Check what holds between two turns.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        running = [course for course in self._courses.values() if course.state in (State.RUNNING, State.ENDING)]
        if any((course.reader is None) is (course in running) for course in self._courses.values()):
            raise InvariantBroken("a program of the site that runs has no reader, or one that does not has one")
        strangers = {name for name, _ in self._ads} - self._courses.keys()
        if strangers:
            raise InvariantBroken(f"there are ads of {sorted(strangers)}, which are no programs")

    # ---- steps

    def _due(self, course: _Course, event: Any) -> None:
        """Begin, unless the condition does not hold or the others leave no room."""
        program = course.program
        if program.mode is Mode.PERIODIC:
            self._arm(course)
        if program.condition is not None and not is_true(program.condition.evaluate(self._facts(), None, self._now_s)):
            if program.mode is Mode.WAIT_FOR_EXIT:
                self._arm(course)
            return
        course.state = State.WAITING
        self._fill()

    def _due_again(self, course: _Course, event: Any) -> None:
        """A period is over, and the run is not."""
        if course.program.mode is Mode.PERIODIC:
            self._arm(course)
        if course.program.kill:
            self._note(course, f"still runs after {course.program.period_s:g} s, and is ended", "warn")
            course.again = True
            self._end(course)

    def _due_ending(self, course: _Course, event: Any) -> None:
        """A period is over, and the run is being ended."""
        if course.program.mode is Mode.PERIODIC:
            self._arm(course)
        course.again = not course.gone

    def _withdraw(self, course: _Course, event: Any) -> None:
        """It waits for room, and is wanted no more."""
        course.state = State.RESTING

    def _end_demanded(self, course: _Course, event: Any) -> None:
        """It runs, and is wanted no more."""
        self._end(course)

    def _not_again(self, course: _Course, event: Any) -> None:
        """It is being ended, and is not to begin again."""
        course.again = False

    def _end(self, course: _Course) -> None:
        course.state = State.ENDING
        self._effects += [StopProgram(name=course.program.name, run=course.run, fast=False),
                          SetTimer(("kill", course.program.name), END_S)]

    def _kill(self, course: _Course, event: Any) -> None:
        """It was asked to end, and has not."""
        self._effects += [StopProgram(name=course.program.name, run=course.run, fast=True),
                          SetTimer(("kill", course.program.name), END_S)]

    def _wrote(self, course: _Course, event: ProgramWrote) -> None:
        assert course.reader is not None
        self._keep(course, course.reader.feed(event.data, self._now_s))

    def _ended(self, course: _Course, event: ProgramEnded) -> None:
        reader, course.reader = course.reader, None
        assert reader is not None
        wanted = course.state is State.RUNNING
        course.state = State.RESTING
        self._effects.append(CancelTimer(("kill", course.program.name)))
        if course.gone:
            self._forget(course)
        else:
            if wanted and not event.problem:
                self._keep(course, reader.end(self._now_s))
            self._tell_of_end(course, reader, event, wanted)
            again, course.again = course.again, False
            if again:
                self._step(course, "timer due", None)
            elif course.program.mode is Mode.WAIT_FOR_EXIT:
                self._arm(course)
        self._fill()

    def _tell_of_end(self, course: _Course, reader: OutputReader, event: ProgramEnded, wanted: bool) -> None:
        """Lines of the log about a run."""
        if event.problem:
            self._note(course, f"cannot be run: {event.problem}", "error")
            return
        if reader.strangers:
            shown = "; ".join(reader.strange[:3])
            self._note(course, f"{reader.strangers} lines of its output are no attributes: {shown}", "warn")
        if event.status and wanted:
            how = f"status {event.status}" if event.status > 0 else f"signal {-event.status}"
            text = f"ended with {how}"
            if self._settings.logs_failures:
                lines = [*reader.strange, *([f"standard error: {event.said}"] if event.said else [])]
                text += "; ".join(["", *lines])
            self._note(course, text, "warn")

    # ---- parts of steps

    def _arm(self, course: _Course) -> None:
        self._effects.append(SetTimer(("due", course.program.name), max(1.0, course.program.period_s)))

    def _fill(self) -> None:
        """Start those that wait, in their order, as far as there is room; one alone always has it."""
        loads = {False: 0.0, True: 0.0}
        for each in self._courses.values():
            if each.state in (State.RUNNING, State.ENDING):
                loads[each.program.benchmark] += each.program.load
        for course in self._courses.values():
            if course.state is not State.WAITING:
                continue
            program, load = course.program, loads[course.program.benchmark]
            most = self._settings.most_benchmark_load if program.benchmark else self._settings.most_load
            if load and load + program.load > most + 1e-9:
                continue
            loads[program.benchmark] += program.load
            self._runs += 1
            course.state, course.run, course.reader = State.RUNNING, self._runs, OutputReader(course.program)
            self._effects.append(StartProgram(program=course.program, run=course.run))

    def _keep(self, course: _Course, printed: list[Printed]) -> None:
        """Take up new ads, and tell all that hold now."""
        now = False
        taken = False
        for each in printed:
            key = (each.ad.program, each.ad.tag)
            before = self._ads.get(key)
            if not self._has_room(each.ad, before):
                self._note(course, f"its ad {each.ad.tag!r} is dropped: all programs together have {MOST_BYTES} bytes "
                           f"and {MOST_ADS} ads", "error")
                continue
            self._ads[key] = each.ad
            taken = True
            publish = self._settings.publish
            wanted = publish is Publish.ALWAYS or (publish is Publish.IF_CHANGED and not _alike(before, each.ad))
            now = now or (wanted if each.update is None else each.update)
        if taken:
            self._effects.append(TellAds(told=SiteAdsTold(ads=self.ads, now=now)))

    def _has_room(self, ad: SiteAd, before: SiteAd | None) -> bool:
        """Whether an ad is kept in the place of one before it.

        Ads of a program that has more than its share of the room make way for those of one that has less: a program
        that prints without end keeps no other out.
        """
        def fits() -> bool:
            size = sum(each.size for each in kept.values()) + ad.size
            return size <= MOST_BYTES and len(kept) < MOST_ADS

        kept = {key: each for key, each in self._ads.items() if each is not before}
        programs = {program for program, _ in kept} | {ad.program}
        while not fits():
            sizes = {name: [each.size for each in kept.values() if each.program == name] for name in programs}
            sizes[ad.program].append(ad.size)
            shares = {name: max(sum(own) / MOST_BYTES, len(own) / MOST_ADS) for name, own in sizes.items()}
            most = max(shares, key=lambda name: (shares[name], name != ad.program, name))
            if most == ad.program or shares[most] <= 1 / len(programs):
                return False
            del kept[next(key for key in kept if key[0] == most)]
        self._ads = {key: each for key, each in self._ads.items() if key in kept or each is before}
        return True

    def _forget(self, course: _Course) -> None:
        name = course.program.name
        self._courses.pop(name, None)
        for key in [key for key in self._ads if key[0] == name]:
            del self._ads[key]

    def _change(self, settings: SiteSettings) -> None:
        """Other programs: those that are gone end, and their ads with them; those that differ begin anew."""
        before = self._courses
        self._settings = settings
        self._courses = {}
        for program in settings.programs:
            course = before.pop(program.name, None)
            self._courses[program.name] = course if course is not None else _Course(program=program)
        for name, course in before.items():
            self._effects.append(CancelTimer(("due", name)))
            self._courses[name] = course
            self._leave(course)
        for program in settings.programs:
            self._renew(self._courses[program.name], program)
        self._fill()
        self._effects.append(TellAds(told=SiteAdsTold(ads=self.ads, now=True)))

    def _leave(self, course: _Course) -> None:
        for key in [key for key in self._ads if key[0] == course.program.name]:
            del self._ads[key]
        if course.state in (State.RUNNING, State.ENDING):
            course.gone = True
            if course.state is State.RUNNING:
                self._end(course)
        else:
            self._forget(course)

    def _renew(self, course: _Course, program: SiteProgram) -> None:
        """A program that is in the new configuration."""
        running = course.state in (State.RUNNING, State.ENDING)
        changed = program != course.program or course.gone or not course.run
        course.program, course.gone = program, False
        if running and changed:
            course.again = True
            if course.state is State.RUNNING:
                self._end(course)
        elif running:
            course.again = course.again or program.run_again
            if program.hang_up and course.state is State.RUNNING:
                self._effects.append(HangUp(name=program.name, run=course.run))
        elif (course.state is State.RESTING and (changed or program.run_again)
              and program.mode is not Mode.ON_DEMAND):
            self._step(course, "timer due", None)

    def _note(self, course: _Course, text: str, level: str) -> None:
        self._effects.append(Note(f"the program {course.program.name} of the site {text}", level))


def _alike(before: SiteAd | None, after: SiteAd) -> bool:
    """Whether two ads say the same but for when."""
    if before is None:
        return False
    texts = [{name: str(value) for name, value in ad.attributes.items() if not name.endswith("LastUpdate")}
             for ad in (before, after)]
    return texts[0] == texts[1]


_NONE_RUNS = ignore("no run of this number lives")
_IS_COMING = ignore("it begins as soon as there is room")

_Step = Callable[[SiteSchedule, _Course, Any], None]
_ROWS: dict[type | str, tuple[_Step | ignore, ...]] = {
    # resting, waiting, running, ending
    "timer due": (SiteSchedule._due, _IS_COMING, SiteSchedule._due_again, SiteSchedule._due_ending),
    "demanded": (SiteSchedule._due, _IS_COMING, ignore("it runs already"), SiteSchedule._due_ending),
    "demand over": (_NONE_RUNS, SiteSchedule._withdraw, SiteSchedule._end_demanded, SiteSchedule._not_again),
    "timer kill": (_NONE_RUNS, _NONE_RUNS, ignore("it was not asked to end"), SiteSchedule._kill),
    ProgramWrote: (_NONE_RUNS, _NONE_RUNS, SiteSchedule._wrote, ignore("it is ended: what it prints is not wanted")),
    ProgramEnded: (_NONE_RUNS, _NONE_RUNS, SiteSchedule._ended, SiteSchedule._ended),
}
TABLE: Final = total_table("a program of the site", State, _ROWS)
