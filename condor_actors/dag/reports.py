"""What a run says of itself, in the formats that programs read: table, metrics, status file, drawing.

**Source**: the manual, "DAGMan Information Files".
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping

from condor_actors.classads import quote
from condor_actors.dag.dag_run import DagRun
from condor_actors.dag.definitions import Kind
from condor_actors.dag.run_effects import Note
from condor_actors.dag.run_state import DagStatus, NodeState

__all__ = ["NODE_STATUS", "attributes", "drawing", "figures", "metrics", "spoken", "status_file", "table"]

NODE_STATUS = {
    NodeState.WAITING: 0, NodeState.READY: 1, NodeState.PRE: 2, NodeState.SUBMITTING: 3, NodeState.QUEUED: 3,
    NodeState.POST: 4, NodeState.DONE: 5, NodeState.FAILED: 6, NodeState.FUTILE: 7, NodeState.STOPPED: 1,
}
"""The numbers of a node's states in status files."""
LOGGED = frozenset({"SUBMIT", "EXECUTE", "JOB_TERMINATED", "JOB_ABORTED", "JOB_HELD", "JOB_RELEASED",
                    "POST_SCRIPT_TERMINATED", "JOB_EVICTED", "SHADOW_EXCEPTION", "JOB_SUSPENDED", "JOB_UNSUSPENDED",
                    "CHECKPOINTED", "IMAGE_SIZE", "REMOTE_ERROR", "JOB_DISCONNECTED", "JOB_RECONNECTED",
                    "JOB_RECONNECT_FAILED", "FILE_TRANSFER", "CLUSTER_SUBMIT", "CLUSTER_REMOVE", "FACTORY_PAUSED",
                    "FACTORY_RESUMED"})
"""What the jobs' event log says too."""
STATUS_NAMES = ("STATUS_NOT_READY", "STATUS_READY", "STATUS_PRERUN", "STATUS_SUBMITTED", "STATUS_POSTRUN",
                "STATUS_DONE", "STATUS_ERROR", "STATUS_FUTILE")
DAG_STATUS = {each: "RM" if each is DagStatus.REMOVED else each.name for each in DagStatus}
FUTILE, MARKED = "Had an ancestor node fail", "User defined as DONE"


def figures(run: DagRun) -> dict[str, int]:
    """How many nodes are in which state, by the words of the table."""
    counts = run.nodes.counts
    final = run.dag.final
    waits = counts[NodeState.WAITING] - (final >= 0 and run.nodes.state(final) is NodeState.WAITING)
    return {
        "Done": counts[NodeState.DONE], "Pre": counts[NodeState.PRE],
        "Queued": counts[NodeState.SUBMITTING] + counts[NodeState.QUEUED], "Post": counts[NodeState.POST],
        "Ready": counts[NodeState.READY] + counts[NodeState.STOPPED], "Un-Ready": waits,
        "Failed": counts[NodeState.FAILED], "Futile": counts[NodeState.FUTILE],
    }


def total(run: DagRun) -> int:
    """How many nodes there are, services not counted."""
    return len(run.dag.nodes) - len(run.dag.services)


def table(run: DagRun) -> list[str]:
    """The lines about all nodes in dagman.out."""
    shown = figures(run)
    values = (f"{shown['Done']:5d}   {shown['Pre']:5d}    {shown['Queued']:5d}   {shown['Post']:5d}   "
              f"{shown['Ready']:5d}      {shown['Un-Ready']:5d}    {shown['Failed']:5d}    {shown['Futile']:5d}")
    return [f"DAG status: {int(run.status)} (DAG_STATUS_{DAG_STATUS[run.status]})", f"Of {total(run)} nodes total:",
            " Done     Pre   Queued    Post   Ready   Un-Ready   Failed   Futile",
            "  ===     ===      ===     ===     ===        ===      ===      ===", values,
            f"{held(run)} job proc(s) currently held"]


def held(run: DagRun) -> int:
    """How many jobs are held."""
    return sum(len(attempt.held) for attempt in run.nodes.active.values())


def attributes(run: DagRun, now_s: float) -> Mapping[str, int | bool]:
    """The attributes of the DAG's own job that say how far it is."""
    shown = figures(run)
    running = sum(max(0, attempt.jobs - len(attempt.statuses) - len(attempt.waiting) - len(attempt.held))
                  for attempt in run.nodes.active.values())
    return {
        "DAG_AdUpdateTime": int(now_s), "DAG_NodesTotal": total(run), "DAG_NodesDone": shown["Done"],
        "DAG_NodesPrerun": shown["Pre"], "DAG_NodesQueued": shown["Queued"], "DAG_NodesPostrun": shown["Post"],
        "DAG_NodesHoldrun": len(run.nodes.scripts["hold"].running), "DAG_NodesReady": shown["Ready"],
        "DAG_NodesFailed": shown["Failed"], "DAG_NodesUnready": shown["Un-Ready"],
        "DAG_NodesFutile": shown["Futile"], "DAG_Status": int(run.status), "DAG_InRecovery": 0,
        "DAG_JobsSubmitted": run.nodes.jobs_submitted, "DAG_JobsIdle": run.nodes.idle, "DAG_JobsHeld": held(run),
        "DAG_JobsRunning": running, "DAG_JobsCompleted": run.nodes.jobs_succeeded,
    }


