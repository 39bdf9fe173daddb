"""The tests of one run take turns: what may run beside what."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from threading import Event, Thread

import pytest

from tests.harness.turns import BESIDE_QUIET, Need, Turns

WAIT_S = 60.0
BESIDE = {
    (Need.ORDINARY, Need.ORDINARY), (Need.ORDINARY, Need.LIGHT), (Need.LIGHT, Need.ORDINARY), (Need.LIGHT, Need.LIGHT),
    (Need.QUIET, Need.LIGHT),
}
"""Who is there already, who may come."""


class Comer:
    """A worker that waits for its turn in a thread of its own."""

    def __init__(self, turn: AbstractContextManager[None]) -> None:
        self.is_there, self._leave = Event(), Event()
        self._thread = Thread(target=self._run, args=(turn,), daemon=True)
        self._thread.start()

    def _run(self, turn: AbstractContextManager[None]) -> None:
        with turn:
            self.is_there.set()
            self._leave.wait(WAIT_S)

    def leave(self) -> None:
        self._leave.set()
        self._thread.join(WAIT_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("comes", Need)
@pytest.mark.parametrize("there", Need)
def test_what_runs_beside_what(there: Need, comes: Need, tmp_path: Path) -> None:
    with ExitStack() as first:
        first.enter_context(Turns(tmp_path).turn(there))
        comer = Comer(Turns(tmp_path).turn(comes))
        assert comer.is_there.wait(WAIT_S if (there, comes) in BESIDE else 0.2) is ((there, comes) in BESIDE)
        if comer.is_there.is_set():
            comer.leave()
            return
        first.close()
        assert comer.is_there.wait(WAIT_S), "its turn never came"
        comer.leave()


def test_few_light_tests_at_a_time_run_beside_one_that_needs_quiet(tmp_path: Path) -> None:
    with Turns(tmp_path).turn(Need.QUIET):
        there = [Comer(Turns(tmp_path).turn(Need.LIGHT)) for _ in range(BESIDE_QUIET)]
        for each in there:
            assert each.is_there.wait(WAIT_S)
        other = Comer(Turns(tmp_path).turn(Need.LIGHT))
        assert not other.is_there.wait(0.2)
        for each in there:
            each.leave()
        assert other.is_there.wait(WAIT_S)
        other.leave()


def test_whoever_is_alone_waits_for_the_light_test_beside_the_one_before(tmp_path: Path) -> None:
    with ExitStack() as quiet:
        quiet.enter_context(Turns(tmp_path).turn(Need.QUIET))
        light = Comer(Turns(tmp_path).turn(Need.LIGHT))
        assert light.is_there.wait(WAIT_S)
        alone = Comer(Turns(tmp_path).turn(Need.ALONE))
        quiet.close()
        assert not alone.is_there.wait(0.2)
        light.leave()
        assert alone.is_there.wait(WAIT_S)
        alone.leave()
