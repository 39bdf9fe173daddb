"""A local user at the files around a DAG of hers, in a folder where he can write as well."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.dag.run_state import RunSettings
from condor_actors.tools.dag.dag_files import DagFiles, open_own
from condor_actors.tools.dag.dagman import ended_with
from condor_actors.tools.dag.journal import Journal, JournalError
from condor_actors.tools.dag.room import append_lines, locked
from condor_actors.tools.dag.run_files import replace_file
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.submit_files import check_name

MALLORY = 4711
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to someone else")


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
        locked(files.lock)
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
    replace_file(files.metrics, ["new\n"])
    assert Path(files.metrics).read_text() == "new\n"
    assert thesis.read_text() == "years of work"


DAG = "JOB A a.sub\n"


def submit_dag(*words: str) -> int:
    return subprocess.run([sys.executable, "-m", "condor_actors.tools.dag.submit_dag", "-no_submit", *words],
                          check=False, capture_output=True).returncode


@pytest.mark.parametrize("words", [(), ("-force",), ("-update_submit",)])
@pytest.mark.parametrize("suffix", ["condor.sub", "lib.out", "lib.err", "dagman.log", "dagman.out"])
def test_links_where_a_submission_writes(files: DagFiles, tmp_path: Path, suffix: str, words: tuple[str, ...]) -> None:
    """To a file of hers that is not there yet: what she has not is made for her, such as a start of her shell."""
    Path(files.primary).write_text(DAG)
    profile = tmp_path / "profile"
    os.symlink(profile, f"{files.primary}.{suffix}")
    status = submit_dag(*words, files.primary)
    assert not profile.exists()
    assert status == (0 if words or suffix == "dagman.out" else 1)


def test_a_link_where_a_run_tells_what_happens(files: DagFiles, thesis: Path) -> None:
    os.symlink(thesis, files.out)
    with pytest.raises(OSError, match="symbolic links"):
        append_lines(files.out, ["a line"])
    assert thesis.read_text() == "years of work"


@pytest.mark.parametrize("name", ["a\nexecutable = b\n", "$ENV(HOME)", "$(Cluster)", " a", "a\\"])
def test_names_that_would_be_commands_or_other_files(name: str) -> None:
    """In a description that a command writes: of a DAG file, or of the folder where condor_run is run."""
    with pytest.raises(ToolError, match="cannot be named in a submit description"):
        check_name(name)


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
