"""The loop that runs the turns of a process's actors.

Theory: messages, answers, timers and results of I/O all become *turns* in the mailbox of one actor.  The loop runs at
the end of a reactor iteration: some hundred turns or some milliseconds, then one commit of everything they persisted,
then the release of everything their actors sent.  Only an actor with uncommitted operations is held back; the others'
messages move at once.  So nobody ever hears of a state that a crash could take back, and a commit is shared by all
turns of an iteration.  A timer of a process that stores nothing has its turn at once: there is no commit to share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.cell import Action, Cell, Outgoing
from condor_actors.actors.lanes import Turn
from condor_actors.actors.mailboxes import NOBODY, Mailboxes
from condor_actors.actors.outbound import Outbound
from condor_actors.actors.slow_edges import SlowEdges
from condor_actors.actors.turn_times import TurnTimes
from condor_actors.actors.witness import Witness
from condor_actors.messages.envelope import Delivery, Refused, TimerFired

__all__ = ["Supervisor", "TurnLoop"]

TURNS_PER_COMMIT = 512
TURNS_PER_ACTOR = 32
INTERRUPTED = "an error of the daemon has interrupted this; a part of it may be done"
PUMP_S = 0.005
"""Turns of one iteration may take this long: what they sent should not wait for many others' work."""
LONGEST_S = 3650 * 86400.0
"""Of timers, some of which are as long as a job says."""


class Supervisor(Protocol):
    """What the loop tells of its actors' ends."""

    def turn_failed(self, cell: Cell, delivery: Delivery | None, failure: Failure) -> None:
        """A turn has raised; ``delivery`` is the message it was about."""

    def edge_failed(self, action: Action, failure: Failure) -> None:
        """A function that waited for a commit has raised."""

    def commit_failed(self, dirty: Sequence[tuple[Cell, Delivery | None]], failure: Failure) -> None:
        """Nothing of what these turns persisted is durable."""

    def finish(self, cell: Cell) -> None:
        """An actor that was stopped in its own turn has had it."""


