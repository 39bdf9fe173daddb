"""A local user at the files around a DAG of hers, in a folder where he can write as well."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from condor_actors.dag.run_state import RunSettings
from condor_actors.tools.dag.dag_files import DagFiles, open_own
from condor_actors.tools.dag.dagman import _locked, ended_with
from condor_actors.tools.dag.journal import Journal, JournalError
from condor_actors.tools.dag.run_files import _replace
from condor_actors.tools.lib.command import ToolError

MALLORY = 4711
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    """What he would have her overwrite."""
    made = tmp_path / "thesis"
    made.write_text("years of work")
    return made


@pytest.fixture
def files(tmp_path: Path) -> DagFiles:
    (tmp_path / "shared").mkdir()
    return DagFiles(str(tmp_path / "shared/x.dag"))


def test_a_link_in_the_place_of_the_lock(files: DagFiles, thesis: Path) -> None:
    os.symlink(thesis, files.lock)
    with pytest.raises(ToolError, match="cannot lock"):
        _locked(files.lock)
    assert thesis.read_text() == "years of work"


def test_a_link_in_the_place_of_the_journal(files: DagFiles, thesis: Path) -> None:
    os.symlink(thesis, files.journal)
    with pytest.raises(JournalError, match="symbolic links"):
        Journal.create(files.journal, "0" * 32, RunSettings(), "", 0.0)
    with pytest.raises(JournalError, match="belongs to another user, or is a link"):
        Journal.head(files.journal)
    assert thesis.read_text() == "years of work"


@pytest.mark.parametrize("suffix", [".tmp", ""])
def test_links_where_figures_and_states_are_written(files: DagFiles, thesis: Path, suffix: str) -> None:
    os.symlink(thesis, files.metrics + suffix)
    _replace(files.metrics, ["new\n"])
    assert Path(files.metrics).read_text() == "new\n"
    assert thesis.read_text() == "years of work"


def test_a_pipe_in_the_place_of_the_log_of_nodes(files: DagFiles) -> None:
    os.mkfifo(files.nodes_log)
    with pytest.raises(OSError, match=r"No such device|not a regular file"):
        open_own(files.nodes_log, os.O_WRONLY)


@NEEDS_ROOT
def test_files_of_his_that_say_how_far_her_run_is(files: DagFiles) -> None:
    """By a journal or figures of his the run would have ended, or would go on with what he says."""
    for path in (files.metrics, files.journal):
        Path(path).write_text(json.dumps({"exitcode": 0, "dagman_id": "7"}))
    assert ended_with(files, 7) == 0
    for path in (files.metrics, files.journal):
        Path(path).write_text(json.dumps({"exitcode": 0, "dagman_id": "7"}))
        os.chown(path, MALLORY, MALLORY)
    assert ended_with(files, 7) is None
    with pytest.raises(JournalError, match="belongs to another user"):
        Journal.head(files.journal)
    with pytest.raises(OSError, match="belongs to the user id 4711"):
        open_own(files.journal, os.O_WRONLY)
