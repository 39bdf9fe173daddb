"""``htcondor job``: submit one job, and say how it stands.

**Source**: the manual, htcondor, "Job Verbs".
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.oversized import advice_for
from condor_actors.messages.codes import JobStatus
from condor_actors.messages.queue import QueryJobs
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.nouns.words import plural, size, span, tell
from condor_actors.written_text import read_written

if TYPE_CHECKING:
    from condor_actors.submit import Description, SubmitError

KIB, MIB = 1024, 1024**2
JOB_SUBMIT = 3
"""JobSubmitMethod of what ``htcondor job submit`` queued."""
ENDED = (JobStatus.COMPLETED, JobStatus.REMOVED)


def submit(given: dict[str, Any]) -> int:
    """Queue the only job of a description."""
    _only_here(given)
    if given["annex_name"]:
        raise ToolError('requirements = TARGET.AnnexName == "NAME" asks for an annex; leave --annex-name out')
    path = given["submit_file"]
    if not os.path.exists(path):
        raise ToolError(f"Could not find file: {path}")
    if not os.access(path, os.R_OK):
        raise ToolError(f"Could not access file: {path}")
    from condor_actors.submit import Description, Options, SubmitError
    from condor_actors.tools.lib.submission import Submission, environment, make_logs

    try:
        text = read_written(path)
    except OSError as error:
        raise ToolError(f"Could not access file: {path}: {error.strerror}") from None
    config = load("SUBMIT")
    with schedd(config) as there:
        submission = Submission(there, lambda: schedd(config), spool=False)
        description = Description(environment(config, submit_method=JOB_SUBMIT), submission.reserve, Options())
        try:
            clusters = description.read(text, os.path.abspath(path))
        except SubmitError as error:
            raise described_wrong(error, description) from None
        if sum(len(cluster.procs) for cluster in clusters) != 1:
            raise ToolError("Can only submit one job at a time; condor_submit queues more")
        submission.send(clusters)
        make_logs(clusters)
    tell(f"Job {clusters[0].cluster_id} was submitted.")
    return 0


def described_wrong(error: SubmitError, description: Description) -> ToolError:
    """What is wrong with a description, where it stands, and what to do about it."""
    if error.line:
        return ToolError(str(error))
    return ToolError("\n".join(filter(None, (error.problem, description.blamed(error), error.remedy))))


def _only_here(given: dict[str, Any]) -> None:
    """Refuse what HTCondor hands to other systems.

    Raises:
        ToolError: it is asked for.
    """
    resource = (given.get("resource") or "htcondor").casefold()
    if resource == "ec2" and given.get("runtime") is None and "runtime" in given:
        raise ToolError("Error: EC2 resources must specify a --runtime argument")
    if resource != "htcondor":
        raise ToolError(f"jobs run on machines of the pool only, not on {given['resource']}; leave --resource out")


def job_of(given: dict[str, Any]) -> tuple[str, ClassAd]:
    """The job that is named, from the queue or the history.

    Raises:
        ToolError: there is none.
    """
    _only_here(given)
    word = given["job_id"]
    cluster, _, proc = word.partition(".")
    if not cluster.isdecimal() or (proc and not proc.isdecimal()) or max(len(cluster), len(proc)) > 9:
        raise ToolError(f"{word} is no job id; expected CLUSTER or CLUSTER.PROC, as 12.0")
    ids = ((int(cluster), int(proc or 0)),)
    with schedd(load()) as there:
        found = there.ask(QueryJobs(ids=ids, limit=1)).ads
        if not found and not given.get("skip_history"):
            tell(f"Job {word} was not found in the active queue, checking history...")
            found = there.ask(QueryJobs(source="history", ids=ids, limit=1)).ads
    if not found:
        raise ToolError(f"No job found for ID {word}.")
    return word, ClassAd.from_bytes(found[0])


def status(given: dict[str, Any]) -> int:
    """How a job stands, in sentences."""
    word, job = job_of(given)
    now_s = time.time()
    state = job.get_int("JobStatus")
    tell(*_SENTENCES.get(state, _unknown)(f"Job {word}", job, now_s))
    wall_s = job.get_float("RemoteWallClockTime")
    if state not in (JobStatus.IDLE, JobStatus.HELD) and wall_s > 0:
        share = min(1.0, job.get_float("CommittedTime") / wall_s)
        tell(f"Job {'had' if state in ENDED else 'has'} {100 * share:.1f}% goodput for {span(wall_s)} of wall clock "
             "time.")
    if state == JobStatus.COMPLETED:
        tell(advice_for(job))
    if state in (JobStatus.IDLE, JobStatus.HELD):
        tell(f"condor_q -better-analyze {word} says what stands in its way.")
    return 0


def _since(job: ClassAd, name: str, now_s: float) -> str:
    return span(now_s - job.get_int(name, int(now_s)))


def _submitted(job: ClassAd, now_s: float) -> str:
    return f"It was submitted {_since(job, 'QDate', now_s)} ago."


def _usage(job: ClassAd, which: str) -> list[str]:
    lines = []
    for kind, used, asked, unit in (("memory", "MemoryUsage", "RequestMemory", MIB),
                                    ("disk", "DiskUsage", "RequestDisk", KIB)):  # fmt: skip
        amount = job.get_float(used, -1.0)
        if amount >= 0:
            lines.append(f"Its {which} {kind} usage is {size(amount * unit)} out of "
                         f"{size(job.get_float(asked) * unit)} requested.".replace("last memory usage is",
                         "last memory usage was").replace("last disk usage is", "last disk usage was"))
    return lines


def _starts(job: ClassAd, least: int) -> list[str]:
    tried = job.get_int("NumShadowStarts")
    if tried < least:
        return []
    return [f"HTCondor has attempted to start the job {plural(tried, 'time')}.",
            f"The job has started {plural(job.get_int('NumJobStarts'), 'time')}."]


def _often(job: ClassAd, name: str, what: str) -> str:
    count = job.get_int(name)
    return f"It has been {what} {plural(count, 'time')}." if count else ""


def _transfer(job: ClassAd, unfinished: str) -> str:
    begun, ended = job.get_int("TransferInStarted"), job.get_int("TransferInFinished")
    if not begun:
        return ""
    return unfinished if ended < begun else f"Input file transfer took {span(ended - begun)}."


def _idle(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} is currently idle.", _submitted(job, now_s),
            f"It requested {size(job.get_float('RequestMemory') * MIB)} of memory.",
            f"It requested {size(job.get_float('RequestDisk') * KIB)} of disk space.",
            _often(job, "NumHolds", "held"), *_starts(job, 1)]


def _running(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} is currently running.", f"It started running {_since(job, 'JobStartDate', now_s)} ago.",
            _submitted(job, now_s), *_usage(job, "current"), _often(job, "TotalSuspensions", "suspended"),
            _often(job, "NumHolds", "held"), *_starts(job, 2),
            _transfer(job, "Input file transfer is in progress.")]


def _suspended(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} is currently suspended.",
            f"It has been suspended for {_since(job, 'EnteredCurrentStatus', now_s)}.",
            _often(job, "TotalSuspensions", "suspended"), _submitted(job, now_s), *_usage(job, "last")]


def _transferring(name: str, job: ClassAd, now_s: float) -> list[str]:
    dates = ("JobCurrentStartTransferOutputDate", "EnteredCurrentStatus")
    begun = next((name for name in dates if name in job), dates[-1])
    return [f"{name} is currently transferring output.",
            f"It started transferring output {_since(job, begun, now_s)} ago.", *_usage(job, "last")]


def _held(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} is currently held.", f"It has been held for {_since(job, 'EnteredCurrentStatus', now_s)}.",
            f'It was held because "{job.get_str("HoldReason")}".', _often(job, "NumHolds", "held"),
            _submitted(job, now_s), *(_usage(job, "last") if job.get_int("NumJobStarts") else ()), *_starts(job, 1),
            _transfer(job, "Input file transfer was in progress when the job was held.")]


def _removed(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} was removed.", f"It was removed {_since(job, 'EnteredCurrentStatus', now_s)} ago.",
            _submitted(job, now_s), *_usage(job, "last")]


def _completed(name: str, job: ClassAd, now_s: float) -> list[str]:
    return [f"{name} has completed.", f"It completed {_since(job, 'CompletionDate', now_s)} ago.",
            _submitted(job, now_s), *_usage(job, "last")]


def _unknown(name: str, job: ClassAd, now_s: float) -> list[str]:  # noqa: ARG001 - like the others
    return [f"{name} is in an unknown state (JobStatus = {job.get_int('JobStatus')})."]


_SENTENCES: dict[int, Callable[[str, ClassAd, float], list[str]]] = {
    JobStatus.IDLE: _idle, JobStatus.RUNNING: _running, JobStatus.SUSPENDED: _suspended, JobStatus.HELD: _held,
    JobStatus.TRANSFERRING_OUTPUT: _transferring, JobStatus.REMOVED: _removed, JobStatus.COMPLETED: _completed,
}  # fmt: skip


def out(given: dict[str, Any]) -> int:
    """Print a job's standard output."""
    return _print(given, "Out", "standard output")


def err(given: dict[str, Any]) -> int:
    """Print its standard error."""
    return _print(given, "Err", "standard error")


def log(given: dict[str, Any]) -> int:
    """Print its event log, with the events of other jobs that are in it."""
    return _print(given, "UserLog", "event log")


def _print(given: dict[str, Any], attribute: str, what: str) -> int:
    word, job = job_of(given)
    name = job.get_str(attribute)
    if not name or name == os.devnull:
        raise ToolError(f"Job {word} keeps no {what}; its submit description names no file for it.")
    path = os.path.join(job.get_str("Iwd"), name)
    sys.stdout.flush()
    with open(path, "rb") as file:
        shutil.copyfileobj(file, sys.stdout.buffer)
    return 0


def resources(given: dict[str, Any]) -> int:
    """Which slot a job runs on."""
    word, job = job_of(given)
    host = job.get_str("RemoteHost")
    if not host:
        raise ToolError(f"Job {word} is not running yet." if job.get_int("JobStatus") not in ENDED
                        else f"Job {word} has ended.")
    tell(f"Job is using resource {host}")
    return 0
