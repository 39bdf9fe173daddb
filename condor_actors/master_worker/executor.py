"""`MasterWorker`: an executor whose workers are jobs of the pool."""

from __future__ import annotations

import concurrent.futures
import functools
import itertools
import pickle
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import cloudpickle

from condor_actors.addresses import split_address
from condor_actors.api.errors import NotSupported, as_condor_errors
from condor_actors.api.schedd import Schedd
from condor_actors.api.settings import config
from condor_actors.master_worker import credentials, plain_data, worker
from condor_actors.master_worker.crew import Crew
from condor_actors.master_worker.dispatch import Dispatch, Task
from condor_actors.master_worker.master import Master, Terms
from condor_actors.master_worker.sizing import Limits
from condor_actors.tools.lib import contact

_T = TypeVar("_T")
Future = concurrent.futures.Future
Progress = Callable[[int, int], object]
CANCELLED, CRASHED = -1, -2
LARGEST_ARGUMENTS = 256 << 20


class WorkersFailed(concurrent.futures.BrokenExecutor):
    """No worker can be had; the text says why."""


class TaskCrashed(Exception):
    """A task whose workers vanished while they computed it, again and again; or what it raised cannot be sent."""


class RemoteTraceback(Exception):
    """Where a task raised, as the worker saw it."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


def _objects(body: bytes) -> Any:
    return pickle.loads(body)  # noqa: S301 - the executor was made to take objects of its workers


class MasterWorker(concurrent.futures.Executor):
    """An executor whose workers are jobs of the pool.

    Use::

        with MasterWorker(max_workers=50) as executor:
            for value in executor.map(simulate, seeds, progress=True):
                ...

    Args:
        max_workers, min_workers: between these there are as many as there are tasks that have not ended.
        idle_s: how long a worker may have nothing to do before it leaves.
        submit: further commands for the workers' description (``request_memory``, ``requirements`` …).
        python: the interpreter on the machines, of this one's version; by default this one's own path.
        schedd: where the workers are queued; it must be on this machine.
        host, port: where the master listens; by default at the address of this machine's schedd, at any port.
        results: ``objects``: of any kind, which trusts the pool's machines with this program, for to unpickle is to
            execute; ``data``: numbers, texts, bytes, and lists, tuples, dicts and sets of these.
        crash_limit: a task is given up when so many workers vanished while they computed it.
        reconnect_s: for how long a worker whose link broke may come back before its tasks are given to others.
        silence_s: after which a link that says nothing is taken for broken.

    Raises:
        ValueError: a number or command that cannot be.
        CondorError: there is no schedd.
        OSError: the address cannot be listened at.
    """

    def __init__(self, max_workers: int = 4, *, min_workers: int = 0, idle_s: float = 60.0,
                 submit: Mapping[str, object] | None = None, python: str = "", schedd: Schedd | None = None,
                 host: str = "", port: int = 0, results: str = "objects", crash_limit: int = 5,
                 reconnect_s: float = 5.0, silence_s: float = 60.0) -> None:
        if not 0 <= min_workers <= max_workers or max_workers < 1:
            raise ValueError(f"min_workers={min_workers}, max_workers={max_workers}: there must be at least one worker "
                             "at most, and no more at least than at most")
        if results not in ("objects", "data"):
            raise ValueError(f'results={results!r} is neither "objects" nor "data"')
        if crash_limit < 1 or min(idle_s, reconnect_s, silence_s) < 0:
            raise ValueError("crash_limit begins at 1, times begin at 0")
        self._load = _objects if results == "objects" else plain_data.read
        self._takes_objects = results == "objects"
        self._lock = threading.Lock()
        self._futures: dict[int, Future[Any]] = {}
        self._numbers = itertools.count(1)
        self._known: dict[bytes, int] = {}
        self._by_function: weakref.WeakKeyDictionary[types.FunctionType, int] = weakref.WeakKeyDictionary()
        self._is_shut = False
        self._broken = ""
        terms = Terms(host=host or _own_host(schedd), port=port, reconnect_s=reconnect_s, silence_s=silence_s,
                      limits=Limits(least=min_workers, most=max_workers, idle_s=idle_s))
        crew = Crew(schedd or Schedd(), python or sys.executable, submit or {})
        self._crew = crew
        self._master = Master(terms, credentials.make(), crew, Dispatch(crash_limit, self._begin), self._outcome,
                              self._break)
        self._master.start()
        self._at_exit = weakref.finalize(self, crew.abandon)

    # -- what programs call

    def submit(self, fn: Callable[..., _T], /, *args: Any, **kwargs: Any) -> Future[_T]:
        """Have a worker compute ``fn(*args, **kwargs)``.

        Raises:
            RuntimeError: the executor was shut down.
            WorkersFailed: there are no workers to be had.
        """
        return self._add(fn, (args, kwargs), is_chunk=False)

    def map(self, fn: Callable[..., _T], *iterables: Iterable[Any], timeout: float | None = None, chunksize: int = 1,
            progress: Progress | bool | None = None) -> Iterator[_T]:
        """``fn`` of each row of the iterables; values in their order.

        Args:
            timeout: seconds from now after which the iterator raises `TimeoutError`.
            chunksize: rows that make one task.
            progress: called with (rows done, rows) from the master's thread after each task; true: a line on the
                standard error.
        """
        if chunksize < 1:
            raise ValueError("chunksize must be >= 1.")
        end_s = None if timeout is None else time.monotonic() + timeout
        rows = list(zip(*iterables, strict=False))
        report = _line if progress is True else progress or None
        counting = _Count(len(rows), report) if report else None
        futures: list[Future[list[_T]]] = []
        for first in range(0, len(rows), chunksize):
            part = rows[first:first + chunksize]
            future: Future[list[_T]] = self._add(fn, part, is_chunk=True)
            if counting is not None:
                future.add_done_callback(functools.partial(counting.ended, len(part)))
            futures.append(future)
        return _values(futures, end_s)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more tasks, finish those that there are, send the workers away.

        Args:
            wait: until all of that is done and the workers' jobs have left the queue.
            cancel_futures: tasks that no worker has begun are cancelled.
        """
        with self._lock:
            self._is_shut = True
        self._master.end(cancel=cancel_futures)
        if wait:
            self._master.thread.join()
            self._at_exit.detach()

    @property
    def workers(self) -> int:
        """How many workers are linked now."""
        return len(self._master.links)

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """(cluster, proc) of the workers' jobs in the queue."""
        return sorted(self._crew.jobs)

    # -- tasks

    def _add(self, fn: Callable[..., Any], given: object, *, is_chunk: bool) -> Future[Any]:
        future: Future[Any] = Future()
        with self._lock:
            if self._broken:
                raise WorkersFailed(self._broken)
            if self._is_shut:
                raise RuntimeError("cannot schedule new futures after shutdown")
            try:
                function = self._function(fn)
                arguments = _pickled(given)
            except Exception as error:  # noqa: BLE001 - whatever cannot be sent is its future's failure
                future.set_exception(error)
                return future
            number = next(self._numbers)
            self._futures[number] = future
            self._master.inbox.append(Task(number, function, is_chunk, arguments))
        self._master.wake()
        return future

    def _function(self, fn: Callable[..., Any]) -> int:
        """The number of a function; one without closure is pickled once, when it is first seen."""
        is_plain = isinstance(fn, types.FunctionType) and fn.__closure__ is None
        if is_plain and (number := self._by_function.get(fn)) is not None:  # type: ignore[call-overload]
            return number  # type: ignore[no-any-return]
        body = cloudpickle.dumps(fn, 5)
        if (known := self._known.get(body)) is None:
            known = self._known[body] = len(self._master.functions)
            self._master.functions.append(body)
        if is_plain:
            self._by_function[fn] = known  # type: ignore[index]
        return known

    def _begin(self, number: int) -> bool:
        if self._futures[number].set_running_or_notify_cancel():
            return True
        del self._futures[number]
        return False

    def _outcome(self, number: int, outcome: int, body: bytes) -> None:
        future = self._futures.pop(number, None)
        if future is None:
            return
        if outcome == CANCELLED:
            future.cancel()
            future.set_running_or_notify_cancel()
            return
        try:
            if outcome == worker.DONE:
                future.set_result(self._load(body))
            else:
                future.set_exception(self._failure(outcome, body))
        except concurrent.futures.InvalidStateError:
            pass
        except Exception as error:  # noqa: BLE001 - what cannot be read is the future's failure, not the master's
            future.set_exception(error)

    def _failure(self, outcome: int, body: bytes) -> BaseException:
        if outcome == CRASHED:
            return TaskCrashed(f"{body.decode()} workers vanished while they computed this task")
        if outcome == worker.RAISED and self._takes_objects:
            error, trace = self._load(body)
            if isinstance(error, BaseException):
                error.__cause__ = RemoteTraceback(trace)
                return error
        if outcome == worker.RAISED:
            return TaskCrashed('the task raised; results="data" does not let its exception come here')
        return TaskCrashed(body.decode(errors="replace"))

    def _break(self, why: str) -> None:
        with self._lock:
            self._broken = why
            left = list(self._futures.values())
            self._futures.clear()
            self._master.inbox.clear()
        for future in left:
            if future.running() or future.set_running_or_notify_cancel():
                future.set_exception(WorkersFailed(why))


