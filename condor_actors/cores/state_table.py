"""Total state tables: in every state every event has its step, or a reason why nothing follows.

Theory: a core that dispatches on the event alone hides its states in the conditions of its steps, where nobody sees
that one was forgotten.  A table ``{(state, event): step}`` shows them all.  It is written by rows, one per event and
one cell per state, and :func:`total_table` refuses a row with a hole when the module is imported.  A cell in which
nothing happens is an :class:`ignore` and says why.  The documentation prints the tables; tests walk every cell.

An event is known by its class; a timer and an answer by what they are about, so that each has a row of its own:
``timer lease``, ``answer activate``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import attrs

from condor_actors.effects import Answer
from condor_actors.messages.envelope import TimerFired

__all__ = ["EventKey", "InvariantBroken", "TableError", "event_key", "ignore", "total_table"]

EventKey = type | str
"""What a row is found by: the event's class, ``timer <key>`` or ``answer <tag>``."""

_State = TypeVar("_State", bound=Hashable)
_Key = TypeVar("_Key", bound=Hashable)
_Step = TypeVar("_Step", bound=Callable[..., Any])


class TableError(TypeError):
    """A table with a hole, or with a cell too many; says which."""


class InvariantBroken(Exception):
    """Something that always holds between two events does not; says what.

    ``validate`` of a core raises it.  Only tests and the simulation call that.
    """


@attrs.frozen
class ignore:  # noqa: N801 - it stands in a table where a function does
    """A step that changes nothing, and why."""

    why: str

    def __call__(self, *_: Any) -> Any:
        """Change nothing; nothing follows."""
        return ()


def event_key(event: Any) -> EventKey:
    """The row of an event."""
    kind = type(event)
    if kind is TimerFired:
        return f"timer {event.key}"
    if kind is Answer:
        return f"answer {event.tag}"
    return kind


def total_table(
    name: str, states: Iterable[_State], rows: Mapping[_Key, Sequence[_Step | ignore]],
) -> dict[tuple[_State, _Key], _Step | ignore]:
    """Make a table of its rows.

    Args:
        name: of the table, for the error.
        states: the columns, in order.
        rows: a step for each column, by event.

    Raises:
        TableError: a row has not exactly one step for each state, or a cell cannot be called.
    """
    columns = tuple(states)
    table: dict[tuple[_State, _Key], _Step | ignore] = {}
    for event, row in rows.items():
        title = event if isinstance(event, str) else getattr(event, "__name__", repr(event))
        if len(row) != len(columns):
            raise TableError(f"{name}: the row of {title} has {len(row)} cells for {len(columns)} states")
        for state, step in zip(columns, row, strict=True):
            if not callable(step):
                raise TableError(f"{name}: the cell of {title} in {state} is {step!r}, which is no step")
            table[state, event] = step
    return table
