"""The worker: computes what its master sends, and answers.  Runs on a machine of the pool, as a job.

This file is sent to the machine as it is, with cloudpickle beside it, and needs nothing else but the master's version
of Python.  The master reads the protocol's constants here.

Theory: two threads.  The main one computes, for signals and libraries expect it there; the other one speaks with the
master, so that a long task neither silences the worker nor keeps tasks that another worker could begin: what waits
behind a task of more than `LONG_S` is given back.  Results are sent in frames, which are kept until the master has
acknowledged them, so a broken link costs nothing: the worker comes back, says what it has, and sends again.

========  ===========  ==============================================================================
kind      sent by      body
========  ===========  ==============================================================================
HELLO     worker       JSON: who it is, and which tasks it has
WELCOME   master       JSON: the tasks that it need not compute, and the largest result
FUNCTION  master       number, cloudpickle
TASKS     master       tasks, one behind the other: number, function, is it a chunk, length, arguments
RESULTS   worker       number of the frame, seconds of computing, results: number, outcome, length, pickle
ACK       master       number of a frame of results
RETURNED  worker       numbers of tasks that were not begun
BEAT      both         nothing
LEAVING   worker       nothing: it is ended by its machine, and has returned what it can
END       master       nothing: finish what there is, and exit
REFUSED   master       text: why it cannot work here
========  ===========  ==============================================================================
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import select
import signal
import socket
import ssl
import struct
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle

VERSION = 1
HEADER = struct.Struct("<IB")
TASK = struct.Struct("<QIBI")
RESULT = struct.Struct("<QBI")
RESULTS_HEAD = struct.Struct("<Qd")
NUMBER = struct.Struct("<Q")
FUNCTION_HEAD = struct.Struct("<I")
HELLO, WELCOME, FUNCTION, TASKS, RESULTS, ACK, RETURNED, BEAT, LEAVING, END, REFUSED = range(1, 12)
LARGEST_FRAME = 1 << 30
LARGEST_RESULT = 256 << 20

DONE, RAISED, TEXT = range(3)
"""Outcomes: a value; an exception with its traceback; a text, where the exception cannot be sent."""

BEAT_S = 5.0
LONG_S = 0.2
FLUSH_S = 0.01
MOST_AT_ONCE = 256
GIVE_UP_S = 60.0
"""For how long a worker looks for a master that is gone."""
NAME = "master"
PLAIN = frozenset((type(None), bool, int, float, complex, str, bytes))
"""Types of which nothing can refer to a module that the other end does not have."""

Task = tuple[int, int, int, bytes]
_TERM = signal.SIGTERM


def pickled(value: object) -> bytes:
    """A value as bytes; functions and classes of the main program go by value."""
    if type(value) in PLAIN:
        return pickle.dumps(value, 5)
    return cloudpickle.dumps(value, 5)  # type: ignore[no-any-return, unused-ignore]


def frame(kind: int, body: bytes = b"") -> bytes:
    """A frame."""
    return HEADER.pack(len(body), kind) + body


class Frames:
    """Cuts a stream of bytes into frames.

    Attributes:
        largest: how many bytes one may have.
    """

    def __init__(self, largest: int = LARGEST_FRAME) -> None:
        self.largest = largest
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The frames that are whole now.

        Raises:
            ValueError: one is too large.
        """
        buffer = self._buffer
        buffer += data
        start = 0
        while len(buffer) - start >= HEADER.size:
            length, kind = HEADER.unpack_from(buffer, start)
            if length > self.largest:
                raise ValueError(f"a frame of {length} bytes is larger than {self.largest}")
            end = start + HEADER.size + length
            if len(buffer) < end:
                break
            yield kind, bytes(buffer[start + HEADER.size:end])
            start = end
        del buffer[:start]


def tasks_in(body: bytes) -> Iterator[Task]:
    """The tasks of a frame: number, function, is it a chunk, arguments."""
    at = 0
    while at < len(body):
        number, function, chunk, length = TASK.unpack_from(body, at)
        at += TASK.size + length
        yield number, function, chunk, body[at - length:at]


class MasterGone(Exception):
    """The link to the master is broken."""


