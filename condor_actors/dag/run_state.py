"""What a run of a DAG knows of its nodes, small enough for hundreds of thousands of them."""

from __future__ import annotations

import enum
import heapq
from array import array
from collections import deque

import attrs

from condor_actors.config.settings import setting
from condor_actors.dag.definitions import Dag, Kind, Script
from condor_actors.dag.graph import FIRST_JOIN
from condor_actors.dag.run_effects import Note, RunEffect, RunScript, SetTimer

_GOOD, _BAD, _NEVER = range(3)

__all__ = ["Attempt", "DagStatus", "NodeState", "ReadyNodes", "RunSettings", "RunState", "ScriptSlots"]


class NodeState(enum.IntEnum):
    """Where a node is; it begins as WAITING or, when it is marked so, as DONE."""

    WAITING = 0
    READY = 1
    PRE = 2
    SUBMITTING = 3
    QUEUED = 4
    POST = 5
    DONE = 6
    FAILED = 7
    FUTILE = 8
    STOPPED = 9


class DagStatus(enum.IntEnum):
    """How the DAG stands, as its job's attribute DAG_Status says."""

    OK = 0
    ERROR = 1
    NODE_FAILED = 2
    ABORT = 3
    REMOVED = 4
    CYCLE = 5
    HALTED = 6


@attrs.frozen(kw_only=True)
class RunSettings:
    """Limits and habits of a run; 0 is no limit.

    Attributes:
        jobs: nodes with jobs in the queue at once; ``idle``: idle jobs.
        pre, post, hold: scripts at once.
        submit_attempts: tries of a submission; ``submit_delay_s``: before the second one, doubled each time.
        always_post: whether POST scripts run after a PRE script that failed.
        depth_first: whether children come before what was ready earlier.
        retry_first: whether a node that is tried again comes before others.
        tolerance: failed jobs of a node that are no failure; ``fails_fast``: the other jobs are removed then.
        holds: how often the jobs of a node may be held before they are removed.
    """

    jobs: int = setting("DAGMAN_MAX_JOBS_SUBMITTED")
    idle: int = setting("DAGMAN_MAX_JOBS_IDLE")
    pre: int = setting("DAGMAN_MAX_PRE_SCRIPTS")
    post: int = setting("DAGMAN_MAX_POST_SCRIPTS")
    hold: int = setting("DAGMAN_MAX_HOLD_SCRIPTS")
    submit_attempts: int = setting("DAGMAN_MAX_SUBMIT_ATTEMPTS")
    submit_delay_s: float = 1.0
    always_post: bool = setting("DAGMAN_ALWAYS_RUN_POST")
    depth_first: bool = setting("DAGMAN_SUBMIT_DEPTH_FIRST")
    retry_first: bool = setting("DAGMAN_RETRY_NODE_FIRST")
    tolerance: int = setting("DAGMAN_NODE_JOB_FAILURE_TOLERANCE")
    fails_fast: bool = setting("DAGMAN_REMOVE_JOB_LIST_ON_FAILURE")
    holds: int = setting("DAGMAN_MAX_JOB_HOLDS")


@attrs.define(slots=True, eq=False)
class Attempt:
    """What is known of a node while it is being tried.

    Attributes:
        cluster: of its jobs; 0: none yet; ``jobs``: how many there are.
        total: how many there are to be; 0: it is not known.
        is_late: whether they are made as they are needed; ``has_left``: whether no more will come.
        statuses: of those that have ended, by proc; ``failed``: how many of them are not 0, ``first_bad``: the first.
        waiting, held: procs in these states; -1 waits until the first job of its cluster is made.
        holds: how often one was held; ``tries``: of the submission.
        pre_status: of the PRE script; -1: none ran.
        status: what the last part ended with.
        reason: why it fails, in the words of status files; the first that counts.
        is_failing: whether more of its jobs have failed than is tolerated, and the others have not ended.
    """

    cluster: int = 0
    jobs: int = 0
    total: int = 0
    is_late: bool = False
    has_left: bool = False
    statuses: dict[int, int] = attrs.Factory(dict)
    failed: int = 0
    first_bad: int = 0
    waiting: set[int] = attrs.Factory(set)
    held: set[int] = attrs.Factory(set)
    holds: int = 0
    tries: int = 0
    pre_status: int = -1
    status: int = 0
    reason: str = ""
    is_failing: bool = False


