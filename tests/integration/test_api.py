"""``import condor_actors as condor`` against a personal pool: the three faces, and what they refuse."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor

import condor_actors as condor
from tests.pool_fixture import PersonalPool, fresh_folder, until

END = {condor.JobEventType.JOB_TERMINATED, condor.JobEventType.JOB_ABORTED}


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        before = dict(os.environ)
        os.environ.update({name: value for name, value in made.environment.items() if "CONDOR" in name.upper()})
        condor.reload_config()
        yield made
        os.environ.clear()
        os.environ.update(before)
        condor.reload_config()
        made.stop()


@pytest.fixture
def work(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(pool.work)
    for left in pool.work.iterdir():
        left.unlink()
    return pool.work


def ended(log: str, jobs: int) -> list[condor.JobEvent]:
    """The last events of so many jobs."""
    found = []
    with condor.JobEventLog(log) as events:
        for event in events.events(stop_after=60):
            if event.type in END:
                found.append(event)
                if len(found) == jobs:
                    return found
    raise AssertionError(f"only {len(found)} of {jobs} jobs ended")


def test_a_job_goes_round(work: Path) -> None:
    schedd = condor.Schedd()
    submitted = schedd.submit({"executable": "/bin/sh", "arguments": '"-c \'exit $(code)\'"', "log": "job.log",
                               "transfer_executable": False}, items=[{"code": 3}, {"code": 4}])
    assert submitted.count == 2
    assert submitted.jobs == [(submitted.cluster, 0), (submitted.cluster, 1)]
    assert submitted.ad["Cmd"] == "/bin/sh"
    codes = {event.proc: event["ReturnValue"] for event in ended("job.log", 2)}
    assert codes == {0: 3, 1: 4}
    for event in ended("job.log", 2):
        assert event.cluster == submitted.cluster
        assert abs(event.timestamp - os.stat("job.log").st_mtime) < 60
    past = schedd.history(jobs=submitted.cluster, projection=["ProcId", "ExitCode"])
    assert {ad["ProcId"]: ad["ExitCode"] for ad in past} == codes
    assert past[0].keys() == {"ProcId", "ExitCode"}
    assert schedd.history(jobs=submitted.cluster, limit=1, constraint="ExitCode == 3")[0]["ProcId"] == 0
    here = until(lambda: len(found := condor.Startd().history(f"ClusterId == {submitted.cluster}")) == 2 and found,
                 "the machine has recorded both")
    assert {ad["ProcId"]: ad["ExitCode"] for ad in here} == codes
    (first,) = until(lambda: schedd.epochs(jobs=(submitted.cluster, 0)), "its run is recorded")
    assert first["ExitCode"] == 3
    assert schedd.query(jobs=submitted.cluster) == []


def test_a_job_is_held_edited_released_and_removed(work: Path) -> None:
    schedd = condor.Schedd()
    description = condor.Submit("executable = /bin/sleep\narguments = 600\nrequirements = false\nqueue 3")
    cluster = schedd.submit(description).cluster
    assert schedd.hold((cluster, 0), "wait").results == {(cluster, 0): condor.ActionResult.SUCCESS}
    (held,) = schedd.query(f"ClusterId == {cluster} && JobStatus == {condor.JobStatus.HELD:d}")
    assert held["HoldReason"].startswith("wait")
    assert schedd.edit(cluster, {"Colour": "red", "Twice": condor.parse_expression("2 * ProcId")}) == 3
    second = schedd.query(jobs=f"{cluster}.1")[0]
    assert (second["Colour"], second.evaluate("Twice")) == ("red", 2)
    assert schedd.release([f"{cluster}.0", (cluster, 1)]).results == {
        (cluster, 0): condor.ActionResult.SUCCESS, (cluster, 1): condor.ActionResult.BAD_STATUS}
    assert not schedd.hold(f"{cluster}.77")
    assert schedd.autoclusters()[0]["JobCount"] >= 3
    schedd.reschedule()
    assert schedd.remove(condor.parse_expression(f"ClusterId == {cluster}")).count == 3
    assert schedd.query(jobs=cluster) == []


def test_inputs_are_spooled_and_outputs_come_home(work: Path) -> None:
    (work / "in.txt").write_text("spooled\n")
    schedd = condor.Schedd()
    submitted = schedd.submit(condor.Submit(
        executable="/bin/cat", arguments="in.txt", input="in.txt", output="out.txt", log="spool.log",
        transfer_input_files="in.txt", transfer_executable=False, should_transfer_files="YES"), spool=True)
    assert schedd.query(jobs=submitted.cluster)[0]["HoldReasonCode"] == condor.HoldCode.SPOOLING_INPUT
    schedd.spool(submitted)
    (work / "in.txt").unlink()
    completed = condor.JobStatus.COMPLETED
    gone = threading.Event()
    while schedd.query(jobs=submitted.cluster)[0]["JobStatus"] != completed:
        assert not gone.wait(0.05)
    assert schedd.retrieve(submitted.cluster) == 1
    assert (work / "out.txt").read_text() == "spooled\n"
    assert schedd.remove(submitted.cluster)


def paint_and_fail(schedd: condor.Schedd, cluster: int) -> None:
    with schedd.transaction() as changes:
        changes.edit(cluster, {"Colour": "blue"})
        changes.submit(condor.Submit(executable="/no/such/program"))


def test_a_transaction_is_all_or_nothing_until_it_is_sent(work: Path) -> None:
    schedd = condor.Schedd()
    waits = condor.Submit(executable="/bin/true", requirements="false", queue="2")
    with schedd.transaction() as changes:
        changes.submit(waits)
        changes.submit(waits, items=["a", "b", "c"], count=1)
    assert [each.count for each in changes.submitted] == [2, 3]
    first, second = (each.cluster for each in changes.submitted)
    with pytest.raises(condor.SubmitError):
        paint_and_fail(schedd, first)
    assert all("Colour" not in ad for ad in schedd.query(jobs=first))
    assert schedd.remove([first, second])


def test_what_is_wrong_is_said(work: Path) -> None:
    schedd = condor.Schedd()
    with pytest.raises(condor.SubmitError, match="/no/such"):
        schedd.submit({"executable": "/no/such"})
    with pytest.raises(condor.NotSupported, match="jobset = NAME"):
        schedd.submit_jobset()
    with pytest.raises(condor.ClassAdSyntaxError):
        schedd.query("JobStatus ==")
    with pytest.raises(condor.CondorError, match="nowhere"):
        condor.Schedd("nowhere").query()
    with pytest.raises(ValueError, match="'true' means all"):
        schedd.remove([])
    with pytest.raises(condor.CondorError, match="no Scheduler nowhere"):
        condor.Collector().locate("Scheduler", "nowhere")
    with pytest.raises(condor.Refused):
        schedd.edit("true", {"ClusterId": 3})


def test_the_pool_is_asked(pool: PersonalPool, work: Path) -> None:
    collector = condor.Collector()
    slots = collector.query("Machine", "SlotID == 1", ["Name", "Cpus"])
    assert [ad["Name"].partition("@")[0] for ad in slots] == ["slot1"]
    there = collector.locate(condor.AdKind.SCHEDD)
    assert condor.Schedd(there["Name"]).query(limit=1) is not None
    collector.advertise([condor.ClassAd({"Name": "mine", "MyType": "Generic", "Weight": 7})])
    assert collector.query("Generic", 'Name == "mine"')[0]["Weight"] == 7
    condor.Negotiator().set("someone@here", "factor", 7)
    assert {ad["Name"]: ad["PriorityFactor"] for ad in condor.Negotiator().priorities()}["someone@here"] == 7.0
    assert condor.Negotiator().resources("someone@here") == []
    condor.Negotiator().reset("someone@here")
    condor.Negotiator().delete("someone@here")
    startd = condor.Startd()
    request = startd.drain("fast", reason="test")
    until(lambda: not collector.query("Machine", "Draining =!= true"), "the collector to hear of it")
    startd.cancel_drain(request)
    until(lambda: not collector.query("Machine", "Draining =?= true"), "the collector to hear of its end")
    startd.vacate(fast=True)


def test_an_object_keeps_its_pool(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    schedd, collector = condor.Schedd(), condor.Collector()
    monkeypatch.setenv("CONDOR_CONFIG", "/no/such")
    condor.reload_config()
    with pytest.raises(condor.CondorError):
        condor.Schedd()
    assert schedd.query("false") == []
    assert collector.query("Scheduler") != []
    monkeypatch.undo()
    condor.reload_config()


def test_parameters(pool: PersonalPool) -> None:
    assert condor.param["RUN"] == str(pool.dir / "run")
    assert condor.param["COLLECTOR_PORT"] == int(condor.param["COLLECTOR_PORT"])
    assert "NO_SUCH_PARAMETER" not in condor.param
    condor.param["MY_OWN"] = "$(RUN)/x"
    assert condor.param["MY_OWN"] == f"{pool.dir}/run/x"
    assert "MY_OWN" in set(condor.param)
    del condor.param["MY_OWN"]
    assert "MY_OWN" not in condor.param


def test_asyncio(work: Path) -> None:
    async def program() -> list[int]:
        schedd = condor.aio.Schedd()
        submitted, slots = await asyncio.gather(
            schedd.submit({"executable": "/bin/true", "log": "aio.log", "transfer_executable": False}, count=2),
            condor.aio.Collector().query())
        assert len(slots) >= 1
        done: list[int] = []
        with condor.JobEventLog("aio.log") as log:
            async for event in log:
                if event.type in END:
                    done.append(event["ReturnValue"])
                    if len(done) == submitted.count:
                        log.close()
        return done

    assert asyncio.run(asyncio.wait_for(program(), 60)) == [0, 0]


@pytest_twisted.ensureDeferred
async def test_twisted(work: Path) -> None:
    schedd = condor.tx.Schedd()
    submitted = await schedd.submit({"executable": "/bin/true", "log": "tx.log", "transfer_executable": False})
    log = condor.tx.JobEventLog("tx.log")
    seen = []
    while not seen or seen[-1] not in END:
        event = await log.next().addTimeout(60, reactor)
        assert event.cluster == submitted.cluster
        seen.append(event.type)
    assert seen[0] == condor.JobEventType.SUBMIT
    waiting = log.next()
    with pytest.raises(RuntimeError):
        log.next()
    waiting.addErrback(lambda failure: failure.type.__name__)
    waiting.cancel()
    assert await waiting == "CancelledError"
    log.close()


def test_a_program_loads_what_it_names_and_no_reactor(pool: PersonalPool) -> None:
    code = ("import sys, condor_actors as condor\n"
            "assert not [name for name in sys.modules if name.startswith('condor_actors.')], sys.modules\n"
            "condor.Schedd().query(); condor.Collector().query()\n"
            "print([name for name in ('twisted', 'asyncio', 'OpenSSL') if name in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, **pool.environment}, timeout=60)
    assert done.stdout.strip() == "[]"
