"""What dagman.out says again of a run that goes on."""

from __future__ import annotations

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.reader import read_dag
from condor_actors.dag.run_state import RunSettings
from condor_actors.dag.scope import Reading
from condor_actors.tools.dag.retelling import retold
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
