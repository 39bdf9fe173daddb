"""What a core wants done: frozen values that the actor around it performs.

Theory: a core decides and never acts.  Everything it wants from the world is a value in the tuple that ``handle``
returns, so a test compares values, the simulation replays them, and the runtime can commit every :class:`Persist` of
a turn before it lets go of a single :class:`Send` or :class:`Reply`.

==============  ==========================================================================================
effect          comes back as
==============  ==========================================================================================
``Send``        –
``Ask``         the event :class:`Answer` with the tag: the answer, a ``Refused``, or an ``AskFailed``
``Reply``       –
``Persist``     –  (committed before anything of this turn leaves)
``SetTimer``    the event ``TimerFired(key)``
``CancelTimer`` –
``GoOn``        the event that it has, with the sender of what is being handled
``Note``        –  (a line of the log)
==============  ==========================================================================================

A daemon adds effects of its own by subclassing :class:`Effect` and performs them in its actor's ``perform_own``.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.messages.envelope import Address, Delivery

__all__ = [
    "Answer", "Ask", "CancelTimer", "Effect", "GoOn", "Note", "Persist", "Reply", "Send", "SetTimer", "job_note",
]


class Effect:
    """The mark of everything a core may return."""

    __slots__ = ()


@attrs.frozen
class Send(Effect):
    """Tell ``message`` to ``to``; nobody answers."""

    to: Address
    message: Any
    trace_id: str = ""


@attrs.frozen
class Ask(Effect):
    """Ask ``to`` and get exactly one :class:`Answer` with this ``tag`` within ``timeout_s`` seconds."""

    to: Address
    message: Any
    timeout_s: float
    tag: Any
    trace_id: str = ""


@attrs.frozen
class Reply(Effect):
    """Answer the message being handled, or an earlier one that the core kept in ``to``."""

    message: Any
    to: Delivery | None = None


@attrs.frozen
class Persist(Effect):
    """Make ``operation`` (a value that the daemon's store understands) durable before anything of this turn leaves."""

    operation: Any


@attrs.frozen
class SetTimer(Effect):
    """Have ``TimerFired(key)`` in ``delay_s`` seconds; replaces a timer of the same key."""

    key: Any
    delay_s: float


@attrs.frozen
class CancelTimer(Effect):
    """Forget the timer ``key``; one that does not run is no error."""

    key: Any


@attrs.frozen
class GoOn(Effect):
    """Have ``event`` in a later turn, behind what others wait for: the rest of work that is too long for one turn.

    It comes as what is being handled came, so a ``Reply`` then answers that.
    """

    event: Any


@attrs.frozen
class Note(Effect):
    """A line for the log.

    Attributes:
        text: one sentence for an admin.
        level: ``debug``, ``info``, ``warn``, ``error`` or ``critical``.
        fields: names and values kept beside the text in the structured log.
    """

    text: str
    level: str = "info"
    fields: tuple[tuple[str, Any], ...] = ()


def job_note(job: str, kind: str, text: str, level: str = "info") -> Note:
    """A line of a job's story: it begins with the job's number, by which it is found in the logs of all daemons.

    Args:
        job: its number, or the id of one of its runs, which begins with it.
        kind: what happened, one word for all jobs: of a kind a second has a bounded number of lines.
        text: what happened to this one.
        level: as of :class:`Note`.
    """
    number = job.partition("#")[0]
    return Note(f"{number}: {text}", level, (("kind", kind), ("job", number)))


@attrs.frozen
class Answer:
    """Event: how the :class:`Ask` with this ``tag`` ended (an answer, a ``Refused`` or an ``AskFailed``)."""

    tag: Any
    message: Any
