"""What takes another file's place is on the disk with its name, wherever its content is synced."""

from __future__ import annotations

import ast
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.durable import sync_folder

PACKAGE = Path(__file__).resolve().parents[2] / "condor_actors"
SYNCS = {"fsync", "fdatasync"}
RENAMES = {"rename", "replace"}
SYNC_NAMES = {"sync_folder", "settle"}
"""``CheckpointFolder.settle`` begins with it."""


def forgets_the_name(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of each function that syncs a content and renames, but does not sync the folder."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            called = {_name(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if called & SYNCS and called & RENAMES and not called & SYNC_NAMES:
                yield function.lineno, function.name


def _name(call: ast.Call) -> str:
    """The last word of what is called; ``replace`` of a text is none."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    of_os = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "os"
    return "" if name == "replace" and not of_os and len(call.args) != 1 else name


def test_who_syncs_a_file_and_renames_it_syncs_the_name_too() -> None:
    wrong = [f"{path.relative_to(PACKAGE)}:{line} {name}" for path in sorted(PACKAGE.rglob("*.py"))
             for line, name in forgets_the_name(ast.parse(path.read_text("utf-8")))]
    assert not wrong, "\n".join(wrong)


def names_by_process(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of each function that renames what is named by its process alone: its threads would share it."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            called = {_name(node) for node in ast.walk(function) if isinstance(node, ast.Call)}
            if called & RENAMES and "getpid" in called:
                yield function.lineno, function.name


def test_threads_of_a_process_do_not_share_a_temporary_name() -> None:
    wrong = [f"{path.relative_to(PACKAGE)}:{line} {name}" for path in sorted(PACKAGE.rglob("*.py"))
             for line, name in names_by_process(ast.parse(path.read_text("utf-8")))]
    assert not wrong, "\n".join(wrong)
    text = 'def f():\n    fresh = path.with_name(f".{os.getpid()}")\n    fresh.replace(path)\n'
    assert [name for _, name in names_by_process(ast.parse(text))] == ["f"]


@pytest.mark.parametrize(("rest", "found"), [("", ["f"]), ("    sync_folder(x)\n", [])])
def test_who_forgets_is_found(rest: str, found: list[str]) -> None:
    for rename in ("os.replace(a, b)", "a.replace(b)", "os.rename(a, b)"):
        text = f"def f():\n    os.fsync(d)\n    {rename}\n{rest}"
        assert [name for _, name in forgets_the_name(ast.parse(text))] == found
    assert list(forgets_the_name(ast.parse("def f():\n    os.fsync(d)\n    text.replace('a', 'b')\n"))) == []


def test_the_folder_itself_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: seen.append(os.path.samestat(os.fstat(descriptor),
                                                                                      os.stat(tmp_path))))
    sync_folder(tmp_path)
    monkeypatch.chdir(tmp_path)
    sync_folder("")
    assert seen == [True, True]
    assert stat.S_ISDIR(os.stat(tmp_path).st_mode)


@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_such_a_sync_is_no_failure(number: int, tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    sync_folder(tmp_path)


def test_a_disk_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        sync_folder(tmp_path)
