"""In which order the workers of pytest-xdist get the files of tests.

Theory: a file is one worker's.  Files whose tests wait for processes come first, since they take long; the many short
ones of the units fill what is left at the end.  Tests that need the machine to themselves are the last of all, as one
piece: wherever else one of them came, every other worker would have to finish what it does and wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

__all__ = ["SlowFirst", "in_order"]

ROOT = Path(__file__).resolve().parents[2]
SLOW_FIRST = ("tests/integration", "tests/security", "tests/e2e", "tests/native", "tests/conformance", "tests/property",
              "tests/simulation", "tests/wire")
ALONE = "alone"


@cache
def has_alone(path: str) -> bool:
    """Whether a file has tests that need the machine to themselves."""
    file = ROOT / path
    return file.is_file() and "mark.alone" in file.read_text()


def place(path: str) -> int:
    """Where a file comes."""
    if has_alone(path):
        return len(SLOW_FIRST) + 1
    folder = "/".join(path.split("/")[:2])
    return SLOW_FIRST.index(folder) if folder in SLOW_FIRST else len(SLOW_FIRST)


def in_order(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests, file by file."""
    return sorted(items, key=lambda item: place(item.nodeid.partition("::")[0]))


class SlowFirst(LoadFileScheduling):
    """Gives out files in the order in which they were collected, those with tests that are to be alone as one."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # by the number of tests: a few long ones would come last

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return ALONE if has_alone(path) else path
