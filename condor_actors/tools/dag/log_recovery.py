"""A run made anew from the event log of its nodes' jobs alone, for when there is no journal.

Theory: the log tells which node was submitted as which cluster, how its jobs and POST scripts have ended, and which PRE
scripts have ended nodes.  It is told to the core in its order, and the core decides what it would have decided; only
that a node is submitted is what the log tells and not what the core decides (`Found`).  What the log does not tell is
done again: PRE scripts, POST scripts that had not ended, submissions that failed.

The log is read twice, for how many jobs a cluster has is known when all of it has been seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

import attrs

from condor_actors.dag.dag_run import DagRun, Phase
from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_events import (
    REMOVED,
    Began,
    ClusterLeft,
    Found,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    PreEnded,
    ProvisionerReady,
    Recovered,
    Recovering,
    RemovedByUser,
    RunEvent,
    Submitted,
    ThrottlesSet,
)
from condor_actors.dag.run_state import NodeState
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.dag.job_events import CHANGES, jobs_made
from condor_actors.tools.dag.journal import JournalError
from condor_actors.tools.dag.log_tail import status_of
from condor_actors.userlog.reader import Event, EventReader

__all__ = ["LogMisfit", "events_of", "give_up_lost", "node_named", "recover", "whole_bytes"]

_NODE = re.compile(r"^[ \t]*DAG Node: (\S+)[ \t]*$|\bDAGNodeName = \"([^\"\s]+)\"", re.MULTILINE)
_PIECE = 1 << 20
MOST_TRIES = 100
"""How often a node may have been tried of which the log does not tell."""
_TELLS_OF_A_NODE = (JobEventType.SUBMIT, JobEventType.CLUSTER_SUBMIT)
_NOT_SUBMITTED = (NodeState.WAITING, NodeState.PRE, NodeState.READY)


class LogMisfit(JournalError):
    """An event log that cannot be that of this DAG; says which event, and what to do."""


@attrs.define
class _Seen:
    """A cluster of which the log tells.

    Attributes:
        name: of its node; jobs: how many it has, from the first one on without a gap.
        is_late: whether they were made as they were needed.
    """

    name: str
    jobs: int = 0
    is_late: bool = False
    _ahead: set[int] = attrs.Factory(set)

    def add(self, proc: int) -> None:
        """One of its jobs; a cluster as such is -1."""
        if proc > self.jobs:
            self._ahead.add(proc)
            return
        self.jobs += proc == self.jobs
        while self.jobs in self._ahead:
            self._ahead.discard(self.jobs)
            self.jobs += 1


def recover(run: DagRun, log: str, events: Callable[[], Iterable[Event]], record: Callable[[RunEvent], object],
            limits: ThrottlesSet) -> None:
    """Bring a run that has not begun to where the log says that it was.

    Args:
        run: of the DAG, without limits.
        log: what the log is called.
        events: what it tells, the same each time.
        record: is given every event that the run is told.
        limits: of the run from then on.

    Raises:
        LogMisfit: it is the log of another DAG.
    """
    replay = _Replay(run, log, record, _survey(events()))
    replay.tell(Recovering())
    replay.tell(Began())
    for event in events():
        replay.take(event)
    replay.tell(limits)
    replay.tell(Recovered())


def give_up_lost(run: DagRun, knows: Callable[[int, str], bool], record: Callable[[RunEvent], object]) -> list[str]:
    """Jobs that have not ended, and that the schedd does not know, count as removed: no event would ever tell of them.

    Args:
        knows: whether the schedd has, or had, a cluster of a node.

    Returns:
        a sentence for each node that has lost its jobs.
    """
    said = []
    for node, attempt in list(run.nodes.active.items()):
        cluster, jobs, name = attempt.cluster, attempt.jobs, run.dag.nodes[node].name
        if run.nodes.state(node) is not NodeState.QUEUED or knows(cluster, name):
            continue
        said.append(f"the log tells that cluster {cluster} of node {name} has not ended, and the schedd does not know "
                    "it; its jobs count as removed")
        ends: list[RunEvent] = [JobEnded(node, cluster, proc, REMOVED) for proc in range(jobs)]
        for event in (*ends, ClusterLeft(node, cluster, jobs, False)):
            record(event)
            run.handle(event)
    return said


def events_of(path: str, size: int) -> Iterator[Event]:
    """The events in so many bytes of a log."""
    reader = EventReader()
    with open(path, "rb") as file:
        while size > 0 and (data := file.read(min(_PIECE, size))):
            size -= len(data)
            yield from reader.feed(data)


def whole_bytes(path: str) -> int:
    """How many bytes of a log are whole events."""
    reader, size = EventReader(), 0
    with open(path, "rb") as file:
        while data := file.read(_PIECE):
            size += len(data)
            for _ in reader.feed(data):
                pass
    return size - reader.rest_bytes


def _survey(events: Iterable[Event]) -> dict[int, _Seen]:
    """The clusters of a log that are nodes'."""
    found: dict[int, _Seen] = {}
    for event in events:
        if event.number in _TELLS_OF_A_NODE:
            name = node_named(event)
            seen = found.setdefault(event.cluster, _Seen(name)) if name else found.get(event.cluster)
            if seen is not None:
                seen.is_late |= event.number == JobEventType.CLUSTER_SUBMIT
                seen.add(event.proc)
    return found


