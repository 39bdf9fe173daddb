"""The temporary files of condor_run, in a folder where others can write too."""

from __future__ import annotations

import os
from pathlib import Path

import attrs
import pytest

from condor_actors.tools.jobs import run
from condor_actors.tools.jobs.run import MOST_TRIES, Files
from condor_actors.tools.lib.command import ToolError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where condor_run is called, by an ordinary user."""
    (tmp_path / "shared").mkdir()
    monkeypatch.chdir(tmp_path / "shared")
    monkeypatch.setattr(run.os, "geteuid", lambda: 1000)
    return tmp_path / "shared"


@pytest.mark.parametrize("name", ["run", "submit", "log", "out", "error"])
def test_a_link_that_another_user_has_put_there_is_not_followed(folder: Path, name: str) -> None:
    """Also one to nothing, in whose place a file would be made."""
    hers, planted = folder.parent / "profile", folder / f".condor_{name}.77"
    planted.symlink_to(hers)
    files = Files.fresh(77)
    assert (files.script, files.log, files.output) == (".condor_run.77.1", ".condor_log.77.1", ".condor_out.77.1")
    assert not hers.exists()
    files.remove()
    assert list(folder.iterdir()) == [planted]


def test_what_the_job_writes_is_the_callers_before_it_has_the_name(folder: Path) -> None:
    files = Files.fresh(77)
    made = {path.name for path in folder.iterdir()}
    assert made == {files.log, files.output, files.error}
    assert all((folder / name).lstat().st_uid == os.getuid() for name in made)


def test_files_of_another_condor_run_of_that_number_stay(folder: Path) -> None:
    """On another machine, whose working directory is this one."""
    theirs, ours = Files.fresh(77), Files.fresh(77)
    assert not {*attrs.astuple(theirs)} & {*attrs.astuple(ours)}
    ours.remove()
    assert {path.name for path in folder.iterdir()} == {theirs.log, theirs.output, theirs.error}


def test_where_all_names_are_taken_it_says_so(folder: Path) -> None:
    for number in ("77", *(f"77.{each}" for each in range(1, MOST_TRIES))):
        (folder / f".condor_error.{number}").touch()
    with pytest.raises(ToolError, match="are taken"):
        Files.fresh(77)
    assert len(list(folder.iterdir())) == MOST_TRIES
