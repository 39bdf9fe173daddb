"""The actors of one process.

Theory: an actor system is parts around the mailboxes: the loop takes turns and commits what they persisted, questions
wait for their answers, watches hear of links, the lifecycle begins and ends actors; what comes in from other processes
goes through :class:`~condor_actors.actors.inbound.Inbound`, what goes out through
:class:`~condor_actors.actors.outbound.Outbound`.  Here they are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors.actor import Actor
from condor_actors.actors.cell import Cell
from condor_actors.actors.context import Context
from condor_actors.actors.inbound import Inbound
from condor_actors.actors.lifecycle import Lifecycle
from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.actors.outbound import Outbound
from condor_actors.actors.post import Post
from condor_actors.actors.questions import Questions
from condor_actors.actors.status import ActorStatus, status_of
from condor_actors.actors.supervision import PERMANENT, ChildSpec, exit_process
from condor_actors.actors.turn_loop import TurnLoop
from condor_actors.actors.watches import Watches
from condor_actors.actors.witness import Witness
from condor_actors.messages.envelope import Address, Identity, Level


class ActorSystem:
    """Hosts the actors of one process; see the module and ``docs/architecture.md``, "Actors".

    Attributes:
        clock, wall_clock, random, log: what actors are given.
        witness: sees what becomes of the messages of others; None: nobody does.
        mailboxes, questions, watches, outbound, inbound, loop, lifecycle: the parts.
    """

    def __init__(self, *, clock: IReactorTime, wall_clock: Callable[[], float], post: Post,
                 authorize: Callable[[Identity, Level], bool], commit: Callable[[Sequence[Any]], None] | None = None,
                 random: Random, log: Logger | None = None, exhausted: Callable[[str], None] = exit_process,
                 encode_every: int = 0, witness: Witness | None = None) -> None:
        self.clock = clock
        self.wall_clock = wall_clock
        self.random = random
        self.log = log = log or Logger("condor.actors")
        boxes = self.mailboxes = Mailboxes()
        self.questions = Questions(clock, boxes)
        self.watches = Watches(post, boxes)
        self.outbound = Outbound(clock, post, boxes, self.questions, random, log, encode_every)
        self.witness = self.outbound.witness = witness
        self.inbound = Inbound(clock, boxes, self.questions, self.watches, self.outbound, authorize, log)
        self.loop = TurnLoop(clock, boxes, self.outbound, commit, log, witness)
        self.lifecycle = Lifecycle(clock, boxes, self.questions, self.watches, self.outbound, self.loop,
                                   prepare=self._prepare, random=random, log=log, exhausted=exhausted)
        post.attach(self.inbound)

    def _prepare(self, cell: Cell, actor: Actor) -> None:
        actor.context = Context(self, cell)

    @property
    def trip(self) -> Callable[[str, str, Any], None] | None:
        """For tests and the simulation: called with (``before`` or ``after``, an actor's name, what its turn is about)
        around each turn, and with (``edge``, name, None) before a function that waited for a commit; what it raises is
        raised there."""
        return self.loop.trip

    @trip.setter
    def trip(self, trip: Callable[[str, str, Any], None] | None) -> None:
        self.loop.trip = trip

    def tell(self, to: Address, message: Any, *, trace_id: str = "") -> None:
        """Send ``message`` one way on behalf of the process itself."""
        self.outbound.tell(to, message, trace_id)

    def spawn(self, name: str, factory: Callable[[], Actor], *, restart: str = PERMANENT,
              inbox_limit: int = 1000) -> Address:
        """Start an actor; see :meth:`Context.spawn`."""
        return self.lifecycle.spawn(ChildSpec(name=name, factory=factory, restart=restart, inbox_limit=inbox_limit))

    def stop_actor(self, name: str) -> None:
        """Stop an actor, its children first; one that runs its turn now is stopped after it."""
        self.lifecycle.stop(name)

    def actor(self, name: str) -> Actor | None:
        """The living actor of that name, for the manhole and tests."""
        cell = self.mailboxes.get(name)
        return cell.actor if cell is not None else None

    def inspect(self) -> tuple[ActorStatus, ...]:
        """All actors, by name."""
        return tuple(status_of(cell) for cell in sorted(self.mailboxes.cells, key=lambda cell: cell.name))

    def stop(self) -> None:
        """Stop every actor (``stopped`` is called), commit, send what they said, and run no more turns."""
        for name in [cell.name for cell in self.mailboxes.cells if not cell.spec.parent]:
            self.stop_actor(name)
        self.loop.commit()
        self.outbound.flush()
        self.abandon()

    def abandon(self) -> None:
        """Drop everything at once, as a crash would; for tests and the simulation."""
        self.lifecycle.abandon()
        self.loop.stop()
