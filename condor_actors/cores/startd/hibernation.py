"""When the machine goes to sleep, and what the pool knows of it meanwhile.

Theory: every HIBERNATE_CHECK_INTERVAL each slot's HIBERNATE is evaluated.  A machine on which anything is claimed,
matched or drained, or one of whose slots says ``"NONE"``, stays awake; nobody is evicted for it.  Else the ads of all
slots are told to the collector with ``Offline`` first: a machine that nobody knows of could not be woken.  When that
is confirmed, and every slot still wants it, the site's program puts the machine to sleep.  It ends when the machine is
awake again; then an hour passes before the next look, so that a machine does not go to and fro.

========== =========================================================================================================
state      leaves it by
========== =========================================================================================================
awake      every slot wants to sleep → telling
telling    the collector has confirmed → asleep; it has not, a claim is asked for, or the owner is back → awake
asleep     the program is over (or, where the machine was switched off, this startd is) → awake
========== =========================================================================================================

**Source**: HTCondor's manual, "Power Management", and the parameters HIBERNATE….
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim_index import ClaimIndex
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.slot_publisher import SlotPublisher
from condor_actors.cores.startd.slots import Slots
from condor_actors.cores.startd.startd_events import Show
from condor_actors.cores.state_table import InvariantBroken, ignore, total_table
from condor_actors.cores.turn import Turn
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer

__all__ = ["LEVELS", "TABLE", "AskPower", "ClaimWanted", "FallAsleep", "Hibernation", "HibernationDue", "PowerKnown",
           "SleepOver", "SleepState", "SleepTold", "TellSleep", "level_of"]

UPTIME_S = 3600.0
"""So long a machine that was woken stays awake at least."""
LEVELS: Mapping[str, int] = {
    "NONE": 0, "0": 0, "S1": 1, "1": 1, "STANDBY": 1, "SLEEP": 1, "S2": 2, "2": 2, "S3": 3, "3": 3, "RAM": 3, "MEM": 3,
    "SUSPEND": 3, "S4": 4, "4": 4, "DISK": 4, "HIBERNATE": 4, "S5": 5, "5": 5, "SHUTDOWN": 5, "OFF": 5,
}
"""The depth of each state that HIBERNATE and programs may name."""


class SleepState(enum.Enum):
    """Whether the machine is to be had."""

    AWAKE = "awake"
    TELLING = "telling"
    ASLEEP = "asleep"


@attrs.frozen(kw_only=True)
class PowerKnown:
    """The site's program has said what it can do: levels by number, how; none: why not."""

    levels: frozenset[int] = frozenset()
    method: str = ""
    problem: str = ""


@attrs.frozen
class HibernationDue:
    """It is time to look whether the machine may sleep."""


@attrs.frozen
class SleepTold:
    """The collector has confirmed that the machine sleeps; ``problem``: why it has not."""

    number: int
    problem: str = ""


@attrs.frozen
class SleepOver:
    """The machine is awake again; ``problem``: why it has never slept."""

    number: int
    problem: str = ""


@attrs.frozen
class ClaimWanted:
    """A schedd asks for a slot."""


@attrs.frozen
class AskPower(Effect):
    """Ask the site's program what it can do; :class:`PowerKnown` follows."""


@attrs.frozen
class TellSleep(Effect):
    """Have the collector confirm the ads of all slots; :class:`SleepTold` follows."""

    number: int


@attrs.frozen
class FallAsleep(Effect):
    """Put the machine to sleep, to a level of 1 to 5; :class:`SleepOver` follows, if it wakes as it was."""

    number: int
    level: int


def level_of(value: Any) -> int:
    """The depth of what HIBERNATE has evaluated to; 0: stay awake, also where it makes no sense."""
    if isinstance(value, str):
        return LEVELS.get(value.strip().upper(), 0)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 5 else 0


