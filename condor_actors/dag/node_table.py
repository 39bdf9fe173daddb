"""What an event does to a node in each of its states: a total table.

================  ================================================================================
state             meaning
================  ================================================================================
WAITING           a parent has not ended
READY             it waits for its turn: of PRE scripts, or of submissions
PRE               its PRE script runs, waits for a place, or is deferred
SUBMITTING        its jobs are on their way into the queue
QUEUED            they are there
POST              its POST script runs, waits for a place, or is deferred
DONE FAILED       it has ended
FUTILE            it never begins: a node before it failed
STOPPED           the DAG ended before it
================  ================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from condor_actors.cores.state_table import ignore, total_table
from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_effects import Note, RemoveJobs, SaveFile, SetTimer, Submit
from condor_actors.dag.run_events import (
    REMOVED,
    SUBMIT_FAILED,
    Change,
    ClusterLeft,
    Found,
    HoldEnded,
    JobChanged,
    JobEnded,
    JobMade,
    PostEnded,
    PreEnded,
    Reserved,
    ScriptDue,
    SubmitDue,
    SubmitFailed,
    Submitted,
)
from condor_actors.dag.run_state import Attempt, NodeState, RunState

__all__ = ["STATES", "TABLE", "begin", "make_futile", "stop", "submit"]

PRE_FAILED = -1004
LAST_SIGNAL = 64
CLUSTER = -1
"""Stands for the first job of a cluster until it is made."""
MOST_AT_ONCE = 100_000
"""Jobs that a cluster may have made since the last one that was told, when it is not known how many it is to make."""
STATES = tuple(NodeState)
Step = Callable[[RunState, int, Any], object]


# ---- a node's way


def begin(run: RunState, node: int, *, first: bool = False) -> None:
    """Its parents have ended, or it is tried again: it waits for its turn."""
    run.become(node, NodeState.READY)
    definition = run.dag.nodes[node]
    run.active[node] = Attempt()
    if node not in run.saved and definition.save_file is not None:
        run.saved.add(node)
        run.effects.append(SaveFile(node))
    if definition.pre is not None:
        run.become(node, NodeState.PRE)
        run.note(node, "PRE_SCRIPT_STARTED")
        run.run_script(node, "pre")
    else:
        _line_up(run, node, first=first or run.settings.depth_first)


def _line_up(run: RunState, node: int, *, first: bool) -> None:
    run.ready.push(node, run.dag.nodes[node].priority, first=first)
    if run.is_recovering and run.dag.nodes[node].noop:
        run.noops.append(node)


def submit(run: RunState, node: int) -> None:
    """It is its turn."""
    definition = run.dag.nodes[node]
    run.run_nodes += run.attempt_of(node) == 0
    if definition.noop:
        run.ready.free(run.categories[node])
        run.note(node, "SUBMIT")
        run.note(node, "JOB_TERMINATED")
        _jobs_over(run, node, 0)
        return
    run.become(node, NodeState.SUBMITTING)
    run.queued += 1
    run.idle += 1
    run.effects.append(Submit(node))


def _leave_queue(run: RunState, node: int) -> None:
    """Its jobs are in the queue no more, or never came there."""
    attempt = run.active[node]
    if run.state(node) is NodeState.SUBMITTING:
        run.idle -= 1
    else:
        run.idle -= len(attempt.waiting)
        attempt.waiting.clear()
        attempt.held.clear()
    run.queued -= 1
    run.retrying.discard(node)
    run.ready.free(run.categories[node])


def _jobs_over(run: RunState, node: int, status: int) -> None:
    """Its jobs have ended, or it has none: on to its POST script."""
    attempt = run.active[node]
    attempt.status = status
    if status != SUBMIT_FAILED:  # SUBMIT_FAILURE has been said
        run.note(node, "JOB_SUCCESS" if status == 0 else "JOB_FAILURE", status=status)
    if run.dag.nodes[node].post is not None:
        run.become(node, NodeState.POST)
        run.note(node, "POST_SCRIPT_STARTED")
        run.run_script(node, "post")
    else:
        _over(run, node, status)


def _over(run: RunState, node: int, status: int) -> None:
    """The last part of a node ended with this status."""
    definition = run.dag.nodes[node]
    if definition.abort_on is not None and definition.abort_on[0] == status and run.abort is None:
        answer = definition.abort_on[1]
        run.abort = (node, status if answer is None else answer)
    is_alone = (run.abort is not None and run.abort[0] == node  # of scripts, what follows comes first
                and run.state(node) not in (NodeState.PRE, NodeState.POST))
    if status == 0:
        _end(run, node, NodeState.DONE, is_alone=is_alone)
        return
    tries = run.attempt_of(node)
    if tries < definition.retries and status != definition.unless_exit and run.abort is None:
        run.attempts[node] = tries + 1
        del run.active[node]
        run.effects.append(Note(node, "RETRY", status=status))
        begin(run, node, first=run.settings.retry_first)
    else:
        retried = f" (after {tries} node retries)" if definition.retries else ""
        run.reasons[node] = f"{run.active[node].reason}{retried}"
        _end(run, node, NodeState.FAILED, is_alone=is_alone)


def _end(run: RunState, node: int, state: NodeState, *, is_alone: bool = False) -> None:
    """A node has ended; ``is_alone``: it ends the DAG, so nothing follows for those behind it."""
    run.become(node, state)
    run.note(node, "NODE_DONE" if state is NodeState.DONE else "NODE_FAILED", status=run.active[node].status)
    del run.active[node]
    if run.dag.nodes[node].kind is Kind.SERVICE:
        run.done_services += state is NodeState.DONE
        run.failed_services += state is NodeState.FAILED
        return
    if is_alone:
        return
    ready, never = run.after(node, succeeded=state is NodeState.DONE)
    for child in never:
        make_futile(run, child)
    for child in ready:
        if run.state(child) is NodeState.WAITING:
            begin(run, child)


def make_futile(run: RunState, node: int) -> None:
    """A node never begins."""
    run.become(node, NodeState.FUTILE)


def stop(run: RunState, node: int) -> None:
    """The DAG ends before the node does."""
    run.stopped_in[node] = run.state(node)
    if run.state(node) in (NodeState.SUBMITTING, NodeState.QUEUED):
        _leave_queue(run, node)
    run.active.pop(node, None)
    run.become(node, NodeState.STOPPED)


# ---- steps of the table


def _pre_ended(run: RunState, node: int, event: PreEnded) -> None:
    definition = run.dag.nodes[node]
    script = definition.pre
    if script is not None and script.defer is not None and event.status == script.defer[0]:
        run.effects += run.scripts["pre"].defer(node, script.defer[1])
        return
    run.effects += run.scripts["pre"].end(node)
    attempt = run.active[node]
    attempt.pre_status = attempt.status = event.status
    attempt.reason = f"PRE Script {how_ended(event.status)}"
    run.note(node, "PRE_SCRIPT_SUCCESS" if event.status == 0 else "PRE_SCRIPT_FAILURE", status=event.status)
    if event.status == 0:
        run.become(node, NodeState.READY)
        _line_up(run, node, first=run.settings.depth_first)
    elif event.status == definition.pre_skip:
        run.effects.append(Note(node, "PRE_SKIP", status=event.status))
        _end(run, node, NodeState.DONE)
    elif run.settings.always_post and definition.post is not None:
        attempt.status = PRE_FAILED
        run.become(node, NodeState.POST)
        run.note(node, "POST_SCRIPT_STARTED")
        run.run_script(node, "post")
    else:
        _over(run, node, event.status)


def _post_ended(run: RunState, node: int, event: PostEnded) -> None:
    script = run.dag.nodes[node].post
    if script is not None and script.defer is not None and event.status == script.defer[0]:
        run.effects += run.scripts["post"].defer(node, script.defer[1])
        return
    run.effects += run.scripts["post"].end(node)
    attempt = run.active[node]
    if event.status:
        job = attempt.status
        died = f"Job died on signal {-job}" if -LAST_SIGNAL <= job < 0 else f"Job failed due to DAGMAN error {job}"
        before = f"Job exited with status {job}" if job > 0 else died
        attempt.reason = f"{before} and POST Script {how_ended(event.status)}"
    attempt.status = event.status
    run.note(node, "POST_SCRIPT_TERMINATED", status=event.status)
    run.note(node, "POST_SCRIPT_SUCCESS" if event.status == 0 else "POST_SCRIPT_FAILURE", status=event.status)
    _over(run, node, event.status)


def _script_due(run: RunState, node: int, event: ScriptDue) -> None:
    slots = run.scripts[event.which]
    if node in slots.deferred:
        run.note(node, f"{event.which.upper()}_SCRIPT_STARTED")
        run.effects += slots.start(node)


def _reserved(run: RunState, node: int, event: Reserved) -> None:
    attempt = run.active[node]
    attempt.cluster, attempt.is_late = event.cluster, event.is_late


def _submitted(run: RunState, node: int, event: Submitted) -> None:
    attempt = run.active[node]
    attempt.cluster, attempt.total = event.cluster, event.jobs
    run.clusters[node] = event.cluster
    attempt.waiting = {CLUSTER}
    run.become(node, NodeState.QUEUED)
    if not attempt.is_late:
        _make(run, node, event.jobs)


def _make(run: RunState, node: int, jobs: int) -> None:
    """So many jobs of a node have been made by now; what is known of those before stays."""
    attempt = run.active[node]
    made = range(attempt.jobs, jobs)
    if not made:
        return
    before = len(attempt.waiting)
    attempt.waiting.discard(CLUSTER)
    attempt.waiting.update(made)
    attempt.jobs = jobs
    run.idle += len(attempt.waiting) - before
    run.jobs_submitted += len(made)
    for proc in made:
        run.note(node, "SUBMIT", proc)


def _is_of(run: RunState, node: int, event: JobMade | JobChanged | JobEnded) -> bool:
    """Whether an event is of a job that a node has now; one of a cluster that makes its jobs may be the first of it."""
    attempt = run.active[node]
    if event.cluster != attempt.cluster or event.proc in attempt.statuses:
        return False
    most = attempt.jobs if not attempt.is_late else attempt.total or attempt.jobs + MOST_AT_ONCE
    if not 0 <= event.proc < most:
        return False
    if event.proc >= attempt.jobs:
        _make(run, node, event.proc + 1)
    return True


def _job_made(run: RunState, node: int, event: JobMade) -> None:
    _is_of(run, node, event)


def _cluster_left(run: RunState, node: int, event: ClusterLeft) -> None:
    attempt = run.active[node]
    if event.cluster != attempt.cluster or not attempt.is_late or attempt.has_left:
        return
    _make(run, node, min(event.jobs, attempt.total or attempt.jobs + MOST_AT_ONCE))
    attempt.has_left = True
    if not event.is_whole:
        attempt.failed += max(1, attempt.total - attempt.jobs)
        attempt.first_bad = attempt.first_bad or REMOVED
        attempt.reason = attempt.reason or (f"Cluster {event.cluster} has left the queue, and not all of its jobs "
                                            "were made")
    _look_at_jobs(run, node)


def _submit_failed(run: RunState, node: int, event: SubmitFailed) -> None:
    attempt = run.active[node]
    attempt.cluster = 0
    attempt.tries += 1
    if event.again and attempt.tries < run.settings.submit_attempts:
        run.retrying.add(node)
        run.effects.append(SetTimer(node, "submit", run.settings.submit_delay_s * 2.0 ** (attempt.tries - 1)))
        return
    _give_up_submission(run, node)


def _give_up_submission(run: RunState, node: int) -> None:
    run.active[node].reason = "Job submit failed"
    run.note(node, "SUBMIT_FAILURE")
    _leave_queue(run, node)
    _jobs_over(run, node, SUBMIT_FAILED)


def _found(run: RunState, node: int, event: Found) -> None:
    """The log tells that it was its turn."""
    run.ready.take(node, run.categories[node])
    submit(run, node)
    if not event.cluster:
        _give_up_submission(run, node)
        return
    run.active[node].is_late = event.is_late
    _submitted(run, node, Submitted(node, event.cluster, event.jobs))


def _submit_due(run: RunState, node: int, _: SubmitDue) -> None:
    if node in run.retrying:
        run.retrying.discard(node)
        run.effects.append(Submit(node))


def _job_changed(run: RunState, node: int, event: JobChanged) -> None:
    if not _is_of(run, node, event):
        return
    attempt = run.active[node]
    before = len(attempt.waiting)
    was_held = event.proc in attempt.held
    attempt.waiting.discard(event.proc)
    attempt.held.discard(event.proc)
    if event.change is Change.IDLE:
        attempt.waiting.add(event.proc)
        if was_held:
            run.note(node, "JOB_RELEASED", event.proc)
    elif event.change is Change.HELD:
        attempt.held.add(event.proc)
        if not was_held:
            _was_held(run, node, event.proc)
    else:
        run.note(node, "EXECUTE", event.proc)
    run.idle += len(attempt.waiting) - before


def _was_held(run: RunState, node: int, proc: int) -> None:
    attempt = run.active[node]
    attempt.holds += 1
    run.note(node, "JOB_HELD", proc)
    if run.dag.nodes[node].hold is not None:
        run.run_script(node, "hold")
    if run.settings.holds and attempt.holds == run.settings.holds:
        run.effects.append(RemoveJobs((attempt.cluster,), f"DAG node {run.dag.nodes[node].name}: its jobs were held "
                                      f"{attempt.holds} times (DAGMAN_MAX_JOB_HOLDS)"))


def _job_ended(run: RunState, node: int, event: JobEnded) -> None:
    if not _is_of(run, node, event):
        return
    attempt = run.active[node]
    run.jobs_ended += 1
    run.jobs_succeeded += event.status == 0
    if event.proc in attempt.waiting:
        attempt.waiting.discard(event.proc)
        run.idle -= 1
    attempt.held.discard(event.proc)
    attempt.statuses[event.proc] = event.status
    run.note(node, "JOB_ABORTED" if event.status == REMOVED else "JOB_TERMINATED", event.proc, event.status)
    if event.status:
        attempt.failed += 1
        attempt.first_bad = attempt.first_bad or event.status
        attempt.reason = attempt.reason or _why_failed(event)
    _look_at_jobs(run, node)


def _look_at_jobs(run: RunState, node: int) -> None:
    """Whether its jobs are over, or too many of them have failed."""
    attempt, definition = run.active[node], run.dag.nodes[node]
    allowed, is_share = definition.tolerance or (run.settings.tolerance, False)
    jobs = attempt.total or attempt.jobs
    too_many = attempt.failed > (jobs * allowed // 100 if is_share else allowed)
    if len(attempt.statuses) >= attempt.jobs and (attempt.has_left or not attempt.is_late):
        _leave_queue(run, node)
        _jobs_over(run, node, attempt.first_bad if too_many else 0)
    elif too_many and not attempt.is_failing:
        attempt.is_failing = True
        fast = run.settings.fails_fast if definition.fails_fast is None else definition.fails_fast
        if fast:
            run.effects.append(RemoveJobs((attempt.cluster,), f"DAG node {definition.name} has failed"))


def _why_failed(event: JobEnded) -> str:
    """Why a job's end is a failure, in the words of status files."""
    job = f"({event.cluster}.{event.proc}.0)"
    if event.status == REMOVED:
        return f"HTCondor reported ULOG_JOB_ABORTED event for job proc {job}"
    return f"Job proc {job} failed with {'status' if event.status > 0 else 'signal'} {abs(event.status)}"


