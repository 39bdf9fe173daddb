"""The master's thread: serves workers, sends tasks, takes results, keeps as many workers as there is work for.

Theory: one asyncio loop in a thread of its own has `Dispatch`, the links and the crew; a program's threads only add
to `inbox` and wake it once for many.  Everything that a worker sends is checked for its form; what it sends as a result
is unpickled as the executor was told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.master_worker import sizing, worker
from condor_actors.master_worker.credentials import Credentials
from condor_actors.master_worker.crew import Crew, Job
from condor_actors.master_worker.dispatch import Dispatch, Task
from condor_actors.master_worker.door import Door

TICK_S = 0.25
GREETING_S = 20.0
LARGEST_GREETING = 4 << 20
LARGEST_ANSWER = worker.LARGEST_RESULT + (2 << 20)
"""Of frames: a worker sends a result of any size that it may have, and small ones together."""
ALIVE_S = 3 * worker.BEAT_S
"""A worker heard from within this time counts as alive."""
LONGEST_NAME = 100
NONSENSE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error)
"""What a frame that is none is known by."""
FAREWELL_S = 20.0
"""For how long the end waits for jobs to leave the queue by themselves."""

Outcome = Callable[[int, int, bytes], None]
"""Is given the number of a task, the outcome, and its body."""


@attrs.frozen(kw_only=True)
class Terms:
    """What a master goes by.

    Attributes:
        host, port: where it listens.
        limits: of its workers.
        reconnect_s: for how long a worker whose link broke may come back with its tasks.
        silence_s: after which a link is taken for broken.
    """

    host: str
    port: int
    limits: sizing.Limits
    reconnect_s: float
    silence_s: float


class WorkerLink(asyncio.Protocol):
    """A worker's connection, from its handshake on."""

    def __init__(self, master: Master) -> None:
        self._master = master
        self._frames = worker.Frames(LARGEST_GREETING)
        self.transport: asyncio.Transport | None = None
        self.name = ""
        self.job: Job = (0, 0)
        self.heard_s = time.monotonic()
        self.since_s = self.heard_s
        self.is_known = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The two ends know each other."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._master.links.add(self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come."""
        self.heard_s = time.monotonic()
        try:
            for kind, body in self._frames.feed(data):
                self._master.heard(self, kind, body)
        except NONSENSE as error:
            sys.stderr.write(f"a worker sends nonsense and is cut off: {str(error)[:200]!r}\n")
            self.cut()

    def greeted(self, name: str, job: Job) -> None:
        """It is known who it is."""
        self.name, self.job = name, job
        self._frames.largest = LARGEST_ANSWER
        self.is_known.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended."""
        self.is_known.set()
        self._master.links.discard(self)
        self._master.unlinked(self)

    def send(self, kind: int, body: bytes = b"") -> None:
        """Send a frame."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(worker.frame(kind, body))

    def cut(self) -> None:
        """Break it."""
        if self.transport is not None:
            self.transport.abort()


