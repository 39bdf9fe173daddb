"""What to do about a job on hold, by the code of the hold."""

from __future__ import annotations

import math

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.words import span_text
from condor_actors.messages.codes import HoldCode, HoldSubCode

__all__ = ["why_it_is_held"]

_REMEDIES = {
    HoldCode.USER_REQUEST: "condor_release {job} lets it go on.",
    HoldCode.SUBMITTED_ON_HOLD: "It was submitted so; condor_release {job} lets it go on.",
    HoldCode.SPOOLING_INPUT: "Its files are on the way to the schedd; it goes on by itself when they are there. If "
                             "condor_submit was interrupted, remove it and submit it again.",
    HoldCode.JOB_POLICY: "Its own periodic_hold or on_exit_hold says so (condor_q -long {job} shows them).",
    HoldCode.SYSTEM_POLICY: "A rule of the pool's administrators says so.",
    HoldCode.UNABLE_TO_OPEN_OUTPUT: "Make the folder, or make it writable, then condor_release {job}.",
    HoldCode.UNABLE_TO_OPEN_INPUT: "Put the file where the job looks for it, then condor_release {job}.",
    HoldCode.TRANSFER_INPUT_ERROR: "Put the file where the job looks for it (transfer_input_files), then "
                                   "condor_release {job}.",
    HoldCode.TRANSFER_OUTPUT_ERROR: "Either the job did not write the file (transfer_output_files), or the folder at "
                                    "home does not take it. condor_release {job} runs it again.",
    HoldCode.IWD_ERROR: "Make the folder, or make it readable for yourself, then condor_release {job}.",
    HoldCode.FAILED_TO_CREATE_PROCESS: "The program is missing, not executable, or of another kind of machine. Mend "
                                       "it, then condor_release {job}.",
    HoldCode.UNABLE_TO_INIT_USER_LOG: "The file of log = must be writable for you; then condor_release {job}.",
    HoldCode.JOB_EXECUTE_EXCEEDED: "condor_qedit {job} AllowedExecuteDuration with more seconds, then condor_release "
                                   "{job}.",
    HoldCode.JOB_DURATION_EXCEEDED: "condor_qedit {job} AllowedJobDuration with more seconds, then condor_release "
                                    "{job}.",
    HoldCode.MISSED_DEFERRED_EXECUTION_TIME: "A longer deferral_window would have let it begin later.",
    HoldCode.INVALID_CRON_SETTINGS: "Mend its cron_* settings with condor_qedit, then condor_release {job}.",
}

_AMOUNTS: dict[int, tuple[str, str, str]] = {
    HoldSubCode.MEMORY_EXCEEDED: ("RequestMemory", "MemoryUsage", "MB of memory"),
    HoldSubCode.DISK_EXCEEDED: ("RequestDisk", "DiskUsage", "KB of disk"),
}
"""What the job asked for, what it has used, and the unit."""


def why_it_is_held(job: ClassAd, now_s: float) -> str:
    """The paragraph."""
    name = f"{job.get_int('ClusterId')}.{job.get_int('ProcId')}"
    code = job.get_int("HoldReasonCode")
    since_s = job.get_int("EnteredCurrentStatus")
    when = f" for {span_text(now_s - since_s)}" if 0 < since_s <= now_s else ""
    reason = job.get_str("HoldReason").strip().rstrip(".") or "no reason is on record"
    said = f"It has been on hold{when}: {reason}. "
    if code == HoldCode.JOB_OUT_OF_RESOURCES and job.get_int("HoldReasonSubCode") in _AMOUNTS:
        return said + _more(job, name)
    remedy = _REMEDIES.get(HoldCode(code)) if code in HoldCode.__members__.values() else None
    times = job.get_int("NumHolds")
    said += (remedy or "When that is mended, condor_release {job} lets it go on.").replace("{job}", name)
    return said + (f" It has been held {times} times." if times > 2 else "")


def _more(job: ClassAd, name: str) -> str:
    """It needed more than it had asked for."""
    attribute, usage, unit = _AMOUNTS[job.get_int("HoldReasonSubCode")]
    asked, used = job.get_int(attribute), job.get_int(usage)
    more = max(math.ceil(1.5 * max(used, asked)), asked + 1)
    again = "; retry_request_memory does so by itself" if attribute == "RequestMemory" else ""
    return (f"It asked for {asked} {unit} and has used {used}: condor_qedit {name} {attribute} {more} and "
            f"condor_release {name} let it try with more{again}.")
