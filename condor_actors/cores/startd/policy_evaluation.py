"""From the owner's expressions to a :class:`~condor_actors.cores.startd.owner_policy.PolicyEvaluation`.

Theory: a policy is a set of ClassAd expressions, evaluated with the slot's ad as MY and the job's as TARGET.  They are
put into an ad of their own, chained to the slot's, so that one may name another (``START``, ``IS_OWNER``) without all
of them being published.  Where there is a variant for the job's universe (``SUSPEND_VANILLA``), it takes the place of
the plain one.  An expression that is undefined or an error counts as false, as in the manual.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from condor_actors.classads import ClassAd, Expr, is_true
from condor_actors.config.settings import table_value
from condor_actors.cores.startd.slot_states import CLAIMED, OWNER, PolicyEvaluation, SlotState
from condor_actors.messages.codes import Universe
from condor_actors.numerals import whole

__all__ = ["POLICY_NAMES", "UNIVERSE_SUFFIXES", "OwnerPolicy", "why"]

POLICY_NAMES = (
    "START", "RANK", "IS_OWNER", "SUSPEND", "CONTINUE", "PREEMPT", "KILL", "WANT_SUSPEND", "WANT_VACATE", "WANT_HOLD",
    "WANT_HOLD_REASON", "WANT_HOLD_SUBCODE", "MAXJOBRETIREMENTTIME", "MACHINEMAXVACATETIME", "RUNBENCHMARKS",
    "PERIODIC_CHECKPOINT",
    "LOWER",
)

CAUSES = {"Owner": ("IS_OWNER", "START"), "Unclaimed": ("START",), "Suspended": ("SUSPEND", "WANT_SUSPEND"),
          "Busy": ("CONTINUE",), "Retiring": ("PREEMPT", "MAXJOBRETIREMENTTIME"),
          "Vacating": ("PREEMPT", "WANT_VACATE"), "Killing": ("PREEMPT", "WANT_VACATE", "KILL"),
          "Benchmarking": ("RUNBENCHMARKS",), "Idle": ("START",)}
"""Which expressions lead to a state or an activity."""

UNIVERSE_SUFFIXES = {int(each): each.name for each in Universe if each is not Universe.SCHEDULER}


class OwnerPolicy:
    """The expressions of one slot over its ad.

    Args:
        expressions: by upper-case name, universe variants too; what is missing is undefined.
        slot: the slot's ad; changes to it are seen.
        start_instead: which jobs are taken, in place of START; who is the owner is still said by START.
    """

    def __init__(self, expressions: Mapping[str, Expr], slot: ClassAd, start_instead: Expr | None = None) -> None:
        self._ad = ClassAd(parent=slot)
        self._expressions = expressions
        for name, expression in expressions.items():
            self._ad[name] = expression
        self._start_instead = start_instead
        self._variants = {name for name in expressions if name.rpartition("_")[2] in UNIVERSE_SUFFIXES.values()}

    def evaluation(self, job: ClassAd | None, now_s: float) -> PolicyEvaluation:
        """Evaluate everything now; ``job`` is the running one, or the one the claim was granted for."""
        suffix = ""
        if job is not None and self._variants:
            suffix = UNIVERSE_SUFFIXES.get(job.get_int("JobUniverse", Universe.VANILLA), "")

        def value(name: str) -> object:
            if suffix and f"{name}_{suffix}" in self._variants:
                name = f"{name}_{suffix}"
            return self._ad.evaluate(name, job, now_s=now_s)

        def number(name: str, default: float) -> float:
            found = value(name)
            return float(found) if isinstance(found, (int, float)) else default

        reason = value("WANT_HOLD_REASON")
        return PolicyEvaluation(
            is_owner=is_true(value("IS_OWNER")), suspend=is_true(value("SUSPEND")), resume=is_true(value("CONTINUE")),
            preempt=is_true(value("PREEMPT")), kill=is_true(value("KILL")),
            want_suspend=is_true(value("WANT_SUSPEND")), want_vacate=is_true(value("WANT_VACATE")),
            want_hold=is_true(value("WANT_HOLD")), hold_reason=reason if isinstance(reason, str) else "",
            hold_subcode=whole(value("WANT_HOLD_SUBCODE")), retirement_s=self._retirement_s(job, number),
            vacate_s=number("MACHINEMAXVACATETIME", float(table_value("MACHINEMAXVACATETIME"))),
            benchmark=is_true(value("RUNBENCHMARKS")),
            lower=is_true(value("LOWER")),
        )

    @staticmethod
    def _retirement_s(job: ClassAd | None, number: object) -> float:
        """What the machine grants, or less when the job wants less."""
        assert callable(number)
        granted = float(number("MAXJOBRETIREMENTTIME", 0.0))
        if job is None or "MaxJobRetirementTime" not in job:
            return granted
        return min(granted, job.get_float("MaxJobRetirementTime", granted))

    def why(self, before: SlotState, after: SlotState, job: ClassAd | None, now_s: float) -> str:
        """The expressions that led from one place to another, with their values and what they looked at."""
        if before == after:
            names: tuple[str, ...] = ("LOWER",)
        elif before == CLAIMED:
            names = ("IS_OWNER", "START", "PREEMPT")
        else:
            names = CAUSES.get("Owner" if after == OWNER else after[1].value, ())
        suffix = UNIVERSE_SUFFIXES.get(job.get_int("JobUniverse", Universe.VANILLA), "") if job is not None else ""
        variants = (f"{name}_{suffix}" if f"{name}_{suffix}" in self._variants else name for name in names)
        return why(variants, self._expressions, self._ad, job, now_s)

    def wants_checkpoint(self, job: ClassAd, now_s: float) -> bool:
        """Whether a running job is due for a checkpoint: the machine says so, or the job itself."""
        name = "PERIODIC_CHECKPOINT"
        variant = f"{name}_{UNIVERSE_SUFFIXES.get(job.get_int('JobUniverse', Universe.VANILLA), '')}"
        if is_true(self._ad.evaluate(variant if variant in self._variants else name, job, now_s=now_s)):
            return True
        return "PeriodicCheckpoint" in job and is_true(job.evaluate("PeriodicCheckpoint", self._ad, now_s=now_s))

    def starts(self, job: ClassAd, now_s: float) -> bool:
        """Whether START accepts ``job``."""
        if self._start_instead is not None:
            return is_true(self._start_instead.evaluate(self._ad, job, now_s))
        return is_true(self._ad.evaluate("START", job, now_s=now_s))

    def rank(self, job: ClassAd, now_s: float) -> float:
        """How much the machine likes ``job``."""
        value = self._ad.evaluate("RANK", job, now_s=now_s)
        return float(value) if isinstance(value, (int, float)) else 0.0


def why(names: Iterable[str], expressions: Mapping[str, Expr], ad: ClassAd, job: ClassAd | None, now_s: float) -> str:
    """``SUSPEND is true (KeyboardIdle = 3)`` for each of the expressions that is there."""
    parts = []
    for name in names:
        expression = expressions.get(name)
        if expression is None:
            continue
        value = expression.evaluate(ad, job, now_s)
        mine, others = expression.references(ad)
        seen = [f"{ad.spelling(each.lower())} = {_shown(ad.evaluate(each, job, now_s=now_s))}"
                for each in sorted({*mine, *others}, key=str.lower) if each.upper() not in expressions and each in ad]
        parts.append(f"{name} is {_shown(value)}" + (f" ({', '.join(seen)})" if seen else ""))
    return "; ".join(parts)


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value) if isinstance(value, (int, str)) else "undefined"
