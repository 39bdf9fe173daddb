"""Our user logs, read by HTCondor's own reader."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.event_facts import facts_of
from condor_actors.userlog.event_text import EVENT_NAMES, event_text, event_xml
from condor_actors.userlog.reader import EventReader

htcondor2: Any = pytest.importorskip("htcondor2")

FACTS: dict[str, Any] = {
    "SubmitHost": "<127.0.0.1:9618>", "ExecuteHost": "<127.0.0.1:33>", "SlotName": "slot1@host",
    "StartdAddr": "<127.0.0.1:44>", "CondorScratchDir": "/scratch", "CpusProvisioned": 1, "MemoryProvisioned": 128,
    "DiskProvisioned": 1000, "RequestCpus": 1, "RequestMemory": 100, "RequestDisk": 10, "CpusUsage": 0.5,
    "MemoryUsage": 3, "DiskUsage": 22, "ExitCode": 3, "ExitBySignal": False, "RemoteUserCpu": 90061.5,
    "CompletionDate": 1700000000, "RemoveReason": "via condor_rm", "HoldReason": "because\nof two lines",
    "HoldReasonCode": 3, "HoldReasonSubCode": 4, "ReleaseReason": "enough", "EvictReason": "the owner is back",
    "ExceptionReason": "boom", "DisconnectReason": "the link", "TransferStep": 2, "RunBytesSent": 5, "ImageSize": 100,
    "ResidentSetSize": 7, "SubmitEventNotes": "a note", "NumPids": 2,
}
EXPECTED: dict[int, dict[str, Any]] = {
    0: {"SubmitHost": "<127.0.0.1:9618>", "LogNotes": "a note"},
    1: {"ExecuteHost": "<127.0.0.1:33>", "SlotName": "slot1@host"},
    4: {"Reason": "the owner is back", "SentBytes": 5.0, "TerminatedAndRequeued": False,
        "RunRemoteUsage": "Usr 1 01:01:01, Sys 0 00:00:00"},
    5: {"ReturnValue": 3, "TerminatedNormally": True, "SentBytes": 5.0, "MemoryUsage": 3, "Memory": 128,
        "RequestMemory": 100, "CpusUsage": 0.5, "RunRemoteUsage": "Usr 1 01:01:01, Sys 0 00:00:00"},
    6: {"Size": 100, "MemoryUsage": 3, "ResidentSetSize": 7},
    7: {"Message": "boom", "SentBytes": 5.0},
    9: {"Reason": "via condor_rm"},
    10: {"NumberOfPIDs": 2},
    11: {},
    12: {"HoldReason": "because of two lines", "HoldReasonCode": 3, "HoldReasonSubCode": 4},
    13: {"Reason": "enough"},
    22: {"StartdName": "slot1@host", "DisconnectReason": "the link"},
    23: {"StartdName": "slot1@host", "StarterAddr": "<127.0.0.1:33>"},
    24: {"StartdName": "slot1@host"},
    40: {"Type": 2, "Host": "<127.0.0.1:33>"},
}


def read(path: Path, text: str) -> list[Any]:
    path.write_text(text)
    return list(htcondor2.JobEventLog(str(path)).events(0))


@pytest.mark.parametrize("event", sorted(EXPECTED))
def test_each_event_is_read_back(tmp_path: Path, event: int) -> None:
    text = event_text(event, 12, 1234, 1_700_000_000.0, ClassAd(FACTS))
    (found,) = read(tmp_path / "log", text)
    assert (int(found.type), found.cluster, found.proc) == (event, 12, 1234)
    values = dict(found.items())
    assert values["MyType"] == EVENT_NAMES[event]
    assert {name: values.get(name) for name in EXPECTED[event]} == EXPECTED[event]


def test_a_signal_and_a_requeued_end(tmp_path: Path) -> None:
    facts = ClassAd({**FACTS, "ExitBySignal": True, "ExitSignal": 9, "TerminatedAndRequeued": True})
    text = event_text(5, 1, 0, 1_700_000_000.0, facts) + event_text(4, 1, 0, 1_700_000_000.0, facts)
    ended, evicted = read(tmp_path / "log", text)
    assert (ended["TerminatedNormally"], ended["TerminatedBySignal"]) == (False, 9)
    assert (evicted["TerminatedAndRequeued"], evicted["TerminatedBySignal"]) == (True, 9)


def test_the_xml_form(tmp_path: Path) -> None:
    events = sorted(EXPECTED)
    text = "".join(event_xml(event, 12, event, 1_700_000_000.0, ClassAd(FACTS)) for event in events)
    found = read(tmp_path / "log", text)
    assert [(int(each.type), each.cluster, each.proc) for each in found] == [(event, 12, event) for event in events]
    assert dict(found[events.index(12)].items())["HoldReason"] == FACTS["HoldReason"]


def test_the_words_that_scripts_look_for() -> None:
    text = event_text(5, 7, 3, 1_700_000_000.0, ClassAd(FACTS))
    assert text.startswith("005 (007.003.000) 2023-11-1")
    assert "Job terminated.\n\t(1) Normal termination (return value 3)\n" in text
    assert text.endswith("\n...\n")


def ours(text: str, *, is_xml: bool) -> ClassAd:
    (event,) = EventReader().feed(text.encode())
    return facts_of(event, is_xml=is_xml)


VARIANTS: list[dict[str, Any]] = [
    {}, {"ExitBySignal": True, "ExitSignal": 9, "TerminatedAndRequeued": True}, {"SubmitEventUserNotes": "mine"},
    {"DAGNodeName": "A"}, {"VacatedWithCheckpoint": True}, {"RemoveReason": ""}, {"TransferStep": 6},
    {"HoldReasonCode": 0, "HoldReason": ""},
]


@pytest.mark.parametrize("changed", VARIANTS, ids=str)
@pytest.mark.parametrize("event", sorted({*EXPECTED, 3, 21}))
def test_our_reader_says_what_theirs_says(tmp_path: Path, event: int, changed: dict[str, Any]) -> None:
    text = event_text(event, 12, 3, 1_700_000_000.0, ClassAd({**FACTS, **changed}))
    (theirs,) = read(tmp_path / "log", text)
    mine = ours(text, is_xml=False)
    if event == JobEventType.JOB_EVICTED:  # theirs gives up before the table of resources
        assert mine.pop("CpusUsage") == FACTS["CpusUsage"]
        for name in [name for name in mine if re.fullmatch("(Request)?(Cpus|Disk|Memory)(Usage)?", name)]:
            del mine[name]
    assert {name: str(value) for name, value in mine.items()} == {
        name: " ".join(str(value).split()) if name in ("ExecuteProps", "StructuredNotes") else str(value)
        for name, value in theirs.items()}


@pytest.mark.parametrize("event", sorted(EXPECTED))
def test_our_reader_of_xml_says_what_the_log_says(tmp_path: Path, event: int) -> None:
    text = event_xml(event, 12, 3, 1_700_000_000.0, ClassAd(FACTS))
    (theirs,) = read(tmp_path / "log", text)
    mine = dict(ours(text, is_xml=True).items())
    assert {name: theirs[name] for name in mine if name in theirs} == {
        name: value for name, value in mine.items() if name in theirs}
    assert mine.keys() - theirs.keys() == set()
