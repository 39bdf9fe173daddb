"""An execute machine that runs one worker of an executor: what it can do to the program and to its other workers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import resource
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest

from condor_actors.master_worker import plain_data, worker
from condor_actors.master_worker.credentials import make
from condor_actors.master_worker.crew import MOST_TOLD, Crew
from condor_actors.master_worker.dispatch import Dispatch, Task
from condor_actors.master_worker.door import MOST_STRANGERS
from condor_actors.master_worker.master import LARGEST_GREETING, Master, Terms, WorkerLink
from condor_actors.master_worker.sizing import Limits
from tests.pool_fixture import until

NAN, INF = float("nan"), float("inf")
GREETING = {"version": worker.VERSION, "python": list(sys.version_info[:2]), "name": "x", "job": "1.0", "host": "h",
            "has": []}


class Sent:
    """Where a link's frames go."""

    def __init__(self) -> None:
        self.frames: list[tuple[int, bytes]] = []
        self.is_cut = False
        self._cutter = worker.Frames()

    def write(self, data: bytes) -> None:
        self.frames += self._cutter.feed(data)

    def is_closing(self) -> bool:
        return self.is_cut

    def abort(self) -> None:
        self.is_cut = True

    def tasks(self) -> list[int]:
        return [task[0] for kind, body in self.frames if kind == worker.TASKS for task in worker.tasks_in(body)]


class Executor:
    """A master with its tasks; its links end here."""

    def __init__(self) -> None:
        self.results: list[int] = []
        self.crew: Any = SimpleNamespace(jobs={(1, 0), (1, 1)}, seen=set(), came=lambda job: None)
        self.dispatch = Dispatch(2, lambda number: True)
        terms: Any = None
        self.master = Master(terms, terms, self.crew, self.dispatch,
                             lambda number, outcome, body: self.results.append(number), lambda why: None)
        self.master.functions.append(b"f")
        for number in range(1, 11):
            self.dispatch.add(Task(number, 0, False, b""))

    def link(self) -> tuple[WorkerLink, Sent]:
        made, sent = WorkerLink(self.master), Sent()
        made.transport = sent  # type: ignore[assignment]
        return made, sent

    def worker(self, name: str, job: str, **more: Any) -> tuple[WorkerLink, Sent]:
        made, sent = self.link()
        hello = {**GREETING, "name": name, "job": job, **more}
        made.data_received(worker.frame(worker.HELLO, json.dumps(hello).encode()))
        return made, sent


@pytest.fixture
def executor() -> Iterator[Executor]:
    made = Executor()
    yield made
    made.master.loop.close()
    asyncio.set_event_loop(None)


def result(number: int, busy_s: float = 0.1, serial: int = 1) -> bytes:
    body = pickle.dumps(number)
    return worker.frame(worker.RESULTS, worker.RESULTS_HEAD.pack(serial, busy_s)
                        + worker.RESULT.pack(number, worker.DONE, len(body)) + body)


def test_results_for_tasks_that_it_was_not_given(executor: Executor) -> None:
    _, hers = executor.worker("her", "1.0")
    his, _ = executor.worker("him", "1.1")
    assert hers.tasks() == [1]
    for number in (1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 0, (1 << 64) - 1):
        his.data_received(result(number))
    assert not {1, *range(4, 12)} & set(executor.results)
    assert 1 in executor.dispatch.workers["her"].given


def test_a_result_that_is_sent_again(executor: Executor) -> None:
    hers, sent = executor.worker("her", "1.0")
    for _ in range(3):
        hers.data_received(result(sent.tasks()[0]))
    assert executor.results.count(1) == 1


@pytest.mark.parametrize("busy_s", [NAN, INF, -INF, -1.0])
def test_times_that_are_none(executor: Executor, busy_s: float) -> None:
    """What every task takes was no number then, and the master's thread ended of it: the executor was broken."""
    his, sent = executor.worker("him", "1.1")
    his.data_received(result(1, busy_s))
    assert sent.is_cut
    hers, got = executor.worker("her", "1.0")
    executor.master._collect()
    hers.data_received(result(got.tasks()[0]))
    assert executor.results == got.tasks()[:1]


