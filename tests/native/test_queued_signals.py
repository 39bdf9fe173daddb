"""Signals that were sent and not taken yet are there after a checkpoint and after a move, as they were sent."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from tests.native.chain import DEADLINE_S, Chain, moved_life
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
    assert moved_when_sent("late_threads", compiled, tmp_path, moved_before) == [
        "thread 0 has USR1", "thread 1 has USR1", "thread 1 has USR2", "thread 2 has USR1", "thread 2 has USR2"]


def test_an_interval_timer_goes_on_whose_signal_waits(compiled: Compile, tmp_path: Path) -> None:
    """The kernel has such a timer rest until its signal is taken; the one of the image does not rest forever."""
    assert moved_when_sent("held_alarms", compiled, tmp_path, False) == ["1"] * 5


def test_a_child_that_died_late_has_told_of_it(compiled: Compile, tmp_path: Path) -> None:
    """It may end while its parent's signals have been looked at already, and be one of the image's dead."""
    life = moved_life([compiled("slow_deaths"), "40"], tmp_path, seed=9, links=30, pause_s=0.004)
    assert (life.status, life.output) == (0, b"0 lost\n")


def test_a_child_that_dies_later_is_not_told_of_in_the_place_of_the_first(compiled: Compile, tmp_path: Path) -> None:
    """It goes on before its parent has sent itself again what waited."""
    command = [compiled("first_of_two"), "30"]
    assert native(command) == "over\n"
    chain = Chain(command, tmp_path, seed=8)
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    while not chain.until(EventKind.ENDED, within_s=0.05):
        if chain.asked_for_image().kind is EventKind.ENDED:
            break
    assert chain.process.wait(DEADLINE_S) == 0
    assert (tmp_path / "output").read_text() == "over\n"


def moved_when_sent(program: str, compiled: Compile, folder: Path, moved_before: bool) -> list[str]:
    """What a program prints that is moved while its signals wait; MOVED_BEFORE: and once before it has sent them."""
    chain = Chain([compiled(program)], folder, seed=7)
    chain.start(runtime_path())
    chain.expect(EventKind.STARTED)
    if moved_before:
        assert chain.moved(0)
        chain.expect(EventKind.STARTED)
    (folder / "begin").touch()
    until((folder / "sent").exists, "the signals to be sent")
    assert chain.moved(1)
    chain.expect(EventKind.STARTED)
    (folder / "take").touch()
    chain.expect(EventKind.ENDED)
    return (folder / "output").read_text().splitlines()
