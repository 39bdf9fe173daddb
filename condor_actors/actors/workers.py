"""Functions that may block, run on threads beside the reactor, each with a deadline.

Theory: a file of a user's may be a pipe, lie on a file system whose server is gone, or be large; so it is touched on a
worker only.  A function says what it is :func:`touching` whenever it goes on to another file or another piece of one;
one that has said nothing for the deadline is given up: its caller is told (:class:`NoAnswer`, which names the file) and
its thread counts as lost and is replaced, up to a number.  A lost thread that comes back works on.  Until it does, all
else in the folder it is stuck in fails at once, so that one dead file system takes one thread.

The threads are daemons: none of them keeps the process from ending.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import attrs
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

__all__ = ["DEADLINE_S", "InWorker", "NoAnswer", "Workers", "at_once", "digest_of", "open_plain", "touching"]

DEADLINE_S = 60.0
"""How long one piece of work on one file may take, where nobody says otherwise."""

NULL_DEVICE = os.makedev(1, 3)
PIECE_BYTES = 4 << 20

CHECKS = 8
"""How often within a deadline the workers are looked at."""

InWorker = Callable[..., "Deferred[Any]"]
"""Runs a function with its arguments beside the reactor; fires with its result or fails with what it raises."""


class NoAnswer(OSError):
    """A function was given up.

    Attributes:
        filename: what it was touching.
        late: fires with its result, or the exception that it raised, if it comes back after all; None: it never began.
    """

    def __init__(self, text: str, place: str, late: Deferred[Any] | None) -> None:
        super().__init__(errno.ETIMEDOUT, text, place)
        self.late = late


@attrs.define(eq=False)
class _Task:
    """A function to run, and how far it is."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    result: Deferred[Any]
    place: str = ""
    touched_s: float = 0.0
    late: Deferred[Any] | None = None
    owner: Workers | None = None


_CURRENT = threading.local()


def touching(place: str) -> None:
    """Say that the running function goes on to a file, or to the next piece of one; means nothing outside of a worker.

    Args:
        place: its path.

    Raises:
        NoAnswer: another worker is stuck in that folder.
    """
    task: _Task | None = getattr(_CURRENT, "task", None)
    if task is None:
        return
    task.touched_s = time.monotonic()
    if place != task.place:
        task.place = place
        assert task.owner is not None
        task.owner.refuse_stuck(place)


def open_plain(path: str, flags: int = os.O_RDONLY, mode: int = 0o644) -> int:
    """Open a regular file, or the null device, waiting for nobody at the other end of a pipe or a line; its descriptor.

    Raises:
        OSError: it is something else, or cannot be opened.
    """
    touching(path)
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, mode)
    facts = os.fstat(descriptor)
    if stat.S_ISREG(facts.st_mode) or (stat.S_ISCHR(facts.st_mode) and facts.st_rdev == NULL_DEVICE):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def digest_of(stream: BinaryIO, place: str) -> str:
    """The SHA-256 of the rest of an open file, however long it takes as long as its bytes come."""
    digest = hashlib.sha256()
    while piece := stream.read(PIECE_BYTES):
        digest.update(piece)
        touching(place)
    return digest.hexdigest()