def test_more_workers_than_there_are_jobs(executor: Executor) -> None:
    """It has the secret, and may dial as often as it likes: none of these gets a task."""
    for job in ("1.2", "9.0", "0.0", "-1.-1"):
        assert executor.worker(f"w{job}", job)[1].is_cut
    assert not executor.dispatch.workers


def test_it_says_that_it_is_a_job_whose_worker_lives(executor: Executor) -> None:
    hers, sent = executor.worker("her", "1.0")
    for number in range(5):
        assert executor.worker(f"him{number}", "1.0")[1].is_cut
    assert not sent.is_cut
    hers.data_received(result(1))
    assert executor.results == [1]
    hers.connection_lost(None)
    assert not executor.worker("again", "1.0")[1].is_cut  # its job runs elsewhere now


@pytest.mark.parametrize("greeting", [
    b"[" * 100_000, b"[]", b"7", b"null", b"{}", b"\xff", b'{"version": 1, "python": null}', b"1e999",
    json.dumps({**GREETING, "name": "x" * 5000}).encode(), json.dumps({**GREETING, "has": [INF]}).encode(),
    json.dumps({**GREETING, "job": "9" * 5000}).encode()])
def test_greetings_that_are_none(executor: Executor, greeting: bytes) -> None:
    link, sent = executor.link()
    link.data_received(worker.frame(worker.HELLO, greeting))
    assert sent.is_cut
    assert not executor.dispatch.workers


def test_a_stranger_with_the_secret_fills_no_memory(executor: Executor) -> None:
    link, sent = executor.link()
    link.data_received(worker.HEADER.pack(LARGEST_GREETING + 1, worker.HELLO))
    assert sent.is_cut


@pytest.mark.parametrize("body", [
    b"\x80\x04Nr\xff\xff\xff\x7f.", b"\x80\x04Nr\xff\xff\xff\xff.", b"\x80\x04Np99999999999\n.",
    b"\x80\x04" + b"]" * 3_000_000 + b".", b"\x80\x04(" + b")" * 10 + b"(" * 3_000_000 + b"t.",
    b"\x80\x04\x96\xff\xff\xff\xff\xff\x00\x00\x00x.", b"\x80\x04" + b"x" * 70_000 + b"."],
    ids=["memory", "memory-32", "put", "lists", "marks", "bytearray", "letters"])
