"""What dagman.out says again of a run that goes on."""

from __future__ import annotations

from pathlib import Path

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_events import Began, Change, JobChanged, JobEnded, Reserved, Submitted
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.retelling import Again, retold
from condor_actors.userlog.reader import EventReader

LOG = b"""000 (007.000.000) 2026-01-02 03:04:05 Job submitted from host: <127.0.0.1:1>
    DAG Node: A
...
000 (009.000.000) 2026-01-02 03:04:05 Job submitted from host: <127.0.0.1:1>
    DAG Node: Other
...
001 (007.000.000) 2026-01-02 03:04:06 Job executing on host: <127.0.0.1:2>
...
005 (007.000.000) 2026-01-02 03:04:07 Job terminated.
\t(0) Abnormal termination (signal 11)
\t(0) No core file
...
016 (007.000.000) 2026-01-02 03:04:08 POST Script terminated.
\t(1) Normal termination (return value 0)
    DAG Node: A
...
"""


def test_the_events_of_its_nodes() -> None:
    run = DagRun(read_dag(["x"], Reading({"x": "JOB A a.sub\n"}.__getitem__)), RunSettings())
    assert list(retold(run, EventReader().feed(LOG))) == [
        "Event: ULOG_SUBMIT for HTCondor Node A (7.0.0) {01/02/26 03:04:05}",
        "Event: ULOG_EXECUTE for HTCondor Node A (7.0.0) {01/02/26 03:04:06}",
        "Event: ULOG_JOB_TERMINATED for HTCondor Node A (7.0.0) {01/02/26 03:04:07}",
        "Node A job proc (7.0.0) failed with signal 11.",
        "Event: ULOG_POST_SCRIPT_TERMINATED for HTCondor Node A (7.0.0) {01/02/26 03:04:08}",
    ]


def run_of(text: str) -> DagRun:
    return DagRun(read_dag(["x"], Reading({"x": text}.__getitem__)), RunSettings())


def test_the_events_of_its_journal(tmp_path: Path) -> None:
    """Those of a node without jobs too, of which no log tells."""
    again = Again(run_of("JOB A a.sub NOOP\nJOB B b.sub\nPARENT A CHILD B\n"))
    for event in (Began(), Reserved(1, 7), Submitted(1, 7, 1), JobChanged(1, 7, 0, Change.RUNNING)):
        again.take(event)
    assert [line.partition(" {")[0] for line in again.lines if line.startswith("Event")] == [
        "Event: ULOG_SUBMIT for HTCondor Node A (0.0.0)", "Event: ULOG_JOB_TERMINATED for HTCondor Node A (0.0.0)",
        "Event: ULOG_SUBMIT for HTCondor Node B (7.0.0)", "Event: ULOG_EXECUTE for HTCondor Node B (7.0.0)"]


def test_a_log_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    """The run waited without end for the ends of jobs that another log had."""
    log = tmp_path / "log"
    again = Again(run_of("JOB A a.sub\n"))
    for event in (Began(), Reserved(0, 8), Submitted(0, 8, 1)):
        again.take(event)
    assert again.is_told_by(str(log)), "the log may not tell of its submission yet"
    again.take(JobEnded(0, 8, 0, 1))
    assert not again.is_told_by(str(log))
    log.write_bytes(LOG)
    assert not again.is_told_by(str(log))
    log.write_bytes(LOG.replace(b"(007.", b"(008."))
    assert again.is_told_by(str(log))
