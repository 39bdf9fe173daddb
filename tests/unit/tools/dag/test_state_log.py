"""The job state log: numbers of tries over runs, crashes and rescues, and the tags of jobs."""

from __future__ import annotations

from pathlib import Path

from condor_actors.dag.definitions import Dag
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_effects import Note
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.state_log import RECOVERS, StateLog

TEXT = """JOB a a.sub
JOB b {
  +job_tag_name = "+where"
  +where = "far away"
}
SCRIPT PRE b before
"""


def dag() -> Dag:
    return read_dag(["x.dag"], Reading(lambda _: TEXT))


def told(log: StateLog, path: Path, *notes: Note | str) -> list[str]:
    """The lines, which are also in the file now."""
    lines = log.lines(100.0, notes)
    with path.open("a") as file:
        file.writelines(f"{line}\n" for line in lines)
    return [line.partition(" ")[2] for line in lines]


def test_each_try_has_a_number_over_crashes_and_rescues(tmp_path: Path) -> None:
    path = tmp_path / "states"
    log = StateLog(dag(), str(path), str(tmp_path))
    assert told(log, path, "INTERNAL *** DAGMAN_STARTED 7.0 ***", Note(0, "SUBMIT", 8), Note(1, "PRE_SCRIPT_STARTED"),
                Note(0, "JOB_FAILURE", 8, status=1), Note(0, "RETRY"), Note(0, "SUBMIT_FAILURE")) == [
        "INTERNAL *** DAGMAN_STARTED 7.0 ***", "a SUBMIT 8.0 - - 1", "b PRE_SCRIPT_STARTED - faraway - 2",
        "a JOB_FAILURE 1 - - 1", "a SUBMIT_FAILURE - - - 3"]
    killed = StateLog(dag(), str(path), str(tmp_path))
    assert told(killed, path, RECOVERS, Note(1, "PRE_SCRIPT_STARTED"), Note(1, "PRE_SCRIPT_SUCCESS"),
                Note(1, "SUBMIT", 9), Note(1, "JOB_FAILURE", 9, status=2)) == [
        RECOVERS, "b PRE_SCRIPT_STARTED - faraway - 2", "b PRE_SCRIPT_SUCCESS - faraway - 2",
        "b SUBMIT 9.0 faraway - 2", "b JOB_FAILURE 2 faraway - 2"]
    again = StateLog(dag(), str(path), str(tmp_path))
    assert told(again, path, RECOVERS, Note(1, "PRE_SCRIPT_STARTED")) == [
        RECOVERS, "b PRE_SCRIPT_STARTED - faraway - 4"], "it has been tried again when DAGMan was killed"
    rescued = StateLog(dag(), str(path), str(tmp_path))
    assert told(rescued, path, Note(0, "JOB_SUCCESS"), Note(1, "PRE_SCRIPT_STARTED")) == [
        "a JOB_SUCCESS 0 - - 5", "b PRE_SCRIPT_STARTED - faraway - 6"]


def test_a_tag_of_pegasus_is_read_from_the_description_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.sub").write_text('executable = /bin/true\n+pegasus_site = "isi"\nqueue\n')
    log = StateLog(dag(), str(tmp_path / "states"), str(tmp_path))
    assert log.lines(1.0, [Note(0, "SUBMIT", 8)]) == ["1 a SUBMIT 8.0 isi - 1"]
