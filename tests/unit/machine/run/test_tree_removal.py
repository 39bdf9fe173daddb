"""Removing a tree whose owner is still about."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from condor_actors.machine.run.tree_removal import remove_tree


def test_a_directory_that_becomes_a_link_leads_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "outside"
    (outside / "victim").mkdir(parents=True)
    (outside / "victim" / "kept").write_text("x")
    outside.chmod(0o755)
    tree = tmp_path / "tree"
    (tree / "a" / "victim").mkdir(parents=True)
    (tree / "a" / "victim" / "file").write_text("x")
    really = os.rmdir
    traps: list[str] = []

    def rmdir(name: str, *, dir_fd: int | None = None) -> None:
        if name == "victim" and not traps and not os.listdir(tree / "a" / "victim"):
            traps.append(name)
            (tree / "a").rename(tmp_path / "away")
            (tree / "a").symlink_to(outside)
            raise OSError(errno.ENOTEMPTY, "someone has just made a file there")
        really(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    remove_tree(str(tree))
    assert traps
    assert (outside / "victim" / "kept").read_text() == "x"
    assert outside.stat().st_mode & 0o777 == 0o755


def test_no_depth_is_too_much(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    for name in ["tree"] + ["d"] * 1500:
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    assert remove_tree(str(tmp_path / "tree"))
    assert os.listdir(tmp_path) == []


def test_what_resists_stays_and_the_rest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tmp_path / "tree"
    for name in ("a", "b", "c"):
        (tree / name / "below").mkdir(parents=True)
        (tree / name / "below" / "file").write_text("x")
    really = os.rmdir

    def rmdir(name: str, *, dir_fd: int | None = None) -> None:
        if name == "b":
            raise OSError(errno.EBUSY, "a mount")
        really(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "rmdir", rmdir)
    assert not remove_tree(str(tree))
    assert os.listdir(tree) == ["b"]


def test_a_link_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there")
    assert remove_tree(str(tmp_path / "link"))
    assert remove_tree(str(tmp_path / "nothing"))
    assert os.listdir(tmp_path) == ["there"]
