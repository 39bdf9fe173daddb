"""What a policy would have done on a day: the slot's own table and policy evaluation, on readings of the past.

Theory: a trial is a slot like any other (the same :mod:`owner_policy` table, the same :mod:`policy_evaluation`), with
readings that were recorded, second by second, and with a job that is always there: as soon as the slot can be claimed
it is, the job runs until it has to go, and goes within ``vacate_s``.  What happens is told with the expression that
made it happen and the values that it looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, Expr
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd import slot_ad
from condor_actors.cores.startd.latched_expressions import latch
from condor_actors.cores.startd.policy_evaluation import OwnerPolicy, why

__all__ = ["Happened", "Sample", "Tally", "Trial", "why"]

OWNER_BUSY_S = 60.0


@attrs.frozen
class Sample:
    """Readings of one moment: attributes of the slot's ad (KeyboardIdle, ConsoleIdle, OwnerLoad, ScreenLocked …)."""

    when_s: float
    values: Mapping[str, Any]


@attrs.frozen
class Happened:
    """The slot went from one place to another; ``why``: the expressions, with the values they looked at."""

    when_s: float
    before: op.SlotState
    after: op.SlotState
    why: str


@attrs.define
class Tally:
    """The day in numbers.

    Attributes:
        spent_s: seconds at each place.
        suspended, evicted: how often a job was.
        disturbed_s: for how long a job ran while someone was at the keyboard.
        lowered_s: how much of that with only idle processor and disk time.
    """

    spent_s: dict[op.SlotState, float] = attrs.field(factory=dict)
    suspended: int = 0
    evicted: int = 0
    disturbed_s: float = 0.0
    lowered_s: float = 0.0


class Trial:
    """Replays a recorded day through a policy and counts what it would have done.

    Args:
        expressions: the policy by upper-case name; latches: see STARTD_LATCH_EXPRS.
        job: the job that is always there.
        facts: attributes of the machine.
        vacate_s: how long it takes to go; step_s: how often the policy is looked at (POLLING_INTERVAL).
    """

    def __init__(self, expressions: Mapping[str, Expr], latches: Mapping[str, Expr], job: ClassAd, facts: ClassAd, *,
                 vacate_s: float = 5.0, step_s: float = 5.0) -> None:
        self.tally = Tally()
        self.machine = op.SlotStateMachine(slot_state=op.OWNER)
        self._expressions = expressions
        self._latches = latches
        self._job = job
        self._ad = ClassAd(parent=facts)
        self._policy = OwnerPolicy(expressions, self._ad)
        self._vacate_s = vacate_s
        self._step_s = step_s
        self._timers: dict[str, float] = {}
        self._job_began_s = 0.0
        self._lowered = False

    def run(self, samples: Iterable[Sample]) -> Iterator[Happened]:
        """Everything that would have happened, in order."""
        before: Sample | None = None
        for sample in samples:
            if before is None:
                self.machine.state_since_s = self.machine.activity_since_s = sample.when_s
            else:
                yield from self._between(before, sample)
            before = sample
        if before is not None:
            yield from self._moment(before, before.when_s)

    def _between(self, before: Sample, after: Sample) -> Iterator[Happened]:
        now_s = before.when_s
        while now_s < after.when_s:
            yield from self._moment(before, now_s)
            now_s += min(self._step_s, after.when_s - now_s)

    def _moment(self, sample: Sample, now_s: float) -> Iterator[Happened]:
        """One look at the policy, and what follows from it at once."""
        slot_state = self.machine.slot_state
        age_s = now_s - sample.when_s
        self._read(sample, age_s, now_s)
        yield from self._tell(op.PolicyEvaluation, self._evaluate(now_s), now_s)
        for what, due_s in sorted(self._timers.items()):
            if due_s <= now_s:
                del self._timers[what]
                event = op.ClaimCleared() if what == "gone" else op.TimerExpired(what)
                yield from self._tell(op.TimerExpired, event, now_s)
        if self.machine.claimable and self._policy.starts(self._job, now_s):
            yield from self._tell(op.Claimed, op.Claimed(), now_s)
            self._job_began_s = now_s
            yield from self._tell(op.RunStarted, op.RunStarted(), now_s)
        self._count(slot_state, sample, age_s)

    def _count(self, slot_state: op.SlotState, sample: Sample, age_s: float) -> None:
        tally = self.tally
        tally.spent_s[slot_state] = tally.spent_s.get(slot_state, 0.0) + self._step_s
        idle_s = sample.values.get("KeyboardIdle")
        if slot_state in (op.BUSY, op.RETIRING, op.VACATING) and idle_s is not None and idle_s + age_s < OWNER_BUSY_S:
            tally.disturbed_s += self._step_s
            tally.lowered_s += self._step_s if self._lowered else 0.0

    def _read(self, sample: Sample, age_s: float, now_s: float) -> None:
        """The slot's ad as it would have been."""
        ad, values = self._ad, sample.values
        for name, value in values.items():
            if value is not None:
                ad[name] = value + int(age_s) if name in ("KeyboardIdle", "ConsoleIdle") else value
        running = self.machine.slot_state in (op.BUSY, op.RETIRING, op.VACATING)
        own = 1.0 if running else 0.0
        ad["CondorLoadAvg"] = own
        ad["LoadAvg"] = float(values.get("OwnerLoad") or 0.0) + own
        slot_ad.write_state(ad, self.machine, now_s)
        for name in ("JobStart", "LastPeriodicCheckpoint"):
            if self.machine.job_began_s:
                ad[name] = int(self.machine.job_began_s)
            elif name.lower() in ad.own:
                del ad[name]
        latch(ad, self._latches, self._job if running else None, now_s)

    def _evaluate(self, now_s: float) -> op.PolicyEvaluation:
        claimed = self.machine.state in (op.State.CLAIMED, op.State.PREEMPTING)
        return self._policy.evaluation(self._job if claimed else None, now_s)

    def _tell(self, kind: type, event: Any, now_s: float) -> Iterator[Happened]:
        before = self.machine.slot_state
        actions = self.machine.handle(event, now_s)
        after = self.machine.slot_state
        if after != before:
            told = (
                self._policy.why(before, after, self._job, now_s) if kind in (op.PolicyEvaluation, op.Claimed) else ""
            )
            if isinstance(event, op.TimerExpired):
                told = f"the {event.what} time is over"
            yield Happened(now_s, before, after, told)
        for action in actions:
            yield from self._act(action, now_s)

    def _act(self, action: Any, now_s: float) -> Iterator[Happened]:
        if isinstance(action, op.StartTimer):
            self._timers[action.what] = now_s + action.delay_s
        elif isinstance(action, op.StopTimer):
            self._timers.pop(action.what, None)
        elif isinstance(action, op.SuspendJob):
            self.tally.suspended += 1
        elif isinstance(action, op.LowerPriority):
            self._lowered = action.on
        elif isinstance(action, op.VacateJob):
            self.tally.evicted += 1
            self._timers["gone"] = now_s + min(self._vacate_s, action.grace_s)
        elif isinstance(action, op.KillJob):
            self.tally.evicted += "gone" not in self._timers
            self._timers.pop("gone", None)
            yield from self._tell(op.ClaimCleared, op.ClaimCleared(), now_s)
        elif isinstance(action, op.ForgetMatch):
            self._timers.clear()
            self._lowered = False