def how_ended(status: int) -> str:
    """How a script with this status ended."""
    return f"died on signal {-status}" if status < 0 else f"failed with status {status}"


def _submitted_late(run: RunState, _node: int, event: Submitted | Found) -> None:
    run.stopped.add(event.cluster)
    run.effects.append(RemoveJobs((event.cluster,), "the DAG has ended"))


def _hold_ended(run: RunState, node: int, _: HoldEnded) -> None:
    run.effects += run.scripts["hold"].end(node)


_EARLY = ignore("it has not begun")
_OTHER = ignore("another part of it runs")
_LATE = ignore("the node has ended")
_NEVER = ignore("the node never begins")
_STOPPED = ignore("the DAG has stopped it")
_AFTER = (_LATE, _LATE, _NEVER, _STOPPED)

TABLE: dict[tuple[NodeState, type], Step | ignore] = total_table("a node", STATES, {
    PreEnded: (_EARLY, _OTHER, _pre_ended, _OTHER, _OTHER, _OTHER, *_AFTER),
    PostEnded: (_EARLY, _OTHER, _OTHER, _OTHER, _OTHER, _post_ended, *_AFTER),
    ScriptDue: (_EARLY, _OTHER, _script_due, _OTHER, _OTHER, _script_due, *_AFTER),
    HoldEnded: (_hold_ended,) * len(STATES),
    Reserved: (_EARLY, _OTHER, _OTHER, _reserved, _OTHER, _OTHER, *_AFTER),
    Submitted: (_EARLY, _OTHER, _OTHER, _submitted, _OTHER, _OTHER, _LATE, _LATE, _NEVER, _submitted_late),
    SubmitFailed: (_EARLY, _OTHER, _OTHER, _submit_failed, _OTHER, _OTHER, *_AFTER),
    SubmitDue: (_EARLY, _OTHER, _OTHER, _submit_due, _OTHER, _OTHER, *_AFTER),
    Found: (_EARLY, _found, _OTHER, _OTHER, _OTHER, _OTHER, _LATE, _LATE, _NEVER, _submitted_late),
    JobMade: (_EARLY, _OTHER, _OTHER, _OTHER, _job_made, _OTHER, *_AFTER),
    ClusterLeft: (_EARLY, _OTHER, _OTHER, _OTHER, _cluster_left, _OTHER, *_AFTER),
    JobChanged: (_EARLY, _OTHER, _OTHER, _OTHER, _job_changed, _OTHER, *_AFTER),
    JobEnded: (_EARLY, _OTHER, _OTHER, _OTHER, _job_ended, _OTHER, *_AFTER),
})
"""What follows, by the node's state and the class of the event."""
