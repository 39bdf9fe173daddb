"""What an event of a job event log says, as an ad with the names that ClassAds use for it.

The reverse of :mod:`.event_text`, and of what HTCondor itself writes: each number has a function that reads its lines.
What all events have in common (MyType, EventTypeNumber, EventTime, Cluster, Proc, Subproc) comes first; an event
whose number has no function has only that.

**Source**: the manual's page of job event log codes; checked against HTCondor's own reader.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError, parse_expression
from condor_actors.classads.forms.xml_form import read_xml
from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.event_text import EVENT_NAMES, TRANSFER_WORDS
from condor_actors.userlog.reader import Event

__all__ = ["facts_of"]

MOST_DIGITS = 18
_HEAD = re.compile(
    r"\d{3} \([-\d.]+\) (?:(\d{4})-(\d\d)-(\d\d)|(\d\d)/(\d\d))[ T](\d\d):(\d\d):(\d\d)(?:\.\d+)?\S* ?(.*)")
_USAGE = re.compile(r"(Usr \d+ \d\d:\d\d:\d\d, Sys \d+ \d\d:\d\d:\d\d)  -  (Run|Total) (Remote|Local) Usage")
_BYTES = re.compile(r"(?<!\d)(\d+)  -  (Run|Total) Bytes (Sent|Received) By Job")
_RESOURCE = re.compile(r"^\t   (\w+)(?: \(\w+\))? *:(.*)$", re.MULTILINE)
_ASSIGNED = re.compile(r'"([^"]*)"')

Facts = dict[str, Any]
Rows = list[str]


def facts_of(event: Event, *, is_xml: bool) -> ClassAd:
    """All that an event says.

    Args:
        event: as the reader cut it out.
        is_xml: whether its log is XML.
    """
    common: Facts = {"Cluster": event.cluster, "Proc": event.proc, "Subproc": event.subproc,
                     "EventTypeNumber": event.number}
    if event.number in EVENT_NAMES:
        common["MyType"] = EVENT_NAMES[event.number]
    if is_xml:
        try:
            found = read_xml(event.text)
        except ClassAdSyntaxError:
            return ClassAd(common)
        moment = found.get_str("EventTime")
        return ClassAd({**common, **dict(found.items()), **({"EventTime": moment[:19]} if moment else {})})
    rows = event.text.split("\n")
    head = _HEAD.match(rows[0])
    words = ""
    if head is not None:
        year, month, day, old_month, old_day, *clock, words = head.groups()
        date = f"{year}-{month}-{day}" if year else f"{time.localtime().tm_year}-{old_month}-{old_day}"
        common["EventTime"] = f"{date}T{':'.join(clock)}"
    reads = _READERS.get(event.number)
    if reads is not None:
        common.update(reads(words, [row for row in rows[1:] if row.strip() not in ("", "...")], event.text))
    return ClassAd(common)


def _number(digits: str) -> int:
    return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def _first(rows: Rows) -> str:
    return rows[0].strip() if rows else ""


def _submitted(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"SubmitHost": words.partition("host: ")[2].strip()}
    notes = [row.strip() for row in rows]
    if notes and notes[0].startswith("DAG Node: "):
        facts["StructuredNotes"] = ClassAd({"DAGNodeName": notes[0].removeprefix("DAG Node: ")})
    elif notes and notes[0].startswith("["):
        with contextlib.suppress(ClassAdSyntaxError, ValueError):
            facts["StructuredNotes"] = parse_expression(notes[0])
    for name, note in zip(("LogNotes", "UserNotes"), notes, strict=False):
        facts[name] = note
    return facts


def _executes(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"ExecuteHost": words.partition("host: ")[2].strip()}
    properties = ClassAd()
    for row in rows:
        name, colon, value = row.strip().partition(": ")
        if name == "SlotName" and colon:
            facts["SlotName"] = value.strip()
            continue
        name, equals, value = row.strip().partition(" = ")
        if equals:
            try:
                properties[name] = parse_expression(value)
            except (ClassAdSyntaxError, ValueError, TypeError):
                continue
    if len(properties):
        facts["ExecuteProps"] = properties
    return facts


def _checkpointed(words: str, rows: Rows, text: str) -> Facts:
    found = re.search(r"(?<!\d)(\d+)  -  Run Bytes Sent By Job For Checkpoint", text)
    return {**_usages(text), **({"SentBytes": float(_number(found.group(1)))} if found else {})}


def _usages(text: str) -> Facts:
    return {f"{what}{where}Usage": usage for usage, what, where in _USAGE.findall(text)}


def _traffic(text: str) -> Facts:
    names = {("Run", "Sent"): "SentBytes", ("Run", "Received"): "ReceivedBytes",
             ("Total", "Sent"): "TotalSentBytes", ("Total", "Received"): "TotalReceivedBytes"}
    return {names[what, way]: float(_number(count)) for count, what, way in _BYTES.findall(text)}


def _end(text: str) -> Facts:
    """How the program ended."""
    signal = re.search(r"\(signal (\d+)\)", text)
    if signal is not None:
        core = re.search(r"Corefile in: (.*)", text)
        return {"TerminatedNormally": False, "TerminatedBySignal": _number(signal.group(1)),
                **({"CoreFile": core.group(1).strip()} if core else {})}
    value = re.search(r"\(return value (-?\d+)\)", text)
    return {"TerminatedNormally": True, "ReturnValue": _number(value.group(1))} if value else {}


def _resources(text: str) -> Facts:
    """The table of what was used, asked for and given: right-aligned columns under their headings."""
    heading = re.search(r"^\tPartitionable Resources :(.*)$", text, re.MULTILINE)
    if heading is None:
        return {}
    ends = [word.end() for word in re.finditer(r"\S+", heading.group(1))][:3]
    facts: Facts = {}
    for row in _RESOURCE.finditer(text, heading.end()):
        name, values = row.group(1), row.group(2)
        begin = 0
        for pattern, stop in zip(("{}Usage", "Request{}", "{}"), ends, strict=False):
            cell = values[begin:stop].strip()
            begin = stop
            if re.fullmatch(r"-?\d{1,18}", cell):
                facts[pattern.format(name)] = int(cell)
            elif re.fullmatch(r"-?\d*\.\d+", cell):
                facts[pattern.format(name)] = float(cell)
        assigned = _ASSIGNED.search(values[begin:])
        if assigned is not None:
            facts[f"Assigned{name}"] = assigned.group(1)
    return facts


def _evicted(words: str, rows: Rows, text: str) -> Facts:
    requeued = "terminated and was requeued" in text
    facts: Facts = {"TerminatedAndRequeued": requeued, "Checkpointed": "(1) Job was checkpointed" in text,
                    "TerminatedNormally": False, **_usages(text), **_traffic(text), **_resources(text)}
    if requeued:
        facts.update(_end(text))
    reason = re.search(r"^\tReason: (.*)$", text, re.MULTILINE) or (
        re.search(r"^\t([^\s(\d].*)$", text, re.MULTILINE) if requeued else None)
    if reason is not None:
        facts["Reason"] = reason.group(1).strip()
    code = re.search(r"^\tCode (\d+) Subcode (-?\d+)", text, re.MULTILINE)
    if code is not None:
        facts["ReasonCode"], facts["ReasonSubCode"] = _number(code.group(1)), _number(code.group(2))
    return facts


def _terminated(words: str, rows: Rows, text: str) -> Facts:
    return {**_end(text), **_usages(text), **_traffic(text), **_resources(text)}


def _grows(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {}
    size = re.search(r"updated: (\d+)", words)
    if size is not None:
        facts["Size"] = _number(size.group(1))
    for count, name in re.findall(r"(?<!\d)(\d+)  -  (\w+) of job", text):
        facts[name] = _number(count)
    return facts


def _excepted(words: str, rows: Rows, text: str) -> Facts:
    return {"Message": _first(rows), **_traffic(text)}


def _reasoned(words: str, rows: Rows, text: str) -> Facts:
    return {"Reason": _first(rows)} if rows else {}


def _suspended(words: str, rows: Rows, text: str) -> Facts:
    found = re.search(r"actually suspended: (\d+)", text)
    return {"NumberOfPIDs": _number(found.group(1)) if found else 0}


def _held(words: str, rows: Rows, text: str) -> Facts:
    code = re.search(r"^\tCode (\d+)(?: Subcode (-?\d+))?", text, re.MULTILINE)
    reason = _first(rows) if rows and not rows[0].startswith("\tCode ") else ""
    facts: Facts = {"HoldReason": reason} if reason != "Reason unspecified" else {}
    facts["HoldReasonCode"] = _number(code.group(1)) if code else 0
    facts["HoldReasonSubCode"] = _number(code.group(2) or "0") if code else 0
    return facts


def _remote_error(words: str, rows: Rows, text: str) -> Facts:
    found = re.match(r"(Error|Warning) from (.*?):?\Z", words.rstrip())
    daemon = found.group(2) if found else ""
    who, on, host = daemon.partition(" on ")
    facts: Facts = {"ExecuteHost": host or daemon, "ErrorMsg": "\n".join(row.strip() for row in rows)}
    if on:
        facts["Daemon"] = who
    if found is not None and found.group(1) == "Warning":
        facts["CriticalError"] = False
    return facts


def _disconnected(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"EventDescription": "Job disconnected, attempting to reconnect", "DisconnectReason": _first(rows)}
    found = re.search(r"Trying to reconnect to (\S+) (\S+)", text)
    if found is not None:
        facts["StartdName"], facts["StartdAddr"] = found.groups()
    return facts


def _reconnected(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"EventDescription": "Job reconnected", "StartdName": words.rpartition(" to ")[2].strip()}
    for name, key in (("startd", "StartdAddr"), ("starter", "StarterAddr")):
        found = re.search(rf"{name} address: (.*)", text)
        if found is not None:
            facts[key] = found.group(1).strip()
    return facts


def _not_reconnected(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"EventDescription": "Job reconnect impossible: rescheduling job", "Reason": _first(rows)}
    found = re.search(r"Can not reconnect to (\S+), rescheduling job", text)
    if found is not None:
        facts["StartdName"] = found.group(1)
    return facts


def _transferred(words: str, rows: Rows, text: str) -> Facts:
    facts: Facts = {"Type": TRANSFER_WORDS.index(words.strip()) if words.strip() in TRANSFER_WORDS else 0}
    found = re.search(r"Transferring to host: (.*)", text)
    if found is not None:
        facts["Host"] = found.group(1).strip()
    return facts


def _grid(words: str, rows: Rows, text: str) -> Facts:
    found = (row.strip().partition(": ") for row in rows)
    return {name: value.strip() for name, colon, value in found if colon and name in ("GridResource", "GridJobId")}


def _cluster_removed(words: str, rows: Rows, text: str) -> Facts:
    found = re.search(r"Materialized (\d+) jobs from (\d+) items\.\s*(Error|Complete|Paused|Incomplete)?", text)
    if found is None:
        return {}
    ends = {"Error": -1, "Complete": 1, "Paused": 2}
    return {"NextProcId": _number(found.group(1)), "NextRow": _number(found.group(2)),
            "Completion": ends.get(found.group(3) or "", 0)}


def _factory_paused(words: str, rows: Rows, text: str) -> Facts:
    codes = dict(re.findall(r"^\t(PauseCode|HoldCode) (-?\d{1,9})$", text, re.MULTILINE))
    return {"Reason": _first(rows), "PauseCode": int(codes.get("PauseCode", 0)),
            "HoldCode": int(codes.get("HoldCode", 0))}


def _informed(words: str, rows: Rows, text: str) -> Facts:
    try:
        found = ClassAd.from_text("\n".join(row.strip() for row in rows))
    except ClassAdSyntaxError:
        return {}
    return {name: value for name, value in ((name, found.evaluate(name)) for name in found)
            if isinstance(value, (bool, int, float, str)) and name not in _OF_THE_EVENT}


_OF_THE_EVENT = frozenset({"Cluster", "Proc", "Subproc", "EventTypeNumber", "EventTime", "MyType"})

_READERS: dict[int, Callable[[str, Rows, str], Facts]] = {
    JobEventType.SUBMIT: _submitted,
    JobEventType.EXECUTE: _executes,
    JobEventType.CHECKPOINTED: _checkpointed,
    JobEventType.JOB_EVICTED: _evicted,
    JobEventType.JOB_TERMINATED: _terminated,
    JobEventType.IMAGE_SIZE: _grows,
    JobEventType.SHADOW_EXCEPTION: _excepted,
    JobEventType.GENERIC: lambda words, rows, text: {"Info": words.strip()},
    JobEventType.JOB_ABORTED: _reasoned,
    JobEventType.JOB_SUSPENDED: _suspended,
    JobEventType.JOB_HELD: _held,
    JobEventType.JOB_RELEASED: _reasoned,
    JobEventType.REMOTE_ERROR: _remote_error,
    JobEventType.JOB_DISCONNECTED: _disconnected,
    JobEventType.JOB_RECONNECTED: _reconnected,
    JobEventType.JOB_RECONNECT_FAILED: _not_reconnected,
    JobEventType.GRID_RESOURCE_UP: _grid,
    JobEventType.GRID_RESOURCE_DOWN: _grid,
    JobEventType.GRID_SUBMIT: _grid,
    JobEventType.JOB_AD_INFORMATION: _informed,
    JobEventType.CLUSTER_SUBMIT: _submitted,
    JobEventType.CLUSTER_REMOVE: _cluster_removed,
    JobEventType.FACTORY_PAUSED: _factory_paused,
    JobEventType.FACTORY_RESUMED: lambda words, rows, text: {"Reason": _first(rows)},
    JobEventType.FILE_TRANSFER: _transferred,
}
