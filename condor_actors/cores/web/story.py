"""A job's story as a time line: what happened when, on which host, and what it has come to.

Theory: the schedd tells lines of text, each with a date; here each gets a kind, by which it is drawn, and runs are put
together: from the line that says where a run began to the one that says how it ended.  Of the job's ad there is only
what :data:`SHOWN` names, and the schedd has taken out what a stranger may not see.
"""

from __future__ import annotations

import re
from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.web.dag_picture import dag_picture
from condor_actors.cores.web.rows import LONGEST, STATES, date, number
from condor_actors.numerals import LAST_S

__all__ = ["KINDS", "SHOWN", "job_story", "kind_of"]

SHOWN = (
    "Owner", "Cmd", "JobBatchName", "JobUniverse", "JobPrio", "QDate", "JobStartDate", "JobCurrentStartDate",
    "CompletionDate", "RemoteHost", "LastRemoteHost", "NumShadowStarts", "NumJobStarts", "NumCkpts", "NumRestarts",
    "LastCkptTime", "CkptSize", "RemoteUserCpu", "RemoteSysCpu", "LocalUserCpu", "LocalSysCpu", "RemoteWallClockTime",
    "CommittedTime", "Leverage", "NumRemoteSysCalls", "MemoryUsage", "DiskUsage", "RequestCpus", "RequestMemory",
    "RequestDisk", "HoldReason", "RemoveReason", "VacateReason", "LastRejMatchReason", "ExitCode", "ExitSignal",
    "ExitBySignal", "BytesSent", "BytesRecvd", "DAGManJobId", "DAGNodeName", "JobDescription",
)
"""The attributes that are shown, in this order."""

DATES = frozenset({"QDate", "JobStartDate", "JobCurrentStartDate", "CompletionDate", "LastCkptTime"})
"""Of these, 0 is none."""

KINDS = (
    ("submitted", "submitted"), ("run ", "run"), ("began", "run"), ("its program began", "run"),
    ("matched", "matched"), ("not matched", "refused"), ("held", "held"), ("released", "released"),
    ("requeued", "requeued"), ("removed", "removed"), ("completed", "completed"), ("checkpoint", "checkpoint"),
    ("since then held", "held"), ("since then", "state"),
)
"""How a line begins, and its kind; one that begins otherwise is a ``note``."""

_BEGINS = re.compile(r"run (\d{1,9}) beg(?:ins|an)(?: on (.*))?\Z", re.DOTALL)
_ENDS = re.compile(r"run (\d{1,9}) ended: (.*)\Z", re.DOTALL)


def kind_of(text: str) -> str:
    """The kind of a line."""
    if _ENDS.match(text):
        return "end"
    return next((kind for words, kind in KINDS if text.startswith(words)), "note")


def job_story(schedd: str, ad: ClassAd, lines: tuple[tuple[float, str], ...], has_left: bool) -> dict[str, Any]:
    """What the page shows of a job."""
    status = ad.get_int("JobStatus")
    lines = tuple((at_s, text) for at_s, text in lines if 0 < at_s <= LAST_S)
    events = [{"at": at_s, "kind": kind_of(text), "text": text[:LONGEST * 2]} for at_s, text in lines]
    return {
        "schedd": schedd, "id": f"{number(ad, 'ClusterId')}.{number(ad, 'ProcId')}",
        "owner": ad.get_str("Owner")[:LONGEST],
        "status": STATES.get(status, "other"), "left": has_left,
        "events": events, "runs": _runs(lines, ad), "attributes": _attributes(ad),
        "dag": dag_picture(ad),
    }


def _runs(lines: tuple[tuple[float, str], ...], ad: ClassAd) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    for at_s, text in lines:
        begins, ends = _BEGINS.match(text), _ENDS.match(text)
        if begins and not (runs and runs[-1]["number"] == int(begins[1])):
            runs.append({"number": int(begins[1]), "host": (begins[2] or "")[:LONGEST], "began": at_s, "ended": 0.0,
                         "how": ""})
        elif ends and runs and runs[-1]["number"] == int(ends[1]):
            runs[-1]["ended"], runs[-1]["how"] = at_s, ends[2][:LONGEST]
    ended_s = date(ad, "CompletionDate") or date(ad, "EnteredCurrentStatus")
    if runs and not runs[-1]["ended"] and STATES.get(ad.get_int("JobStatus")) not in (
            "running", "transferring", "suspended"):
        runs[-1]["ended"] = max(ended_s, runs[-1]["began"])
    return runs


def _attributes(ad: ClassAd) -> list[list[str]]:
    found = []
    for name in SHOWN:
        value = ad.evaluate(name)
        if name in DATES:
            value = date(ad, name) or ""
        if isinstance(value, bool | int | float | str) and value != "":
            text = f"{value:.6g}" if isinstance(value, float) else str(value)
            found.append([name, text[:LONGEST]])
    return found
