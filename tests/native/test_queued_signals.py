"""Signals that were sent and not taken yet are there after a checkpoint and after a move, as they were sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, Chain
from tests.native.conftest import Compile
from tests.pool_fixture import until

STEP_MS = "15"


def native(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(("rounds", "moves"), [("1", 0), ("2", 12)])
def test_signals_that_wait_move(rounds: str, moves: int, compiled: Compile, tmp_path: Path) -> None:
    """Of processes and threads, with values, senders, order; timers' and ended children's among them."""
    command = [compiled("queued"), rounds, STEP_MS]
    life = Chain(command, tmp_path, seed=5).live(moves, 0.05)
    assert (life.status, life.output.decode()) == (0, native(command))
    assert bool(life.links) == bool(moves)


def test_signals_that_wait_are_there_after_a_checkpoint(compiled: Compile, tmp_path: Path) -> None:
    """The program goes on where it is, and finds them again."""
    command = [compiled("queued"), "2", STEP_MS]
    chain = Chain(command, tmp_path, seed=6)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    images = 0
    while not chain.until(EventKind.ENDED, within_s=0.01):  # far more often than what it waits for lasts
        if chain.asked_for_image().kind is EventKind.ENDED:
            break
        images += 1
    assert chain.process.wait(DEADLINE_S) == 0
    assert (tmp_path / "output").read_text() == native(command)
    assert images


@pytest.mark.parametrize("moved_before", [False, True])
def test_signals_of_threads_that_began_after_a_move(moved_before: bool, compiled: Compile, tmp_path: Path) -> None:
    """What the last checkpoint wanted of its threads is nothing that the next one's new threads are to do."""
    chain = Chain([compiled("late_threads")], tmp_path, seed=7)
    chain.start(runtime_path())
    chain.expect(EventKind.STARTED)
    if moved_before:
        assert chain.moved(0)
        chain.expect(EventKind.STARTED)
    (tmp_path / "begin").touch()
    until((tmp_path / "sent").exists, "the signals to be sent")
    assert chain.moved(1)
    chain.expect(EventKind.STARTED)
    (tmp_path / "take").touch()
    chain.expect(EventKind.ENDED)
    assert (tmp_path / "output").read_text().splitlines() == [
        "thread 0 has USR1", "thread 1 has USR1", "thread 1 has USR2", "thread 2 has USR1", "thread 2 has USR2"]
