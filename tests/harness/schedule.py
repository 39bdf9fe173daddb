"""In which order the workers of pytest-xdist get the files of tests.

Theory: a file is one worker's.  Files whose tests wait for processes come first, since they take long.  Then come the
tests that need a quiet machine, as one piece: wherever else one of them came, every other worker would have to finish
what it does and wait.  The many short ones of the units are last: they run beside those that need quiet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

from tests.harness.turns import Need

__all__ = ["SlowFirst", "in_order", "need_of"]

ROOT = Path(__file__).resolve().parents[2]
LONGEST = ("tests/integration/test_frozen_shadow_host.py", "tests/native/test_shadow_fuzz.py",
           "tests/integration/test_annex.py")
"""Files of one worker that would be the last to end, or that all wait for before a test that is alone."""
SLOW_FIRST = ("tests/integration", "tests/security", "tests/e2e", "tests/native", "tests/conformance",
              "tests/simulation", "tests/wire")
LIGHT = ("tests/unit", "tests/property", "tests/simulation", "tests/wire", "tests/fuzz")
"""Tests of one process, that is."""
UNQUIET = re.compile(r"\bpty\b|openpty")
"""Light tests with a terminal are none: a key on it is someone's who is there."""
MARKS = {"alone": Need.ALONE, "quiet": Need.QUIET}
NEEDS_QUIET = "quiet"


@cache
def text_of(path: str) -> str:
    """What a file of tests says."""
    file = ROOT / path
    return file.read_text() if file.is_file() else ""


def has_quiet(path: str) -> bool:
    """Whether a file has tests that need a quiet machine."""
    return any(f"mark.{mark}" in text_of(path) for mark in MARKS)


def place(path: str) -> int:
    """Where a file comes."""
    if path in LONGEST:
        return -1
    if has_quiet(path):
        return len(SLOW_FIRST)
    folder = "/".join(path.split("/")[:2])
    return SLOW_FIRST.index(folder) if folder in SLOW_FIRST else len(SLOW_FIRST) + 1


def need_of(item: pytest.Item) -> Need:
    """What a test needs of the machine, by its marks and by where it is."""
    for mark, need in MARKS.items():
        if item.get_closest_marker(mark) is not None:
            return need
    path = item.nodeid.partition("::")[0]
    return Need.LIGHT if path.startswith(LIGHT) and not UNQUIET.search(text_of(path)) else Need.ORDINARY


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests, file by file."""
    return sorted(items, key=lambda item: place(item.nodeid.partition("::")[0]))


class SlowFirst(LoadFileScheduling):
    """Gives out files in the order in which they were collected, those with tests that need quiet as one."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests: a few long ones would come last

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return NEEDS_QUIET if has_quiet(path) else path