class Master:
    """What serves the workers of one executor.

    Args:
        terms: what it goes by.
        credentials: by which the ends know each other.
        crew: the workers' jobs.
        dispatch: the tasks.
        outcome: called in the master's thread with each result, once for a task.
        broken: called there when there will be no workers, with the reason.
    """

    def __init__(self, terms: Terms, credentials: Credentials, crew: Crew, dispatch: Dispatch, outcome: Outcome,
                 broken: Callable[[str], None]) -> None:
        self._terms = terms
        self._credentials = credentials
        self._crew = crew
        self._dispatch = dispatch
        self._outcome = outcome
        self._broken = broken
        self.inbox: deque[Task] = deque()
        self.functions: list[bytes] = []
        self.links: set[WorkerLink] = set()
        self._of: dict[str, WorkerLink] = {}
        self._job_of: dict[str, Job] = {}
        self._is_woken = False
        self._is_ending = False
        self._cancel_waiting = False
        self._quiet_since_s = time.monotonic()
        self._started: BaseException | None = None
        self._listens = threading.Event()
        self._more = asyncio.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="master-worker", daemon=True)

    # -- called by the program's threads

    def start(self) -> None:
        """Listen.

        Raises:
            OSError: it cannot.
        """
        self.thread.start()
        self._listens.wait()
        if self._started is not None:
            raise self._started

    def wake(self) -> None:
        """Have the inbox looked at."""
        if not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: the executor was shut down meanwhile
                self.loop.call_soon_threadsafe(self._collect)

    def end(self, *, cancel: bool) -> None:
        """Finish what there is, or with ``cancel`` only what is begun; then send the workers away."""
        def begin_end() -> None:
            self._is_ending = True
            self._cancel_waiting = self._cancel_waiting or cancel
            self._collect()

        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(begin_end)

    # -- the loop

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._live())
        except Exception as error:  # noqa: BLE001 - its tasks must not wait forever
            self._broken(f"the master's thread failed: {error!r}")
        finally:
            self._crew.close()
            self._listens.set()
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    async def _live(self) -> None:
        door = Door(self._credentials.context, lambda: WorkerLink(self), GREETING_S)
        try:
            await door.listen(self._terms.host, self._terms.port)
            self._crew.prepare(door.address, self._credentials.secret)
        except OSError as error:
            self._started = error
            return
        self._listens.set()
        serving = self.loop.create_task(door.serve())
        following = self.loop.create_task(self._crew.follow())
        try:
            while not (self._is_ending and not self._dispatch.unfinished and not self.inbox):
                if following.done():
                    following.result()
                self._more.clear()
                await self._look()
                with contextlib.suppress(asyncio.TimeoutError):  # a first task does not wait for the next tick
                    await asyncio.wait_for(self._more.wait(), TICK_S if not self._is_ending else 0.02)
            await self._say_farewell()
        finally:
            for each in (following, serving):
                each.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await each
            for link in list(self.links):
                link.cut()
            await asyncio.sleep(0)

    async def _say_farewell(self) -> None:
        for link in self.links:
            link.send(worker.END)
        absent = self._crew.jobs - self._crew.seen
        if absent:
            await self._crew.remove(absent, "the executor was shut down")
        end_s = time.monotonic() + FAREWELL_S
        while self._crew.jobs and time.monotonic() < end_s:
            await asyncio.sleep(0.02)
        if self._crew.jobs:
            await self._crew.remove(set(self._crew.jobs), "the executor was shut down")

    def _collect(self) -> None:
        self._is_woken = False
        inbox, add = self.inbox, self._dispatch.add
        with contextlib.suppress(IndexError):
            while True:
                add(inbox.popleft())
        if self._cancel_waiting:
            for task in self._dispatch.drop_waiting():
                self._outcome(task.number, -1, b"")
        for link in list(self._of.values()):
            self._pump(link)
        if self._dispatch.unfinished > len(self._crew.jobs):
            self._more.set()

    async def _look(self) -> None:
        now_s = time.monotonic()
        for link in list(self.links):
            if now_s - link.heard_s > self._terms.silence_s or (not link.name and now_s - link.since_s > GREETING_S):
                link.cut()
        for name in self._dispatch.overdue(now_s, self._terms.reconnect_s):
            self._gone(name, by_itself=True)
        for name, job in list(self._job_of.items()):
            if name not in self._of and job not in self._crew.jobs:
                self._gone(name, by_itself=True)  # its job has ended: it need not be waited for
        await self._size(now_s)

    async def _size(self, now_s: float) -> None:
        if self._crew.broken:
            self._broken(self._crew.broken)
            self._dispatch.drop()
            self._is_ending = True
            return
        linked_jobs = {self._job_of[name] for name in self._of if name in self._job_of}
        if self._dispatch.unfinished >= len(self._crew.jobs):
            self._quiet_since_s = now_s
        workers = self._dispatch.workers
        step = sizing.change(
            self._terms.limits, unfinished=self._dispatch.unfinished, absent=len(self._crew.jobs - linked_jobs),
            linked={name: None if workers[name].given else now_s - workers[name].idle_s for name in self._of
                    if name in workers and not workers[name].is_ending},
            quiet_s=now_s - self._quiet_since_s)
        if step.submit and not self._is_ending:
            await self._crew.submit(step.submit)
        if step.remove:
            await self._crew.remove(set(sorted(self._crew.jobs - linked_jobs)[:step.remove]), "nothing to do")
        for name in step.end:
            if name in workers and name in self._of and not workers[name].given:
                workers[name].is_ending = True
                self._of[name].send(worker.END)

    # -- a worker's frames

    def heard(self, link: WorkerLink, kind: int, body: bytes) -> None:
        """A frame has come.

        Raises:
            `NONSENSE`: it is none.
        """
        if not link.name:
            if kind != worker.HELLO:
                raise ValueError(f"a worker begins with frame {kind}")
            self._greet(link, json.loads(body))
        elif kind == worker.RESULTS:
            self._take_results(link, body)
        elif kind == worker.RETURNED:
            self._dispatch.returned(link.name, [each[0] for each in worker.NUMBER.iter_unpack(body)])
            for other in list(self._of.values()):
                self._pump(other)
        elif kind == worker.LEAVING:
            self._gone(link.name, by_itself=False)
        elif kind == worker.BEAT:
            link.send(worker.BEAT)

    def _greet(self, link: WorkerLink, hello: dict[str, Any]) -> None:
        version = tuple(hello["python"])
        if hello["version"] != worker.VERSION or version != sys.version_info[:2]:
            link.send(worker.REFUSED, (
                f"the worker on {hello['host']} runs Python {'.'.join(map(str, version))}, the master "
                f"{sys.version_info[0]}.{sys.version_info[1]}; functions go between the same versions only. Say which "
                "interpreter of the machines is of that version: MasterWorker(python=…)").encode())
            return
        cluster, proc = str(hello["job"]).split(".")
        name, has = str(hello["name"]), [int(number) for number in hello["has"]]
        job = int(cluster), int(proc)
        if not 0 < len(name) <= LONGEST_NAME:
            raise ValueError("a worker's name is too long, or none")
        if job not in self._crew.jobs or self._is_occupied(job, name):
            link.cut()  # it may come again: its job may be known a moment later, and the former worker be gone
            return
        link.greeted(name, job)
        former = self._of.pop(name, None)
        if former is not None:
            former.name = ""
            former.cut()
        for other, job in list(self._job_of.items()):
            if job == link.job and other != name:
                self._gone(other, by_itself=True)  # the job runs again: its former worker cannot come back
        self._of[name], self._job_of[name] = link, link.job
        self._crew.came(link.job)
        drop = self._dispatch.joined(name, has, time.monotonic())
        link.send(worker.WELCOME, json.dumps({"drop": drop, "largest_result": worker.LARGEST_RESULT}).encode())
        if self._is_ending and not self._dispatch.unfinished:
            link.send(worker.END)
        for each in list(self._of.values()):
            self._pump(each)

    def _is_occupied(self, job: Job, name: str) -> bool:
        """Whether another worker of a job is linked, and lives: all workers have one secret, and may claim any job."""
        now_s = time.monotonic()
        return any(known == job and other != name and other in self._of and now_s - self._of[other].heard_s < ALIVE_S
                   for other, known in self._job_of.items())

    def _take_results(self, link: WorkerLink, body: bytes) -> None:
        serial, busy_s = worker.RESULTS_HEAD.unpack_from(body)
        if not 0.0 <= busy_s < math.inf:
            raise ValueError(f"{busy_s} s of computing")
        at, count, dispatch = worker.RESULTS_HEAD.size, 0, self._dispatch
        found = []
        while at < len(body):
            number, outcome, length = worker.RESULT.unpack_from(body, at)
            at += worker.RESULT.size + length
            if at > len(body):
                raise ValueError("a result is cut short")
            count += 1
            if dispatch.result(link.name, number):
                found.append((number, outcome, body[at - length:at]))
        link.send(worker.ACK, worker.NUMBER.pack(serial))
        dispatch.measured(link.name, count, busy_s, time.monotonic())
        self._pump(link)
        for number, outcome, part in found:
            self._outcome(number, outcome, part)

    def _pump(self, link: WorkerLink) -> None:
        """Send a worker the tasks that it has room for."""
        tasks = self._dispatch.take(link.name)
        if not tasks:
            return
        known = self._dispatch.workers[link.name].functions
        parts: list[bytes] = []
        for task in tasks:
            if task.function not in known:
                known.add(task.function)
                link.send(worker.FUNCTION, worker.FUNCTION_HEAD.pack(task.function) + self.functions[task.function])
            parts.append(worker.TASK.pack(task.number, task.function, task.chunk, len(task.arguments)))
            parts.append(task.arguments)
        link.send(worker.TASKS, b"".join(parts))

    def unlinked(self, link: WorkerLink) -> None:
        """A connection has ended."""
        if link.name and self._of.get(link.name) is link:
            del self._of[link.name]
            self._dispatch.lost(link.name, time.monotonic())

    def _gone(self, name: str, *, by_itself: bool) -> None:
        self._job_of.pop(name, None)
        link = self._of.pop(name, None)
        if link is not None:
            link.name = ""
            link.since_s = time.monotonic()
        for task in self._dispatch.gone(name, by_itself=by_itself):
            self._outcome(task.number, -2, str(task.crashes).encode())
        for other in list(self._of.values()):
            self._pump(other)
