"""A function that does not come back costs its caller and one thread, for a while."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest
from twisted.internet.task import Clock

from condor_actors.actors.workers import NoAnswer, Workers, open_plain, touching

DEADLINE_S = 0.4


class Loop(Clock):
    """A reactor whose thread is the test's; its clock goes by hand."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()

    def callFromThread(self, function: Callable[..., Any], *arguments: Any) -> None:  # noqa: N802 - Twisted's name
        self._calls.put(lambda: function(*arguments))

    def until(self, done: Callable[[], object]) -> None:
        """Do what threads ask for, and look at the workers, until something is so."""
        while not done():
            try:
                self._calls.get(timeout=DEADLINE_S / 8)()
            except Empty:
                self.advance(DEADLINE_S / 8)


def _result(deferred: Any) -> list[Any]:
    found: list[Any] = []
    deferred.addBoth(found.append)
    return found


def test_results_and_errors_come_back() -> None:
    loop = Loop()
    workers = Workers(loop, DEADLINE_S)
    good, bad = _result(workers.run(int, "7")), _result(workers.run(int, "x"))
    loop.until(lambda: good and bad)
    assert good == [7]
    assert bad[0].check(ValueError)


def test_what_says_nothing_is_given_up_and_replaced() -> None:
    loop, gate = Loop(), threading.Event()
    workers = Workers(loop, DEADLINE_S, most=1)

    def stuck() -> str:
        touching("/dead/file")
        gate.wait()
        return "late"

    lost, next_one = _result(workers.run(stuck)), _result(workers.run(int, "7"))
    loop.until(lambda: next_one)
    error = lost[0].value
    assert isinstance(error, NoAnswer)
    assert error.filename == "/dead/file"
    assert workers.lost == 1
    refused = _result(workers.run(touching, "/dead/other"))
    elsewhere = _result(workers.run(touching, "/live/other"))
    loop.until(lambda: refused and elsewhere)
    assert refused[0].check(NoAnswer)
    assert elsewhere == [None]
    assert error.late is not None
    late = _result(error.late)
    gate.set()
    loop.until(lambda: late)
    assert late == ["late"]
    assert workers.lost == 0
    again = _result(workers.run(touching, "/dead/other"))
    loop.until(lambda: again)
    assert again == [None]


def test_long_work_that_tells_of_itself_is_left_alone() -> None:
    loop, go_on = Loop(), threading.Semaphore(0)
    workers = Workers(loop, DEADLINE_S)

    def long() -> str:
        for _ in range(4):
            touching("/big/file")
            go_on.acquire(timeout=DEADLINE_S / 2)
        return "whole"

    found = _result(workers.run(long))
    loop.until(lambda: found)
    assert found == ["whole"]


def test_the_lost_are_bounded() -> None:
    loop, gate = Loop(), threading.Event()
    workers = Workers(loop, DEADLINE_S, most=1, most_lost=2)

    def stuck(number: int) -> None:
        touching(f"/dead{number}/file")
        gate.wait()

    asked = [_result(workers.run(stuck, number)) for number in range(6)]
    loop.until(lambda: all(asked))
    assert workers.lost == 3
    after = _result(workers.run(int, "7"))
    assert after[0].check(NoAnswer)
    assert "3 earlier accesses" in str(after[0].value)
    gate.set()
    loop.until(lambda: workers.lost == 0)
    good = _result(workers.run(int, "7"))
    loop.until(lambda: good)
    assert good == [7]


@pytest.mark.parametrize("kind", ["pipe", "folder", "zero"])
def test_only_plain_files_are_opened(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(OSError, match=r"not a regular file|Is a directory|No such device"):
        os.close(open_plain(str(path), os.O_WRONLY))
    with pytest.raises(OSError, match="not a regular file"):
        os.close(open_plain(str(path)))


def test_the_null_device_is_a_file(tmp_path: Path) -> None:
    os.close(open_plain("/dev/null", os.O_WRONLY))
