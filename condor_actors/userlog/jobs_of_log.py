"""The jobs of an event log, as far as it tells: ads made from its events, for ``condor_q -userlog``.

Each event is read into a few facts, and a function of its number changes the ad of its job:

=======  =================================================  ==========================================
event    what it says                                       JobStatus
=======  =================================================  ==========================================
000      the job's first appearance                         1
001      host; one start more                               2
004 007  why it left                                        1
024      why it could not be taken up again                 1
005      how it ended, what it used                         4
006      memory                                             unchanged
009      why it was removed                                 3
010 011  suspended, continued                               7, 2
012 013  held (reason, codes), released                     5, 1
=======  =================================================  ==========================================

A log does not know everything: the program is ``???``, the owner is the owner of the file.  **Source**: the manual,
condor_q, ``-userlog``.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from condor_actors import accounts
from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.classads.forms.xml_form import read_xml
from condor_actors.messages.codes import HoldCode, JobEventType, JobStatus
from condor_actors.userlog import reader

Facts = dict[str, Any]

MOST_DIGITS = 18
_HEAD = re.compile(r"\d{3} \([-\d.]+\) (?:(\d{4})-(\d\d)-(\d\d)|(\d\d)/(\d\d)) (\d\d):(\d\d):(\d\d)\S* ?(.*)")
_USAGE = re.compile(r"Usr (\d+) (\d\d):(\d\d):(\d\d), Sys (\d+) (\d\d):(\d\d):(\d\d)(?:  -  (\w+ \w+) Usage)?")
_NUMBERS = {
    "ReturnValue": re.compile(r"\(return value (-?\d+)\)"), "TerminatedBySignal": re.compile(r"\(signal (\d+)\)"),
    "Size": re.compile(r"Image size of job updated: (\d+)"),
    "MemoryUsage": re.compile(r"(?<!\d)(\d+)  -  MemoryUsage of job"),
    "ResidentSetSize": re.compile(r"(?<!\d)(\d+)  -  ResidentSetSize of job"),
    "HoldReasonCode": re.compile(r"^\tCode (\d+) ", re.MULTILINE),
    "HoldReasonSubCode": re.compile(r"^\tCode \d+ Subcode (-?\d+)", re.MULTILINE),
}  # fmt: skip
_REASON_LINE: dict[int, str] = {
    JobEventType.JOB_EVICTED: "Reason: ", JobEventType.SHADOW_EXCEPTION: "", JobEventType.JOB_ABORTED: "",
    JobEventType.JOB_HELD: "", JobEventType.JOB_RELEASED: "", JobEventType.JOB_RECONNECT_FAILED: "",
}
"""Events whose first indented line (with this beginning) is the reason."""


class UnreadableLog(Exception):
    """A user log that cannot be opened, or that holds no events; the text is for people."""


def jobs_of_log(path: str) -> list[ClassAd]:
    """The jobs of a log in the order in which they were submitted, each as its last event left it.

    Raises:
        UnreadableLog: the log cannot be read.
    """
    events = reader.EventReader()
    jobs: dict[tuple[int, int, int], ClassAd] = {}
    seen = False
    try:
        with open(path, "rb") as file:
            owner = _name(os.fstat(file.fileno()).st_uid)
            while data := file.read(1 << 20):
                for event in events.feed(data):
                    seen = True
                    job = (event.cluster, event.proc, event.subproc)
                    facts = _xml_facts(event) if events.is_xml else _text_facts(event)
                    if event.number == JobEventType.SUBMIT:
                        jobs[job] = _submitted(event, facts, path, owner)
                    elif job in jobs and event.number in _CHANGES:
                        _CHANGES[event.number](jobs[job], facts)
    except OSError as error:
        raise UnreadableLog(f"\nCan't open user log: {path}: {error.strerror}") from None
    except ValueError as error:
        raise UnreadableLog(f"\nCan't read user log: {path}: {error}") from None
    if not jobs and not seen and events.has_rest:
        raise UnreadableLog(f"\nCan't read user log: {path}: there is no event in it")
    return list(jobs.values())


def _name(uid: int) -> str:
    found = accounts.numbered(uid)
    return found.name if found is not None else str(uid)


# ---- events into facts


def _text_facts(event: reader.Event) -> Facts:
    head = _HEAD.match(event.text)
    facts: Facts = {"When": 0, "Head": ""}
    if head is not None:
        year, month, day, old_month, old_day, *clock, facts["Head"] = head.groups()
        date = [int(part) for part in (year, month, day)] if year else [
            time.localtime().tm_year, int(old_month), int(old_day)]
        facts["When"] = _seconds(*date, *map(int, clock))
    for name, pattern in _NUMBERS.items():
        found = pattern.search(event.text)
        if found is not None:
            facts[name] = _number(found.group(1))
    for usage in _USAGE.finditer(event.text):
        facts[f"{(usage.group(9) or '').replace(' ', '')}Usage"] = _span(usage)
    beginning = _REASON_LINE.get(event.number)
    if beginning is not None:
        reason = re.search(rf"^[\t ]+{beginning}(.*)$", event.text, re.MULTILINE)
        facts["Reason"] = reason.group(1) if reason is not None else ""
    if "host: " in facts["Head"]:
        facts["Host"] = facts["Head"].partition("host: ")[2].strip()
    return facts


def _xml_facts(event: reader.Event) -> Facts:
    try:
        ad = read_xml(event.text)
    except ClassAdSyntaxError as error:
        raise UnreadableLog(f"Error: event {event.number} of job {event.cluster}.{event.proc}: {error}") from None
    facts: Facts = {name: ad.evaluate(name) for name in ad}
    moment = re.match(r"(\d{4})-(\d\d?)-(\d\d?)T(\d\d?):(\d\d?):(\d\d?)", ad.get_str("EventTime"))
    facts["When"] = _seconds(*map(int, moment.groups())) if moment is not None else 0
    for name in [name for name in facts if name.endswith("Usage") and isinstance(facts[name], str)]:
        usage = _USAGE.match(facts[name])
        facts[name] = _span(usage) if usage is not None else (0.0, 0.0)
    facts["Host"] = facts.get("SubmitHost") or facts.get("ExecuteHost") or ""
    facts["Reason"] = facts.get("Reason") or facts.get("HoldReason") or facts.get("Message") or ""
    return facts


def _seconds(year: int, month: int, day: int, hour: int, minute: int, second: int) -> int:
    try:
        return int(datetime(year, month, day, hour, minute, second).timestamp())  # noqa: DTZ001 - logs show local time
    except (ValueError, OverflowError):
        return 0


def _number(digits: str) -> int:
    """What digits say; a log is its owner's to write, and nothing that it counts has more than 18."""
    return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def _span(usage: re.Match[str]) -> tuple[float, float]:
    """User and system time in seconds."""
    numbers = [_number(part) for part in usage.groups()[:8]]
    user, system = numbers[:4], numbers[4:]
    return tuple(float(86400 * d + 3600 * h + 60 * m + s) for d, h, m, s in (user, system))  # type: ignore[return-value]


