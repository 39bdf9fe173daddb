"""What dagman.out says again of a run that goes on: the events of its nodes' jobs so far.

HTCondor's DAGMan reads them anew to know where it was; here the journal says that, and who follows dagman.out finds
what it would find there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.reports import spoken
from condor_actors.dag.run_effects import Note
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.job_events import TOLD, date_of
from condor_actors.tools.dag.log_recovery import node_named
from condor_actors.tools.dag.log_tail import status_of
from condor_actors.userlog.reader import Event

__all__ = ["retold"]

_SAID = {int(each): each.name for each in (
    JobEventType.SUBMIT, JobEventType.EXECUTE, JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED,
    JobEventType.JOB_HELD, JobEventType.JOB_RELEASED, JobEventType.POST_SCRIPT_TERMINATED)} | TOLD


def retold(run: DagRun, events: Iterable[Event]) -> Iterator[str]:
    """The lines of dagman.out about events of the nodes' log.

    Args:
        run: whose nodes they are of; events of others are passed over.
        events: of the log, in its order.
    """
    numbers = {node.name: number for number, node in enumerate(run.dag.nodes)}
    node_of: dict[int, int] = {}
    for event in events:
        named = numbers.get(node_named(event), -1)
        if named >= 0 and event.cluster > 0:
            node_of[event.cluster] = named
        node = named if named >= 0 else node_of.get(event.cluster, -1)
        if node < 0 or event.number not in _SAID:
            continue
        note = Note(node, _SAID[event.number], event.cluster, event.proc, _status(event))
        yield from spoken(note, run.dag.nodes[node].name, "", date_of(event))


def _status(event: Event) -> int:
    return status_of(event) if event.number == JobEventType.JOB_TERMINATED else 0