class Link:
    """A TLS connection to the master that never blocks once it is made."""

    def __init__(self, address: tuple[str, int], context: ssl.SSLContext) -> None:
        plain = socket.create_connection(address, timeout=10)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket = context.wrap_socket(plain, server_hostname=NAME)
        except BaseException:
            plain.close()
            raise
        self.socket.setblocking(False)
        self._frames = Frames()
        self._out: deque[memoryview] = deque()

    def send(self, data: bytes) -> None:
        """Send bytes, as the connection takes them."""
        self._out.append(memoryview(data))
        self.push()

    def push(self) -> None:
        """Send what waits.

        Raises:
            MasterGone: it cannot be.
        """
        while self._out:
            try:
                sent = self.socket.send(self._out[0])
            except (ssl.SSLWantWriteError, ssl.SSLWantReadError, BlockingIOError):
                return
            except OSError as error:
                raise MasterGone(str(error)) from None
            if sent == len(self._out[0]):
                self._out.popleft()
            else:
                self._out[0] = self._out[0][sent:]

    @property
    def is_waiting(self) -> bool:
        """Whether something waits to be sent."""
        return bool(self._out)

    def received(self) -> Iterator[tuple[int, bytes]]:
        """The frames that have come.

        Raises:
            MasterGone: the connection has ended.
        """
        while True:
            try:
                data = self.socket.recv(1 << 18)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError):
                return
            except OSError as error:
                raise MasterGone(str(error)) from None
            if not data:
                raise MasterGone("it has closed the connection")
            yield from self._frames.feed(data)

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(OSError):
            self.socket.close()


