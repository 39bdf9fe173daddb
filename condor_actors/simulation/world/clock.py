"""Simulated time: a heap of calls, run one by one, each at its own instant.

Theory: Twisted's ``task.Clock`` sorts its list at every call and jumps over the instants between; a month of a pool
has hundreds of millions of events.  Here scheduling and running cost one heap operation each, a cancelled call stays
in the heap until its turn comes (or until more than half of the heap is such), and equal instants run in the order in
which they were scheduled, so that a run is the same every time.

Most calls of a large pool are messages that all take equally long and that nobody cancels.  They run in the order in
which they were sent, so a queue beside the heap (:meth:`HeapClock.soon`) keeps them, whatever the heap's size.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Any

from twisted.internet.error import AlreadyCalled, AlreadyCancelled
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from zope.interface import implementer

COMPACT_AT = 4096


@implementer(IDelayedCall)
class SimulatedCall:
    """One scheduled call; an ``IDelayedCall``."""

    __slots__ = ("_clock", "arguments", "called", "cancelled", "entry_s", "function", "keywords", "time_s")

    def __init__(self, clock: HeapClock, time_s: float, function: Callable[..., Any], arguments: tuple[Any, ...],
                 keywords: dict[str, Any]) -> None:
        self._clock = clock
        self.time_s = self.entry_s = time_s
        self.function = function
        self.arguments = arguments
        self.keywords = keywords
        self.called = self.cancelled = False

    def getTime(self) -> float:
        """When it runs."""
        return self.time_s

    def active(self) -> bool:
        """Whether it will run."""
        return not (self.called or self.cancelled)

    def cancel(self) -> None:
        """Never run it."""
        self._check()
        self.cancelled = True
        self._clock.forget_one()

    def delay(self, secondsLater: float) -> None:
        """Run it later (or, with a negative value, sooner) than planned."""
        self._check()
        self._move(self.time_s + secondsLater)

    def reset(self, secondsFromNow: float) -> None:
        """Run it so many seconds from now."""
        self._check()
        self._move(self._clock.now_s + secondsFromNow)

    def _move(self, time_s: float) -> None:
        self.time_s = time_s
        if time_s < self.entry_s:
            self._clock.push(self)

    def _check(self) -> None:
        if self.cancelled:
            raise AlreadyCancelled
        if self.called:
            raise AlreadyCalled


@implementer(IReactorTime)
class HeapClock:
    """An ``IReactorTime`` whose time moves only when :meth:`run_until` is called.

    Args:
        epoch_s: the wall clock at the start, seconds since 1970.
        soon_s: what :meth:`soon` waits.

    Attributes:
        now_s: simulated seconds since the start.
        events: how many calls have run.
        running: the call that runs now, or ran last (those of :meth:`soon` apart).
    """

    def __init__(self, epoch_s: float = 581_731_200.0, soon_s: float = 0.0) -> None:
        self.now_s = 0.0
        self.epoch_s = epoch_s
        self.events = 0
        self.running: SimulatedCall | None = None
        self.stopping = False
        self._soon_s = soon_s
        self._queue: deque[tuple[Any, ...]] = deque()
        """Instant, order, function, arguments."""
        self._heap: list[tuple[float, int, SimulatedCall]] = []
        self._order = 0
        self._dead = 0

    def seconds(self) -> float:
        """Simulated seconds since the start."""
        return self.now_s

    def wall(self) -> float:
        """Seconds since 1970."""
        return self.epoch_s + self.now_s

    def callLater(self, delay: float, callable: Callable[..., Any], *args: Any,  # noqa: A002 - Twisted's name
                  **kw: Any) -> SimulatedCall:
        """Run ``callable`` in ``delay`` simulated seconds (not negative)."""
        return self.later(delay, callable, args, kw)

    def later(self, delay_s: float, function: Callable[..., Any], arguments: tuple[Any, ...],
              keywords: dict[str, Any]) -> SimulatedCall:
        """As ``callLater``, for who has the arguments in hand."""
        if delay_s < 0:
            raise ValueError(f"a call cannot run {-delay_s} s ago")
        time_s = self.now_s + delay_s
        call = SimulatedCall(self, time_s, function, arguments, keywords)
        self._order += 1
        heappush(self._heap, (time_s, self._order, call))
        return call

    def soon(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Run ``function`` in ``soon_s`` seconds, for good: as ``callLater`` would, in the same order, but cheaper."""
        self._order += 1
        self._queue.append((self.now_s + self._soon_s, self._order, function, arguments))

    def getDelayedCalls(self) -> Sequence[IDelayedCall]:
        """The calls that will run, in no order; without those of :meth:`soon`."""
        return [call for time_s, _, call in self._heap if call.active() and time_s == call.entry_s]

    def push(self, call: SimulatedCall) -> None:
        """Put a call into the heap under its present time; an earlier entry of it no longer counts."""
        call.entry_s = entry_s = call.time_s
        self._order += 1
        heappush(self._heap, (entry_s, self._order, call))

    def forget_one(self) -> None:
        """A call in the heap was cancelled; rebuild the heap when most of it is dead."""
        self._dead += 1
        if self._dead > COMPACT_AT and self._dead * 2 > len(self._heap):
            self._heap[:] = [entry for entry in self._heap if entry[2].active() and entry[0] == entry[2].entry_s]
            heapify(self._heap)
            self._dead = 0

    def run_until(self, end_s: float, *, from_s: float = float("inf"), done: Callable[[], bool] = bool) -> None:
        """Run everything due by ``end_s``, each call at its own instant; the clock then shows ``end_s``.

        Args:
            from_s: from then on ``done`` is asked behind each call, and ends the run early.
        """
        self.stopping = False
        heap, queue = self._heap, self._queue
        while heap or queue:
            if queue and (not heap or queue[0] < heap[0]):
                entry_s = queue[0][0]
                if entry_s > end_s:
                    break
                _, _, function, arguments = queue.popleft()
                self.now_s = entry_s
                self.events += 1
                function(*arguments)
            else:
                entry_s, _, call = heap[0]
                if entry_s > end_s:
                    break
                heappop(heap)
                if call.cancelled or call.called or entry_s != call.entry_s or call.time_s > entry_s:
                    self._put_off(call, entry_s)
                    continue
                self.now_s = entry_s
                call.called = True
                self.running = call
                self.events += 1
                call.function(*call.arguments, **call.keywords)
            if self.stopping or (entry_s >= from_s and done()):
                return
        self.now_s = max(self.now_s, end_s)

    def _put_off(self, call: SimulatedCall, entry_s: float) -> None:
        """An entry has left the heap whose call is not to run now: it was cancelled or moved."""
        if call.cancelled:
            self._dead -= self._dead > 0
        elif not call.called and entry_s == call.entry_s:
            self.push(call)

    def stop(self) -> None:
        """End :meth:`run_until` behind the present call."""
        self.stopping = True
