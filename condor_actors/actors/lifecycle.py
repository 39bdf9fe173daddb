"""How actors begin, end, and are built anew.

Theory: supervision is data (:mod:`condor_actors.actors.supervision`); here it is carried out.  An uncaught exception in
a turn ends one *incarnation* of an actor: its timers, questions and watches die with it, its mailbox waits for the
next one.  A commit that fails ends those of the turns that it held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.actor import Actor
from condor_actors.actors.cell import Action, Cell
from condor_actors.actors.lanes import Lanes
from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.actors.outbound import Outbound
from condor_actors.actors.questions import Questions
from condor_actors.actors.supervision import TEMPORARY, ChildDown, ChildSpec, StoreUnavailable
from condor_actors.actors.turn_loop import TurnLoop
from condor_actors.actors.watches import Watches
from condor_actors.messages.envelope import Address, Delivery, Refused

__all__ = ["Lifecycle"]


class Lifecycle:
    """Starts, stops and restarts actors; the loop's supervisor.

    Args:
        clock: for delayed restarts.
        mailboxes: of the process.
        questions, watches: what an incarnation has there ends with it.
        outbound: sends refusals in place of an actor that cannot answer.
        loop: takes an actor's last turn.
        prepare: called with a cell whose actor is new; gives it its context.
        random: makes incident numbers.
        log: of crashes.
        exhausted: called with the name of an actor that no restart cures.
    """

    def __init__(self, clock: IReactorTime, mailboxes: Mailboxes, questions: Questions, watches: Watches,
                 outbound: Outbound, loop: TurnLoop, *, prepare: Callable[[Cell, Actor], None], random: Random,
                 log: Logger, exhausted: Callable[[str], None]) -> None:
        self._clock = clock
        self._mailboxes = mailboxes
        self._questions = questions
        self._watches = watches
        self._outbound = outbound
        self._loop = loop
        self._prepare = prepare
        self._random = random
        self._log = log
        self._exhausted = exhausted
        self._restarts: dict[str, IDelayedCall] = {}
        loop.supervisor = self

    # ---- beginning and end

    def spawn(self, spec: ChildSpec) -> Address:
        """Start the actor that ``spec`` describes.

        Raises:
            ValueError: there is an actor of that name.
        """
        cell = Cell(spec, Lanes(self._mailboxes.ledger))
        self._mailboxes.add(cell)
        try:
            self._build(cell)
        except BaseException:
            self._forget(cell)
            raise
        return Address("", spec.name)

    def _build(self, cell: Cell) -> None:
        actor = cell.spec.factory()
        self._prepare(cell, actor)
        cell.actor = actor
        cell.inbox.add_first((_started, actor, 0.0))
        self._mailboxes.make_ready(cell)

    def stop(self, name: str) -> None:
        """Stop an actor, its children first; one that runs its turn now is stopped after it."""
        cell = self._mailboxes.get(name)
        if cell is None or cell.stopping:
            return
        cell.stopping = True
        if cell.outgoing is None:
            self.finish(cell)

    def finish(self, cell: Cell) -> None:
        """Give an actor its last turn, and refuse what it has not got to."""
        for child in tuple(cell.children):
            self.stop(child)
        cell.stopping = True
        if cell.actor is not None:
            self._loop.take_turn(cell, (_stopped, cell.actor, 0.0))
            self._loop.wake()
        self._discard(cell)
        for _, argument, _ in cell.inbox:
            if isinstance(argument, Delivery):
                self._outbound.refuse(argument, Refused(code="unknown-actor", text=f"{cell.name} has stopped"))
        self._forget(cell)

    def abandon(self) -> None:
        """Drop every actor at once, as a crash of the process would."""
        self._mailboxes.close()
        for cell in self._mailboxes.cells:
            self._discard(cell)
            self._forget(cell)

    def _forget(self, cell: Cell) -> None:
        self._mailboxes.remove(cell)
        pending = self._restarts.pop(cell.name, None)
        if pending is not None:
            pending.cancel()

    def _discard(self, cell: Cell) -> None:
        """End an incarnation: its timers, questions, watches."""
        for call in cell.timers.values():
            if call.active():
                call.cancel()
        cell.timers.clear()
        self._questions.forget(cell)
        self._watches.forget(cell)
        cell.incarnation += 1

    # ---- crashes

    def turn_failed(self, cell: Cell, delivery: Delivery | None, failure: Failure) -> None:
        """A turn has raised: the asker is told, and the actor is rebuilt."""
        incident = self._incident(failure, f"actor {cell.name} crashed")
        if delivery is not None:
            self._outbound.refuse(delivery, Refused(code="internal", text="an error of the daemon", incident=incident))
        if cell.stopping:
            return
        self._restart(cell, failure.getErrorMessage())

    def edge_failed(self, action: Action, failure: Failure) -> None:
        """An edge has raised: a crash of its actor, if that lives still."""
        cell = action.cell
        if cell.incarnation == action.incarnation:
            self.turn_failed(cell, None, failure)
        else:
            self._incident(failure, f"an edge of actor {cell.name} failed")

    def commit_failed(self, dirty: Sequence[tuple[Cell, Delivery | None]], failure: Failure) -> None:
        """Nothing was made durable: tell the askers, rebuild the actors from the store."""
        outage = failure.check(StoreUnavailable, OSError) is not None
        why = _said_of(failure.value)
        incident = self._outage(why) if outage else self._incident(failure, "nothing could be stored")
        cells: dict[str, Cell] = {}
        for cell, delivery in dirty:
            cells[cell.name] = cell
            if delivery is not None:
                text = f"nothing could be stored: {why}"
                self._outbound.refuse(
                    delivery, Refused(code="internal", text=text, retry_after_s=5.0, incident=incident))
        for cell in cells.values():
            if self._mailboxes.get(cell.name) is not None and not cell.stopping:
                self._restart(cell, "the store failed", outage=outage)

    def _outage(self, why: str) -> str:
        """What the disk refuses is no fault of the program: nobody needs to know where it was met."""
        incident = f"{self._random.getrandbits(32):08x}"
        self._log.error("nothing could be stored (incident {incident}): {why}", incident=incident, why=why)
        return incident

    def _incident(self, failure: Failure, what: str) -> str:
        incident = f"{self._random.getrandbits(32):08x}"
        self._log.failure("{what} (incident {incident})", failure=failure, what=what, incident=incident)
        return incident

    def _restart(self, cell: Cell, reason: str, *, outage: bool = False) -> None:
        for child in tuple(cell.children):
            record = self._mailboxes.get(child)
            if record is not None and (cell.spec.restart == TEMPORARY or not record.spec.survives):
                self.stop(child)
        self._discard(cell)
        dropped, cell.actor = cell.actor, None
        if dropped is not None:
            try:
                dropped.dropped()
            except Exception:  # noqa: BLE001 - the door: it is gone in any case
                self._incident(Failure(), f"actor {cell.name} left something open")
        if cell.spec.restart == TEMPORARY:
            self._forget(cell)
            self._mailboxes.notify(cell.spec.parent, ChildDown(name=cell.name, reason=reason))
            return
        now_s = self._clock.seconds()
        delay_s = cell.intensity.outage(now_s) if outage else cell.intensity.restart(now_s)
        if delay_s is None:
            self._log.critical("actor {actor} crashes again and again: {reason}", actor=cell.name, reason=reason)
            self._exhausted(cell.name)
            delay_s = 60.0
        self._restarts[cell.name] = self._clock.callLater(delay_s, self._rebuild, cell)

    def _rebuild(self, cell: Cell) -> None:
        self._restarts.pop(cell.name, None)
        try:
            self._build(cell)
        except Exception:  # noqa: BLE001 - the door: a factory that cannot read its store
            self._incident(Failure(), f"actor {cell.name} could not be built")
            self._restart(cell, "could not be built")


def _started(actor: Actor) -> None:
    actor.started()


def _stopped(actor: Actor) -> None:
    actor.stopped()


def _said_of(error: BaseException | None) -> str:
    """A store's error for people: which file, and what to do about it."""
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename} cannot be written: {error.strerror}; make room there or mend it"
    return str(error)