class Worker:
    """What a worker has: tasks, functions, results.

    Args:
        connect: makes a link to the master.
        job: ``cluster.proc``, for the master to know which job this is.
    """

    def __init__(self, connect: Callable[[], Link], job: str) -> None:
        self._connect = connect
        self._job = job
        self._name = os.urandom(16).hex()
        self._tasks: deque[Task] = deque()
        self._functions: dict[int, Any] = {}
        self._running = 0
        self._since_s = 0.0
        self._busy_s = 0.0
        self._results: deque[tuple[int, int, bytes]] = deque()
        self._unacknowledged: dict[int, tuple[bytes, list[int]]] = {}
        self._frames_sent = 0
        self._is_ending = False
        self._largest_result = LARGEST_RESULT
        self._ready = threading.Event()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._wake_write.setblocking(False)

    def run(self) -> None:
        """Work until the master says that it is enough, or is gone."""
        signal.signal(_TERM, lambda *_: None)  # the descriptor tells of it, also while a task does not return to Python
        signal.set_wakeup_fd(self._wake_write.fileno(), warn_on_full_buffer=False)
        threading.Thread(target=self._speak, daemon=True).start()
        while True:
            self._compute_all()
            self._wake()
            self._ready.wait()
            self._ready.clear()

    # -- the main thread

    def _compute_all(self) -> None:
        tasks, results = self._tasks, self._results
        while True:
            try:
                number, function, chunk, arguments = tasks.popleft()
            except IndexError:
                return
            began_s = time.monotonic()
            self._since_s = began_s
            self._running = number
            outcome, body = self._compute(function, chunk, arguments)
            results.append((number, outcome, body))
            self._running = 0
            self._busy_s += time.monotonic() - began_s
            if len(results) == MOST_AT_ONCE:
                self._wake()

    def _compute(self, number: int, chunk: int, arguments: bytes) -> tuple[int, bytes]:
        try:
            function = self._functions[number]
            if isinstance(function, bytes):
                function = self._functions[number] = pickle.loads(function)  # noqa: S301 - a worker does what it is told
            given = pickle.loads(arguments)  # noqa: S301 - the same
            if chunk:
                value: object = [function(*row) for row in given]
            else:
                value = function(*given[0], **given[1])
            body = pickled(value)
        except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome
            return failure(error)
        if len(body) > self._largest_result:
            return TEXT, f"the result has {len(body)} bytes, of which {self._largest_result} can be sent".encode()
        return DONE, body

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_write.send(b"\0")

    # -- the thread that speaks

    def _speak(self) -> None:
        code = 1
        try:
            code = self._serve()
        except BaseException:  # noqa: BLE001 - the end of this thread is the end of the worker
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code)

    def _serve(self) -> int:
        lost_s, pause_s = time.monotonic(), 0.02
        why = ""
        while time.monotonic() - lost_s < GIVE_UP_S:
            try:
                link = self._connect()
            except OSError as error:
                why = str(error)
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, 1.0)
                continue
            try:
                return self._converse(link)
            except MasterGone as error:
                why = str(error)
                link.close()
                lost_s, pause_s = time.monotonic(), 0.02
        print(f"the master is gone: {why}", file=sys.stderr)
        return 1

    def _converse(self, link: Link) -> int:
        self._greet(link)
        heard_s = told_s = time.monotonic()
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        while True:
            poll.register(link.socket, select.POLLIN | (select.POLLOUT if link.is_waiting else 0))
            poll.poll((FLUSH_S if self._results or self._tasks else BEAT_S) * 1000)
            with contextlib.suppress(BlockingIOError):
                if _TERM in self._wake_read.recv(4096):
                    return self._leave(link)
            for kind, body in link.received():
                if kind == REFUSED:
                    print(body.decode(errors="replace"), file=sys.stderr)
                    return 2
                self._take(kind, body)
                heard_s = time.monotonic()
            link.push()
            self._answer(link)
            now_s = time.monotonic()
            if self._tasks and self._running and now_s - self._since_s > LONG_S:
                self._give_back(link)
            if now_s - told_s > BEAT_S:
                link.send(frame(BEAT))
                told_s = now_s
            if now_s - heard_s > GIVE_UP_S:
                raise MasterGone(f"silent for {GIVE_UP_S:g} s")
            if self._is_ending and not (self._tasks or self._running or self._results or self._unacknowledged):
                return 0

    def _greet(self, link: Link) -> None:
        # In the order in which a task moves: one that moves meanwhile is counted before or after.
        has = [task[0] for task in list(self._tasks)] + [self._running] + [result[0] for result in list(self._results)]
        for _, numbers in self._unacknowledged.values():
            has += numbers
        hello = {"version": VERSION, "python": list(sys.version_info[:2]), "cloudpickle": cloudpickle.__version__,
                 "name": self._name, "job": self._job, "host": socket.gethostname(), "pid": os.getpid(),
                 "has": sorted({number for number in has if number})}
        link.send(frame(HELLO, json.dumps(hello).encode()))
        for body, _ in self._unacknowledged.values():
            link.send(body)

    def _take(self, kind: int, body: bytes) -> None:
        if kind == TASKS:
            self._tasks.extend(tasks_in(body))
            self._ready.set()
        elif kind == FUNCTION:
            (number,) = FUNCTION_HEAD.unpack_from(body)
            self._functions.setdefault(number, body[FUNCTION_HEAD.size:])
        elif kind == ACK:
            self._unacknowledged.pop(NUMBER.unpack(body)[0], None)
        elif kind == WELCOME:
            said = json.loads(body)
            self._largest_result = said["largest_result"]
            drop = set(said["drop"])
            if drop:
                kept = [task for task in self._drain() if task[0] not in drop]
                self._tasks.extend(kept)
                self._ready.set()
        elif kind == END:
            self._is_ending = True

    def _drain(self) -> list[Task]:
        """Take away the tasks that are not begun, in their order."""
        found = []
        with contextlib.suppress(IndexError):
            while True:
                found.append(self._tasks.pop())
        found.reverse()
        return found

    def _answer(self, link: Link) -> None:
        while self._results:
            parts, numbers, size = [], [], 0
            busy_s, self._busy_s = self._busy_s, 0.0
            while self._results and size < 1 << 20:
                number, outcome, body = self._results.popleft()
                parts += [RESULT.pack(number, outcome, len(body)), body]
                numbers.append(number)
                size += len(body)
            self._frames_sent += 1
            whole = frame(RESULTS, b"".join([RESULTS_HEAD.pack(self._frames_sent, busy_s), *parts]))
            self._unacknowledged[self._frames_sent] = (whole, numbers)
            link.send(whole)

    def _give_back(self, link: Link) -> None:
        returned = self._drain()
        if returned:
            link.send(frame(RETURNED, b"".join(NUMBER.pack(task[0]) for task in returned)))

    def _leave(self, link: Link) -> int:
        self._give_back(link)
        self._answer(link)
        link.send(frame(LEAVING))
        end_s = time.monotonic() + 2
        writable = select.poll()
        writable.register(link.socket, select.POLLOUT)
        while link.is_waiting and (left_s := end_s - time.monotonic()) > 0:
            writable.poll(left_s * 1000)
            link.push()
        return 0


def failure(error: BaseException) -> tuple[int, bytes]:
    """The outcome of a task that raised."""
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        error.__traceback__ = None
        body = pickled((error, trace))
        pickle.loads(body)  # noqa: S301 - our own; some exceptions cannot be read again
    except BaseException:  # noqa: BLE001 - then its text has to do
        return TEXT, trace.encode(errors="replace")[:1 << 20]
    return RAISED, body


def main() -> None:
    """``worker HOST PORT JOB SECRET``."""
    host, port, job, secret = sys.argv[1:]
    sys.path.append(os.getcwd())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(secret)
    context.load_cert_chain(secret)
    Worker(lambda: Link((host, int(port)), context), job).run()


if __name__ == "__main__":
    main()
