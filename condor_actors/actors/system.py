"""The actors of one process and the loop that runs their turns.

Theory: messages, answers, timers and results of I/O all become *turns* in the mailbox of one actor.  The loop runs at
the end of a reactor iteration: some hundred turns or some milliseconds, then one commit of everything they persisted,
then the release of everything their actors sent.  Only an actor with uncommitted operations is held back; the others'
messages move at once.  So nobody ever hears of a state that a crash could take back, and a commit is shared by all
turns of an iteration.  A timer of a process that stores nothing has its turn at once: there is no commit to share.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.actor import Actor
from condor_actors.actors.cell import Action, Cell, LocalPost, Outgoing, RemotePost, Turn
from condor_actors.actors.context import Context
from condor_actors.actors.inbound import Inbound
from condor_actors.actors.post import Post
from condor_actors.actors.questions import NOBODY
from condor_actors.actors.status import ActorStatus, status_of
from condor_actors.actors.supervision import (
    PERMANENT,
    TEMPORARY,
    ChildDown,
    ChildSpec,
    StoreUnavailable,
    exit_process,
)
from condor_actors.messages.codec import decode, encode
from condor_actors.messages.envelope import (
    Address,
    Delivery,
    Envelope,
    Identity,
    Level,
    Refused,
    TimerFired,
)

TURNS_PER_COMMIT = 512
TURNS_PER_ACTOR = 32
PUMP_S = 0.005
"""Turns of one iteration may take this long: what they sent should not wait for many others' work."""


