"""Every flag that a command takes is read by it: none is parsed and then forgotten."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import condor_actors.tools
from condor_actors.tools.lib.flags import Flag

ROOT = Path(condor_actors.tools.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py") if path.name != "__init__.py")


def name_of(path: Path) -> str:
    return ".".join(("condor_actors.tools", *path.relative_to(ROOT).with_suffix("").parts))


def words_of(path: Path) -> set[str]:
    """The texts in a module that are not in a row of flags, and the names of what it sets or gets."""
    rows: set[int] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Flag":
            rows |= {id(each) for each in ast.walk(node)}
    return {node.value for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in rows}


def imported(path: Path) -> Iterator[Path]:
    """The modules of the commands that a module imports, and itself."""
    yield path
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("condor_actors.tools"):
            parts = (node.module or "").split(".")[2:]
            for place in (ROOT.joinpath(*parts).with_suffix(".py"),
                          *(ROOT.joinpath(*parts, f"{each.name}.py") for each in node.names)):
                if place.exists():
                    yield place


def tables(module: object) -> Iterator[Flag]:
    """The flags in the tables of a module, whatever they are called."""
    for value in vars(module).values():
        rows = value if isinstance(value, tuple) else ()
        yield from (row for row in rows if isinstance(row, Flag))


WITH_FLAGS = [path for path in MODULES if "Flag(" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", WITH_FLAGS, ids=lambda path: path.stem)
def test_flags_are_read(path: Path) -> None:
    module = importlib.import_module(name_of(path))
    users = {path} if path.parent.name != "lib" and path.stem != "dag_flags" else {
        each for each in MODULES if path in imported(each)}
    words: set[str] = set()
    for each in {place for user in users for place in imported(user)}:
        words |= words_of(each)
    unread = sorted({flag.alias or flag.name for flag in tables(module)
                     if not flag.idle and not flag.refused and (flag.alias or flag.name) not in words})
    assert unread == []


def test_a_flag_that_is_only_in_the_table_is_found(tmp_path: Path) -> None:
    forgetful = tmp_path / "forgetful.py"
    forgetful.write_text('FLAGS = (Flag("read", 1), Flag("forgotten", 1))\nprint("read" in values)\n')
    assert "read" in words_of(forgetful)
    assert "forgotten" not in words_of(forgetful)
