"""What one evaluation may spend, and how it is counted; the same in both engines.

Expressions come from strangers: a job's ``Requirements``, the constraint of a query. One that takes too many steps, or
makes too many bytes, ends as ERROR, all of it; `spent` says whether that has happened, and `Meter` bounds what a whole
query may take.

===========================  ====================================================================
costs                        steps
===========================  ====================================================================
an expression                the nodes of its tree, each time one is evaluated
a call of a function         10, the weight of its arguments, and of its result
a look at a list's element   the nodes of its tree, and the weight of its value
a comparison of long texts   their weight
a regular expression         by the ways it may try, or by text times pattern
===========================  ====================================================================

A text weighs one step for 64 characters, a list one for each element. Bytes are those of texts and lists that functions
make.
"""

from __future__ import annotations

from condor_actors import records
from condor_actors.classads.native import core
from condor_actors.classads.values import ListValue

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

    from condor_actors.classads import Expr

DEFAULT_STEPS: Final = 300_000
DEFAULT_BYTES: Final = 32 * 1024 * 1024
CALL_STEPS: Final = 10
STEP_SHIFT: Final = 6
LONG_TEXT: Final = 4096
ITEM_BYTES: Final = 64
TURN_STEPS: Final = 300_000
"""Steps after which a question that goes over many ads waits for its next turn: some hundredths of a second."""
MAX_ELEMENTS: Final = 100_000
"""Elements that a list made of a text may have."""


class Exhausted(Exception):
    """An evaluation has spent too much; it ends as ERROR."""


class TooCostly(ValueError):
    """A query asks for more than it may."""


@records.define
class _Budget:
    """Limits of one evaluation, and what the engine in Python has spent."""

    steps: int = DEFAULT_STEPS
    bytes: int = DEFAULT_BYTES
    spent: int = 0
    exceeded: int = 0


BUDGET: Final = _Budget()


def set_limits(steps: int = DEFAULT_STEPS, made_bytes: int = DEFAULT_BYTES) -> None:
    """Set what one evaluation may spend from now on.

    Args:
        steps: Steps, at least 1.
        made_bytes: Bytes of the texts and lists that functions make, at least 1.

    Raises:
        ValueError: For a limit below 1.
    """
    if steps < 1 or made_bytes < 1:
        raise ValueError(f"an evaluation needs at least one step and one byte, not {min(steps, made_bytes)}")
    BUDGET.steps, BUDGET.bytes = steps, made_bytes
    if core is not None:
        core.set_budget(steps, made_bytes)


def spent() -> tuple[int, int]:
    """Say what all evaluations of this process have spent.

    Returns:
        Steps, and how often an evaluation spent too much.
    """
    steps, exceeded = BUDGET.spent, BUDGET.exceeded
    if core is not None:
        core_steps, core_exceeded = core.spent()
        return steps + core_steps, exceeded + core_exceeded
    return steps, exceeded


def weight(value: Any) -> int:
    """Say how many steps a look at a value costs.

    Args:
        value: An internal value.

    Returns:
        Steps.
    """
    if value.__class__ is str:
        return len(value) >> STEP_SHIFT
    return len(value.elements) if value.__class__ is ListValue else 0


class Meter:
    """Bounds what one question may spend, over however many ads it is put to.

    An expression that is expensive by itself is refused at once. One that is expensive on some ad is an error there:
    the ad is another user's perhaps, whose attributes must not spoil the queries of others.

    Args:
        what: Whose cost it is, for people: ``the constraint``.
        expression: The query; None: nothing that could be expensive by itself.
        steps: Steps it may take in one turn.

    Raises:
        TooCostly: The expression spends more than an evaluation may, whatever the ad.
    """

    def __init__(self, what: str, expression: Expr | None = None, steps: int = TURN_STEPS) -> None:
        self._what = what
        self._most = steps
        self._paused: int | None = None
        before = spent()[1]
        if expression is not None:
            expression.evaluate(None)
        self._steps, exceeded = spent()
        if exceeded != before:
            raise TooCostly(
                f"{what} takes more than {BUDGET.steps} steps (CLASSAD_EVALUATION_MAX_STEPS) or makes more than "
                f"{BUDGET.bytes} bytes (CLASSAD_EVALUATION_MAX_BYTES); ask for less at once"
            )

    def is_spent(self) -> bool:
        """Say whether the question has had its turn, so that others get theirs.

        Returns:
            True when all evaluations since this was made took more steps than a turn has.
        """
        return spent()[0] - self._steps > self._most

    def pause(self) -> None:
        """Have what is evaluated until :meth:`resume` be another's."""
        self._paused = spent()[0]

    def resume(self) -> None:
        """Count again, after a pause."""
        if self._paused is not None:
            self._steps += spent()[0] - self._paused
            self._paused = None

    def refuse_when_spent(self) -> None:
        """Have done with what cannot go on in another turn.

        Raises:
            TooCostly: All evaluations since this was made took more steps than it may.
        """
        if self.is_spent():
            raise TooCostly(f"{self._what} takes more than {self._most} steps in all: ask for less at once")


set_limits()
