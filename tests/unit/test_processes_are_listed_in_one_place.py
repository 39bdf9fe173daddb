"""Tests that look through all processes do so in :mod:`tests.harness.proc_files`, which bears that some end meanwhile.

Other tests' processes come and go all the time: a look that fails on one that has just ended fails once in a hundred
whole runs, and never alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
THE_PLACE = TESTS / "harness" / "proc_files.py"
PROGRAMS = TESTS / "native" / "programs"
"""What runs in families of the standard universe, and sees these only."""
LISTS = frozenset({"glob", "rglob", "iglob", "iterdir", "listdir", "scandir", "walk"})


def lists(tree: ast.AST) -> Iterator[int]:
    """The lines in which all processes are listed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            words = [str(word.value) for call in ast.walk(node) if isinstance(call, ast.Call)
                     for word in call.args if isinstance(word, ast.Constant)]
            if name in LISTS and any(word in ("/proc", "/proc/") or word.startswith("/proc/[") for word in words):
                yield node.lineno


def test_processes_are_listed_in_one_place() -> None:
    looked_at = [path for path in sorted(TESTS.rglob("*.py")) if path != THE_PLACE and PROGRAMS not in path.parents]
    found = [f"{path.relative_to(TESTS)}:{line}" for path in looked_at
             for line in lists(ast.parse(path.read_text("utf-8")))]
    assert not found, f"use tests/harness/proc_files.py: {found}"


@pytest.mark.parametrize("text", [
    "Path('/proc').iterdir()", "Path('/proc').glob('[0-9]*/cmdline')", "os.listdir('/proc')", "scandir('/proc/')",
    "glob.glob('/proc/[0-9]*/cmdline')", "x = [p for p in Path('/proc').glob('*')]",
])
def test_the_check_finds_each_way_to_list(text: str) -> None:
    assert list(lists(ast.parse(text)))


@pytest.mark.parametrize("text", ["os.listdir('/proc/self/fd')", "Path(f'/proc/{pid}').iterdir()"])
def test_one_process_may_be_looked_at(text: str) -> None:
    assert not list(lists(ast.parse(text)))