# ---- facts into ads


def _submitted(event: reader.Event, facts: Facts, path: str, owner: str) -> ClassAd:
    when = facts["When"]
    return ClassAd({
        "MyType": "Job", "TargetType": "Machine", "ClusterId": event.cluster, "ProcId": event.proc,
        "UserLog": path, "QDate": when, "EnteredCurrentStatus": when, "SubmitHost": facts.get("Host", ""),
        "GlobalJobId": f"localhost#{event.cluster}.{event.proc}#{when}", "ServerTime": int(time.time()),
        "Owner": owner, "Cmd": "???", "JobStatus": int(JobStatus.IDLE), "LastJobStatus": 0, "JobPrio": 0,
        "ImageSize": 0, "CompletionDate": 0, "LastSuspensionTime": 0, "NumJobStarts": 0, "NumSystemHolds": 0,
        "TotalSuspensions": 0, "LocalUserCpu": 0.0, "LocalSysCpu": 0.0, "RemoteUserCpu": 0.0, "RemoteSysCpu": 0.0,
        "RemoteWallClockTime": 0.0,
    })  # fmt: skip


_ON_A_MACHINE = frozenset({JobStatus.RUNNING, JobStatus.SUSPENDED})


def _becomes(ad: ClassAd, status: JobStatus, facts: Facts) -> None:
    if ad.get_int("JobStatus") in _ON_A_MACHINE and status not in _ON_A_MACHINE:
        ad["RemoteWallClockTime"] = ad.get_float("RemoteWallClockTime") + max(
            0, facts["When"] - ad.get_int("JobCurrentStartDate"))
        if "RemoteHost" in ad:
            ad["LastRemoteHost"] = ad.get_str("RemoteHost")
            del ad["RemoteHost"]
    ad["LastJobStatus"], ad["JobStatus"] = ad.get_int("JobStatus"), int(status)
    ad["EnteredCurrentStatus"] = facts["When"]