def at_once(function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
    """An :data:`InWorker` without workers: for tests, the simulation, and where nothing can block."""
    try:
        return succeed(function(*arguments))
    except Exception:  # noqa: BLE001 - as a worker's
        failed: Deferred[Any] = Deferred()
        failed.errback(Failure())
        return failed


class Reactor(Protocol):
    """What the workers need of a reactor."""

    def callFromThread(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: N802 - Twisted's name
        """Call a function in the reactor's thread."""

    def callLater(self, delay: float, function: Callable[..., Any]) -> IDelayedCall:  # noqa: N802
        """Call a function later."""


class Workers:
    """Threads of one process for functions that may block.

    Args:
        reactor: the real one.
        deadline_s: how long a function may say nothing.
        most: how many work at once.
        most_lost: how many may be lost; beyond that, lost ones are not replaced.

    Attributes:
        lost: how many are lost now.
    """

    def __init__(self, reactor: Reactor, deadline_s: float = DEADLINE_S, *, most: int = 4, most_lost: int = 16) -> None:
        self.lost = 0
        self._reactor = reactor
        self._deadline_s = deadline_s
        self._most = most
        self._most_lost = most_lost
        self._lock = threading.Condition()
        self._waiting: deque[_Task] = deque()
        self._idle = 0
        self._threads = 0
        self._running: dict[_Task, None] = {}
        self._stuck: dict[str, int] = {}
        self._watch: IDelayedCall | None = None
        self._looked_s = 0.0

    def run(self, function: Callable[..., Any], *arguments: Any) -> Deferred[Any]:
        """Run a function on a worker; fails with :class:`NoAnswer` when it is given up."""
        task = _Task(function, arguments, Deferred(), owner=self)
        if self._threads >= self._most + self._most_lost and self.lost >= self._threads:
            task.result.errback(NoAnswer(f"{self.lost} earlier accesses to files have not come back", "", None))
            return task.result
        with self._lock:
            self._waiting.append(task)
            if self._idle < len(self._waiting) and self._threads - self.lost < self._most:
                self._start()
            self._lock.notify()
        if self._watch is None:
            self._looked_s = time.monotonic()
            self._watch = self._reactor.callLater(self._deadline_s / CHECKS, self._look)
        return task.result

    def _start(self) -> None:
        if self._threads < self._most + self._most_lost:
            self._threads += 1
            threading.Thread(target=self._work, name="worker", daemon=True).start()

    def refuse_stuck(self, place: str) -> None:
        """Nobody goes where another is stuck.

        Raises:
            NoAnswer: one is.
        """
        if self._stuck and os.path.dirname(place) in self._stuck:
            raise NoAnswer("an earlier access to its folder has not come back", place, None)

    # ---- in the threads

    def _work(self) -> None:
        while True:
            with self._lock:
                self._idle += 1
                while not self._waiting:
                    self._lock.wait()
                self._idle -= 1
                task = self._waiting.popleft()
                task.touched_s = time.monotonic()
                self._running[task] = None
            _CURRENT.task = task
            try:
                result = task.function(*task.arguments)
            except BaseException:  # noqa: BLE001 - the caller gets it
                result = Failure()
            _CURRENT.task = None
            self._reactor.callFromThread(self._over, task, result)
            del task, result

    # ---- in the reactor's

    def _over(self, task: _Task, result: Any) -> None:
        with self._lock:
            self._running.pop(task, None)
        if task.late is None:
            task.result.callback(result)
            return
        self.lost -= 1
        folder = os.path.dirname(task.place)
        self._stuck[folder] -= 1
        if not self._stuck[folder]:
            del self._stuck[folder]
        task.late.callback(result.value if isinstance(result, Failure) else result)

    def _look(self) -> None:
        """Give up what has said nothing for too long, unless it was this process that stood still."""
        now_s = time.monotonic()
        stood_still = now_s - self._looked_s > self._deadline_s / 2
        self._looked_s = now_s
        with self._lock:
            running = [task for task in self._running if task.late is None]
            busy = bool(running or self._waiting)
        for task in running:
            if stood_still:
                task.touched_s = now_s
            elif now_s - task.touched_s > self._deadline_s:
                self._give_up(task)
        self._watch = self._reactor.callLater(self._deadline_s / CHECKS, self._look) if busy else None

    def _give_up(self, task: _Task) -> None:
        task.late = Deferred()
        folder = os.path.dirname(task.place)
        with self._lock:
            self.lost += 1
            self._stuck[folder] = self._stuck.get(folder, 0) + 1
            if self._waiting:
                self._start()
            hopeless = list(self._waiting) if self.lost >= self._most + self._most_lost else []
            if hopeless:
                self._waiting.clear()
        task.result.errback(NoAnswer(f"no answer within {self._deadline_s:g} s", task.place, task.late))
        for each in hopeless:
            each.result.errback(NoAnswer(f"{self.lost} earlier accesses to files have not come back", "", None))
