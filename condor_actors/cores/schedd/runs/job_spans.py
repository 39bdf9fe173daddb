"""What the schedd tells of jobs as spans: each time that one spends in a status, and at its end the whole.

==============  =======================================================================================================
span            from and to
==============  =======================================================================================================
``job``         its submission and its end; all others are within it
``submit``      a moment: it was submitted
``idle``        it waits for a match; ``held``: for its release; ``removed``: for the end of its run; ``completed``: for
                its owner to look at it
``claim``       within ``idle``: the match, and the grant of the slot
``run``         the start of a run and what became of it; the shadow's and the starter's spans are within it
``evicted``     within ``run``, a moment: it lost its machine, and is idle again
==============  =======================================================================================================

Theory: dates in ads are whole seconds, which is long for a job; so the moments are remembered beside them, and the ads'
count only after a restart.
"""

from __future__ import annotations

from condor_actors.cores.schedd.queued_job import Job
from condor_actors.cores.trace_spans import JOB, Fact, Span, TellSpan, run_name, span_of, trace_of
from condor_actors.messages.codes import JobStatus

__all__ = ["JobSpans"]

RUNNING = frozenset({JobStatus.RUNNING, JobStatus.SUSPENDED, JobStatus.TRANSFERRING_OUTPUT})
NAMES = {JobStatus.IDLE: "idle", JobStatus.HELD: "held", JobStatus.REMOVED: "removed", JobStatus.COMPLETED: "completed"}
LETTERS = 300
"""Of a reason."""


class JobSpans:
    """Tells the spans of a schedd's jobs.

    Args:
        tell: gets them.
    """

    def __init__(self, tell: TellSpan) -> None:
        self._tell = tell
        self._since: dict[Job, float] = {}
        self._runs: dict[Job, tuple[str, float]] = {}

    def changes(self, job: Job, status: JobStatus, now_s: float) -> None:
        """A job is about to have another status."""
        old = job.status
        if old in RUNNING and status in RUNNING:
            return
        if old in RUNNING:
            self._ran(job, status, now_s)
        else:
            self._waited(job, now_s)
        self._since[job] = now_s
        if status in RUNNING:
            self._runs[job] = (run_name(job.run_id), now_s)

    def claimed(self, job: Job, asked_s: float, now_s: float, slot: str) -> None:
        """A slot was granted for a job, which had been asked for."""
        idle = self._wait_name(job)
        self._say(job, "claim", f"{idle} claim {slot} {asked_s:.3f}", asked_s, now_s, parent=idle,
                  more={"condor.slot": slot[:LETTERS]})

    def leaves(self, job: Job, now_s: float) -> None:
        """A job leaves the queue."""
        ad = job.ad
        began_s = float(ad.get_int("QDate")) or now_s
        self._say(job, "submit", "submit", began_s, began_s)
        if job.status not in RUNNING and self._since_of(job) < now_s:
            self._waited(job, now_s)
        self._since.pop(job, None)
        self._runs.pop(job, None)
        failure = ""
        facts: dict[str, Fact] = {"condor.job.runs": ad.get_int("NumShadowStarts")}
        if job.status is JobStatus.REMOVED:
            failure = f"removed: {ad.get_str('RemoveReason')[:LETTERS]}"
        elif ad.get_bool("ExitBySignal"):
            failure = f"signal {ad.get_int('ExitSignal')}"
        else:
            facts["condor.job.exit_code"] = ad.get_int("ExitCode")
            failure = f"exit code {ad.get_int('ExitCode')}" if ad.get_int("ExitCode") else ""
        self._say(job, JOB, JOB, began_s, now_s, failure=failure, more=facts)

    # ---- parts

    def _since_of(self, job: Job) -> float:
        return self._since.get(job) or float(job.ad.get_int("EnteredCurrentStatus") or job.ad.get_int("QDate"))

    def _ran(self, job: Job, status: JobStatus, now_s: float) -> None:
        name, began_s = self._runs.pop(job, ("", 0.0))
        if not name:
            name = f"run {job.ad.get_int('NumShadowStarts')}"
            began_s = float(job.ad.get_int("JobCurrentStartDate")) or now_s
        where = (job.ad.get_str("RemoteHost") or job.ad.get_str("LastRemoteHost"))[:LETTERS]
        self._say(job, "run", name, began_s, now_s,
                  more={"condor.slot": where, "condor.run.then": NAMES[status]})
        if status is JobStatus.IDLE:
            self._say(job, "evicted", f"{name} evicted", now_s, now_s, parent=name, more={"condor.slot": where})

    def _waited(self, job: Job, now_s: float) -> None:
        reason = job.ad.get_str("HoldReason")[:LETTERS] if job.status is JobStatus.HELD else ""
        self._say(job, NAMES[job.status], self._wait_name(job), self._since_of(job), now_s,
                  more={"condor.reason": reason} if reason else None)

    def _wait_name(self, job: Job) -> str:
        """One for each time that a job waits."""
        return f"{NAMES[job.status]} {self._since_of(job):.3f}"

    def _say(self, job: Job, title: str, name: str, begin_s: float, end_s: float, *, parent: str = JOB,
             failure: str = "", more: dict[str, Fact] | None = None) -> None:
        trace = trace_of(job.ad.get_str("GlobalJobId"))
        facts: dict[str, Fact] = {"condor.job.id": job.name, "condor.job.owner": job.cluster.user, **(more or {})}
        self._tell(Span(trace=trace, number=span_of(trace, name), parent=0 if name == JOB else span_of(trace, parent),
                        name=title, begin_s=min(begin_s, end_s), end_s=end_s, facts=facts, failure=failure))