class TurnLoop:
    """Takes turns, commits what they persisted, releases what they sent.

    Args:
        clock: for timers and the next iteration.
        mailboxes: of the process.
        outbound: gets what is released.
        commit: makes operations durable; None: the process stores nothing.
        log: of results that come too late.
        witness: sees what was told by others; None: nobody does.

    Attributes:
        supervisor: hears of failures; set before the first turn.
        trip: see :class:`~condor_actors.actors.system.ActorSystem`.
        slow: measures turns, edges and commits; None: nobody does.
        times: how long turns took.
    """

    supervisor: Supervisor

    def __init__(self, clock: IReactorTime, mailboxes: Mailboxes, outbound: Outbound,
                 commit: Callable[[Sequence[Any]], None] | None, log: Logger, witness: Witness | None = None) -> None:
        self._clock = clock
        self._mailboxes = mailboxes
        self._outbound = outbound
        self._commit_batch = commit
        self._log = log
        self._witness = witness
        self.trip: Callable[[str, str, Any], None] | None = None
        self.slow: SlowEdges | None = None
        self.times = TurnTimes()
        self._pump_call: IDelayedCall | None = None
        self._operations: list[Any] = []
        self._held: list[Outgoing] = []
        self._dirty: list[tuple[Cell, Delivery | None]] = []
        mailboxes.on_ready = self.wake

    @property
    def uncommitted(self) -> bool:
        """Whether something was persisted that is not durable yet."""
        return bool(self._dirty)

    # ---- turns

    def wake(self) -> None:
        """Run at the end of this reactor iteration."""
        if self._pump_call is None and not self._mailboxes.closed:
            self._pump_call = self._clock.callLater(0.0, self.pump)

    def pump(self) -> None:
        """Turns, one commit, and the release of what they sent."""
        self._pump_call = None
        budget = TURNS_PER_COMMIT
        ready = self._mailboxes.ready
        end_s = self._clock.seconds() + PUMP_S
        while ready and budget > 0 and self._clock.seconds() < end_s:
            cell = ready.popleft()
            budget -= self._run_some(cell, end_s)
            if cell.inbox.count and cell.actor is not None:
                ready.append(cell)
            else:
                cell.queued = False
        self.commit()
        self._outbound.flush()
        if ready:
            self.wake()

    def _run_some(self, cell: Cell, end_s: float) -> int:
        taken = 0
        inbox = cell.inbox
        now_s = self._clock.seconds()
        while inbox.count and taken < TURNS_PER_ACTOR and cell.actor is not None and now_s < end_s:
            turn = inbox.take()
            taken += 1
            if turn[2] and turn[2] < now_s:
                inbox.charge(0.0)
                continue
            began_s, kind = now_s, type(cell.actor)
            self.take_turn(cell, turn)
            now_s = self._clock.seconds()
            inbox.charge(now_s - began_s)
            self.times.add(kind, turn, now_s - began_s)
            if cell.stopping and self._mailboxes.get(cell.name) is not None:
                self.supervisor.finish(cell)
        return taken

    def take_turn(self, cell: Cell, turn: Turn) -> None:
        """One turn of an actor; what it raises is the supervisor's."""
        if self.slow is None:
            self._take_turn(cell, turn)
        else:
            self.slow.run(lambda: f"a turn of {cell.name} ({_about(turn)})", self._take_turn, cell, turn)

    def _take_turn(self, cell: Cell, turn: Turn) -> None:
        function, argument, _ = turn
        outgoing: list[Outgoing] = []
        cell.outgoing = outgoing
        cell.current = delivery = argument if isinstance(argument, Delivery) else None
        cell.turns += 1
        try:
            if self.trip is not None:
                self.trip("before", cell.name, argument)
            if function is None:
                assert cell.actor is not None
                cell.actor.receive(argument)
            else:
                function(argument)
            if self.trip is not None:
                self.trip("after", cell.name, argument)
        except Exception:  # noqa: BLE001 - the door: an actor's fault becomes a restart
            cell.outgoing = cell.current = None
            cell.operations.clear()
            self.supervisor.turn_failed(cell, delivery, Failure())
            return
        cell.outgoing = cell.current = None
        if self._witness is not None and delivery is not None and not delivery.answerable and delivery.sender.node:
            self._witness.answered(delivery, None)
        if cell.operations:
            self._operations += cell.operations
            cell.operations.clear()
            cell.dirty = True
            self._dirty.append((cell, delivery))
        if cell.dirty:
            self._held += outgoing
        else:
            for item in outgoing:
                self._release(item)

    def add_turn(self, cell: Cell, incarnation: int, then: Callable[[Any], None], result: Any) -> None:
        """Queue a turn with the result of an I/O edge; dropped when the actor was rebuilt meanwhile."""
        if cell.incarnation != incarnation:
            if isinstance(result, Failure):
                self._log.debug("late failure for {actor}: {error}", actor=cell.name, error=result.getErrorMessage())
            return
        self._mailboxes.put(cell, (_of(cell, incarnation, then), result, 0.0))

    def go_on(self, cell: Cell, rest: Delivery) -> None:
        """Queue the rest of the turn that runs, in the lane of its sender, who is told when it will never come."""
        incarnation = cell.incarnation

        def go_on(delivery: Delivery) -> None:
            if cell.incarnation == incarnation and cell.actor is not None:
                cell.actor.receive(delivery)
            else:
                self._outbound.refuse(delivery, Refused(code="internal", text=INTERRUPTED))

        cell.inbox.add_again((go_on, rest, 0.0))
        self._mailboxes.make_ready(cell)

    def stop(self) -> None:
        """Run no more."""
        if self._pump_call is not None:
            self._pump_call.cancel()
            self._pump_call = None

    # ---- what a turn leaves behind

    def emit(self, cell: Cell, item: Outgoing) -> None:
        """Send something outside of a turn (from an I/O edge of the actor)."""
        if cell.dirty:
            self._held.append(item)
        else:
            self._release(item)

    def persist(self, cell: Cell, operation: Any) -> None:
        """Add to the turn's operations, or to the batch when no turn runs."""
        if self._commit_batch is None:
            raise RuntimeError("this system was made without a commit function; it cannot persist")
        if cell.outgoing is not None:
            cell.operations.append(operation)
            return
        self._operations.append(operation)
        cell.dirty = True
        self._dirty.append((cell, None))
        self.wake()

    def commit(self) -> None:
        """Make durable what was persisted, then let go of what waited for it."""
        if not self._dirty:
            return
        operations, self._operations = self._operations, []
        held, self._held = self._held, []
        dirty, self._dirty = self._dirty, []
        for cell, _ in dirty:
            cell.dirty = False
        assert self._commit_batch is not None
        try:
            if self.slow is None:
                self._commit_batch(operations)
            else:
                self.slow.run(lambda: f"a commit of {len(operations)} operations", self._commit_batch, operations)
        except Exception:  # noqa: BLE001 - the door: a full disk, a broken store
            self.supervisor.commit_failed(dirty, Failure())
            return
        for item in held:
            self._release(item)

    def _release(self, item: Outgoing) -> None:
        if type(item) is Action:
            self._act(item)
        else:
            self._outbound.release(item)  # type: ignore[arg-type]  # the two others

    def _act(self, action: Action) -> None:
        """Call an edge of an actor; what it raises is a crash of that actor and of nobody else."""
        try:
            if self.trip is not None:
                self.trip("edge", action.cell.name, None)
            if self.slow is None:
                action.function()
            else:
                self.slow.run(lambda: f"an edge of {action.cell.name} ({_name(action.function)})", action.function)
        except Exception:  # noqa: BLE001 - the door: an actor's fault becomes a restart
            self.supervisor.edge_failed(action, Failure())

    # ---- timers

    def set_timer(self, cell: Cell, key: Any, delay_s: float) -> None:
        """Start or restart a timer of an actor; one that is forever, or at no time, is as long as any can be."""
        self.cancel_timer(cell, key)
        delay_s = delay_s if delay_s < LONGEST_S else LONGEST_S
        cell.timers[key] = self._clock.callLater(max(delay_s, 0.0), self._timer_fired, cell, key)

    def cancel_timer(self, cell: Cell, key: Any) -> None:
        """Forget a timer of an actor."""
        call = cell.timers.pop(key, None)
        if call is not None and call.active():
            call.cancel()

    def _timer_fired(self, cell: Cell, key: Any) -> None:
        call = cell.timers[key]
        incarnation = cell.incarnation

        def fire(event: Delivery) -> None:
            if cell.timers.get(key) is call and cell.incarnation == incarnation and cell.actor is not None:
                del cell.timers[key]
                cell.actor.receive(event)

        cell.inbox.add((fire, Delivery(message=TimerFired(key=key), sender=NOBODY, answerable=False), 0.0))
        boxes = self._mailboxes
        if self._commit_batch is None and self._pump_call is None and not boxes.ready and not boxes.closed:
            cell.queued = True
            boxes.ready.append(cell)
            self.pump()
        else:
            boxes.make_ready(cell)


def _about(turn: Turn) -> str:
    """What a turn is about, for people."""
    function, argument, _ = turn
    message = argument.message if isinstance(argument, Delivery) else argument
    return type(message).__name__ if function is None or isinstance(argument, Delivery) else _name(function)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))


def _of(cell: Cell, incarnation: int, then: Callable[[Any], None]) -> Callable[[Any], None]:
    """``then``, unless the actor is rebuilt before its turn comes."""

    def call(result: Any) -> None:
        if cell.incarnation == incarnation:
            then(result)

    return call
