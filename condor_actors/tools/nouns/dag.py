"""``htcondor dag``: submit a workflow, say how far it is, halt it and go on, change its limits.

**Source**: the manual, htcondor, "DAG Verbs".
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.queue import ActionResult, EditJobs, QueryJobs
from condor_actors.tools.dag.dag_files import DagFiles
from condor_actors.tools.dag.throttles import ATTRIBUTES, SHOWN, is_possible, shown
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.nouns.words import clock, plural, table, tell

SAYS_NOTHING_S = 600.0
HALTED = 6
STATES = ("OK", "ERROR", "FAILED-NODE", "ABORT-ON-SIGNAL", "REMOVED", "CYCLE", "HALTED")
SAID = {JobStatus.IDLE: "idle", JobStatus.REMOVED: "removed", JobStatus.HELD: "held",
        JobStatus.SUSPENDED: "suspended", JobStatus.TRANSFERRING_OUTPUT: "transferring output"}  # fmt: skip
JOBS = (("DAG_JobsIdle", "submitted and waiting for resources"), ("DAG_JobsHeld", "held"),
        ("DAG_JobsRunning", "running"), ("DAG_JobsCompleted", "completed"))
NODES = (("#", "DAG_NodesDone", "completed"), ("=", "", "running"), ("»", "DAG_NodesReady", "ready to start"),
         ("-", "DAG_NodesUnready", "waiting on other nodes to finish"), ("!", "DAG_NodesFutile", "never to run"),
         ("!", "DAG_NodesFailed", "failed"))
LIMITS = {"jobs": "nodes", "idle": "idle", "pre": "pre", "hold": "hold", "post": "post", "submits": "submissions"}
"""The option for each limit."""
ACTIVE = (("DAG_NodesPrerun", "pre-script"), ("DAG_NodesQueued", "job"), ("DAG_NodesPostrun", "post-script"))


def submit(given: dict[str, Any]) -> int:
    """Queue the job that runs a DAG, as condor_submit_dag does."""
    path = given["dag_file"]
    if not os.path.exists(path):
        raise ToolError(f"Could not find file: {path}")
    if not os.access(path, os.R_OK):
        raise ToolError(f"Could not access file: {path}")
    done = subprocess.run([sys.executable, "-m", "condor_actors.tools.dag.submit_dag", path],
                          capture_output=True, text=True, check=False)
    found = re.search(r"submitted to cluster (\d+)", done.stdout)
    if done.returncode or found is None:
        raise ToolError(f"Error submitting DAG:\n{done.stderr.strip() or done.stdout.strip()}")
    tell(*done.stderr.splitlines(), f"DAG {found[1]} was submitted.")
    return 0


def _dag_of(word: str, *, ended: bool = True) -> ClassAd:
    """The ad of a DAG's own job.

    Raises:
        ToolError: there is none, or it is another job's.
    """
    if not word.isdecimal() or len(word) > 9:
        raise ToolError(f"{word} is no DAG's id; expected the cluster of its own job, as 12")
    with schedd(load()) as there:
        ids = ((int(word), 0),)
        found = there.ask(QueryJobs(ids=ids, limit=1)).ads
        if not found and ended:
            found = there.ask(QueryJobs(source="history", ids=ids, limit=1)).ads
    if not found:
        raise ToolError(f"No DAG found for ID {word}.")
    ad = ClassAd.from_bytes(found[0])
    if not _files(ad):
        raise ToolError(f"Job {word} is not a DAG")
    return ad


def _files(ad: ClassAd) -> list[str]:
    """The DAG files in the command line of a DAG's job."""
    from condor_actors.cores.argument_quoting import split_raw

    text = ad.get_str("Arguments")
    with contextlib.suppress(ValueError):
        words = split_raw(text)
        return [words[n + 1] for n, word in enumerate(words[:-1]) if word.lower() == "-dag"]
    return []


