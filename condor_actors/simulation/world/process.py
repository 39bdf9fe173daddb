"""A simulated process: its time, its post office, its daemon, and how it ends.

Theory: everything a process does happens in calls of its own clock, so that a process that is killed never runs again,
one that is frozen (SIGSTOP, a machine that swaps) runs late, and one that dies in the midst of a turn leaves that turn
unfinished.  :class:`Killed` is how an edge says "the process died here": it passes through every handler of the
production code, as ``kill -9`` would.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import ILogObserver, LogEvent, Logger, LogLevel
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.messages.envelope import Identity
from condor_actors.services.steady_time import SteadyClock
from condor_actors.simulation.world.clock import HeapClock, SimulatedCall

if TYPE_CHECKING:
    from condor_actors.actors import ActorSystem
    from condor_actors.simulation.world.machine import SimulatedMachine
    from condor_actors.simulation.world.post import SimulatedPost

__all__ = ["Killed", "Process", "ProcessClock"]


NO_KEYWORDS: dict[str, Any] = {}


class Killed(BaseException):
    """The process dies at this point of its turn."""


@implementer(IReactorTime)
class ProcessClock:
    """The timers of one process, on a machine whose clock may run a little fast or slow."""

    def __init__(self, clock: HeapClock, process: Process, rate: float) -> None:
        self._clock = clock
        self._process = process
        self._rate = rate

    def seconds(self) -> float:
        """Seconds since the machine was started, by its own clock."""
        return self._clock.now_s * self._rate

    def callLater(self, delay: float, callable: Callable[..., Any], *args: Any,  # noqa: A002 - Twisted's name
                  **kw: Any) -> SimulatedCall:
        """Run ``callable`` in ``delay`` seconds, if the process lives."""
        return self._clock.later(delay / self._rate, self._due, (callable, args, kw), NO_KEYWORDS)

    def getDelayedCalls(self) -> list[IDelayedCall]:
        """Not kept by process."""
        return []

    def _due(self, function: Callable[..., Any], args: tuple[Any, ...], kw: dict[str, Any]) -> None:
        """A timer has run out; one of a frozen process stays pending, so that it can still be cancelled."""
        process = self._process
        if process.frozen:
            call = self._clock.running
            assert call is not None
            call.called = False
            process.late.append(call)
        elif process.alive:
            try:
                function(*args, **kw)
            except Killed:
                process.machine.kill(process)
            except Exception:  # noqa: BLE001 - the reactor would log it and go on
                process.machine.pool.trouble(process, Failure(), "an unhandled error")

    def run(self, function: Callable[..., Any], *args: Any, **kw: Any) -> None:
        """Have the process run a function now; later, when it is frozen; never, when it is dead."""
        process = self._process
        if process.frozen:
            late = SimulatedCall(self._clock, self._clock.now_s, self.run, (function, *args), kw)
            process.late.append(late)
        else:
            self._due(function, args, kw)


@implementer(ILogObserver)
class _Nobody:
    """Observes nothing."""

    def __call__(self, event: LogEvent) -> None:
        """Nothing."""


class QuietLog(Logger):
    """Keeps what a process logs for stories; an incident is told to the pool."""

    def __init__(self, process: Process) -> None:
        super().__init__("condor.simulation", observer=_Nobody())
        self._process = process

    def __get__(self, instance: object, owner: object = None) -> Logger:
        return self

    def emit(self, level: Any, format: str | None = None, **kwargs: object) -> None:  # noqa: A002 - Twisted's name
        """Note a line, if anyone wants it."""
        pool = self._process.machine.pool
        if level is not LogLevel.debug and pool.lines is not None:
            pool.lines.append((pool.clock.now_s, self._process.title, level.name, format or "", kwargs))

    def failure(self, format: str, failure: Failure | None = None, level: Any = LogLevel.critical,  # noqa: A002
                **kwargs: Any) -> None:
        """An actor or an edge has failed."""
        text = str(kwargs.get("what", format))
        self._process.machine.pool.trouble(self._process, failure or Failure(), text)


class Process:
    """One process of a machine.

    Attributes:
        kind: ``schedd``, ``startd`` …; name: as its master knows it.
        pid, birth_s: its number and when it began.
        uid, owner: as whom it runs; a shadow host becomes its owner.
        alive, frozen: whether it exists, and runs.
        starved: it stands still for want of the processor.
        system: its actors, once it runs.
        ended: called with (exit status, signal) when it is gone.
    """

    def __init__(self, machine: SimulatedMachine, kind: str, name: str, pid: int, uid: int = 0) -> None:
        self.machine = machine
        self.kind = kind
        self.name = name
        self.pid = pid
        self.uid = uid
        self.owner = ""
        self.title = f"{machine.name}/{name}[{pid}]"
        self.birth_s = machine.pool.clock.now_s
        self.alive = True
        self.frozen = False
        self.starved = False
        self.late: list[SimulatedCall] = []
        self.random = Random(machine.pool.random.getrandbits(64))
        self.clock = ProcessClock(machine.pool.clock, self, machine.clock_rate)
        self.wall = SteadyClock(machine.wall_s, self.clock.seconds)
        self.log = QuietLog(self)
        self.post: SimulatedPost | None = None
        self.daemon: Any = None
        self.system: ActorSystem | None = None
        self.ended: Callable[[int | None, int | None], None] | None = None
        self.stopping = False
        self.parent_pid = 0

    def new_secret(self) -> str:
        """128 bits that nobody outside of the simulation can guess; a mark says what they are, for the checkers."""
        return f"5ec4e7{self.random.getrandbits(104):026x}"

    def local_identity(self) -> Identity:
        """Who it is for whom it speaks to over a UNIX socket."""
        user = self.owner or ("root" if self.uid == 0 else self.machine.pool.user_name(self.uid))
        return Identity(name=f"{user}@{self.machine.pool.domain}", method="local", uid=self.uid, pid=self.pid)

    def remote_identity(self, machine_identity: Identity) -> Identity:
        """Who it is for others: the machine, or the shadow of its owner."""
        if self.kind != "shadow-host":
            return machine_identity
        host = self.machine.name
        return Identity(name=f"shadow:{self.owner}@{host}", roles=frozenset({"shadow"}), host=host, method="tls")

    def become(self, owner: str, uid: int, gid: int) -> None:
        """Drop to a user for good."""
        self.owner, self.uid = owner, uid

    def freeze(self) -> None:
        """SIGSTOP."""
        self.frozen = True

    def thaw(self) -> None:
        """SIGCONT: what waited happens now, unless the whole machine sleeps."""
        if self.machine.is_asleep:
            return
        self.frozen = False
        late, self.late = self.late, []
        for call in late:
            self.machine.pool.clock.callLater(0.0, self._catch_up, call)

    def _catch_up(self, call: SimulatedCall) -> None:
        if call.active():
            call.called = True
            call.function(*call.arguments, **call.keywords)

    def exit(self, status: int = 0) -> None:
        """End from within, at the end of this turn."""
        self.machine.pool.clock.callLater(0.0, self.machine.gone, self, status, None)

    def shut_down(self, how: str) -> None:
        """SIGTERM or SIGQUIT: the daemon comes to rest, then the process ends."""
        if self.daemon is None:
            self.machine.gone(self, None, 15)
            return
        if self.stopping and how != "fast":
            return
        self.stopping = True
        resting: Deferred[None] = self.daemon.stop(how != "fast")
        resting.addCallback(lambda _: self.clock.callLater(0.0, self._at_rest))

    def _at_rest(self) -> None:
        if self.system is not None:
            self.system.stop()
            if self.post is not None:
                self.post.stop()
            self.exit(0)
