"""The text of a user log: one block per event, exactly as HTCondor's own readers expect it; or as XML.

Theory: an event is a number, a job, a date, and an ad with the facts; the number picks the function below that writes
its lines.  Readers go by the first line's words and by the line ``...`` that ends each block, and many jobs may share a
log: so no fact, of the job or its machine, ends its line before the writer does, whatever Unicode or XML take for the
end of one.

**Source**: the manual's page of job event log codes and its log examples; checked against HTCondor's own reader.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.sax.saxutils import escape

from condor_actors.classads import ClassAd, unparse
from condor_actors.cores.job_information import information_of
from condor_actors.messages.codes import FileTransferEventType, JobEventType
from condor_actors.numerals import moment, whole

__all__ = ["EVENT_NAMES", "event_header", "event_text", "event_xml", "information_text", "information_xml"]

EVENT_NAMES: dict[int, str] = {
    JobEventType.SUBMIT: "SubmitEvent",
    JobEventType.EXECUTE: "ExecuteEvent",
    JobEventType.CHECKPOINTED: "CheckpointedEvent",
    JobEventType.JOB_EVICTED: "JobEvictedEvent",
    JobEventType.JOB_TERMINATED: "JobTerminatedEvent",
    JobEventType.IMAGE_SIZE: "JobImageSizeEvent",
    JobEventType.SHADOW_EXCEPTION: "ShadowExceptionEvent",
    JobEventType.GENERIC: "GenericEvent",
    JobEventType.JOB_ABORTED: "JobAbortedEvent",
    JobEventType.JOB_SUSPENDED: "JobSuspendedEvent",
    JobEventType.JOB_UNSUSPENDED: "JobUnsuspendedEvent",
    JobEventType.JOB_HELD: "JobHeldEvent",
    JobEventType.JOB_RELEASED: "JobReleaseEvent",
    JobEventType.NODE_EXECUTE: "NodeExecuteEvent",
    JobEventType.NODE_TERMINATED: "NodeTerminatedEvent",
    JobEventType.REMOTE_ERROR: "RemoteErrorEvent",
    JobEventType.JOB_DISCONNECTED: "JobDisconnectedEvent",
    JobEventType.JOB_RECONNECTED: "JobReconnectedEvent",
    JobEventType.JOB_RECONNECT_FAILED: "JobReconnectFailedEvent",
    JobEventType.GRID_RESOURCE_UP: "GridResourceUpEvent",
    JobEventType.GRID_RESOURCE_DOWN: "GridResourceDownEvent",
    JobEventType.GRID_SUBMIT: "GridSubmitEvent",
    JobEventType.JOB_AD_INFORMATION: "JobAdInformationEvent",
    JobEventType.CLUSTER_SUBMIT: "ClusterSubmitEvent",
    JobEventType.CLUSTER_REMOVE: "ClusterRemoveEvent",
    JobEventType.FACTORY_PAUSED: "FactoryPausedEvent",
    JobEventType.FACTORY_RESUMED: "FactoryResumedEvent",
    JobEventType.FILE_TRANSFER: "FileTransferEvent",
    JobEventType.DATAFLOW_JOB_SKIPPED: "DataflowJobSkippedEvent",
}

TRANSFER_WORDS = (
    "", "Entered queue to transfer input files", "Started transferring input files",
    "Finished transferring input files", "Entered queue to transfer output files", "Started transferring output files",
    "Finished transferring output files",
)
"""By the fact ``TransferStep``, a ``FileTransferEventType``."""

_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""What ends a line for some readers, or means something to terminals; not the tab, which begins lines."""
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

Lines = list[str]


def event_header(event: int, cluster: int, proc: int) -> str:
    """How the first line of an event begins: ``005 (012.000.000) ``."""
    return f"{event:03d} ({cluster:03d}.{proc:03d}.000) "


def event_text(event: int, cluster: int, proc: int, when_s: float, facts: ClassAd, *, utc: bool = False,
               sub_second: bool = False) -> str:
    """The whole block of an event.

    Args:
        event: its number.
        cluster, proc: the job.
        when_s: its date, seconds since 1970; shown in local time.
        facts: the attributes that its lines are made of.
        utc: the date is in UTC, with a ``Z``; sub_second: with milliseconds.

    Raises:
        KeyError: an event that this system does not write.
    """
    when = moment(when_s, utc=utc).replace(tzinfo=None).isoformat(
        " ", "milliseconds" if sub_second else "seconds") + ("Z" if utc else "")
    lines = _BODIES[event](facts)
    if _CONTROL.search("".join(lines)) is not None:
        lines = [_line(each) for each in lines]
    return f"{event_header(event, cluster, proc)}{when} " + "\n".join(lines) + "\n...\n"


