"""The worker's half of the protocol: frames, outcomes, what it keeps when its link breaks."""

from __future__ import annotations

import json
import pickle
import socket
import struct
from collections.abc import Iterator

import pytest

from condor_actors.master_worker import worker
from condor_actors.master_worker.worker import Frames, Worker, failure, frame, pickled, tasks_in

read = pickle.loads  # noqa: S301 - what the tests themselves have made


class FakeLink:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, bytes]] = []

    def send(self, data: bytes) -> None:
        self.sent += Frames().feed(data)


def task(number: int, function: int = 0, arguments: object = ((), {}), chunk: int = 0) -> bytes:
    body = pickle.dumps(arguments)
    return worker.TASK.pack(number, function, chunk, len(body)) + body


@pytest.fixture
def made() -> Iterator[Worker]:
    def connect() -> worker.Link:
        raise OSError("no master")

    found = Worker(connect, "1.0")
    found._take(worker.FUNCTION, worker.FUNCTION_HEAD.pack(0) + pickle.dumps(divmod))
    yield found
    for end in (found._wake_read, found._wake_write):
        end.close()


def results(link: FakeLink) -> list[tuple[int, int, bytes]]:
    found = []
    for kind, body in link.sent:
        if kind == worker.RESULTS:
            at = worker.RESULTS_HEAD.size
            while at < len(body):
                number, outcome, length = worker.RESULT.unpack_from(body, at)
                at += worker.RESULT.size + length
                found.append((number, outcome, body[at - length:at]))
    return found


def test_frames_come_whole_however_they_are_cut() -> None:
    text = frame(worker.BEAT) + frame(worker.TASKS, b"abc") + frame(worker.END)
    for size in (1, 2, 7, 100):
        frames = Frames()
        found = [each for at in range(0, len(text), size) for each in frames.feed(text[at:at + size])]
        assert found == [(worker.BEAT, b""), (worker.TASKS, b"abc"), (worker.END, b"")]


def test_a_frame_that_is_too_large_is_an_error_before_it_has_come() -> None:
    with pytest.raises(ValueError, match="larger than 10"):
        list(Frames(10).feed(worker.HEADER.pack(11, worker.BEAT)))


def test_tasks_are_read_back() -> None:
    assert [each[:3] for each in tasks_in(task(1) + task(2, 3, chunk=1))] == [(1, 0, 0), (2, 3, 1)]
    with pytest.raises(struct.error):
        list(tasks_in(task(1)[:5]))


def test_a_task_is_computed_and_kept_until_the_master_has_it(made: Worker) -> None:
    made._take(worker.TASKS, b"".join([task(7, 0, ((7, 2), {})), task(8, 0, [(9, 3), (1, 1)], chunk=1),
                                       task(9, 0, ((1, 0), {}))]))
    made._compute_all()
    link = FakeLink()
    made._answer(link)
    (first, second, third) = results(link)
    assert first[:2] == (7, worker.DONE)
    assert read(first[2]) == (3, 1)
    assert read(second[2]) == [(3, 0), (1, 0)]
    assert third[:2] == (9, worker.RAISED)
    error, trace = read(third[2])
    assert isinstance(error, ZeroDivisionError)
    assert "ZeroDivisionError" in trace
    again = FakeLink()
    made._greet(again)
    assert json.loads(again.sent[0][1])["has"] == [7, 8, 9]
    assert again.sent[1:] == link.sent
    made._take(worker.ACK, worker.NUMBER.pack(1))
    last = FakeLink()
    made._greet(last)
    assert [kind for kind, _ in last.sent] == [worker.HELLO]


def test_tasks_that_are_others_now_are_not_computed(made: Worker) -> None:
    made._take(worker.TASKS, task(1) + task(2) + task(3))
    made._take(worker.WELCOME, json.dumps({"drop": [1, 3], "largest_result": 10}).encode())
    assert [each[0] for each in made._drain()] == [2]


def test_a_result_that_is_too_large_is_a_failure_that_says_so(made: Worker) -> None:
    made._take(worker.WELCOME, json.dumps({"drop": [], "largest_result": 1}).encode())
    made._take(worker.TASKS, task(1, 0, ((7, 2), {})))
    made._compute_all()
    link = FakeLink()
    made._answer(link)
    assert results(link)[0][1] == worker.TEXT
    assert b"of which 1 can be sent" in results(link)[0][2]


class Stubborn(Exception):
    """Cannot be read again: it needs two arguments and keeps one."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(one)


def test_an_exception_that_cannot_be_sent_is_its_text() -> None:
    outcome, body = failure(Stubborn(1, 2))
    assert outcome == worker.TEXT
    assert b"Stubborn" in body


def test_functions_of_the_main_program_go_by_value() -> None:
    assert read(pickled(lambda: 5))() == 5
    assert pickled(5) == pickle.dumps(5, 5)


def test_a_link_that_ends_is_a_master_that_is_gone() -> None:
    near, far = socket.socketpair()
    link = worker.Link.__new__(worker.Link)
    link.socket, link._frames = near, Frames()  # type: ignore[assignment]
    far.sendall(frame(worker.BEAT))
    far.close()
    found = link.received()
    assert next(found) == (worker.BEAT, b"")
    with pytest.raises(worker.MasterGone, match="closed"):
        next(found)
    link.close()