def status(given: dict[str, Any]) -> int:
    """How far a DAG is."""
    word = given["dag_id"]
    ad = _dag_of(word)
    now_s = time.time()
    name = f"DAG {word} [{ad.get_str('JobBatchName', 'UNKNOWN+1').rpartition('+')[0]}]"
    state = ad.get_int("JobStatus")
    if state == JobStatus.RUNNING:
        age_s = now_s - ad.get_int("DAG_AdUpdateTime", int(now_s))
        if age_s > SAYS_NOTHING_S:
            tell(f"Warning: DAG information for ID {word} has not been updated for {clock(age_s)}.")
        how = "halted" if ad.get_int("DAG_Status") == HALTED else "running"
        tell(f"{name} has been {how} for {clock(now_s - ad.get_int('JobStartDate', int(now_s)))}")
    elif state == JobStatus.COMPLETED:
        ended = time.localtime(ad.get_int("EnteredCurrentStatus"))
        tell(f"{name} completed {time.strftime('%Y-%m-%d %H:%M:%S', ended)}")
    else:
        tell(f"{name} has been {SAID.get(JobStatus(state), 'somewhere')} for "
             f"{clock(now_s - ad.get_int('EnteredCurrentStatus', int(now_s)))}")
        if state == JobStatus.HELD:
            tell(f"Hold Reason: {ad.get_str('HoldReason')}")
    tell(*_jobs(ad), *_nodes(ad))
    return 0


def _jobs(ad: ClassAd) -> list[str]:
    if "DAG_JobsSubmitted" not in ad:
        return []
    total = ad.get_int("DAG_JobsSubmitted")
    failed = total - sum(ad.get_int(name) for name, _ in JOBS)
    rows = [*((ad.get_int(name), what) for name, what in JOBS), (failed, "failed")]
    return [f"DAG has submitted {total} job(s), of which:",
            *(f"\t    {count:3} {what}." for count, what in rows if count > 0)]


