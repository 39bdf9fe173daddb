"""What a job's own ad tells of its life: the part of its story that outlives the schedd that saw it.

Theory: what a schedd remembers of a job (:meth:`~condor_actors.cores.schedd.schedd_context.ScheddContext.story`) is
gone with the process; the dates and reasons in the ad are stored.  So a story is both: the ad's dates up to the first
thing that is remembered, then what is remembered.
"""

from __future__ import annotations

import math

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobStatus

__all__ = ["story_of_ad", "told", "whole_story"]

TOLD_LINES = 500
TOLD_LETTERS = 500
"""What a message has of a story: its last lines, each so long at most."""


def story_of_ad(ad: ClassAd) -> list[tuple[float, str]]:
    """(when, what), oldest first; the ad is a job's, of the queue or of the history."""
    found: list[tuple[float, str]] = []

    def add(date: str, text: str) -> None:
        when_s = ad.get_float(date)
        if when_s > 0:
            found.append((when_s, text))

    starts = ad.get_int("NumShadowStarts") or ad.get_int("NumJobStarts")
    host = ad.get_str("RemoteHost") or ad.get_str("LastRemoteHost")
    add("QDate", f"submitted by {ad.get_str('Owner')}")
    add("StageInFinish", "its input is in the spool")
    add("JobStartDate", "began for the first time")
    add("LastMatchTime", "matched")
    add("JobCurrentStartDate", f"run {starts} began{f' on {host}' if host else ''}")
    add("JobCurrentStartExecutingDate", f"its program began (start {ad.get_int('NumJobStarts')})")
    add("LastRejMatchTime", f"not matched: {ad.get_str('LastRejMatchReason')}")
    add("CompletionDate", f"completed, {_exit(ad)}")
    add("EnteredCurrentStatus", _status(ad))
    return sorted(found, key=lambda line: line[0])


def _exit(ad: ClassAd) -> str:
    if ad.get_bool("ExitBySignal"):
        return f"ended by signal {ad.get_int('ExitSignal')}"
    return f"exit code {ad.get_int('ExitCode', -1)}"


def _status(ad: ClassAd) -> str:
    status = ad.get_int("JobStatus")
    name = JobStatus(status).name.lower().replace("_", " ") if status in set(JobStatus) else str(status)
    reasons = {
        JobStatus.HELD: ad.get_str("HoldReason"), JobStatus.REMOVED: ad.get_str("RemoveReason"),
        JobStatus.IDLE: ad.get_str("ReleaseReason"),
    }
    reason = reasons.get(JobStatus(status), "") if status in set(JobStatus) else ""
    return f"since then {name}{f': {reason}' if reason else ''}"


def whole_story(ad: ClassAd | None, remembered: tuple[str, ...]) -> tuple[str, ...]:
    """The ad's part up to the first line that is remembered, and always how it began, then those.

    Args:
        ad: the job's; None when nobody knows it any more.
        remembered: lines that begin with their time in seconds since 1970.
    """
    first_s = float(remembered[0].partition(".")[0]) if remembered else math.inf
    before = story_of_ad(ad) if ad is not None else []
    return (*(f"{when_s:.3f} {text}" for when_s, text in before
              if when_s < first_s or text.startswith("submitted")), *remembered)


def told(ad: ClassAd, remembered: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """A story as it crosses in a message: (seconds since 1970, what), oldest first."""
    lines = [line.partition(" ") for line in whole_story(ad, remembered)[-TOLD_LINES:]]
    return tuple((float(when), text[:TOLD_LETTERS]) for when, _, text in lines)
