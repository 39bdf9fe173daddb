"""What dagman.out says again of a run that goes on: the events of its nodes so far.

HTCondor's DAGMan reads them anew to know where it was; here the journal says that, and who follows dagman.out finds
what it would find there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator

from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.reports import spoken
from condor_actors.dag.run_effects import Note
from condor_actors.dag.run_events import JobChanged, JobEnded, RunEvent
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.dag_files import is_ours
from condor_actors.tools.dag.job_events import TOLD, date_of, shown_date
from condor_actors.tools.dag.log_recovery import events_of, node_named
from condor_actors.tools.dag.log_tail import status_of
from condor_actors.userlog.reader import Event

__all__ = ["Again", "retold"]

_SAID = {int(each): each.name for each in (
    JobEventType.SUBMIT, JobEventType.EXECUTE, JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED,
    JobEventType.JOB_HELD, JobEventType.JOB_RELEASED, JobEventType.POST_SCRIPT_TERMINATED)} | TOLD


class Again:
    """Tells a run the events of its journal.

    Attributes:
        lines: what dagman.out says of them.
    """

    def __init__(self, run: DagRun) -> None:
        self._run = run
        self._begun: set[int] = set()
        self._when = shown_date(time.time())
        self.lines: list[str] = []

    def take(self, event: RunEvent) -> None:
        """The next one."""
        if isinstance(event, (JobChanged, JobEnded)):
            self._begun.add(event.cluster)
        nodes = self._run.dag.nodes
        for effect in self._run.handle(event):
            if isinstance(effect, Note):
                node = nodes[effect.node]
                tries = f"{self._run.nodes.attempt_of(effect.node)} of {node.retries}"
                self.lines += spoken(effect, node.name, tries, self._when)

    def is_told_by(self, log: str) -> bool:
        """Whether this event log can be where the journal's events of jobs come from."""
        if not self._begun:
            return True
        if not is_ours(log):
            return False
        left = set(self._begun)
        for event in events_of(log, os.path.getsize(log)):
            left.discard(event.cluster)
            if not left:
                return True
        return False


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
