"""The records of runs that a machine keeps: what they have, and who sees them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.logger import Logger

from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.run_spec import read_spec
from condor_actors.daemons.run_questions import sight_of
from condor_actors.daemons.schedd.history import history_page
from condor_actors.daemons.starter.run_history import JOB, RunHistory, run_history_settings, run_record
from condor_actors.messages.envelope import Identity
from condor_actors.messages.queue import QueryJobs
from condor_actors.messages.run import StopRun, Usage
from condor_actors.store.record_file import RecordFileSettings, RecordReader

JOB_AD = ClassAd({
    "ClusterId": 7, "ProcId": 2, "NumShadowStarts": 3, "Owner": "alice", "User": "alice@dom", "Cmd": "/bin/true",
    "Environment": "PASSWORD=xyzzy", "Args": "a b", "ShouldTransferFiles": "NO",
}).to_bytes()


def at_once(function: Any, *given: Any) -> Deferred[Any]:
    return maybeDeferred(function, *given)


def run_that(*events: Any) -> jr.JobRun:
    core = jr.JobRun("7.2#3", read_spec(ClassAd.from_bytes(JOB_AD)), lease_s=60.0)
    core.start(1000.0, missing=False)
    for number, event in enumerate(events):
        core.handle(event, 1001.0 + number)
    assert core.exited is not None
    return core


BEGUN = (jr.Prepared(), jr.Began(42, "/scratch"))
GONE = (jr.TreeGone(Usage(wall_s=5.0, user_cpu_s=2.0, peak_memory_kib=3000)), jr.Gathered(()))


@pytest.mark.parametrize(("events", "facts"), [
    ((*BEGUN, jr.ProgramEnded(3, -1, False), *GONE),
     {"JobStatus": 4, "ExitCode": 3, "ExitBySignal": False, "MemoryUsage": 3, "RemoteWallClockTime": 5.0,
      "CompletionDate": 1005}),
    ((*BEGUN, jr.ProgramEnded(-1, 9, False), *GONE), {"JobStatus": 4, "ExitSignal": 9, "ExitBySignal": True}),
    ((jr.PrepareFailed("no disk", 12, 28),), {"JobStatus": 5, "HoldReason": "no disk", "HoldReasonCode": 12}),
    ((StopRun(run_id="7.2#3", how="remove", reason="via condor_rm"),),
     {"JobStatus": 3, "RemoveReason": "via condor_rm"}),
    ((jr.CloseRun(grace_s=0.0, reason="the owner is back"),), {"JobStatus": 1, "VacateReason": "the owner is back"}),
])
def test_a_record_says_how_the_run_ended_here(events: tuple[Any, ...], facts: dict[str, Any]) -> None:
    record = run_record(run_that(*events), JOB_AD, "alice@dom", "slot1@host")
    ad = ClassAd.from_bytes(record.ad)
    assert {name: ad[name] for name in facts} == facts
    assert (record.cluster, record.proc, record.instance, record.owner) == (7, 2, 2, "alice@dom")
    assert (ad["RemoteHost"], ad["Args"]) == ("slot1@host", "a b")
    assert b"xyzzy" not in record.to_bytes()


def test_a_user_sees_her_own_records_alone(tmp_path: Path) -> None:
    settings = RecordFileSettings(path=str(tmp_path / "h"), most_bytes=20 << 20, rotations=2)
    history = RunHistory(settings, Logger(), at_once)
    core = run_that(*BEGUN, jr.ProgramEnded(0, -1, False), *GONE)
    owners = ("alice@dom", "bob@dom", "alice@dom%partner", "alice@elsewhere")
    for owner in owners:
        history.file.record(run_record(core, JOB_AD, owner, owner))

    def seen(identity: Identity, *, sees_all: bool = False, owner: str = "") -> list[str]:
        reader = RecordReader(str(tmp_path / "h"), (JOB,), sight_of(identity, sees_all=sees_all))
        page = history_page(reader, QueryJobs(source="startd", owner=owner), JobSight(frozenset(), lambda owner: True))
        return [ClassAd.from_bytes(text)["RemoteHost"] for text in page.ads]

    alice = Identity(name="alice@dom", method="local", uid=1000)
    assert seen(alice) == ["alice@dom"]
    assert seen(Identity(name="alice@dom", method="token", roles=frozenset({"user"}))) == ["alice@dom"]
    assert seen(Identity(name="alice@dom", method="tls", roles=frozenset({"user"}), realm="partner")) == []
    assert seen(Identity(name="condor@dom", method="tls", roles=frozenset({"schedd"}), host="h")) == []
    manager = Identity(name="condor@dom", method="tls", roles=frozenset({"collector", "schedd"}), host="h")
    assert seen(manager) == list(reversed(owners))
    assert seen(attrs.evolve(manager, realm="partner")) == []
    assert seen(attrs.evolve(manager, roles=frozenset({"collector", "user"}))) == []
    assert seen(alice, sees_all=True) == list(reversed(owners))
    assert seen(alice, sees_all=True, owner="bob@dom") == ["bob@dom"]


def test_each_job_has_a_file_of_its_own_with_what_its_last_run_left(tmp_path: Path) -> None:
    folder = tmp_path / "per-job"
    folder.mkdir()
    config = load_config(files=[], environ={}, overrides={
        "STARTD_HISTORY": "", "STARTD_PER_JOB_HISTORY_DIR": str(folder)})
    history = RunHistory(run_history_settings(config), Logger(), at_once)
    for job_id, exit_code in (("s#7.2#1", 1), ("s#7.2#1", 3), ("../../tmp/x#1.0#1", 4), ("s#8.0#1\n", 5)):
        core = run_that(*BEGUN, jr.ProgramEnded(exit_code, -1, False), *GONE)
        ad = ClassAd.from_bytes(JOB_AD)
        ad["GlobalJobId"] = job_id
        history.file.record(run_record(core, ad.to_bytes(), "alice@dom", "slot1@host"))
    left = {path.name: ClassAd.from_bytes(path.read_bytes()) for path in folder.iterdir()}
    assert {name: ad["ExitCode"] for name, ad in left.items()} == {"history.s#7.2#1": 3, "history.7.2": 5}
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())
    assert "xyzzy" not in "".join(path.read_text() for path in folder.iterdir())