def _information(event: int, facts: ClassAd) -> dict[str, bool | int | float | str]:
    found = information_of(facts)
    name = f"ULOG_{JobEventType(event).name}"
    return {**found, "TriggerEventTypeNumber": event, "TriggerEventTypeName": name} if found else {}


def information_text(event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> str:
    """The block behind an event of a job with ``job_ad_information_attrs``; empty for another job."""
    found = _information(event, facts)
    if not found:
        return ""
    when = moment(when_s).replace(tzinfo=None).isoformat(" ", "seconds")
    lines = ["Job ad information event triggered.",
             *(_line(f"{name} = {unparse(value)}") for name, value in found.items())]
    return f"{event_header(JobEventType.JOB_AD_INFORMATION, cluster, proc)}{when} " + "\n".join(lines) + "\n...\n"


# ---- bodies


def _line(text: str) -> str:
    """A fact that must stay on its line, and is shown by terminals as it is."""
    return text if _CONTROL.search(text) is None else _CONTROL.sub(" ", " ".join(text.splitlines()))


def _submit(facts: ClassAd, what: str = "Job") -> Lines:
    lines = [f"{what} submitted from host: {facts.get_str('SubmitHost', '<unknown>')}"]
    node, structured = facts.get_str("DAGNodeName"), facts.evaluate("StructuredNotes")
    if isinstance(structured, ClassAd):  # the old forms of notes have no place beside it
        lines.append(f"    {_line(unparse(structured))}")
    elif node:
        lines.append(f"    DAG Node: {node}")
    for name in ("SubmitEventUserNotes",) if isinstance(structured, ClassAd) else (
            "SubmitEventNotes", "SubmitEventUserNotes"):
        notes = facts.get_str(name)
        if notes:
            lines.append(f"    {_line(notes)[:8191]}")
    return lines


def _execute(facts: ClassAd) -> Lines:
    lines = [f"Job executing on host: {facts.get_str('ExecuteHost', '<unknown>')}"]
    slot = facts.get_str("SlotName")
    if slot:
        lines.append(f"\tSlotName: {slot}")
    scratch = facts.get_str("CondorScratchDir")
    if scratch:
        lines.append(f'\tCondorScratchDir = "{scratch}"')
    for name, attribute in (("Cpus", "CpusProvisioned"), ("Disk", "DiskProvisioned"), ("GPUs", "GPUsProvisioned"),
                            ("Memory", "MemoryProvisioned")):
        if facts.find(attribute.lower()) is not None:
            lines.append(f"\t{name} = {facts.get_int(attribute)}")
    lines += [f"\t{_line(each)[:8191]}" for each in facts.get_str("ExecuteProps").split("\n") if each]
    return lines


def _skipped(facts: ClassAd) -> Lines:
    return ["Dataflow job was skipped.", "\tIts output files are newer than its input files."]


def _usage(user_s: float, system_s: float, what: str) -> str:
    def clock(seconds: float) -> str:
        days, rest = divmod(whole(seconds), 86400)
        return f"{days} {rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"

    return f"Usr {clock(user_s)}, Sys {clock(system_s)}  -  {what}"


def _resources(facts: ClassAd) -> Lines:
    """The table of what was used, asked for, and given."""
    rows: list[tuple[str, str, str, str, str]] = []
    for label, name in (("Cpus", "Cpus"), ("Disk (KB)", "Disk"), ("GPUs", "GPUs"), ("Memory (MB)", "Memory")):
        given = facts.find(f"{name}provisioned".lower())
        asked = facts.find(f"request{name}".lower())
        if given is None and (asked is None or name == "GPUs"):
            continue
        used = facts.get_float(f"{name}Usage", -1.0)
        shown = "" if used < 0 else f"{used:.2f}" if name == "Cpus" else f"{whole(used)}"
        wanted = facts.evaluate(f"Request{name}")
        rows.append((label, shown, str(whole(wanted)) if isinstance(wanted, (int, float)) else "",
                     str(facts.get_int(f"{name}Provisioned")) if given is not None else "",
                     facts.get_str(f"Assigned{name}")))
    if not rows:
        return []
    use = max(8, *(len(row[1]) for row in rows))
    ask = max(8, *(len(row[2]) for row in rows))
    give = max(9, *(len(row[3]) for row in rows))
    assigned = "Assigned" if any(row[4] for row in rows) else ""
    lines = [f"\tPartitionable Resources : {'Usage':>{use}} {'Request':>{ask}} {'Allocated':>{give}} {assigned}"]
    lines += [f"\t   {row[0]:<20} : {row[1]:>{use}} {row[2]:>{ask}} {row[3]:>{give}} {row[4]}" for row in rows]
    return lines


def _ending(facts: ClassAd) -> Lines:
    """Normal or abnormal, with a core file or without."""
    if not facts.get_bool("ExitBySignal"):
        return [f"\t(1) Normal termination (return value {facts.get_int('ExitCode')})"]
    lines = [f"\t(0) Abnormal termination (signal {facts.get_int('ExitSignal')})"]
    core = facts.get_str("JobCoreFileName")
    lines.append(f"\t(1) Corefile in: {core}" if facts.get_bool("JobCoreDumped") and core else "\t(0) No core file")
    return lines


def _run_usage(facts: ClassAd) -> Lines:
    return [
        "\t\t" + _usage(facts.get_float("RemoteUserCpu"), facts.get_float("RemoteSysCpu"), "Run Remote Usage"),
        "\t\t" + _usage(facts.get_float("LocalUserCpu"), facts.get_float("LocalSysCpu"), "Run Local Usage"),
    ]


def _terminated(facts: ClassAd) -> Lines:
    lines = ["Job terminated.", *_ending(facts), *_run_usage(facts)]
    lines += [
        "\t\t" + _usage(facts.get_float("CumulativeRemoteUserCpu"), facts.get_float("CumulativeRemoteSysCpu"),
                        "Total Remote Usage"),
        "\t\t" + _usage(facts.get_float("LocalUserCpu"), facts.get_float("LocalSysCpu"), "Total Local Usage"),
        f"\t{facts.get_int('RunBytesSent')}  -  Run Bytes Sent By Job",
        f"\t{facts.get_int('RunBytesRecvd')}  -  Run Bytes Received By Job",
        f"\t{facts.get_int('BytesSent')}  -  Total Bytes Sent By Job",
        f"\t{facts.get_int('BytesRecvd')}  -  Total Bytes Received By Job",
        *_resources(facts),
    ]
    ended_s = facts.get_int("CompletionDate")
    if ended_s:
        when = moment(ended_s, utc=True).strftime("%Y-%m-%dT%H:%M:%SZ")
        how = (f"signal {facts.get_int('ExitSignal')}" if facts.get_bool("ExitBySignal")
               else f"exit-code {facts.get_int('ExitCode')}")
        lines += ["", f"\tJob terminated of its own accord at {when} with {how}."]
    return lines


def _node_executes(facts: ClassAd) -> Lines:
    host = facts.get_str("ExecuteHost", "<unknown>")
    return [f"Node {facts.get_int('Node')} executing on host: {host}", *_execute(facts)[1:]]


def _node_terminated(facts: ClassAd) -> Lines:
    sent, received = facts.get_int("RunBytesSent"), facts.get_int("RunBytesRecvd")
    return [
        f"Node {facts.get_int('Node')} terminated.", *_ending(facts), *_run_usage(facts),
        "\t\t" + _usage(facts.get_float("RemoteUserCpu"), facts.get_float("RemoteSysCpu"), "Total Remote Usage"),
        "\t\t" + _usage(0.0, 0.0, "Total Local Usage"),
        f"\t{sent}  -  Run Bytes Sent By Node", f"\t{received}  -  Run Bytes Received By Node",
        f"\t{sent}  -  Total Bytes Sent By Node", f"\t{received}  -  Total Bytes Received By Node",
        *_resources(facts),
    ]


def _evicted(facts: ClassAd) -> Lines:
    again = facts.get_bool("TerminatedAndRequeued")
    how = ("(0) Job terminated and was requeued" if again
           else "(1) Job was checkpointed." if facts.get_bool("VacatedWithCheckpoint") else "(0) CPU times")
    lines = ["Job was evicted.", f"\t{how}"]
    lines += _run_usage(facts)
    lines += [f"\t{facts.get_int('RunBytesSent')}  -  Run Bytes Sent By Job",
              f"\t{facts.get_int('RunBytesRecvd')}  -  Run Bytes Received By Job"]
    if again:
        lines += _ending(facts)
    reason = _line(facts.get_str("EvictReason"))
    if reason:
        lines.append(f"\t{reason}" if again else f"\tReason: {reason}")
    return lines + _resources(facts)


def _checkpointed(facts: ClassAd) -> Lines:
    return ["Job was checkpointed.", *[line[1:] for line in _run_usage(facts)],
            f"\t{facts.get_int('RunCheckpointBytes')}  -  Run Bytes Sent By Job For Checkpoint"]


def _image_size(facts: ClassAd) -> Lines:
    return [
        f"Image size of job updated: {facts.get_int('ImageSize')}",
        f"\t{facts.get_int('MemoryUsage')}  -  MemoryUsage of job (MB)",
        f"\t{facts.get_int('ResidentSetSize')}  -  ResidentSetSize of job (KB)",
    ]


def _exception(facts: ClassAd) -> Lines:
    return ["Shadow exception!", f"\t{_line(facts.get_str('ExceptionReason')) or 'unknown'}",
            f"\t{facts.get_int('RunBytesSent')}  -  Run Bytes Sent By Job",
            f"\t{facts.get_int('RunBytesRecvd')}  -  Run Bytes Received By Job"]


def _aborted(facts: ClassAd) -> Lines:
    reason = _line(facts.get_str("RemoveReason"))
    return ["Job was aborted.", *([f"\t{reason}"] if reason else [])]


def _held(facts: ClassAd) -> Lines:
    return ["Job was held.", f"\t{_line(facts.get_str('HoldReason')) or 'Reason unspecified'}",
            f"\tCode {facts.get_int('HoldReasonCode')} Subcode {facts.get_int('HoldReasonSubCode')}"]


def _released(facts: ClassAd) -> Lines:
    reason = _line(facts.get_str("ReleaseReason"))
    return ["Job was released.", *([f"\t{reason}"] if reason else [])]


def _suspended(facts: ClassAd) -> Lines:
    return ["Job was suspended.",
            f"\tNumber of processes actually suspended: {facts.get_int('NumPids', 1)}"]


def _disconnected(facts: ClassAd) -> Lines:
    return ["Job disconnected, attempting to reconnect",
            f"    {_line(facts.get_str('DisconnectReason')) or 'the connection was lost'}",
            f"    Trying to reconnect to {facts.get_str('SlotName', 'unknown')} {facts.get_str('ExecuteHost', '<>')}"]


def _reconnected(facts: ClassAd) -> Lines:
    host = facts.get_str("ExecuteHost", "<>")
    return [f"Job reconnected to {facts.get_str('SlotName', 'unknown')}",
            f"    startd address: {facts.get_str('StartdAddr', host)}", f"    starter address: {host}"]


def _reconnect_failed(facts: ClassAd) -> Lines:
    return ["Job reconnection failed", f"    {_line(facts.get_str('DisconnectReason')) or 'the lease has run out'}",
            f"    Can not reconnect to {facts.get_str('SlotName', 'unknown')}, rescheduling job"]


def _transfer(facts: ClassAd) -> Lines:
    lines = [TRANSFER_WORDS[facts.get_int("TransferStep", FileTransferEventType.IN_STARTED)]]
    host = facts.get_str("ExecuteHost")
    if host and facts.get_int("TransferStep") == FileTransferEventType.IN_STARTED:
        lines.append(f"\tTransferring to host: {host}")
    return lines


def _grid(facts: ClassAd) -> str:
    return f"    GridResource: {_line(facts.get_str('GridResource'))[:8191]}"


def _remote_error(facts: ClassAd) -> Lines:
    return [f"Error from {facts.get_str('SlotName', 'unknown')}:", f"\t{_line(facts.get_str('ExceptionReason'))}"]


def _cluster_removed(facts: ClassAd) -> Lines:
    completion = facts.get_int("Completion")
    how = f"Error {completion}" if completion < 0 else ("Incomplete", "Complete", "Paused")[min(completion, 2)]
    jobs, items = facts.get_int("NextProcId"), facts.get_int("NextRow")
    return ["Cluster removed", f"\tMaterialized {jobs} jobs from {items} items.\t{how}"]


def _factory_paused(facts: ClassAd) -> Lines:
    lines = ["Job Materialization Paused", f"\t{_line(facts.get_str('PauseReason'))}"]
    lines += [f"\t{name} {facts.get_int(name)}" for name in ("PauseCode", "HoldCode") if facts.get_int(name)]
    return lines


def _factory_resumed(facts: ClassAd) -> Lines:
    return ["Job Materialization Resumed", f"\t{_line(facts.get_str('PauseReason'))}"]


_BODIES: dict[int, Callable[[ClassAd], Lines]] = {
    JobEventType.SUBMIT: _submit,
    JobEventType.EXECUTE: _execute,
    JobEventType.DATAFLOW_JOB_SKIPPED: _skipped,
    JobEventType.CHECKPOINTED: _checkpointed,
    JobEventType.JOB_EVICTED: _evicted,
    JobEventType.JOB_TERMINATED: _terminated,
    JobEventType.IMAGE_SIZE: _image_size,
    JobEventType.SHADOW_EXCEPTION: _exception,
    JobEventType.GENERIC: lambda facts: [_line(facts.get_str("Info"))],
    JobEventType.JOB_ABORTED: _aborted,
    JobEventType.JOB_SUSPENDED: _suspended,
    JobEventType.JOB_UNSUSPENDED: lambda _: ["Job was unsuspended."],
    JobEventType.JOB_HELD: _held,
    JobEventType.JOB_RELEASED: _released,
    JobEventType.NODE_EXECUTE: _node_executes,
    JobEventType.NODE_TERMINATED: _node_terminated,
    JobEventType.REMOTE_ERROR: _remote_error,
    JobEventType.JOB_DISCONNECTED: _disconnected,
    JobEventType.JOB_RECONNECTED: _reconnected,
    JobEventType.JOB_RECONNECT_FAILED: _reconnect_failed,
    JobEventType.GRID_RESOURCE_UP: lambda facts: ["Grid Resource Back Up", _grid(facts)],
    JobEventType.GRID_RESOURCE_DOWN: lambda facts: ["Detected Down Grid Resource", _grid(facts)],
    JobEventType.GRID_SUBMIT: lambda facts: [
        "Job submitted to grid resource", _grid(facts), f"    GridJobId: {_line(facts.get_str('GridJobId'))[:8191]}"],
    JobEventType.CLUSTER_SUBMIT: lambda facts: _submit(facts, "Cluster"),
    JobEventType.CLUSTER_REMOVE: _cluster_removed,
    JobEventType.FACTORY_PAUSED: _factory_paused,
    JobEventType.FACTORY_RESUMED: _factory_resumed,
    JobEventType.FILE_TRANSFER: _transfer,
}

# ---- XML

_XML_FACTS: dict[int, tuple[tuple[str, str], ...]] = {
    JobEventType.SUBMIT: (
        ("SubmitHost", "SubmitHost"), ("LogNotes", "SubmitEventNotes"), ("UserNotes", "SubmitEventUserNotes"),
    ),
    JobEventType.EXECUTE: (("ExecuteHost", "ExecuteHost"), ("SlotName", "SlotName")),
    JobEventType.CHECKPOINTED: (("SentBytes", "RunCheckpointBytes"),),
    JobEventType.JOB_EVICTED: (
        ("Checkpointed", "VacatedWithCheckpoint"), ("Reason", "EvictReason"), ("SentBytes", "RunBytesSent"),
        ("ReceivedBytes", "RunBytesRecvd"),
    ),
    JobEventType.JOB_TERMINATED: (
        ("SentBytes", "RunBytesSent"), ("ReceivedBytes", "RunBytesRecvd"), ("TotalSentBytes", "BytesSent"),
        ("TotalReceivedBytes", "BytesRecvd"),
    ),
    JobEventType.IMAGE_SIZE: (
        ("Size", "ImageSize"), ("MemoryUsage", "MemoryUsage"), ("ResidentSetSize", "ResidentSetSize"),
    ),
    JobEventType.SHADOW_EXCEPTION: (
        ("Message", "ExceptionReason"), ("SentBytes", "RunBytesSent"), ("ReceivedBytes", "RunBytesRecvd"),
    ),
    JobEventType.GENERIC: (("Info", "Info"),),
    JobEventType.JOB_ABORTED: (("Reason", "RemoveReason"),),
    JobEventType.JOB_SUSPENDED: (("NumberOfPIDs", "NumPids"),),
    JobEventType.JOB_HELD: (
        ("HoldReason", "HoldReason"), ("HoldReasonCode", "HoldReasonCode"),
        ("HoldReasonSubCode", "HoldReasonSubCode"),
    ),
    JobEventType.JOB_RELEASED: (("Reason", "ReleaseReason"),),
    JobEventType.NODE_EXECUTE: (("Node", "Node"), ("ExecuteHost", "ExecuteHost"), ("SlotName", "SlotName")),
    JobEventType.NODE_TERMINATED: (
        ("Node", "Node"), ("SentBytes", "RunBytesSent"), ("ReceivedBytes", "RunBytesRecvd"),
    ),
    JobEventType.JOB_DISCONNECTED: (
        ("DisconnectReason", "DisconnectReason"), ("StartdName", "SlotName"), ("StartdAddr", "ExecuteHost"),
    ),
    JobEventType.JOB_RECONNECTED: (
        ("StartdName", "SlotName"), ("StartdAddr", "StartdAddr"), ("StarterAddr", "ExecuteHost"),
    ),
    JobEventType.JOB_RECONNECT_FAILED: (("Reason", "DisconnectReason"), ("StartdName", "SlotName")),
    JobEventType.GRID_RESOURCE_UP: (("GridResource", "GridResource"),),
    JobEventType.GRID_RESOURCE_DOWN: (("GridResource", "GridResource"),),
    JobEventType.GRID_SUBMIT: (("GridResource", "GridResource"), ("GridJobId", "GridJobId")),
    JobEventType.CLUSTER_SUBMIT: (("SubmitHost", "SubmitHost"),),
    JobEventType.CLUSTER_REMOVE: (
        ("NextProcId", "NextProcId"), ("NextRow", "NextRow"), ("Completion", "Completion")),
    JobEventType.FACTORY_PAUSED: (("Reason", "PauseReason"), ("PauseCode", "PauseCode"), ("HoldCode", "HoldCode")),
    JobEventType.FACTORY_RESUMED: (("Reason", "PauseReason"),),
    JobEventType.FILE_TRANSFER: (("Type", "TransferStep"), ("Host", "ExecuteHost")),
}


def information_xml(event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> str:
    """What `information_text` says, as one ``<c>`` element."""
    found = _information(event, facts)
    return _element([*_head(JobEventType.JOB_AD_INFORMATION, cluster, proc, when_s), *found.items()]) if found else ""


def _head(event: int, cluster: int, proc: int, when_s: float) -> list[tuple[str, object]]:
    when = moment(when_s).isoformat(timespec="milliseconds")
    return [("MyType", EVENT_NAMES[event]), ("EventTypeNumber", event), ("EventTime", when), ("Cluster", cluster),
            ("Proc", proc), ("Subproc", 0)]


def _element(values: list[tuple[str, object]]) -> str:
    return "<c>\n" + "".join(f'    <a n="{name}">{_xml_value(value)}</a>\n' for name, value in values) + "</c>\n"


def event_xml(event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> str:
    """The same event as one ``<c>`` element."""
    values = _head(event, cluster, proc, when_s)
    for shown, attribute in _XML_FACTS.get(event, ()):
        value = facts.evaluate(attribute)
        if isinstance(value, (bool, int, float, str)):
            values.append((shown, value))
    notes = facts.evaluate("StructuredNotes") if event == JobEventType.SUBMIT else None
    if isinstance(notes, ClassAd):
        values.append(("StructuredNotes", notes))
    if event in (JobEventType.JOB_TERMINATED, JobEventType.NODE_TERMINATED) or (
            event == JobEventType.JOB_EVICTED and facts.get_bool("TerminatedAndRequeued")):
        by_signal = facts.get_bool("ExitBySignal")
        values.append(("TerminatedNormally", not by_signal))
        values.append(("TerminatedBySignal", facts.get_int("ExitSignal")) if by_signal
                      else ("ReturnValue", facts.get_int("ExitCode")))
        values += [(name, _usage(facts.get_float(user), facts.get_float(system), "").removesuffix("  -  "))
                   for name, user, system in _XML_USAGE]
    return _element(values)


_XML_USAGE = (
    ("RunLocalUsage", "LocalUserCpu", "LocalSysCpu"), ("RunRemoteUsage", "RemoteUserCpu", "RemoteSysCpu"),
    ("TotalLocalUsage", "LocalUserCpu", "LocalSysCpu"),
    ("TotalRemoteUsage", "CumulativeRemoteUserCpu", "CumulativeRemoteSysCpu"),
)


def _xml_value(value: object) -> str:
    if isinstance(value, bool):
        return f'<b v="{"t" if value else "f"}"/>'
    if isinstance(value, int):
        return f"<i>{value}</i>"
    if isinstance(value, float):
        return f"<r>{value:.15E}</r>"
    if isinstance(value, ClassAd):
        inner = "".join(f'<a n="{name}">{_xml_value(each)}</a>' for name, each in value.items())
        return f"<c>{inner}</c>"
    return f"<s>{escape(_NOT_IN_XML.sub(' ', str(value)))}</s>"
