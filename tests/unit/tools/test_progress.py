"""How far a copy is: shown on a terminal after a while, and never to a program."""

from __future__ import annotations

import io
import sys

import pytest

from condor_actors.tools.lib import progress
from condor_actors.tools.lib.progress import GAP_S, PATIENCE_S, CopyProgress


class Screen(io.StringIO):
    """Standard error, as a terminal or not."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


class Watch:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


def copied(monkeypatch: pytest.MonkeyPatch, terminal: bool, times: list[float]) -> str:
    screen, watch = Screen(terminal), Watch()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(progress, "time", watch)
    shown = CopyProgress("sent")
    for when_s in times:
        watch.now_s = 100.0 + when_s
        shown.add(1_000_000, "data.tar")
    shown.end()
    return screen.getvalue()


def test_a_short_copy_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert copied(monkeypatch, True, [0.1, 1.0, PATIENCE_S - 0.1]) == ""


def test_a_long_one_says_how_far_it_is_and_leaves_a_clean_line(monkeypatch: pytest.MonkeyPatch) -> None:
    said = copied(monkeypatch, True, [1.0, 4.0, 4.0 + GAP_S / 2, 8.0])
    assert said.split("\r")[1:3] == ["2.0 MB sent, 0.5 MB/s: data.tar", "4.0 MB sent, 0.5 MB/s: data.tar"]
    assert said.endswith("\r")


def test_a_program_that_reads_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert copied(monkeypatch, False, [1.0, 4.0, 8.0]) == ""
