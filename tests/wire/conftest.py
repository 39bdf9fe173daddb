"""Real processes' worth of wire in one test: post offices on the real reactor, a real pool CA, real sockets."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from condor_actors.actors import Actor, ActorSystem
from condor_actors.messages.envelope import Address, Delivery, Done, Identity, Level
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.post_office import PostOffice

DEADLINE_S = 60.0


class Mailbox(Actor):
    """An actor of a test: what it receives can be awaited, what it sends is told to it."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self._waiting: list[tuple[Callable[[Delivery], bool], Deferred[Delivery]]] = []

    def receive(self, delivery: Delivery) -> None:
        for waiting in list(self._waiting):
            if waiting[0](delivery):
                self._waiting.remove(waiting)
                waiting[1].callback(delivery)
                return
        self.deliveries.append(delivery)

    def first(self, kind: type) -> Deferred[Delivery]:
        """The next message of a class (one that came already counts, once)."""
        for delivery in self.deliveries:
            if isinstance(delivery.message, kind):
                self.deliveries.remove(delivery)
                return _fired(delivery)
        found: Deferred[Delivery] = Deferred()
        self._waiting.append((lambda delivery: isinstance(delivery.message, kind), found))
        found.addTimeout(DEADLINE_S, reactor)
        return found

    def ask(self, node: str, actor: str, message: Any, timeout_s: float = DEADLINE_S) -> Deferred[Delivery]:
        """Ask; the delivery that answers."""
        answer: Deferred[Delivery] = Deferred()
        self.context.ask(Address(node, actor), message, timeout_s=timeout_s, then=answer.callback)
        return answer


def _fired(delivery: Delivery) -> Deferred[Delivery]:
    found: Deferred[Delivery] = Deferred()
    found.callback(delivery)
    return found


class Echo(Actor):
    """Answers with the identity of who asks."""

    def receive(self, delivery: Delivery) -> None:
        self.context.reply(delivery, Done(text=f"{delivery.identity.name} {getattr(delivery.message, 'text', '')}"))


class Process:
    """A post office with an actor system: ``echo`` and ``box`` run in it."""

    def __init__(self, name: str, credentials: Credentials | None, *, guests: bool = False,
                 authorize: Callable[[Identity, Level], bool] = lambda identity, level: True) -> None:
        self.office = PostOffice(reactor, random=Random(os.urandom(8)), process=name, uid_domain="test.domain",
                                 credentials=credentials, guests=guests)
        self.system = ActorSystem(clock=reactor, wall_clock=time.time, post=self.office, authorize=authorize,
                                  random=Random(os.urandom(8)))
        self.box = Mailbox()
        self.system.spawn("echo", Echo)
        self.system.spawn("box", lambda: self.box)
        self.stopped = False

    def stop(self) -> Deferred[Any]:
        """Stop everything; fires when the sockets are closed."""
        self.stopped = True
        self.system.stop()
        return self.office.stop()


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> PoolFiles:
    """A pool whose only machine is localhost."""
    files = PoolFiles.below(tmp_path_factory.mktemp("pool"))
    create_pool(files, "test", ["localhost", "127.0.0.1"])
    return files


@pytest.fixture
def credentials(pool: PoolFiles) -> Credentials:
    """The machine's credentials."""
    found = pool.credentials()
    assert found is not None
    return found


@pytest.fixture
def short_dir() -> Iterator[Path]:
    """A directory whose path is short enough for a socket."""
    path = Path(tempfile.mkdtemp(prefix="ca"))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def processes(short_dir: Path) -> Iterator[Callable[..., Process]]:
    """Makes processes, and stops them after the test."""
    made: list[Process] = []

    def make(name: str, credentials: Credentials | None = None, **options: Any) -> Process:
        made.append(Process(name, credentials, **options))
        return made[-1]

    yield make
    for process in made:
        if not process.stopped:
            pytest_twisted.blockon(process.stop())
    pytest_twisted.blockon(_turns(5))


def _turns(count: int) -> Deferred[None]:
    """Some iterations of the reactor, in which closed connections say so."""
    done: Deferred[None] = Deferred()

    def step(left: int) -> None:
        if left:
            reactor.callLater(0.01, step, left - 1)  # type: ignore[attr-defined]
        else:
            done.callback(None)

    step(count)
    return done


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Fails a test that leaves a delayed call."""
    yield
    left = [str(call) for call in reactor.getDelayedCalls() if call.active()]  # type: ignore[attr-defined]
    assert not left, left