class Hibernation:
    """Decides when the machine sleeps; see the module.

    Args:
        turn: of the core.
        slots: of the machine.
        claims: of the startd.
        publisher: is told which slots have changed.
        draining: the drain under way.

    Attributes:
        state: of the machine; level: how deep it sleeps or is to.
    """

    def __init__(self, turn: Turn, slots: Slots, claims: ClaimIndex, publisher: SlotPublisher,
                 draining: Draining) -> None:
        self._turn = turn
        self._slots = slots
        self._claims = claims
        self._publisher = publisher
        self._draining = draining
        self.state = SleepState.AWAKE
        self.level = 0
        self._number = 0
        self._known = PowerKnown()
        self._interval_s = 0.0

    def handle(self, event: Any) -> None:
        """One event of the table."""
        TABLE[self.state, type(event)](self, event)

    def begin(self) -> None:
        """The first turn, or other settings: look regularly from now on, or not any more."""
        interval_s = self._slots.settings.hibernate_check_s
        if interval_s == self._interval_s:
            self._show()
            return
        self._interval_s = interval_s
        if interval_s:
            self._turn.do(AskPower(), SetTimer("hibernate", interval_s))
        else:
            self._turn.do(CancelTimer("hibernate"))
        self._show()

    def known(self, event: Any, known: PowerKnown) -> None:
        """What the site's program can do."""
        self._known = known
        if known.problem:
            self._turn.do(Note(f"the machine is never put to sleep: {known.problem}", "error"))
        self._show()
        self._publisher.all_changed()

    def may_be_claimed(self) -> bool:
        """Whether a claim can be granted; a sleep that is only told of is called off for it."""
        self.handle(ClaimWanted())
        return self.state is SleepState.AWAKE

    def validate(self) -> None:
        """Nothing is claimed on a machine that sleeps.

        Raises:
            InvariantBroken: something is.
        """
        if self.state is not SleepState.AWAKE and (self._claims or self._claims.opening):
            raise InvariantBroken(f"the machine is {self.state.value}, and has claims")

    # ---- steps

    def _look(self, event: HibernationDue) -> None:
        self._turn.do(SetTimer("hibernate", self._interval_s))
        level = self._wanted()
        if not level:
            return
        if not self._is_possible() or level not in self._known.levels:
            able = ", ".join(f"S{each}" for each in sorted(self._known.levels)) or "no state"
            self._turn.do(Note(f"HIBERNATE wants S{level}; the machine can be put into {able}"
                               + ("" if self._is_possible() else ", and no network card could wake it "
                                  "(HIBERNATION_OVERRIDE_WOL)"), "warn"))
            return
        self.state, self.level = SleepState.TELLING, level
        self._number += 1
        self._show()
        for slot in self._slots:
            self._slots.refresh(slot, self._turn.now_s)
            self._turn.do(Show(slot))
        self._turn.do(Note(f"every slot wants S{level}: the machine is about to sleep"), TellSleep(self._number))

    def _wanted(self) -> int:
        """The depth that all slots agree to; 0: the machine stays awake."""
        expression = self._slots.settings.hibernate
        if expression is None or self._claims or self._claims.opening or self._draining.request is not None:
            return 0
        if any(slot.machine.slot_state == op.MATCHED for slot in self._slots):
            return 0
        levels = [level_of(expression.evaluate(slot.ad, None, self._turn.now_s)) for slot in self._slots]
        return max(levels) if levels and all(levels) else 0

    def _told(self, event: SleepTold) -> None:
        if event.number != self._number:
            return
        if event.problem:
            self._awake(f"the machine stays awake: no collector has confirmed that it sleeps ({event.problem})", "warn")
        elif not self._wanted():
            self._awake("the machine stays awake: it is wanted")
        else:
            self.state = SleepState.ASLEEP
            self._turn.do(Note(f"the machine is put into S{self.level}"), FallAsleep(self._number, self.level))

    def _over(self, event: SleepOver) -> None:
        if event.number != self._number:
            return
        if event.problem:
            self._awake(f"the machine could not be put into S{self.level}: {event.problem}", "error")
        else:
            self._turn.do(SetTimer("hibernate", max(self._interval_s, UPTIME_S)))
            for slot in self._slots:  # matches of the time before are void
                self._slots.renew_capability(slot)
            self._awake("the machine is awake again")

    def _called_off(self, event: ClaimWanted) -> None:
        self._awake("the machine stays awake: a claim is asked for")

    def _awake(self, note: str, level: str = "info") -> None:
        self.state, self.level = SleepState.AWAKE, 0
        self._show()
        self._publisher.all_changed(urgent=True)
        self._turn.do(Note(note, level))

    # ---- ads

    def _is_possible(self) -> bool:
        return bool(self._known.levels) and (
            self._slots.machine_ad.get_bool("IsWakeAble") or self._slots.settings.sleeps_unwakeable)

    def _show(self) -> None:
        ad, known, is_on = self._slots.machine_ad, self._known, bool(self._interval_s)
        values = {
            "CanHibernate": self._is_possible() if is_on else None,
            "HibernationSupportedStates": ",".join(f"S{each}" for each in sorted(known.levels)) if is_on else None,
            "HibernationMethod": known.method if is_on and known.method else None,
            "HibernationLevel": self.level if is_on else None,
            "HibernationState": (f"S{self.level}" if self.level else "NONE") if is_on else None,
            "Offline": None if self.state is SleepState.AWAKE else True,
        }
        for name, value in values.items():
            if value is not None:
                ad[name] = value
            elif name in ad:
                del ad[name]


Step = Callable[[Hibernation, Any], None]

TABLE: dict[tuple[SleepState, type], Step | ignore] = total_table("a machine that may sleep", SleepState, {
    HibernationDue: (Hibernation._look, ignore("it is about to sleep"), ignore("it sleeps")),
    SleepTold: (ignore("the sleep was called off"), Hibernation._told, ignore("another collector confirms it, too")),
    SleepOver: (ignore("of a life before"), ignore("of a sleep before"), Hibernation._over),
    ClaimWanted: (ignore("nothing stands against it"), Hibernation._called_off, ignore("it cannot be called back")),
})
