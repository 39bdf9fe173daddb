"""A run of a DAG: what is submitted when, what follows from what happens, and how it ends.

Theory: a pure core.  `DagRun.handle` takes an event and returns effects; it knows no clock, no files and no schedd.
What an event does to a node is the table of `node_table`, what it does to the DAG the one here.

================  ==========================================================
phase             meaning
================  ==========================================================
BEFORE            nothing has begun
PROVISIONING      the PROVISIONER node's job has not said that it is ready
RUNNING           nodes run
FINAL             all others have ended, and the FINAL node runs
OVER              the run has ended
================  ==========================================================

Invariants, checked by `DagRun.validate`: the counters are those of the states; what is known of an attempt is known of
the nodes between READY and POST and of no others; a node waits exactly as long as a parent has not ended; no throttle
is exceeded by what was submitted; a category has no more nodes in the queue than MAXJOBS.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.cores.state_table import InvariantBroken, ignore, total_table
from condor_actors.dag.definitions import Dag, Kind
from condor_actors.dag.node_table import TABLE, begin, stop, submit
from condor_actors.dag.run_effects import (
    Ended,
    KillScripts,
    RemoveJobs,
    RunEffect,
    RunScript,
    SetTimer,
    Submit,
    WriteRescue,
)
from condor_actors.dag.run_events import (
    Began,
    Halted,
    ProvisionerReady,
    Recovered,
    Recovering,
    RemovedByUser,
    Resumed,
    RunEvent,
    ThrottlesSet,
)
from condor_actors.dag.run_state import DagStatus, NodeState, RunSettings, RunState

__all__ = ["DAG_TABLE", "DagRun", "Phase"]

BUSY = (NodeState.READY, NodeState.PRE, NodeState.SUBMITTING, NodeState.QUEUED, NodeState.POST)
ENDED = (NodeState.DONE, NodeState.FAILED)
REMOVED_STATUS = 2


class Phase(enum.IntEnum):
    """How far the DAG is."""

    BEFORE = 0
    PROVISIONING = 1
    RUNNING = 2
    FINAL = 3
    OVER = 4


class DagRun:
    """The run of one DAG.

    Args:
        dag: without a cycle.
        settings: limits and habits.

    Attributes:
        nodes: the states of its nodes.
        phase: how far it is; ``is_halted``: whether nothing new is begun.
    """

    def __init__(self, dag: Dag, settings: RunSettings) -> None:
        self.dag = dag
        self.nodes = RunState(dag, settings)
        self.phase = Phase.BEFORE
        self.is_halted = False
        self._is_removed = False
        self._end: Ended | None = None

    # -- events

    def handle(self, event: RunEvent) -> tuple[RunEffect, ...]:
        """What follows from an event."""
        self.nodes.effects = []
        step: Any = DAG_TABLE.get((self.phase, type(event)))
        if step is not None:
            step(self, event)
        else:
            node: int = event.node  # type: ignore[union-attr]  # the events without one are in the other table
            if 0 <= node < len(self.dag.nodes):
                TABLE[self.nodes.state(node), type(event)](self.nodes, node, event)
        self._settle()
        return tuple(self.nodes.effects)

    def resume(self) -> tuple[RunEffect, ...]:
        """What was under way when the events ended that were read again."""
        nodes = self.nodes
        if self._end is not None:
            return (self._end,)
        effects: list[RunEffect] = [WriteRescue()] if self.phase is Phase.FINAL and self._bad_status() else []
        for slots in nodes.scripts.values():
            for node, count in slots.running.items():
                effects += [RunScript(node, slots.which)] * count
            for node in slots.deferred:
                script = nodes.script(node, slots.which)
                effects.append(SetTimer(node, slots.which, script.defer[1] if script and script.defer else 0))
        for node, attempt in nodes.active.items():
            if nodes.state(node) is NodeState.SUBMITTING:
                effects.append(SetTimer(node, "submit", nodes.settings.submit_delay_s) if node in nodes.retrying
                               else Submit(node, attempt.cluster))
            elif attempt.is_failing:
                effects.append(RemoveJobs((attempt.cluster,), f"DAG node {self.dag.nodes[node].name} has failed"))
        if nodes.stopped:
            effects.append(RemoveJobs(tuple(sorted(nodes.stopped)), "the DAG has ended"))
        return tuple(effects)

    # -- figures

    @property
    def status(self) -> DagStatus:
        """How it stands."""
        nodes = self.nodes
        if self._is_removed:
            return DagStatus.REMOVED
        if nodes.abort is not None:
            return DagStatus.ABORT
        if nodes.counts[NodeState.FAILED]:
            return DagStatus.NODE_FAILED
        return DagStatus.HALTED if self.is_halted else DagStatus.OK

    # -- steps

    def _begin(self, _: Began) -> None:
        nodes, dag = self.nodes, self.dag
        for number, node in enumerate(dag.nodes):
            if node.done:
                nodes.become(number, NodeState.DONE)
                nodes.after(number, succeeded=True)
        for number in dag.services:
            begin(nodes, number)
        if dag.provisioner >= 0:
            self.phase = Phase.PROVISIONING
            begin(nodes, dag.provisioner)
        else:
            self._start()

    def _start(self) -> None:
        self.phase = Phase.RUNNING
        nodes = self.nodes
        for number, node in enumerate(self.dag.nodes):
            if (nodes.states[number] == NodeState.WAITING and not nodes.waits.get(number)
                    and node.kind in (Kind.JOB, Kind.SUBDAG)):
                begin(nodes, number)

    def _recover(self, _: Recovering) -> None:
        self.nodes.is_recovering = True

    def _recovered(self, _: Recovered) -> None:
        nodes = self.nodes
        if not nodes.is_recovering:
            return
        nodes.is_recovering = False
        for node in nodes.active:
            if nodes.state(node) in (NodeState.PRE, NodeState.POST):
                nodes.run_script(node, "pre" if nodes.state(node) is NodeState.PRE else "post")

    def _provisioned(self, _: ProvisionerReady) -> None:
        self._start()

    def _halt(self, _: Halted) -> None:
        self.is_halted = self.nodes.scripts["pre"].is_blocked = True

    def _go_on(self, _: Resumed) -> None:
        self.is_halted = self.nodes.scripts["pre"].is_blocked = False
        self.nodes.effects += self.nodes.scripts["pre"].fill()

    def _remove(self, _: RemovedByUser) -> None:
        self._is_removed = True
        self._stop()

    def _limit(self, event: ThrottlesSet) -> None:
        nodes = self.nodes
        nodes.settings = attrs.evolve(nodes.settings, **attrs.asdict(event))
        for which in ("pre", "post", "hold"):
            nodes.scripts[which].limit = getattr(event, which)
            nodes.effects += nodes.scripts[which].fill()

    # -- what goes on by itself

    def _settle(self) -> None:
        nodes = self.nodes
        if nodes.abort is not None and self.phase in (Phase.PROVISIONING, Phase.RUNNING) and not self._is_removed:
            self._stop()
        provisioner = self.dag.provisioner
        if self.phase is Phase.PROVISIONING and nodes.state(provisioner) in (*ENDED, NodeState.STOPPED):
            self._finish(1)
        if self.phase in (Phase.PROVISIONING, Phase.RUNNING, Phase.FINAL):
            self._submit()
        if self.phase is Phase.RUNNING and not self._busy():
            self._all_ended()
        if self.phase is Phase.FINAL and nodes.state(self.dag.final) in ENDED:
            failed = nodes.state(self.dag.final) is NodeState.FAILED
            self._finish(REMOVED_STATUS if self._is_removed else 1 if failed else 0)

    def _submit(self) -> None:
        nodes = self.nodes
        while nodes.noops:
            node = nodes.noops.pop()
            if nodes.ready.take(node, nodes.categories[node]):
                submit(nodes, node)
        while len(nodes.ready) and not nodes.is_recovering and (not self.is_halted or self.phase is Phase.FINAL):
            settings = nodes.settings
            if (settings.jobs and nodes.queued >= settings.jobs) or (settings.idle and nodes.idle >= settings.idle):
                return
            node = nodes.ready.pop(nodes.categories)
            if node < 0:
                return
            submit(nodes, node)

    def _busy(self) -> bool:
        """Whether a node is under way that the end waits for; when halted, those that have not begun do not count."""
        nodes, provisioner = self.nodes, self.dag.provisioner
        count = sum(nodes.counts[state] for state in BUSY)
        if provisioner >= 0 and nodes.state(provisioner) in BUSY:
            count -= 1
        if self.is_halted:
            count -= nodes.counts[NodeState.READY] + nodes.scripts["pre"].waiting
        return count > 0

    def _all_ended(self) -> None:
        """Nothing runs, and nothing more can begin."""
        nodes = self.nodes
        if self.is_halted and any(nodes.counts[state] for state in (NodeState.READY, NodeState.PRE)):
            self._stop()
        elif self.dag.final >= 0:
            self._start_final()
        else:
            self._finish(int(nodes.counts[NodeState.FAILED] > 0))

    def _bad_status(self) -> int:
        """What the run ends with if no final node says otherwise."""
        nodes = self.nodes
        if self._is_removed:
            return REMOVED_STATUS
        if nodes.abort is not None:
            return nodes.abort[1]
        return int(nodes.counts[NodeState.FAILED] > 0 or self.is_halted)

    def _start_final(self) -> None:
        self.phase = Phase.FINAL
        if self._bad_status():
            self.nodes.effects.append(WriteRescue())
        self.nodes.scripts["pre"].is_blocked = False
        begin(self.nodes, self.dag.final)
        self._submit()

    def _stop(self) -> None:
        """The nodes that are under way are stopped; then comes the final node."""
        nodes = self.nodes
        clusters = []
        for node, attempt in list(nodes.active.items()):
            if self.dag.nodes[node].kind is not Kind.SERVICE:
                if attempt.cluster:
                    clusters.append(attempt.cluster)
                stop(nodes, node)
        nodes.ready.clear()
        nodes.retrying.clear()
        for slots in nodes.scripts.values():
            slots.clear()
        nodes.stopped.update(clusters)
        nodes.effects.append(KillScripts())
        if clusters:
            nodes.effects.append(RemoveJobs(tuple(clusters), "the DAG has ended"))
        if self.dag.final >= 0:
            self._start_final()
        else:
            self._finish(REMOVED_STATUS if self._is_removed else nodes.abort[1] if nodes.abort is not None else 1)

    def _finish(self, status: int) -> None:
        self.phase = Phase.OVER
        services = tuple(attempt.cluster for node, attempt in self.nodes.active.items()
                         if self.dag.nodes[node].kind is Kind.SERVICE and attempt.cluster)
        self._end = Ended(status, status != 0, services)
        self.nodes.effects.append(self._end)

    # -- what must hold

    def validate(self) -> None:
        """Check the invariants.

        Raises:
            InvariantBroken: one does not hold.
        """
        nodes = self.nodes
        counts = [0] * len(NodeState)
        queued = idle = 0
        in_category: dict[str, int] = {}
        for number, node in enumerate(self.dag.nodes):
            state = nodes.state(number)
            counts[state] += node.kind is not Kind.SERVICE
            attempt = nodes.active.get(number)
            if (attempt is not None) != (state in BUSY):
                raise InvariantBroken(f"{node.name} is {state.name}, and its attempt is {attempt}")
            if state in (NodeState.SUBMITTING, NodeState.QUEUED):
                queued += 1
                in_category[node.category] = in_category.get(node.category, 0) + 1
                idle += 1 if state is NodeState.SUBMITTING else len(attempt.waiting) if attempt is not None else 0
            if self.phase is Phase.RUNNING and node.kind in (Kind.JOB, Kind.SUBDAG) and (
                    state is NodeState.WAITING and not nodes.waits.get(number)):
                raise InvariantBroken(f"{node.name} waits for nothing and has not begun")
        if (counts, queued, idle) != (nodes.counts, nodes.queued, nodes.idle):
            raise InvariantBroken(f"counted {counts}, {queued} queued, {idle} idle; "
                                  f"kept {nodes.counts}, {nodes.queued}, {nodes.idle}")
        for category, count in in_category.items():
            if category in self.dag.limits and count > self.dag.limits[category]:
                raise InvariantBroken(f"{count} nodes of {category} are in the queue")


_NOT_YET = ignore("the DAG has not begun")
_BEGUN = ignore("the DAG has begun")
_NO_PROVISIONER = ignore("nobody waits for a provisioner")
_LAST = ignore("the final node runs in any case")
_OVER = ignore("the DAG is over")

DAG_TABLE: dict[tuple[Phase, type], Callable[..., Any]] = total_table("a DAG", tuple(Phase), {
    Began: (DagRun._begin, _BEGUN, _BEGUN, _BEGUN, _OVER),
    Recovering: (DagRun._recover, _BEGUN, _BEGUN, _BEGUN, _OVER),
    Recovered: (_NOT_YET, DagRun._recovered, DagRun._recovered, DagRun._recovered, _OVER),
    ProvisionerReady: (_NOT_YET, DagRun._provisioned, _NO_PROVISIONER, _NO_PROVISIONER, _OVER),
    Halted: (DagRun._halt, DagRun._halt, DagRun._halt, _LAST, _OVER),
    Resumed: (DagRun._go_on, DagRun._go_on, DagRun._go_on, DagRun._go_on, _OVER),
    RemovedByUser: (DagRun._remove, DagRun._remove, DagRun._remove, _LAST, _OVER),
    ThrottlesSet: (DagRun._limit, DagRun._limit, DagRun._limit, DagRun._limit, _OVER),
})
"""What follows, by the phase and the class of the event; all other events are those of a node."""