def _executes(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.RUNNING, facts)
    ad["JobCurrentStartDate"] = facts["When"]
    ad["NumJobStarts"] = ad.get_int("NumJobStarts") + 1
    ad["StartdIpAddr"] = ad["RemoteHost"] = facts.get("Host", "")


def _leaves(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.IDLE, facts)
    ad["LastVacateTime"] = facts["When"]
    if facts.get("Reason"):
        ad["LastVacateReason"] = facts["Reason"]


def _terminates(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.COMPLETED, facts)
    ad["CompletionDate"] = facts["When"]
    ad["ExitBySignal"] = "TerminatedBySignal" in facts
    if "TerminatedBySignal" in facts:
        ad["ExitSignal"] = facts["TerminatedBySignal"]
    else:
        ad["ExitCode"] = facts.get("ReturnValue", 0)
    for where in ("Remote", "Local"):
        ad[f"{where}UserCpu"], ad[f"{where}SysCpu"] = facts.get(f"Total{where}Usage", (0.0, 0.0))


def _grows(ad: ClassAd, facts: Facts) -> None:
    for name, attribute in (("Size", "ImageSize"), ("MemoryUsage", "MemoryUsage"),
                            ("ResidentSetSize", "ResidentSetSize")):  # fmt: skip
        if name in facts:
            ad[attribute] = facts[name]


def _removed(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.REMOVED, facts)
    if facts.get("Reason"):
        ad["RemoveReason"] = facts["Reason"]


def _suspends(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.SUSPENDED, facts)
    ad["LastSuspensionTime"] = facts["When"]
    ad["TotalSuspensions"] = ad.get_int("TotalSuspensions") + 1


def _held(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.HELD, facts)
    ad["HoldReason"] = facts.get("Reason", "")
    ad["HoldReasonCode"] = facts.get("HoldReasonCode", 0)
    ad["HoldReasonSubCode"] = facts.get("HoldReasonSubCode", 0)
    ad["NumSystemHolds"] = ad.get_int("NumSystemHolds") + (ad.get_int("HoldReasonCode") != HoldCode.USER_REQUEST)


def _released(ad: ClassAd, facts: Facts) -> None:
    _becomes(ad, JobStatus.IDLE, facts)
    for name in ("HoldReason", "HoldReasonCode", "HoldReasonSubCode"):
        if name in ad:
            ad[f"Last{name}"] = ad.evaluate(name)
            del ad[name]
    if facts.get("Reason"):
        ad["ReleaseReason"] = facts["Reason"]


_CHANGES: dict[int, Callable[[ClassAd, Facts], None]] = {
    JobEventType.EXECUTE: _executes,
    JobEventType.JOB_EVICTED: _leaves,
    JobEventType.JOB_TERMINATED: _terminates,
    JobEventType.IMAGE_SIZE: _grows,
    JobEventType.SHADOW_EXCEPTION: _leaves,
    JobEventType.JOB_ABORTED: _removed,
    JobEventType.JOB_SUSPENDED: _suspends,
    JobEventType.JOB_UNSUSPENDED: lambda ad, facts: _becomes(ad, JobStatus.RUNNING, facts),
    JobEventType.JOB_HELD: _held,
    JobEventType.JOB_RELEASED: _released,
    JobEventType.JOB_RECONNECT_FAILED: _leaves,
}

__all__ = ["UnreadableLog", "jobs_of_log"]
