"""Which task is whose: a pure core.

Theory: a task waits, or is a worker's (in the order in which it got them), or has ended.  A worker has at most as many
as it computes in `AHEAD_S`, so that a message's way costs no computing time and nothing long waits behind something
long; and never more than its share of what there is.  Tasks of one that is gone go to the front.  The first of them is
the one that was being computed: it may be what killed the worker, so it is counted, and given up after `crash_limit`
times.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable

import attrs

AHEAD_S = 0.1
MOST_AHEAD = 2000
BYTES_AHEAD = 16 << 20
"""Arguments of so many bytes are enough ahead for any worker."""


@attrs.define
class Task:
    """A task that has not ended.

    Attributes:
        number: from 1.
        function: the function's number.
        chunk: whether the arguments are rows of a map.
        arguments: pickled.
        crashes: how many workers vanished while they computed it.
        given_to: the workers that ever had it; a result counts from these alone.
    """

    number: int
    function: int
    chunk: bool
    arguments: bytes
    crashes: int = 0
    given_to: set[str] = attrs.field(factory=set)


@attrs.define
class WorkerState:
    """A worker.

    Attributes:
        given: its tasks, in the order in which it computes them.
        functions: those that it knows.
        mean_s: what a task takes; 0: nobody knows.
        lost_s: when its link broke; None: it is linked.
        idle_s: since when it has nothing.
    """

    name: str
    given: OrderedDict[int, None] = attrs.field(factory=OrderedDict)
    functions: set[int] = attrs.field(factory=set)
    mean_s: float = 0.0
    lost_s: float | None = None
    idle_s: float = 0.0
    is_ending: bool = False

    def window(self) -> int:
        """How many tasks it may have."""
        return 1 if self.mean_s == 0.0 else max(1, min(MOST_AHEAD, int(AHEAD_S / self.mean_s)))


class Dispatch:
    """Tasks and workers.

    Args:
        crash_limit: how many workers may vanish while they compute one task.
        begin: called with a task's number before it is given to its first worker; false: it was cancelled.
    """

    def __init__(self, crash_limit: int, begin: Callable[[int], bool]) -> None:
        self._crash_limit = crash_limit
        self._begin = begin
        self._begun: set[int] = set()
        self._waiting: deque[int] = deque()
        self.tasks: dict[int, Task] = {}
        self.workers: dict[str, WorkerState] = {}

    @property
    def unfinished(self) -> int:
        """How many tasks have not ended."""
        return len(self.tasks)

    @property
    def waiting(self) -> int:
        """How many tasks are no worker's."""
        return len(self._waiting)

    def add(self, task: Task) -> None:
        """A new task."""
        self.tasks[task.number] = task
        self._waiting.append(task.number)

    def joined(self, name: str, has: Iterable[int], now_s: float) -> list[int]:
        """A worker is linked, for the first time or again.

        Args:
            has: the tasks that it has, or has results of.

        Returns:
            those of them that it need not compute.
        """
        worker = self.workers.setdefault(name, WorkerState(name, idle_s=now_s))
        worker.lost_s = None
        worker.functions.clear()
        held = set(has)
        self._requeue([number for number in worker.given if number not in held])
        worker.given = OrderedDict((number, None) for number in worker.given if number in held)
        return [number for number in held if number not in worker.given]

    def lost(self, name: str, now_s: float) -> None:
        """The link to a worker broke."""
        if name in self.workers:
            self.workers[name].lost_s = now_s

    def overdue(self, now_s: float, grace_s: float) -> list[str]:
        """Workers whose links broke longer ago than ``grace_s``."""
        return [worker.name for worker in self.workers.values()
                if worker.lost_s is not None and now_s - worker.lost_s >= grace_s]

    def gone(self, name: str, *, by_itself: bool) -> list[Task]:
        """A worker will not come back.

        Args:
            by_itself: nobody asked it to go, so the task that it computed may have killed it.

        Returns:
            the tasks that are given up, for they killed too many workers.
        """
        worker = self.workers.pop(name, None)
        if worker is None or not worker.given:
            return []
        numbers = list(worker.given)
        first = self.tasks.get(numbers[0])
        given_up = []
        if by_itself and first is not None:
            first.crashes += 1
            if first.crashes >= self._crash_limit:
                given_up.append(self.tasks.pop(first.number))
                self._begun.discard(first.number)
                numbers = numbers[1:]
        self._requeue(numbers)
        return given_up

    def returned(self, name: str, numbers: Iterable[int]) -> None:
        """A worker gives tasks back, for something long keeps it."""
        worker = self.workers[name]
        worker.mean_s = AHEAD_S
        own = [number for number in numbers if number in worker.given]
        for number in own:
            del worker.given[number]
        self._requeue(own)

    def result(self, name: str, number: int) -> bool:
        """A result has come; whether it is the first of its task, from a worker that was given it."""
        worker = self.workers.get(name)
        if worker is not None:
            worker.given.pop(number, None)
        task = self.tasks.get(number)
        if task is None or name not in task.given_to:
            return False
        del self.tasks[number]
        self._begun.discard(number)
        return True

    def measured(self, name: str, count: int, busy_s: float, now_s: float) -> None:
        """What a worker has computed so many tasks in."""
        worker = self.workers.get(name)
        if worker is None or not count:
            return
        mean_s = max(busy_s / count, 1e-6)
        worker.mean_s = mean_s if worker.mean_s == 0.0 else (worker.mean_s + mean_s) / 2
        if not worker.given:
            worker.idle_s = now_s

    def take(self, name: str) -> list[Task]:
        """The tasks that a worker is to be sent now."""
        worker = self.workers.get(name)
        if worker is None or worker.lost_s is not None or worker.is_ending or not self._waiting:
            return []
        linked = sum(other.lost_s is None and not other.is_ending for other in self.workers.values())
        room = min(worker.window(), math.ceil(len(self.tasks) / linked)) - len(worker.given)
        taken: list[Task] = []
        size = 0
        while len(taken) < room and self._waiting and size < BYTES_AHEAD:
            number = self._waiting.popleft()
            task = self.tasks.get(number)
            if task is None:  # its result came from a worker that was given up
                continue
            if number not in self._begun:
                if not self._begin(number):
                    del self.tasks[number]
                    continue
                self._begun.add(number)
            taken.append(task)
            worker.given[number] = None
            task.given_to.add(name)
            size += len(task.arguments)
        return taken

    def drop(self) -> list[Task]:
        """Forget every task; what there was."""
        left = list(self.tasks.values())
        self.tasks.clear()
        self._waiting.clear()
        self._begun.clear()
        for worker in self.workers.values():
            worker.given.clear()
        return left

    def drop_waiting(self) -> list[Task]:
        """Forget the tasks that no worker was ever given; what there was."""
        left = [self.tasks.pop(number) for number in self._waiting if number in self.tasks
                and number not in self._begun]
        self._waiting = deque(number for number in self._waiting if number in self._begun)
        return left

    def _requeue(self, numbers: list[int]) -> None:
        self._waiting.extendleft(reversed([number for number in numbers if number in self.tasks]))