def node_named(event: Event) -> str:
    """The name of the node that an event has; empty: it has none."""
    found = _NODE.search(event.text)
    return (found[1] or found[2]) if found else ""


class _Replay:
    """Tells a run what a log tells."""

    def __init__(self, run: DagRun, path: str, record: Callable[[RunEvent], object], seen: dict[int, _Seen]) -> None:
        self._run = run
        self._path = path
        self._record = record
        self._seen = seen
        self._number = {node.name: number for number, node in enumerate(run.dag.nodes)}
        self._node_of: dict[int, int] = {}

    def take(self, event: Event) -> None:
        """An event of the log."""
        if event.number in _TELLS_OF_A_NODE and event.cluster in self._seen:
            self._submitted(event, self._seen[event.cluster])
        elif event.number == JobEventType.POST_SCRIPT_TERMINATED:
            self._post_ended(event, self._named(event))
        elif event.number == JobEventType.PRESKIP:
            node = self._named(event)
            skip = self._run.dag.nodes[node].pre_skip if node >= 0 else None
            if skip is not None:
                self.tell(PreEnded(node, skip))
        elif event.cluster in self._node_of:
            self._of_job(event, self._node_of[event.cluster])

    def tell(self, event: RunEvent) -> None:
        """Something has happened."""
        self._record(event)
        self._run.handle(event)

    def _state(self, node: int) -> NodeState:
        return self._run.nodes.state(node)

    def _named(self, event: Event) -> int:
        """The node whose name an event has; -1: it has none.

        Raises:
            LogMisfit: the DAG has no such node.
        """
        name = node_named(event)
        if name and name not in self._number:
            raise self._misfit(event, f"is of the node {name}, which the DAG has not")
        return self._number.get(name, -1)

    def _misfit(self, event: Event, what: str) -> LogMisfit:
        head = event.text.splitlines()[0][:60] if event.text else ""
        return LogMisfit(f"{self._path}: the event '{head}' {what}; -DoRecovery needs the log of the run that is to go "
                         "on, and the DAG as it was then. Without it, submit with -force to begin anew")

    def _submitted(self, event: Event, seen: _Seen) -> None:
        node, cluster = self._named(event), event.cluster
        if node < 0:
            node = self._node_of.get(cluster, -1)
        if node < 0:
            return
        if cluster not in self._node_of and not self._run.dag.nodes[node].noop:
            self._node_of[cluster] = node
            self._found(event, node, Found(node, cluster, 0 if seen.is_late else seen.jobs, seen.is_late))
        if seen.is_late and event.number == JobEventType.SUBMIT and cluster in self._node_of:
            self.tell(JobMade(node, cluster, event.proc))

    def _found(self, event: Event, node: int, found: Found) -> None:
        self._get_ready(node)
        state = self._state(node)
        if state is NodeState.READY:
            self.tell(found)
        elif state is NodeState.STOPPED:
            self.tell(Submitted(node, found.cluster, found.jobs))
        elif state is not NodeState.DONE:
            raise self._misfit(event, f"is of the node {self._run.dag.nodes[node].name}, which "
                               + ("was submitted before its parents had ended" if state is NodeState.WAITING else
                                  f"was submitted once more when it was {state.name}"))

    def _get_ready(self, node: int) -> None:
        """A node was submitted: what had to be before has been, as far as the log does not tell of it."""
        dag, kind = self._run.dag, self._run.dag.nodes[node].kind
        if kind is Kind.FINAL and self._run.phase is Phase.RUNNING:
            self._end_the_others()
        if self._run.phase is Phase.PROVISIONING and kind not in (Kind.PROVISIONER, Kind.SERVICE):
            self.tell(ProvisionerReady())
        before, left, seen = list[int](), [node], {node}
        while left and self._state(node) is NodeState.WAITING:
            for parent in dag.graph.parents_of(left.pop()):
                if parent not in seen and dag.nodes[parent].noop and self._state(parent) in _NOT_SUBMITTED:
                    seen.add(parent)
                    before.append(parent)
                    left.append(parent)
        for each in (*reversed(before), node):
            if self._state(each) is NodeState.PRE:
                self.tell(PreEnded(each, 0))

    def _end_the_others(self) -> None:
        """The final node was submitted: nodes of which no log tells failed before their jobs, or it was removed."""
        run = self._run
        for _ in range(MOST_TRIES):
            for node in list(run.nodes.active):
                if run.dag.nodes[node].kind in (Kind.JOB, Kind.SUBDAG):
                    self._end_without_jobs(node)
            busy = [node for node in run.nodes.active if self._state(node) in (NodeState.PRE, NodeState.READY)
                    and run.dag.nodes[node].kind in (Kind.JOB, Kind.SUBDAG)]
            if run.phase is not Phase.RUNNING or not busy:
                break
        if run.phase is Phase.RUNNING:
            self.tell(RemovedByUser())

    def _end_without_jobs(self, node: int) -> None:
        if self._state(node) is NodeState.PRE:
            self.tell(PreEnded(node, 0 if self._run.dag.nodes[node].noop else self._bad_status(node)))
        elif self._state(node) is NodeState.READY:
            self.tell(Found(node, 0, 0, False))

    def _post_ended(self, event: Event, node: int) -> None:
        if node < 0:
            return
        definition = self._run.dag.nodes[node]
        if self._state(node) in _NOT_SUBMITTED:  # it had no jobs
            runs_anyway = self._run.nodes.settings.always_post and not definition.noop
            if self._state(node) is NodeState.PRE and runs_anyway:
                self.tell(PreEnded(node, self._bad_status(node)))
            else:
                self._get_ready(node)
                if self._state(node) is NodeState.READY:
                    self.tell(Found(node, 0, 0, False))
        if self._state(node) is NodeState.POST:
            self.tell(PostEnded(node, status_of(event)))
        elif self._state(node) in _NOT_SUBMITTED:
            raise self._misfit(event, f"is of the node {definition.name}, which had not begun")

    def _bad_status(self, node: int) -> int:
        """What a PRE script may have ended with that has failed."""
        definition = self._run.dag.nodes[node]
        deferred = definition.pre.defer[0] if definition.pre is not None and definition.pre.defer else None
        return next(status for status in (1, 2, 3) if status not in (definition.pre_skip, deferred))

    def _of_job(self, event: Event, node: int) -> None:
        if event.number == JobEventType.JOB_TERMINATED:
            self.tell(JobEnded(node, event.cluster, event.proc, status_of(event)))
        elif event.number == JobEventType.JOB_ABORTED:
            self.tell(JobEnded(node, event.cluster, event.proc, REMOVED))
        elif event.number == JobEventType.CLUSTER_REMOVE:
            self.tell(ClusterLeft(node, event.cluster, *jobs_made(event)))
        elif event.number in CHANGES:
            self.tell(JobChanged(node, event.cluster, event.proc, CHANGES[JobEventType(event.number)]))