def spoken(note: Note, name: str, tries: str, when: str) -> tuple[str, ...]:
    """The lines of dagman.out about what happened to a node; none: others say it.

    Args:
        note: what happened.
        name: of the node.
        tries: ``2 of 3``.
        when: it happened.
    """
    job, status = f"({note.cluster}.{note.proc}.0)", note.status
    how = f"died on signal {-status}" if -1000 < status < 0 else f"failed with status {status}"
    if note.what in LOGGED:
        event = f"Event: ULOG_{note.what} for HTCondor Node {name} {job} {{{when}}}"
        if note.what != "JOB_TERMINATED":
            return (event,)
        end = ("completed successfully" if status == 0 else
               f"failed with {'status' if status > 0 else 'signal'} {abs(status)}")
        return event, f"Node {name} job proc {job} {end}."
    texts = {
        "JOB_SUCCESS": f"Node {name} job completed", "JOB_FAILURE": f"Node {name} job {how}",
        "PRE_SCRIPT_SUCCESS": f"PRE Script of node {name} completed successfully.",
        "PRE_SCRIPT_FAILURE": f"PRE Script of Node {name} {how}",
        "POST_SCRIPT_SUCCESS": f"POST Script of node {name} completed successfully.",
        "POST_SCRIPT_FAILURE": f"POST Script of node {name} {how}",
        "RETRY": f"Retrying node {name} (retry #{tries})...",
        "PRE_SKIP": f"PRE_SKIP return value {status} indicates we are done (successfully) with node {name}",
        "NODE_FAILED": f"Node {name} has failed", "SUBMIT_FAILURE": f"ERROR: submit attempt failed: Node {name}",
    }
    return tuple(text for what, text in texts.items() if what == note.what)


