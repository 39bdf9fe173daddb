"""Programs written for HTCondor's modules, against a personal pool."""

from __future__ import annotations

import os
import pickle
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from condor_actors.compat import classad, classad2, htcondor, htcondor2
from condor_actors.compat.htcondor2 import dags, personal
from tests.harness.readable_python import python_for_all
from tests.pool_fixture import PersonalPool, fresh_folder


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        before = dict(os.environ)
        os.environ.update({name: value for name, value in made.environment.items() if "CONDOR" in name.upper()})
        htcondor2.reload_config()
        yield made
        os.environ.clear()
        os.environ.update(before)
        htcondor2.reload_config()
        made.stop()


@pytest.fixture
def work(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(pool.work)
    for left in pool.work.iterdir():
        left.unlink()
    return pool.work


def test_a_program_submits_follows_and_looks_back(work: Path) -> None:
    schedd = htcondor2.Schedd(htcondor2.Collector().locate(htcondor2.DaemonType.Schedd))
    description = htcondor2.Submit({"executable": "/bin/echo", "arguments": "$(word)", "log": "job.log",
                                    "output": "$(ProcId).out", "transfer_executable": "false"})
    result = schedd.submit(description, itemdata=iter([{"word": "sun"}, {"word": "moon"}]))
    assert (result.num_procs(), result.first_proc(), int(result)) == (2, 0, result.cluster())
    assert result.clusterad()["Cmd"] == "/bin/echo"
    log = htcondor2.JobEventLog("job.log")
    ended: list[int] = []
    for event in log.events(stop_after=60):
        assert event.cluster == result.cluster()
        assert abs(event.timestamp - time.time()) < 120
        if event.type == htcondor2.JobEventType.JOB_TERMINATED:
            assert event["ReturnValue"] == 0
            ended.append(event.proc)
            if len(ended) == 2:
                break
    assert sorted(ended) == [0, 1]
    again = pickle.loads(pickle.dumps(log))  # noqa: S301 - our own bytes
    assert list(again.events(stop_after=0)) == list(log.events(stop_after=0)), "it goes on where the first one was"
    log.close()
    again.close()
    assert (work / "1.out").read_text() == "moon\n"
    past = schedd.history(f"ClusterId == {result.cluster()}", ["ProcId", "ExitCode"], match=1)
    assert [(type(ad), ad["ExitCode"]) for ad in past] == [(classad2.ClassAd, 0)]


def test_jobs_are_changed(work: Path) -> None:
    schedd = htcondor2.Schedd()
    waits = htcondor2.Submit("executable = /bin/sleep\narguments = 600\nrequirements = false\nqueue")
    cluster = schedd.submit(waits, count=4).cluster()
    assert schedd.edit([f"{cluster}.{proc}" for proc in range(2)], "foo", '"bar"') == 2
    assert schedd.edit(cluster, "twice", classad2.ExprTree("ProcId * 2")) == 4
    (ad,) = schedd.query(f"ClusterId == {cluster} && ProcId == 1", ["foo", "twice", "ProcId"])
    assert (ad["foo"], ad.eval("twice")) == ("bar", 2)
    held = schedd.act(htcondor2.JobAction.Hold, f"ClusterId == {cluster} && ProcId >= 2", reason="wait")
    assert (held["TotalSuccess"], held["TotalChangedAds"]) == (2, 1)
    missing = schedd.act(htcondor2.JobAction.Release, f"{cluster}.99")
    assert (missing["TotalSuccess"], missing["TotalNotFound"]) == (0, 1)
    statuses = schedd.query(f"ClusterId == {cluster}", ["JobStatus"], callback=lambda each: each["JobStatus"])
    assert sorted(statuses) == [1, 1, 5, 5]
    assert len(schedd.query(limit=3, opts=htcondor2.QueryOpt.DefaultMyJobsOnly)) == 3
    assert schedd.query(opts=htcondor2.QueryOpt.AutoCluster)[0]["JobCount"] >= 4
    assert schedd.act(htcondor2.JobAction.Remove, classad2.ExprTree("true"))["TotalSuccess"] == 4
    schedd.reschedule()


def test_what_is_wrong_or_missing_is_said(pool: PersonalPool) -> None:
    schedd = htcondor2.Schedd()
    with pytest.raises(htcondor2.HTCondorException, match="/no/such"):
        schedd.submit(htcondor2.Submit({"executable": "/no/such"}))
    with pytest.raises(NotImplementedError, match="condor_reserve"):
        schedd.create_ocu(classad2.ClassAd())
    for wrong in (["x"], "foo bar"):
        with pytest.raises(ValueError):
            schedd.act(htcondor2.JobAction.Hold, wrong)
    with pytest.raises(TypeError):
        schedd.act("hold", 1)  # type: ignore[arg-type]
    with pytest.raises(htcondor2.HTCondorException, match="No such file"):
        htcondor2.JobEventLog("/no/such.log")
    assert htcondor2.Collector().locate(htcondor2.DaemonType.Schedd, "nowhere") is None


def test_the_older_module_has_transactions_and_a_name_for_each_kind_of_mistake(work: Path) -> None:
    schedd = htcondor.Schedd(htcondor.Collector().locate(htcondor.DaemonTypes.Schedd))
    waits = htcondor.Submit({"executable": "/bin/echo", "arguments": "$(word)", "hold": "true"})
    ads: list[classad.ClassAd] = []
    with schedd.transaction() as changes:
        two = waits.queue(changes, 2, ads)
        many = waits.queue_with_itemdata(changes, 1, iter([{"word": "sun"}, {"word": "moon"}]))
    assert [(ad["ClusterId"], ad["ProcId"]) for ad in ads] == [(two, 0), (two, 1)]
    assert many.num_procs() == 2
    found = schedd.xquery(constraint=f"ClusterId == {many.cluster()}", projection=["Args"])
    assert sorted(ad["Args"] for ad in found) == ["moon", "sun"]
    with suppress(ZeroDivisionError), schedd.transaction() as changes:
        gone = waits.queue(changes)
        raise ZeroDivisionError
    assert [ad["JobStatus"] for ad in schedd.query(f"ClusterId == {gone}")] in ([], [htcondor.JobStatus.REMOVED])
    assert schedd.act(htcondor.JobAction.Remove, [str(two), str(many.cluster())])["TotalSuccess"] == 4
    with pytest.raises(TypeError):
        waits.queue(schedd)  # type: ignore[arg-type]
    with pytest.raises(htcondor.HTCondorIOError, match="/no/such"):
        schedd.submit(htcondor.Submit({"executable": "/no/such"}))
    with pytest.raises(classad.ClassAdParseError):
        classad.ExprTree("1 +")
    either = classad.ExprTree("ClusterId == 1").and_(classad.ExprTree("a || b")).or_(f"{two}").or_(True)
    assert repr(either) == f'(((ClusterId == 1) && (a || b)) || ("{two}")) || (true)'
    assert classad.ExprTree("x").is_(classad.ExprTree("undefined")).isnt_(1.5).eval() is True
    assert htcondor.SecMan().ping(htcondor.Collector().locate(htcondor.DaemonTypes.Schedd))["AuthorizationSucceeded"]
    assert htcondor.__version__ == htcondor.version().split()[1]


def test_the_pool(pool: PersonalPool) -> None:
    collector = htcondor2.Collector()
    assert {ad["MyType"] for ad in collector.query()} >= {"Machine", "Scheduler", "DaemonMaster", "Negotiator"}
    assert len(collector.query(htcondor2.AdType.Startd, "SlotID == 1", ["Name"])) == 1
    assert collector.query(htcondor2.AdType.HAD) == []
    assert len(collector.locateAll(htcondor2.DaemonType.Schedd)) == 1
    direct = collector.directQuery(htcondor2.DaemonType.Schedd)
    assert direct["MyType"] == "Scheduler"
    collector.advertise([classad2.ClassAd({"Name": "mine", "MyType": "Generic"})])
    assert collector.query(htcondor2.AdType.Generic, 'Name == "mine"')[0]["Name"] == "mine"
    negotiator = htcondor2.Negotiator()
    negotiator.setFactor("someone@here", 3.0)
    assert any(ad["Name"] == "someone@here" and ad["PriorityFactor"] == 3.0 for ad in negotiator.getPriorities())
    assert negotiator.getResourceUsage("someone@here") == []
    negotiator.deleteUser("someone@here")
    startd = htcondor2.Startd()
    startd.cancelDrainJobs(startd.drainJobs(htcondor2.DrainType.Fast))
    startd.vacate(htcondor2.VacateType.Fast)


def test_daemons_are_told(pool: PersonalPool) -> None:
    master = htcondor2.Collector().locate(htcondor2.DaemonType.Master)
    assert master is not None
    assert htcondor2.ping(master)["AuthCommand"] == 60011
    assert htcondor2.ping(str(master["MyAddress"]), "WRITE")["AuthCommand"] == 60021
    assert htcondor2.ping(master, "WRITE")["AuthorizationSucceeded"]
    with pytest.raises(NotImplementedError):
        htcondor2.ping(master, "NOTHING")
    remote = htcondor2.RemoteParam(master)
    assert remote["RUN"] == str(pool.dir / "run")
    assert "RUN" in set(remote)
    htcondor2.send_command(master, htcondor2.DaemonCommand.Reconfig)
    with pytest.raises(ValueError):
        htcondor2.send_command(classad2.ClassAd(), htcondor2.DaemonCommand.Reconfig)


def test_a_program_has_its_own_settings_and_log(pool: PersonalPool, work: Path) -> None:
    htcondor2.param["TEST_FOO"] = "foo"
    htcondor2.param["SCHEDD.TEST_FOO"] = "bar"
    assert htcondor2.param["TEST_FOO"] == "foo"
    htcondor2.set_subsystem("SCHEDD")
    assert htcondor2.param["TEST_FOO"] == "bar"
    htcondor2.set_subsystem("TOOL")
    htcondor2.param["TOOL_LOG"] = str(work / "tool.log")
    htcondor2.enable_log()
    htcondor2.log(htcondor2.LogLevel.Always, "a line")
    htcondor2.disable_debug()
    htcondor2.log(htcondor2.LogLevel.Always, "another")
    assert (work / "tool.log").read_text().endswith(" a line\n")
    (work / "map").write_text("* alice sky\n")
    htcondor2.load_a_config_usermap_file("projects", str(work / "map"))
    assert classad2.ExprTree('userMap("projects", "alice")').eval() == "sky"
    htcondor2.reload_config()
    assert htcondor2.param.get("TEST_FOO") is None
    values = dict(htcondor2.param)  # of all that have one
    assert (values["SPOOL"], len(values) > 100) == (htcondor2.param["SPOOL"], True)
    assert htcondor2.version().startswith("$CondorVersion: ")
    assert htcondor2.platform().startswith("$CondorPlatform: ")


def test_a_pool_of_a_programs_own(pool: PersonalPool) -> None:
    before = os.environ["CONDOR_CONFIG"]
    with fresh_folder() as folder:
        own = personal.PersonalPool(folder / "own", config={"MY_OWN": "7"}, use_config=False)
        assert own.state is personal.PersonalPoolState.UNINITIALIZED
        with own:
            assert own.state is personal.PersonalPoolState.READY
            assert own.get_config_val("MY_OWN") == "7"
            assert own.get_config_val("NO_SUCH", "x") == "x"
            with pytest.raises(KeyError):
                own.get_config_val("NO_SUCH")
            assert own.schedd.query() == []
            assert own.who()["MyType"] == "DaemonMaster"
            again = personal.PersonalPool(folder / "own", use_config=False)
            assert again.start().detach().state is personal.PersonalPoolState.READY
            again.stop()
        assert own.state is personal.PersonalPoolState.STOPPED
        with pytest.raises(htcondor2.HTCondorException), personal.SetCondorConfig(Path(before)):
            personal.PersonalPool.attach(folder / "own")
    os.environ["CONDOR_CONFIG"] = before
    htcondor2.reload_config()


def test_a_workflow_is_written_submitted_and_done(work: Path) -> None:
    dag = dags.DAG()
    echo = htcondor2.Submit({"executable": "/bin/sh", "arguments": "\"-c 'echo $(word) >> order'\"", "log": "nodes.log",
                             "should_transfer_files": "no", "transfer_executable": "false"})
    first = dag.layer(name="first", submit_description=echo, vars=[{"word": "one"}])
    first.child_layer(name="then", submit_description=echo, vars=[{"word": "two"}, {"word": "three"}])
    path = dags.write_dag(dag, work)
    program = work / "dagman"  # with a Python that every account may run
    program.write_text(f'#!/bin/sh\nexec {shlex.join(python_for_all().words)} -m condor_actors.tools.dag.dagman "$@"\n')
    program.chmod(0o755)
    work.chmod(0o777)
    description = htcondor2.Submit.from_dag(path.name, {
        "force": True, "MaxJobs": 1, "BatchName": "small", "DagmanPath": str(program)})
    assert "-MaxJobs 1" in description["arguments"]
    cluster = htcondor2.Schedd().submit(description).cluster()
    with htcondor2.JobEventLog(f"{path.name}.dagman.log") as log:
        ended = next((event for event in log.events(stop_after=120)
                      if event.type == htcondor2.JobEventType.JOB_TERMINATED), None)
    assert ended is not None, (work / f"{path.name}.dagman.out").read_text()
    assert (ended.cluster, ended["ReturnValue"]) == (cluster, 0)
    assert sorted((work / "order").read_text().split()[1:]) == ["three", "two"]
    assert (work / "order").read_text().startswith("one\n")


def test_what_is_no_workflow_is_no_submit_description(work: Path) -> None:
    (work / "bad.dag").write_text("JOB a a.sub\nPARENT a CHILD b\n")
    for name, options, error in (("bad.dag", {}, htcondor2.HTCondorException), ("none.dag", {}, OSError),
                                 ("bad.dag", {"nosuch": 1}, ValueError), ("bad.dag", {"force": 1.5}, TypeError)):
        with pytest.raises((error, htcondor2.HTCondorException)):
            htcondor2.Submit.from_dag(name, options)