class ReadyNodes:
    """The nodes that may be submitted, best first; a node of a full category waits until one of it is over."""

    def __init__(self, limits: dict[str, int]) -> None:
        self._limits = limits
        self._heap: list[tuple[int, int, int]] = []
        self._parked: dict[str, list[tuple[int, int, int]]] = {}
        self._counts: dict[str, int] = {}
        self._next = 0
        self._live: dict[int, int] = {}  # of each node, the place that counts; others in the heap are left over

    def __len__(self) -> int:
        return len(self._live)

    def push(self, node: int, priority: int, *, first: bool) -> None:
        """A node is ready; ``first``: before others of its priority."""
        self._next += 1
        place = self._live[node] = -self._next if first else self._next
        heapq.heappush(self._heap, (-priority, place, node))

    def pop(self, category_of: list[str]) -> int:
        """The best node whose category has room; -1: there is none."""
        while self._heap:
            item = heapq.heappop(self._heap)
            if self._live.get(item[2]) != item[1]:
                continue
            category = category_of[item[2]]
            if category in self._limits and self._counts.get(category, 0) >= self._limits[category]:
                heapq.heappush(self._parked.setdefault(category, []), item)
                continue
            self.take(item[2], category)
            return item[2]
        return -1

    def take(self, node: int, category: str) -> bool:
        """This node is submitted, whatever is before it and however full its category; whether it was ready."""
        if self._live.pop(node, None) is None:
            return False
        if category:
            self._counts[category] = self._counts.get(category, 0) + 1
        return True

    def free(self, category: str) -> None:
        """A node of this category is in the queue no more."""
        if category:
            self._counts[category] -= 1
            parked = self._parked.get(category)
            while parked:
                item = heapq.heappop(parked)
                if not parked:
                    del self._parked[category]
                if self._live.get(item[2]) == item[1]:
                    heapq.heappush(self._heap, item)
                    break

    def clear(self) -> None:
        """Forget all of them."""
        self._heap, self._parked, self._live = [], {}, {}


class ScriptSlots:
    """Which scripts run and which wait for their turn, of one kind; one that is deferred takes no slot.

    ``is_blocked``: none begins for now.
    """

    def __init__(self, which: str, limit: int) -> None:
        self.which = which
        self.limit = limit
        self.is_blocked = False
        self.running: dict[int, int] = {}
        self.deferred: set[int] = set()
        self._waiting: deque[int] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def start(self, node: int) -> list[RunEffect]:
        """A script is to run, now or when there is room."""
        self.deferred.discard(node)
        self._waiting.append(node)
        return self.fill()

    def end(self, node: int) -> list[RunEffect]:
        """One has ended."""
        count = self.running.get(node, 0)
        if count > 1:
            self.running[node] = count - 1
        else:
            self.running.pop(node, None)
        return self.fill()

    def defer(self, node: int, delay_s: float) -> list[RunEffect]:
        """One has ended and runs again later."""
        self.deferred.add(node)
        return [*self.end(node), SetTimer(node, self.which, delay_s)]

    def fill(self) -> list[RunEffect]:
        """Start those that there is room for."""
        effects: list[RunEffect] = []
        while self._waiting and not self.is_blocked and (not self.limit or sum(self.running.values()) < self.limit):
            node = self._waiting.popleft()
            self.running[node] = self.running.get(node, 0) + 1
            effects.append(RunScript(node, self.which))
        return effects

    def clear(self) -> None:
        """None of them matters any more."""
        self.running, self.deferred = {}, set()
        self._waiting.clear()