class ActorSystem(Inbound):
    """Hosts the actors of one process; see the module and ``docs/architecture.md``, "Actors".

    Attributes:
        trip: for tests and the simulation: called with (``before`` or ``after``, an actor's name, what its turn is
            about) around each turn, and with (``edge``, name, None) before a function that waited for a commit; what
            it raises is raised there.
    """

    def __init__(self, *, clock: IReactorTime, wall_clock: Callable[[], float], post: Post,
                 authorize: Callable[[Identity, Level], bool], commit: Callable[[Sequence[Any]], None] | None = None,
                 random: Random, log: Logger | None = None, exhausted: Callable[[str], None] = exit_process,
                 encode_every: int = 0) -> None:
        self.clock = clock
        self.wall_clock = wall_clock
        self.random = random
        self.log = log or Logger("condor.actors")
        self.stopped = False
        self.trip: Callable[[str, str, Any], None] | None = None
        self._post = post
        self._commit_batch = commit
        self._exhausted = exhausted
        self._encode_every = encode_every
        self._until_encode = encode_every
        self._cells: dict[str, Cell] = {}
        self._ready: deque[Cell] = deque()
        self._pump_call: IDelayedCall | None = None
        self._operations: list[Any] = []
        self._held: list[Outgoing] = []
        self._dirty: list[tuple[Cell, Delivery | None]] = []
        self._restarts: dict[str, IDelayedCall] = {}
        self._watchers: dict[str, dict[str, None]] = {}
        self._prefix = f"{random.getrandbits(64):x}."
        self._sequence = 0
        Inbound.__init__(self, authorize)
        post.attach(self)

    def tell(self, to: Address, message: Any, *, trace_id: str = "") -> None:
        """Send ``message`` one way on behalf of the process itself."""
        if not to.node:
            delivery = Delivery(message=message, sender=NOBODY, message_id=self.next_id(), answerable=False,
                                trace_id=trace_id)
            self._release(LocalPost(to.actor, delivery, 0.0))
            return
        envelope = Envelope(kind=message.KIND, version=message.VERSION, body=encode(message),
                            message_id=self.next_id(), to=to.actor, trace_id=trace_id)
        self._post.send(to, envelope)

    # ---- actors

    def spawn(self, name: str, factory: Callable[[], Actor], *, restart: str = PERMANENT,
              inbox_limit: int = 1000) -> Address:
        """Start an actor; see :meth:`Context.spawn`."""
        return self.spawn_spec(ChildSpec(name=name, factory=factory, restart=restart, inbox_limit=inbox_limit))

    def spawn_spec(self, spec: ChildSpec) -> Address:
        """Start the actor that ``spec`` describes.

        Raises:
            ValueError: there is an actor of that name.
        """
        if spec.name in self._cells:
            raise ValueError(f"there is an actor {spec.name!r} already")
        cell = Cell(spec)
        self._cells[spec.name] = cell
        parent = self._cells.get(spec.parent)
        if parent is not None:
            parent.children[spec.name] = None
        try:
            self._build(cell)
        except BaseException:
            self._forget(cell)
            raise
        return Address("", spec.name)

    def _build(self, cell: Cell) -> None:
        actor = cell.spec.factory()
        actor.context = Context(self, cell)
        cell.actor = actor
        cell.inbox.appendleft((_started, actor, 0.0))
        self._make_ready(cell)

    def stop_actor(self, name: str) -> None:
        """Stop an actor, its children first; one that runs its turn now is stopped after it."""
        cell = self._cells.get(name)
        if cell is None or cell.stopping:
            return
        cell.stopping = True
        if cell.outgoing is None:
            self._finish(cell)

    def _finish(self, cell: Cell) -> None:
        for child in tuple(cell.children):
            self.stop_actor(child)
        cell.stopping = True
        if cell.actor is not None:
            self._take_turn(cell, (_stopped, cell.actor, 0.0))
            self._wake()
        self._discard(cell)
        for _, argument, _ in cell.inbox:
            if isinstance(argument, Delivery):
                self._refuse(argument, Refused(code="unknown-actor", text=f"{cell.name} has stopped"))
        self._forget(cell)

    def _forget(self, cell: Cell) -> None:
        cell.incarnation += 1
        cell.inbox.clear()
        self._cells.pop(cell.name, None)
        pending = self._restarts.pop(cell.name, None)
        if pending is not None:
            pending.cancel()
        parent = self._cells.get(cell.spec.parent)
        if parent is not None:
            parent.children.pop(cell.name, None)

    def _discard(self, cell: Cell) -> None:
        """End an incarnation: its timers, questions, watches."""
        for call in cell.timers.values():
            if call.active():
                call.cancel()
        cell.timers.clear()
        for question in tuple(cell.questions.values()):
            self._drop_question(question)
        for node in tuple(cell.watches):
            self.unwatch(cell, node)
        cell.incarnation += 1

    # ---- the loop

    def _make_ready(self, cell: Cell) -> None:
        if not cell.queued:
            cell.queued = True
            self._ready.append(cell)
            self._wake()

    def _wake(self) -> None:
        if self._pump_call is None and not self.stopped:
            self._pump_call = self.clock.callLater(0.0, self._pump)

    def _pump(self) -> None:
        self._pump_call = None
        budget = TURNS_PER_COMMIT
        ready = self._ready
        end_s = self.clock.seconds() + PUMP_S
        while ready and budget > 0 and self.clock.seconds() < end_s:
            cell = ready.popleft()
            budget -= self._run_some(cell)
            if cell.inbox and cell.actor is not None:
                ready.append(cell)
            else:
                cell.queued = False
        self._commit()
        self._post.flush()
        if ready:
            self._wake()

    def _run_some(self, cell: Cell) -> int:
        taken = 0
        inbox = cell.inbox
        while inbox and taken < TURNS_PER_ACTOR and cell.actor is not None:
            turn = inbox.popleft()
            taken += 1
            if turn[2] and turn[2] < self.clock.seconds():
                continue
            self._take_turn(cell, turn)
            if cell.stopping and cell.name in self._cells:
                self._finish(cell)
        return taken

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
            self._crashed(cell, delivery, Failure())
            return
        cell.outgoing = cell.current = None
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
        self._wake()

    def _commit(self) -> None:
        if not self._dirty:
            return
        operations, self._operations = self._operations, []
        held, self._held = self._held, []
        dirty, self._dirty = self._dirty, []
        for cell, _ in dirty:
            cell.dirty = False
        assert self._commit_batch is not None
        try:
            self._commit_batch(operations)
        except Exception:  # noqa: BLE001 - the door: a full disk, a broken store
            self._commit_failed(dirty, Failure())
            return
        for item in held:
            self._release(item)

    def _commit_failed(self, dirty: list[tuple[Cell, Delivery | None]], failure: Failure) -> None:
        """Nothing was made durable: forget what was held, tell the askers, rebuild the actors from the store."""
        incident = self._incident(failure, "nothing could be stored")
        cells: dict[str, Cell] = {}
        for cell, delivery in dirty:
            cells[cell.name] = cell
            if delivery is not None:
                text = f"nothing could be stored: {failure.getErrorMessage()}"
                self._refuse(delivery, Refused(code="internal", text=text, retry_after_s=5.0, incident=incident))
        outage = failure.check(StoreUnavailable, OSError) is not None
        for cell in cells.values():
            if cell.name in self._cells and not cell.stopping:
                self._restart(cell, "the store failed", outage=outage)

    def _release(self, item: Outgoing) -> None:
        if type(item) is LocalPost:
            target = self._cells.get(item.name)
            if item.delivery.in_reply_to:
                self._answer(item.delivery)
            elif target is None or target.stopping:
                self._refuse(item.delivery, Refused(code="unknown-actor", text=f"there is no actor {item.name!r}"))
            else:
                expiry = self.clock.seconds() + item.timeout_s if item.timeout_s else 0.0
                target.inbox.append((None, item.delivery, expiry))
                self._make_ready(target)
        elif type(item) is RemotePost:
            self._post.send(item.to, item.envelope)
        elif type(item) is Action:
            self._act(item)

    def _act(self, action: Action) -> None:
        """Call an edge of an actor; what it raises is a crash of that actor and of nobody else."""
        try:
            if self.trip is not None:
                self.trip("edge", action.cell.name, None)
            action.function()
        except Exception:  # noqa: BLE001 - the door: an actor's fault becomes a restart
            cell = action.cell
            if cell.incarnation == action.incarnation:
                self._crashed(cell, None, Failure())
            else:
                self._incident(Failure(), f"an edge of actor {cell.name} failed")

    # ---- crashes

    def _incident(self, failure: Failure, what: str) -> str:
        incident = f"{self.random.getrandbits(32):08x}"
        self.log.failure("{what} (incident {incident})", failure=failure, what=what, incident=incident)
        return incident

    def _crashed(self, cell: Cell, delivery: Delivery | None, failure: Failure) -> None:
        incident = self._incident(failure, f"actor {cell.name} crashed")
        if delivery is not None:
            self._refuse(delivery, Refused(code="internal", text="an error of the daemon", incident=incident))
        if cell.stopping:
            return
        self._restart(cell, failure.getErrorMessage())

    def _restart(self, cell: Cell, reason: str, *, outage: bool = False) -> None:
        for child in tuple(cell.children):
            if cell.spec.restart == TEMPORARY or not self._cells[child].spec.survives:
                self.stop_actor(child)
        self._discard(cell)
        dropped, cell.actor = cell.actor, None
        if dropped is not None:
            try:
                dropped.dropped()
            except Exception:  # noqa: BLE001 - the door: it is gone in any case
                self._incident(Failure(), f"actor {cell.name} left something open")
        if cell.spec.restart == TEMPORARY:
            self._forget(cell)
            self.notify(cell.spec.parent, ChildDown(name=cell.name, reason=reason))
            return
        now_s = self.clock.seconds()
        delay_s = cell.intensity.outage(now_s) if outage else cell.intensity.restart(now_s)
        if delay_s is None:
            self.log.critical("actor {actor} crashes again and again: {reason}", actor=cell.name, reason=reason)
            self._exhausted(cell.name)
            delay_s = 60.0
        self._restarts[cell.name] = self.clock.callLater(delay_s, self._rebuild, cell)

    def _rebuild(self, cell: Cell) -> None:
        self._restarts.pop(cell.name, None)
        try:
            self._build(cell)
        except Exception:  # noqa: BLE001 - the door: a factory that cannot read its store
            self._incident(Failure(), f"actor {cell.name} could not be built")
            self._restart(cell, "could not be built")

    def _refuse(self, delivery: Delivery, refusal: Refused) -> None:
        """Answer for an actor that cannot; a message that was only told is logged."""
        if delivery.in_reply_to or not delivery.message_id:
            return
        if not delivery.answerable:
            self.log.debug("{kind} from {sender} dropped: {text}", kind=type(delivery.message).__name__,
                           sender=delivery.sender, text=refusal.text)
        elif delivery.sender.node:
            self.answer_remote(delivery, refusal)
        else:
            self.settle(delivery.message_id, refusal, NOBODY)

    def next_id(self) -> str:
        """A message_id that no other process uses."""
        self._sequence += 1
        return f"{self._prefix}{self._sequence:x}"

    # ---- timers and other local events

    def set_timer(self, cell: Cell, key: Any, delay_s: float) -> None:
        """Start or restart a timer of an actor."""
        self.cancel_timer(cell, key)
        cell.timers[key] = self.clock.callLater(max(delay_s, 0.0), self._timer_fired, cell, key)

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

        cell.inbox.append((fire, Delivery(message=TimerFired(key=key), sender=NOBODY, answerable=False), 0.0))
        if self._commit_batch is None and self._pump_call is None and not self._ready and not self.stopped:
            cell.queued = True
            self._ready.append(cell)
            self._pump()
        else:
            self._make_ready(cell)

    def add_turn(self, cell: Cell, incarnation: int, then: Callable[[Any], None], result: Any) -> None:
        """Queue a turn with the result of an I/O edge; dropped when the actor was rebuilt meanwhile."""
        if cell.incarnation != incarnation:
            if isinstance(result, Failure):
                self.log.debug("late failure for {actor}: {error}", actor=cell.name, error=result.getErrorMessage())
            return
        cell.inbox.append((_of(cell, incarnation, then), result, 0.0))
        self._make_ready(cell)

    def notify(self, name: str, event: Any) -> None:
        """Give an actor a local event; ignored when there is no such actor."""
        cell = self._cells.get(name)
        if cell is not None:
            cell.inbox.append((None, Delivery(message=event, sender=NOBODY, answerable=False), 0.0))
            self._make_ready(cell)

    def maybe_recoded(self, message: Any) -> Any:
        """The message itself, or now and then (in tests) what the codec makes of it."""
        if not self._encode_every or not hasattr(message, "KIND"):
            return message
        self._until_encode -= 1
        if self._until_encode > 0:
            return message
        self._until_encode = self._encode_every
        return decode(message.KIND, message.VERSION, encode(message))

    # ---- the outside

    def actor(self, name: str) -> Actor | None:
        """The living actor of that name, for the manhole and tests."""
        cell = self._cells.get(name)
        return cell.actor if cell is not None else None

    def inspect(self) -> tuple[ActorStatus, ...]:
        """All actors, by name."""
        return tuple(status_of(cell) for _, cell in sorted(self._cells.items()))

    @property
    def backlog(self) -> int:
        """Turns that wait in all mailboxes."""
        return sum([len(cell.inbox) for cell in self._ready]) if self._ready else 0

    def stop(self) -> None:
        """Stop every actor (``stopped`` is called), commit, send what they said, and run no more turns."""
        for name in [cell.name for cell in self._cells.values() if not cell.spec.parent]:
            self.stop_actor(name)
        self._commit()
        self._post.flush()
        self.abandon()

    def abandon(self) -> None:
        """Drop everything at once, as a crash would; for tests and the simulation."""
        self.stopped = True
        for cell in tuple(self._cells.values()):
            self._discard(cell)
            self._forget(cell)
        if self._pump_call is not None:
            self._pump_call.cancel()
            self._pump_call = None
        self._ready.clear()


def _started(actor: Actor) -> None:
    actor.started()


def _stopped(actor: Actor) -> None:
    actor.stopped()


def _of(cell: Cell, incarnation: int, then: Callable[[Any], None]) -> Callable[[Any], None]:
    """``then``, unless the actor is rebuilt before its turn comes."""

    def call(result: Any) -> None:
        if cell.incarnation == incarnation:
            then(result)

    return call