def test_plain_data_that_takes_gigabytes(body: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with contextlib.suppress(pickle.UnpicklingError, MemoryError):
        plain_data.read(body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


@pytest.mark.parametrize("body", [
    b"cposix\nsystem\n(S'true'\ntR.", b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x04true\x85R.",
    b"\x80\x02\x82\x01.", b"\x80\x04Q.", b"(iposix\nsystem\n.",
    b"\x80\x04" + b"\x8c\x05posix\x8c\x06system\x93." + b"r" * 10])
def test_plain_data_that_is_a_program(body: bytes) -> None:
    for padded in (body, body[:-1] + b"0" * 70_000 + b"."):
        with pytest.raises(pickle.UnpicklingError):
            plain_data.read(padded)


def test_plain_data_that_breaks_the_fast_reader(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no plain data"):
        plain_data.read(b"\x80\x05\x96\x05\x00\x00\x00\x00\x00\x00\x00x.")
    assert "SystemError" not in capfd.readouterr().err


@pytest.mark.parametrize("levels", [3000, 100_000, 1_000_000])
def test_plain_data_whose_hash_overflows_the_stack(levels: int) -> None:
    for made in (b"\x85" * levels, b"\x85r\x01\x00\x00\x00" * levels):
        with pytest.raises(pickle.UnpicklingError):
            plain_data.read(b"\x80\x04}N" + made + b"K\x01s.")


def test_plain_data_is_read(tmp_path: Path) -> None:
    for value in ([1.5] * 100_000, {"r": [b"p" * 70_000, "r" * 70_000]}, (1, (2, {3, 4}), frozenset("ab")), 1 << 300):
        assert plain_data.read(pickle.dumps(value, 5)) == value


def test_what_it_says_as_its_error(tmp_path: Path) -> None:
    """Gigabytes of it are not read, and it commands no terminal."""
    crew = Crew.__new__(Crew)
    crew._folder = tmp_path
    with (tmp_path / "error.1.0").open("wb") as file:
        file.truncate(8 << 30)
        file.seek(8 << 30)
        file.write(b"\nlast \x1b[2J\x07words" + b"x" * 5000 + b"\n")
    said = crew._error_of((1, 0))
    assert said.isprintable()
    assert len(said) <= MOST_TOLD


# ---- at its door


FLOOD = """
import socket, ssl, sys
port, secret = int(sys.argv[1]), sys.argv[2]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
if secret:
    context.load_verify_locations(secret)
    context.load_cert_chain(secret)
kept = []
for _ in range(4 * {most}):
    made = socket.create_connection(("127.0.0.1", port), timeout=30)
    kept.append(context.wrap_socket(made, server_hostname="master") if secret else made)
print(len(kept), flush=True)
sys.stdin.read()
"""


class AtTheDoor:
    """A master that listens, with no pool behind it."""

    def __init__(self, folder: Path) -> None:
        self.came: list[tuple[int, int]] = []
        self.port, self.secret = 0, folder / "secret.pem"
        self.crew: Any = SimpleNamespace(
            jobs={(1, 0)}, seen=set(), came=self.came.append, broken="", prepare=self.prepare, follow=self.follow,
            close=lambda: None)
        limits = Limits(least=0, most=1, idle_s=1e9)
        self.master = Master(Terms(host="127.0.0.1", port=0, limits=limits, reconnect_s=60.0, silence_s=60.0), make(),
                             self.crew, Dispatch(2, lambda number: True), lambda *_: None, lambda why: None)
        self.master.start()

    def prepare(self, address: tuple[str, int], secret: bytes) -> None:
        self.port = address[1]
        self.secret.write_bytes(secret)

    async def follow(self) -> None:
        await asyncio.Event().wait()

    def stop(self) -> None:
        self.crew.jobs.clear()
        self.master.end(cancel=True)
        self.master.thread.join()

    def worker(self) -> worker.Link:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(self.secret)
        context.load_cert_chain(self.secret)
        made = worker.Link(("127.0.0.1", self.port), context)
        hello = {**GREETING, "cloudpickle": cloudpickle.__version__, "pid": 1}
        made.send(worker.frame(worker.HELLO, json.dumps(hello).encode()))
        return made


@pytest.mark.parametrize("has_secret", [False, True], ids=["a stranger", "a worker"])
def test_connections_that_say_nothing(tmp_path: Path, has_secret: bool) -> None:
    """Each takes a descriptor of the program's: it could open no file, and no other worker came in."""
    door = AtTheDoor(tmp_path)
    before = len(os.listdir("/proc/self/fd"))
    words = [FLOOD.format(most=MOST_STRANGERS), str(door.port), str(door.secret) if has_secret else ""]
    flood = subprocess.Popen([sys.executable, "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert flood.stdout is not None
        assert flood.stdout.readline().strip() == str(4 * MOST_STRANGERS)
        until(lambda: len(os.listdir("/proc/self/fd")) <= before + MOST_STRANGERS + 2, "most of them to be turned out")
        link = door.worker()
        until(lambda: door.came == [(1, 0)], "a worker that comes in nevertheless")
        link.close()
    finally:
        flood.communicate("")
        door.stop()