class RunState:
    """Nodes and their states, what waits for what, and the effects of the present event.

    Args:
        dag: with its graph free of cycles.
        settings: limits and habits.
    """

    def __init__(self, dag: Dag, settings: RunSettings) -> None:
        self.dag = dag
        self.settings = settings
        self.states = bytearray(len(dag.nodes))
        self.attempts: dict[int, int] = {}
        self.clusters = array("q", bytes(8 * len(dag.nodes)))  # of the last jobs of each node; 0: it has had none
        self.active: dict[int, Attempt] = {}
        self.waits = dag.graph.waits()
        self.categories = [node.category for node in dag.nodes]
        self.ready = ReadyNodes(dag.limits)
        self.scripts = {"pre": ScriptSlots("pre", settings.pre), "post": ScriptSlots("post", settings.post),
                        "hold": ScriptSlots("hold", settings.hold)}
        self.retrying: set[int] = set()  # submissions that wait for their next try
        self.saved: set[int] = set()
        self.counts = [0] * len(NodeState)
        self.counts[NodeState.WAITING] = len(dag.nodes) - len(dag.services)
        self.idle = 0
        self.queued = 0
        self.jobs_submitted = self.jobs_succeeded = self.jobs_ended = 0
        self.run_nodes = 0
        self.failed_services = self.done_services = 0
        self.stopped: set[int] = set()  # clusters that are removed because the DAG ends
        self.stopped_in: dict[int, NodeState] = {}  # where nodes were when the DAG ended
        self.reasons: dict[int, str] = {}  # why nodes have failed
        self.abort: tuple[int, int] | None = None  # a node, and the status that it ends the DAG with
        self.is_recovering = False
        self.noops: list[int] = []  # while it recovers, the ready nodes of which no log tells
        self.effects: list[RunEffect] = []

    def state(self, node: int) -> NodeState:
        """Where a node is."""
        return NodeState(self.states[node])

    def become(self, node: int, state: NodeState) -> None:
        """A node is elsewhere now."""
        if self.dag.nodes[node].kind is not Kind.SERVICE:
            self.counts[self.states[node]] -= 1
            self.counts[state] += 1
        self.states[node] = state

    def note(self, node: int, what: str, proc: int = 0, status: int = 0) -> None:
        """Say what happened to a node."""
        attempt = self.active.get(node)
        self.effects.append(Note(node, what, attempt.cluster if attempt else 0, proc, status))

    def attempt_of(self, node: int) -> int:
        """How often it has been tried again."""
        return self.attempts.get(node, 0)

    def run_script(self, node: int, which: str) -> None:
        """Run a script of a node as soon as there is room; while the run recovers, the log tells whether it has."""
        if not self.is_recovering:
            self.effects += self.scripts[which].start(node)

    def script(self, node: int, which: str) -> Script | None:
        """A script of a node."""
        found: Script | None = getattr(self.dag.nodes[node], which)
        return found

    def after(self, parent: int, *, succeeded: bool) -> tuple[list[int], list[int]]:
        """What follows from the end of a node: the children that may begin now, and those that never will.

        What never begins satisfies nobody, by a weak edge either.
        """
        begin: list[int] = []
        never: list[int] = []
        ends = [(parent, _GOOD if succeeded else _BAD)]
        seen: set[int] = set()
        while ends:
            number, how = ends.pop()
            strong, weak = self.dag.graph.strong(number), self.dag.graph.weak(number)
            freed = (*strong, *weak) if how == _GOOD else weak if how == _BAD else ()
            lost = () if how == _GOOD else strong if how == _BAD else (*strong, *weak)
            for child in freed:
                self.waits[child] -= 1
                if not self.waits[child]:
                    if child >= FIRST_JOIN:
                        ends.append((child, _GOOD))
                    else:
                        begin.append(child)
            for child in lost:
                if child not in seen:
                    seen.add(child)
                    if child < FIRST_JOIN:
                        if self.states[child] != NodeState.WAITING:
                            continue
                        never.append(child)
                    ends.append((child, _NEVER))
        return begin, never