def _nodes(ad: ClassAd) -> list[str]:
    total = ad.get_int("DAG_NodesTotal")
    if total <= 0:
        return []
    lines = [f"DAG contains {total} node(s) total, of which:"]
    bar = ""
    width = max(10, shutil.get_terminal_size().columns // 2 - 2)
    for sign, attribute, what in NODES:
        count = ad.get_int(attribute) if attribute else sum(ad.get_int(name) for name, _ in ACTIVE)
        if count <= 0:
            continue
        parts = ""
        if not attribute:
            parts = ": " + ", ".join(plural(ad.get_int(name), kind) for name, kind in ACTIVE if ad.get_int(name))
        lines.append(f"\t[{sign}] {count:3} {what}{parts}.")
        bar += sign * max(1, round(count / total * width))
    lost = (ad.get_int("DAG_NodesFutile") + ad.get_int("DAG_NodesFailed")) / total
    known = ad.get_int("DAG_Status")
    state = STATES[known] if 0 <= known < len(STATES) else str(known)
    lines.append(f"DAG status: {state}." + (f" Only {100 * (1 - lost):.2f}% of the DAG can complete." if lost else ""))
    return [*lines, f"[{bar[:width].ljust(width)}] DAG is {100 * ad.get_int('DAG_NodesDone') / total:.2f}% complete."]


def _halt_file(ad: ClassAd) -> str:
    return os.path.join(ad.get_str("Iwd"), DagFiles(_files(ad)[0]).halt)


def halt(given: dict[str, Any]) -> int:
    """Have a DAG begin nothing new."""
    halt_dag(given["dag_id"], given["reason"] or "")
    tell(f"DAG {given['dag_id']} begins nothing new until it is resumed.")
    return 0


def halt_dag(word: str, reason: str) -> None:
    """Make a DAG's halt file.

    Raises:
        ToolError: there is no such DAG; OSError: the file cannot be written.
    """
    ad = _dag_of(word, ended=False)
    with open(_halt_file(ad), "w", encoding="utf-8") as file:
        file.write(reason + "\n" * bool(reason))


def resume(given: dict[str, Any]) -> int:
    """Have a halted DAG go on."""
    resume_dag(given["dag_id"])
    tell(f"DAG {given['dag_id']} goes on.")
    return 0


def resume_dag(word: str) -> None:
    """Remove a DAG's halt file.

    Raises:
        ToolError: there is no such DAG, or it is not halted.
    """
    ad = _dag_of(word, ended=False)
    try:
        os.unlink(_halt_file(ad))
    except FileNotFoundError:
        raise ToolError(f"DAG {word} is not halted") from None


def throttle(given: dict[str, Any]) -> int:
    """Change the limits of a DAG."""
    wanted = {name: given[option] for name, option in LIMITS.items() if given[option] is not None}
    try:
        values = limit_dag(given["dag_id"], wanted)
    except ToolError as error:
        raise ToolError(f"ERROR: {error.text}") from None
    print(f"DAGMan {given['dag_id']} set throttles:")
    print(*shown(values), sep="\n")
    return 0


def limit_dag(word: str, wanted: Mapping[str, int]) -> dict[str, int]:
    """Change limits of a DAG in the ad of its own job, where the program that runs it looks; all of them afterwards.

    Args:
        word: the DAG's id.
        wanted: by the names of `LIMITS`.

    Raises:
        ToolError: there is no such DAG, it is another user's, or what is wanted is no limit.
    """
    if not wanted:
        raise ToolError("No valid throttle specified")
    for name, value in wanted.items():
        if not is_possible(name, value):
            raise ToolError(f"--{LIMITS[name]} {value} is no limit; expected a number from "
                            f"{'1 to 1000' if name == 'submits' else '0, which is none, to 2147483647'}")
    ad, changed = _dag_of(word, ended=False), {ATTRIBUTES[name]: value for name, value in wanted.items()}
    change = ClassAd()
    change.update(changed)
    with schedd(load()) as there:
        ((_, _, result),) = there.ask(EditJobs(attributes=change.to_bytes(), ids=((int(word), 0),))).results
    if result is not ActionResult.SUCCESS:
        raise ToolError(f"the limits of DAG {word} are not yours to change")
    return {name: ad.get_int(name) for name in SHOWN if name in ad} | changed


def resources(given: dict[str, Any]) -> int:
    """Memory and hosts of a DAG's jobs."""
    word = given["dag_id"]
    _dag_of(word)
    source = "history" if given["history"] else "queue"
    names = ("ClusterId", "ProcId", "DAGNodeName", "JobStatus", "MemoryUsage", "RequestMemory", "NumJobStarts",
             "RemoteHost", "LastRemoteHost")
    ads: list[ClassAd] = []
    with schedd(load()) as there:
        cursor = ""
        while True:
            page = there.ask(QueryJobs(source=source, constraint=f"DAGManJobId == {word}", projection=names,
                                       cursor=cursor))
            ads += [ClassAd.from_bytes(text) for text in page.ads]
            cursor = page.cursor
            if not cursor:
                break
    if not ads:
        tell(f"DAG {word} has no jobs in the {source}.")
        return 0
    rows, shares = [], []
    for ad in sorted(ads, key=lambda ad: (ad.get_int("ClusterId"), ad.get_int("ProcId"))):
        used, asked = ad.get_int("MemoryUsage", -1), ad.get_int("RequestMemory")
        if used >= 0 and asked > 0:
            shares.append(used / asked)
        rows.append((ad.get_str("DAGNodeName"), f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}",
                     JobStatus(ad.get_int("JobStatus")).name.capitalize(), str(used) if used >= 0 else "-", str(asked),
                     str(ad.get_int("NumJobStarts")), ad.get_str("RemoteHost") or ad.get_str("LastRemoteHost") or "-"))
    tell(*table(("Node", "Job", "Status", "Memory", "Requested", "Starts", "Host"), rows, right=(3, 4, 5)))
    running = sum(ad.get_int("JobStatus") == JobStatus.RUNNING for ad in ads)
    idle = sum(ad.get_int("JobStatus") == JobStatus.IDLE for ad in ads)
    used_share = f"; {100 * sum(shares) / len(shares):.1f}% of the requested memory used on average" if shares else ""
    tell(f"\n{running} running; {idle} idle{used_share}")
    return 0