class _Count:
    """Counts the rows of a map that are done."""

    def __init__(self, rows: int, report: Progress) -> None:
        self._rows = rows
        self._done = 0
        self._report = report

    def ended(self, rows: int, _: Future[Any]) -> None:
        """A task has ended."""
        self._done += rows
        self._report(self._done, self._rows)


def _line(done: int, rows: int) -> None:
    """A line on the standard error, drawn anew at each hundredth."""
    if done == rows or done % max(1, rows // 100) == 0:
        sys.stderr.write(f"\r{done} of {rows} ({100 * done // rows}%)" + ("\n" if done == rows else ""))
        sys.stderr.flush()


def _values(futures: list[Future[list[_T]]], end_s: float | None) -> Iterator[_T]:
    futures.reverse()
    try:
        while futures:
            left_s = None if end_s is None else max(0.0, end_s - time.monotonic())
            yield from futures.pop().result(left_s)
    finally:
        for future in futures:
            future.cancel()


def _pickled(given: object) -> bytes:
    rows = given if isinstance(given, list) else given[:1] if isinstance(given, tuple) and not given[1] else [[given]]
    is_plain = all(type(part) in worker.PLAIN for row in rows for part in row)
    body = pickle.dumps(given, 5) if is_plain else cloudpickle.dumps(given, 5)
    if len(body) > LARGEST_ARGUMENTS:
        raise ValueError(f"the arguments of a task have {len(body)} bytes; more than {LARGEST_ARGUMENTS} go by file "
                         "(transfer_input_files)")
    return body


def _own_host(schedd: Schedd | None) -> str:
    """Where machines of the pool reach this one: as they reach its schedd."""
    if schedd is not None and (schedd.name or schedd.pool or schedd.address):
        raise NotSupported("the workers' schedd must be this machine's, for their secret is one of its files; a "
                           "program of its own machine can use it, or say host= and leave schedd= out")
    with as_condor_errors():
        address = contact.local_address(config(), "schedd")
    return split_address(address)[0]