def metrics(run: DagRun, *, start_s: float, end_s: float, status: int, dagman_id: int, parent_id: int, rescue: int,
            version: str, form: int, graph: bool) -> str:
    """The text of the .metrics file; ``form``: 1 or 2; ``graph``: whether figures of the graph are in it."""
    dag, nodes = run.dag, run.nodes
    count = {(kind, state): 0 for kind in Kind for state in NodeState}
    for number, node in enumerate(dag.nodes):
        count[node.kind, nodes.state(number)] += 1

    def of(state: NodeState | None, *kinds: Kind) -> int:
        return sum(value for (kind, its), value in count.items() if kind in kinds and state in (None, its))

    plain = (Kind.JOB, Kind.FINAL, Kind.PROVISIONER)
    done, failed = NodeState.DONE, NodeState.FAILED
    said: dict[str, object] = {
        "client": "condor_dagman", "version": version, "type": "metrics", "metrics_version": 2,
        "start_time": round(start_s, 3), "end_time": round(end_s, 3), "duration": round(end_s - start_s, 3),
        "exitcode": status, "dagman_id": str(dagman_id or ""), "parent_dagman_id": str(parent_id or ""),
        "rescue_dag_number": rescue, "has_final_node": dag.final >= 0,
        "nodes": of(None, *plain), "nodes_failed": of(failed, *plain), "nodes_succeeded": of(done, *plain),
        "dag_nodes": of(None, Kind.SUBDAG), "dag_nodes_failed": of(failed, Kind.SUBDAG),
        "dag_nodes_succeeded": of(done, Kind.SUBDAG),
        "provisioner_nodes": int(dag.provisioner >= 0), "service_nodes": len(dag.services),
        "service_nodes_failed": nodes.failed_services, "service_nodes_succeeded": nodes.done_services,
        "total_nodes": len(dag.nodes), "total_nodes_run": nodes.run_nodes,
        "jobs_submitted": nodes.jobs_submitted, "jobs_succeeded": nodes.jobs_succeeded,
        "jobs_failed": nodes.jobs_submitted - nodes.jobs_succeeded,
    }
    if form == 1:
        left_out = ("metrics_version", "has_final_node", "provisioner_nodes", "service_nodes", "service_nodes_failed",
                    "service_nodes_succeeded", "jobs_submitted", "jobs_succeeded", "jobs_failed")
        said = {name.replace("nodes", "jobs"): value for name, value in said.items() if name not in left_out}
    if graph:
        height, width = dag.graph.shape(len(dag.nodes))
        said |= {"graph_height": height, "graph_width": width, "graph_num_edges": dag.graph.edges,
                 "graph_num_vertices": len(dag.nodes)}
    said["DagStatus"] = int(run.status)
    lines = [f'    "{name}":{json.dumps(value)}' for name, value in said.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def status_file(run: DagRun, now_s: float, next_s: float, *, status: int | None = None) -> Iterator[str]:
    """The pieces of a node status file; ``status``: that the DAG has ended with.

    In the last one, the nodes that were under way when the DAG ended have failed.
    """
    nodes, shown = run.nodes, figures(run)
    lost = {node: f"Was {STATUS_NAMES[NODE_STATUS[state]]}" for node, state in nodes.stopped_in.items()
            if nodes.state(node) is NodeState.STOPPED and state is not NodeState.READY}
    shown["Failed"] += len(lost)
    shown["Ready"] -= len(lost)
    if run.dag.final >= 0:  # where a final node runs, those that were ready are not any more
        shown["Un-Ready"] += nodes.counts[NodeState.STOPPED] - len(lost)
        shown["Ready"] -= nodes.counts[NodeState.STOPPED] - len(lost)
    whole = 3 if status is None else 6 if status else 5
    files = ",\n".join(f"    {quote(file)}" for file in run.dag.files)
    yield (f'[\n  Type = "DagStatus";\n  DagFiles = {{\n{files}\n  }};\n  Timestamp = {int(now_s)};'
           f' /* {_clock(now_s)} */\n  DagStatus = {whole}; /* "{STATUS_NAMES[whole]} ({_whole(run, status)})" */\n'
           f'  NodesTotal = {total(run)};\n')
    for name, word in (("Done", "Done"), ("Pre", "Pre"), ("Queued", "Queued"), ("Post", "Post"), ("Ready", "Ready"),
                       ("Unready", "Un-Ready"), ("Futile", "Futile"), ("Failed", "Failed")):
        yield f"  Nodes{name} = {shown[word]};\n"
    yield f"  JobProcsHeld = {held(run)};\n  JobProcsIdle = {nodes.idle}; /* includes held */\n]\n"
    for number, node in enumerate(run.dag.nodes):
        state = 6 if number in lost else NODE_STATUS[nodes.state(number)]
        if nodes.state(number) is NodeState.STOPPED and number not in lost and run.dag.final >= 0:
            state = 0
        attempt = nodes.active.get(number)
        left = attempt.jobs - len(attempt.statuses) if attempt is not None else 0
        is_idle = attempt is not None and left > 0 and len(attempt.waiting) == left
        details = ("idle" if is_idle else "not_idle" if left else lost.get(number) or nodes.reasons.get(number)
                   or (FUTILE if state == NODE_STATUS[NodeState.FUTILE] else MARKED if node.done else ""))
        yield (f'[\n  Type = "NodeStatus";\n  Node = {quote(node.name)};\n'
               f'  NodeStatus = {state}; /* "{STATUS_NAMES[state]}" */\n  StatusDetails = {quote(details)};\n'
               f'  RetryCount = {nodes.attempt_of(number)};\n  JobProcsQueued = {left};\n'
               f'  JobProcsHeld = {len(attempt.held) if attempt is not None else 0};\n]\n')
    yield (f'[\n  Type = "StatusEnd";\n  EndTime = {int(now_s)}; /* {_clock(now_s)} */\n'
           f'  NextUpdate = {int(next_s)}; /* {_clock(next_s) if next_s else quote("none")} */\n]\n')


def _whole(run: DagRun, status: int | None) -> str:
    """What a status file adds to the state of the whole DAG."""
    word = {DagStatus.REMOVED: "removed", DagStatus.ABORT: "aborted"}.get(run.status, "")
    return word if status is None else "success" if status == 0 else word or "failed"


def _clock(time_s: float) -> str:
    return quote(time.ctime(time_s))


def drawing(run: DagRun, now_s: float) -> Iterator[str]:
    """The pieces of a DOT file; what is to be put into it comes behind the first."""
    yield "digraph DAG {\n"
    yield f"    label={quote('DAGMan Job status at ' + _clock(now_s)[1:-1])};\n\n"
    marks = {0: "I", 1: "R", 2: "P", 3: "S", 4: "O", 5: "Done", 6: "E", 7: "F"}
    for number, node in enumerate(run.dag.nodes):
        state = NODE_STATUS[run.nodes.state(number)]
        yield f"    {quote(node.name)} [shape=ellipse label={quote(f'{node.name} ({marks[state]})')}];\n"
    yield "\n"
    for number, node in enumerate(run.dag.nodes):
        for child, weak in run.dag.graph.children_of(number):
            yield (f"    {quote(node.name)} -> {quote(run.dag.nodes[child].name)}"
                   f"{' [style=dashed]' if weak else ''};\n")
    yield "}\n"
