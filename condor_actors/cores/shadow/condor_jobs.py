"""Another schedd's side of a run: the ad that it is submitted with, and what the other schedd's answers mean.

Theory: the job there carries the run's name in ``SubmitterRun``, and is submitted to be spooled, so it is held until
the grid manager has sent its input and lets it go.  Of several submissions of one run one is let go, that which the
claim in the run's folder names; the others never begin.  The answers are another pool's: what is of the wrong type,
too long or out of range counts as not said.

**Source**: the manual, "The Grid Universe", Condor-C.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression, quote
from condor_actors.cores.shadow.grid_events import BatchJob, Fits, FolderRecord, GridKind
from condor_actors.cores.shadow.slurm_jobs import FENCE
from condor_actors.messages.codes import HoldCode, JobStatus, Notification, Universe
from condor_actors.messages.references.grid_resources import is_remote, remote_problem
from condor_actors.numerals import numeral

__all__ = ["CONDOR", "PROJECTION", "RUN", "STDERR", "STDOUT", "RemoteJob", "home_of", "job_number",
           "question_for", "read_job", "record_of", "remote_ad", "remote_problems"]

RUN = "SubmitterRun"
STDOUT, STDERR, NULL = "_condor_stdout", "_condor_stderr", "/dev/null"
MOST_AD_BYTES = 64 * 1024
"""Of the few attributes of a job that are asked for."""
MOST_TEXT = 500
STALE_S = 86_400
"""After so long the other schedd drops a job whose input never came."""
KEPT_S = 864_000
"""For so long it keeps a job whose output was not fetched."""

PROJECTION = (
    RUN, "ClusterId", "ProcId", "JobStatus", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "RemoveReason",
    "ExitBySignal", "ExitCode", "ExitSignal", "RemoteHost", "LastRemoteHost", "JobCurrentStartExecutingDate",
    "JobStartDate", "CompletionDate", "RemoteUserCpu", "RemoteSysCpu",
)

# ---- the ad


_LEFT = frozenset("""
    clusterid procid owner user osuser qdate globaljobid jobstatus enteredcurrentstatus gridresource gridjobid
    gridjobstatus gridresourceunavailabletime userlog userlogusexml userlogexecuteeventattrs dagmannodeslog
    dagmannodesmask dagmanjobid dagnodename dagparentnodenames accountinggroup acctgroup acctgroupuser
    holdreason holdreasoncode holdreasonsubcode leavejobinqueue onexithold onexitholdreason onexitholdsubcode
    onexitremove onexitremovereason periodichold periodicholdreason periodicholdsubcode periodicrelease
    periodicremove periodicvacate transferoutputremaps outputdirectory filesystemdomain skipifdataflow notifyuser
    emailattributes cronminute cronhour crondayofmonth cronmonth crondayofweek cronwindow cronpreptime deferraltime
    deferralwindow deferralpreptime jobmaterializelimit jobmaterializemaxidle totalsubmitprocs
    jobsubmitmethod streamout streamerr keepclaimidle joblimit noopjob noopjobexitcode noopjobexitsignal
    allowedjobduration allowedexecuteduration jobmaxretries jobsuccessexitcode maxjobretirementtime numlostruns
    vacatereason lastvacatetime numvacates
    """.split())  # noqa: SIM905
"""What a job has at home alone: whose and which it is there, and its policy, which its own schedd carries out."""


def remote_problems(job: ClassAd) -> str:
    """What of a job another schedd cannot be given, a sentence; empty: nothing."""
    for name in _names(job):
        if is_remote(name):
            problem = remote_problem(name, job.find(name.lower()))
            if problem:
                return f"{name} cannot be set: {problem}"
    if job.get_str("ShouldTransferFiles").upper() == "NO":
        return "should_transfer_files = NO: the files of a job that is handed to another schedd travel"
    return ""


def _names(job: ClassAd) -> Iterable[str]:
    ad: ClassAd | None = job
    seen: set[str] = set()
    while ad is not None:
        for key in ad.own:
            if key not in seen:
                seen.add(key)
                yield ad.spelling(key)
        ad = ad.parent


def remote_ad(job: ClassAd, name: str) -> ClassAd:
    """The job as it is submitted to another schedd.

    Args:
        job: as it is at home.
        name: of the run.
    """
    ad = ClassAd()
    theirs: dict[str, Any] = {}
    for spelled in _names(job):
        key = spelled.lower()
        value = job.find(key)
        if is_remote(spelled):
            theirs[spelled[len("remote_"):]] = value
        elif key not in _LEFT and not key.startswith("submit_"):
            ad.store(spelled, value)
    streams = {"Out": STDOUT, "Err": STDOUT if job.get_str("Err") == job.get_str("Out") else STDERR}
    for attribute, stream in streams.items():
        ad.store(attribute, NULL if job.get_str(attribute) in ("", NULL) else stream)
    ad.update({
        "JobUniverse": int(Universe.VANILLA), "JobNotification": int(Notification.NEVER), RUN: name,
        "SubmitterGlobalJobId": job.get_str("GlobalJobId"), "SubmitterId": home_of(job), "ShouldTransferFiles": "YES",
    })
    if ad.find("whentotransferoutput") is None:
        ad.store("WhenToTransferOutput", "ON_EXIT")
    ad.store("LeaveJobInQueue", parse_expression(
        f"JobStatus == {int(JobStatus.COMPLETED)} && (CompletionDate is undefined || CompletionDate == 0 || "
        f"time() - CompletionDate < {KEPT_S})"))
    ad.store("PeriodicRemove", parse_expression(
        f"JobStatus == {int(JobStatus.HELD)} && HoldReasonCode == {int(HoldCode.SPOOLING_INPUT)} && "
        f"time() - EnteredCurrentStatus > {STALE_S}"))
    for attribute, value in theirs.items():
        ad.store(attribute, value)
    return ad


# ---- answers


@attrs.frozen(kw_only=True)
class RemoteJob:
    """What another schedd says of a job, checked.

    Attributes:
        cluster, proc: its number there; run: whose it is.
        status: 0 where nothing of use was said.
        reason: why it is held, or was removed; code, subcode: of the hold.
        ended: (exit status or signal, whether a signal), None: it does not say.
        began_s: 0: it has not. host: where it runs or ran last.
    """

    cluster: int
    proc: int
    run: str
    status: int
    reason: str = ""
    code: int = 0
    subcode: int = 0
    ended: tuple[int, bool] | None = None
    began_s: float = 0.0
    host: str = ""
    user_cpu_s: float = 0.0
    system_cpu_s: float = 0.0

    @property
    def batch_id(self) -> str:
        """As it stands in GridJobId."""
        return f"{self.cluster}.{self.proc}"

    @property
    def waits_for_input(self) -> bool:
        """Whether it was submitted, and not let go yet."""
        return self.status == JobStatus.HELD and self.code == HoldCode.SPOOLING_INPUT


def job_number(batch_id: str) -> tuple[int, int] | None:
    """Cluster and proc of ``12.0``; None: it is no such number."""
    cluster, dot, proc = batch_id.partition(".")
    numbers = numeral(cluster), numeral(proc)
    return (numbers[0], numbers[1]) if dot and numbers[0] is not None and numbers[1] is not None else None


def home_of(job: ClassAd) -> str:
    """Whose jobs another schedd is asked for at once: those of one schedd and owner."""
    return f"{job.get_str('GlobalJobId').partition('#')[0]}/{job.get_str('Owner')}"


def question_for(home: str) -> str:
    """The constraint for all jobs that were handed on from there."""
    return f"SubmitterId == {quote(home)} && {RUN} isnt undefined"


def _integer(ad: ClassAd, name: str, low: int, high: int) -> int | None:
    value = ad.find(name.lower())
    return value if type(value) is int and low <= value <= high else None


def _number(ad: ClassAd, name: str) -> float:
    value = ad.find(name.lower())
    return float(value) if type(value) in (int, float) and 0 <= value < 1e12 else 0.0


def _text(ad: ClassAd, name: str) -> str:
    value = ad.find(name.lower())
    if type(value) is not str:
        return ""
    return "".join(letter if letter.isprintable() else " " for letter in value[:MOST_TEXT])


def read_job(text: bytes) -> RemoteJob | None:
    """A job of another schedd; None: it is none of which anything can be said.  Nothing in it is evaluated."""
    if len(text) > MOST_AD_BYTES:
        return None
    try:
        ad = ClassAd.from_bytes(text)
    except (ClassAdSyntaxError, ValueError, RecursionError):
        return None
    cluster, proc = _integer(ad, "ClusterId", 1, 1 << 31), _integer(ad, "ProcId", 0, 1 << 31)
    status = _integer(ad, "JobStatus", 1, 7) or 0
    if cluster is None or proc is None:
        return None
    signalled = ad.find("exitbysignal")
    ended = None
    if type(signalled) is bool:
        said = _integer(ad, "ExitSignal", 1, 64) if signalled else _integer(ad, "ExitCode", -(1 << 31), (1 << 32) - 1)
        ended = (said, signalled) if said is not None else None
    has_begun = status in (JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED, JobStatus.COMPLETED)
    dates = ("JobCurrentStartExecutingDate", "JobStartDate", "CompletionDate")
    began_s = next((date for date in (_number(ad, name) for name in dates) if date), 1.0) if has_begun else 0.0
    return RemoteJob(
        cluster=cluster, proc=proc, run=_text(ad, RUN), status=status,
        reason=_text(ad, "HoldReason") if status == JobStatus.HELD else _text(ad, "RemoveReason"),
        code=_integer(ad, "HoldReasonCode", 0, 10_000) or 0, subcode=_integer(ad, "HoldReasonSubCode", 0, 1 << 31) or 0,
        ended=ended if status == JobStatus.COMPLETED else None, began_s=began_s,
        host=_text(ad, "RemoteHost") or _text(ad, "LastRemoteHost"),
        user_cpu_s=_number(ad, "RemoteUserCpu"), system_cpu_s=_number(ad, "RemoteSysCpu"))


GONE = "GONE"
"""The state of a job that has completed there and whose output went before it was fetched."""
_WORDS: Mapping[int, str] = {
    JobStatus.IDLE: "IDLE", JobStatus.RUNNING: "RUNNING", JobStatus.REMOVED: "REMOVED",
    JobStatus.COMPLETED: "COMPLETED", JobStatus.HELD: "HELD", JobStatus.TRANSFERRING_OUTPUT: "RUNNING",
    JobStatus.SUSPENDED: "SUSPENDED",
}


def record_of(prepared: bool, claim: str, queued: RemoteJob | None,
              left: RemoteJob | None) -> tuple[tuple[BatchJob, ...], FolderRecord]:
    """What is known of a run, in the words of its table.

    Args:
        prepared: its folder is.
        claim: which job may have been let go; empty, or `FENCE`: none.
        queued: that job as it is in the queue there; None: it is not.
        left: as it is in the history there, where it is not in the queue.
    """
    claim = "" if claim == FENCE else claim
    job = queued or left
    if job is None:
        return (), FolderRecord(prepared=prepared, claim=claim)
    if job.waits_for_input:
        return (), FolderRecord(prepared=prepared)
    state = _WORDS.get(job.status, "UNKNOWN")
    ended = job.ended if queued is not None else None
    if queued is None:
        state = "REMOVED" if job.status == JobStatus.REMOVED else GONE
    record = FolderRecord(
        prepared=prepared, claim=claim or job.batch_id, host=job.host, began_s=job.began_s,
        status=ended[0] if ended is not None else None, signal=ended[0] if ended is not None and ended[1] else 0,
        user_cpu_s=job.user_cpu_s, system_cpu_s=job.system_cpu_s, said=f"{job.code} {job.subcode}")
    return (BatchJob(job.batch_id, state, job.reason, job.host),), record


def _fits(job: BatchJob) -> Fits:
    if job.state in ("RUNNING", "SUSPENDED"):
        return Fits.RUNNING
    return Fits.OVER if job.state in ("REMOVED", "HELD", "COMPLETED", GONE) else Fits.WAITING


def _verdict(batch_id: str, current: BatchJob | None, record: FolderRecord) -> tuple[str, str, int, int]:
    if current is None:
        return "lost", f"the other schedd knows no job {batch_id} any more, and nobody knows how it ended", 0, 0
    reason = current.reason or "it gives no reason"
    if current.state == "HELD":
        code, subcode = (int(word) for word in record.said.split())
        return ("hold", f"the other schedd holds job {batch_id}: {reason}", code or int(HoldCode.STARTD_HELD_JOB),
                subcode)
    if current.state == "REMOVED":
        return "hold", f"job {batch_id} was removed at the other schedd: {reason}", HoldCode.STARTD_HELD_JOB, 0
    if current.state == GONE:
        return ("hold", f"job {batch_id} left the other schedd before its output was fetched",
                HoldCode.TRANSFER_OUTPUT_ERROR, 0)
    return ("hold", f"the other schedd says that job {batch_id} has completed, and not how", HoldCode.STARTD_HELD_JOB,
            0)


CONDOR = GridKind(fits=_fits, shown=lambda job: job.state, verdict=_verdict)
