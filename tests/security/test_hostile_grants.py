"""An execute machine that answers with more than it was asked: in grants, in reports of runs, in what its slots say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.claims.checked_grant import MOST_AD_BYTES
from condor_actors.cores.shadow.slot_expansion import CannotExpand, expand_slot_references
from condor_actors.messages.codes import JobEventType, JobStatus
from condor_actors.messages.envelope import Address
from condor_actors.messages.negotiate import NegotiateRequests, Rejection, RequestCycle, RequestsRejected
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.messages.run import RunBegan, RunProgress, Usage
from condor_actors.messages.shadow_host import RunEnded
from condor_actors.userlog import event_text
from tests.harness.submit_side import EXECUTE, SCHEDD, SLOT_AD, USER, SubmitPool

FORGED = ("\n...\n005 (001.000.000) 2026-01-01 00:00:00 Job terminated.\n\t(1) Normal termination (return value 0)"
          "\n...\n")
LARGE = 1 << 63


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def slot(**lies: str) -> bytes:
    ad = ClassAd.from_bytes(SLOT_AD)
    ad.update(lies)
    return ad.to_bytes()


GRANTS: dict[str, dict[str, Any]] = {
    "an event of a log in the slot's name": {"slot_name": f"slot1{FORGED}@execute"},
    "an event of a log in the name in the ad": {"slot_ad": slot(Name=f"slot1{FORGED}@execute")},
    "a variable of the environment for others of a gang": {"slot_name": "slot1@execute LD_PRELOAD=/tmp/x.so"},
    "the same in the ad": {"slot_ad": slot(Name="slot1@x LD_PRELOAD=/tmp/x.so A=@execute")},
    "quotes": {"slot_ad": slot(Name="slot1'@execute")},
    "more hosts than one": {"slot_ad": slot(Name="slot1@execute,slot1@execute")},
    "a slot of another machine": {"slot_name": "slot1@other"},
    "the name of another machine": {"slot_ad": slot(Name="slot1@other")},
    "a machine that a job may ask for by name": {"slot_ad": slot(Machine="trusted")},
    "a machine that is what each job asks for": {
        "slot_ad": SLOT_AD + b'Machine = ifThenElse(TARGET.Cmd is undefined, "execute", "trusted")\n'},
    "a name that is something else for each job": {
        "slot_ad": SLOT_AD.replace(b'"slot1@execute"', b'strcat("slot1@", TARGET.Owner)')},
    "a starter on a third machine": {"starter_node": "<other:1>"},
    "a starter in another pool": {"starter_node": "<execute%physics:1>"},
    "a starter that is a file of this machine": {"starter_node": "unix:/run/condor/schedd.sock"},
    "a starter whose node ends its line": {"starter_node": f"<execute:1?{FORGED}>"},
    "a startd on a third machine": {"slot_ad": slot(MyAddress="<other:1>")},
    "a claim id that ends its line": {"claim_id": f"{EXECUTE}#1#1{FORGED}"},
    "a claim id that another machine will give": {"claim_id": "<other:9620>#1#1"},
    "a claim id of another pool's machine": {"claim_id": "<execute%physics:9620>#1#1"},
    "a claim id without end": {"claim_id": "c" * 100_000},
    "no secret": {"secret": ""},
    "a secret without end": {"secret": "s" * 100_000},
    "no lease": {"lease_s": 0.0},
    "a lease that ended before": {"lease_s": -1e300},
    "a lease without end": {"lease_s": 1e300},
    "an ad that fills a message": {"slot_ad": SLOT_AD + b'A = "' + b"x" * MOST_AD_BYTES + b'"\n'},
    "no ad": {"slot_ad": b"= ="},
}


@pytest.mark.parametrize("lies", GRANTS.values(), ids=list(GRANTS))
def test_a_grant_that_says_more_than_it_may(pool: SubmitPool, lies: dict[str, Any]) -> None:
    """It is not believed, the log and the job say so, and others are served."""
    before = pool.schedd.actor
    cluster = pool.submit(f'UserLog = "{pool.folder}/log"\n'.encode())
    pool.execute.lies = lies
    assert pool.match() == 1
    assert pool.schedd.actor is before, "the schedd broke"
    assert len(pool.execute.granted) == 1
    assert not pool.execute.activations
    assert pool.status(cluster) == JobStatus.IDLE
    assert not pool.schedd.actor.core.claims.held
    pool.execute.lies = {}
    assert pool.match() == 1
    assert pool.status(cluster) == JobStatus.RUNNING
    log = (pool.folder / "log").read_text()
    assert "Job terminated" not in log
    assert len(pool.execute.activations) == 1


def set_aside(pool: SubmitPool) -> tuple[str, ...]:
    found: tuple[str, ...] = pool.ask(NegotiateRequests(cycle=9, submitter=f"{USER}@test"), pool.central).disbelieved
    return found


def test_a_startd_whose_grants_are_not_believed_is_left_out_for_longer_each_time(pool: SubmitPool) -> None:
    cluster = pool.submit(procs=2)
    pool.execute.lies = {"secret": ""}
    for span_s in (60.0, 120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0):
        pool.match(1)
        assert set_aside(pool) == (EXECUTE,)
        pool.run(span_s - 5.0)
        assert set_aside(pool) == (EXECUTE,)
        pool.central.messages.clear()
        pool.run(10.0)
        assert set_aside(pool) == ()
        assert any(isinstance(each, RequestCycle) for each in pool.central.messages), "its slots may be good again"
    pool.execute.lies = {}
    pool.match(1)
    assert set_aside(pool) == ()
    assert pool.status(cluster) == JobStatus.RUNNING
    pool.execute.lies = {"secret": ""}
    pool.match(1)
    pool.run(65.0)
    assert set_aside(pool) == (), "a grant that was good has cleared it"


@pytest.mark.parametrize("usage", [
    Usage(user_cpu_s=1e300, system_cpu_s=1e300, wall_s=1e-300, memory_kib=LARGE, peak_memory_kib=LARGE, disk_kib=LARGE,
          processes=LARGE),
    Usage(user_cpu_s=-1e300, system_cpu_s=-5.0, wall_s=-1.0, memory_kib=-LARGE, peak_memory_kib=-1, disk_kib=-LARGE,
          processes=-LARGE)])
def test_figures_that_nothing_can_have_used(pool: SubmitPool, usage: Usage) -> None:
    before = pool.schedd.actor
    cluster = pool.submit(f'UserLog = "{pool.folder}/log"\n'.encode())
    pool.match()
    run_id = f"{cluster}.0#1"
    pool.execute.begin(run_id)
    pool.execute.tell_shadow(run_id, RunProgress(run_id=pool.execute.runs[run_id][0].run_id, usage=usage,
                                                 state="suspended"))
    pool.run(30.0)
    pool.execute.finish(run_id, exit_code=LARGE, exit_signal=-LARGE)
    pool.run(30.0)
    assert pool.schedd.actor is before, "the schedd broke"
    (ended,) = pool.history()
    assert ended.get_int("JobStatus") == JobStatus.COMPLETED
    assert ended.get_int("ExitCode") == (1 << 31) - 1
    assert 0 <= ended.get_float("CumulativeRemoteUserCpu") < 1e16
    assert 0 <= ended.get_int("MemoryUsage") < 1 << 53
    assert (pool.folder / "log").read_text().count("005 (") == 1


def test_a_reason_that_forges_events_and_has_no_end(pool: SubmitPool) -> None:
    cluster = pool.submit(f'UserLog = "{pool.folder}/log"\n'.encode())
    pool.match()
    pool.execute.tell_shadow(f"{cluster}.0#1", RunBegan(
        run_id=pool.execute.runs[f"{cluster}.0#1"][0].run_id, when_s=1e300, pid=-LARGE, scratch_dir=FORGED,
        image_digest=f"sha256:{FORGED}"))
    pool.execute.finish(f"{cluster}.0#1", cause="hold", exit_code=-1, reason=FORGED + "x" * 100_000,
                        hold_code=LARGE, hold_subcode=-LARGE)
    pool.run(30.0)
    (job,) = pool.jobs()
    assert job.get_int("JobStatus") == JobStatus.HELD
    assert job.get_int("HoldReasonCode") == (1 << 31) - 1
    assert len(job.get_str("HoldReason")) < 5000
    assert re.findall(r"^(\d\d\d) \(", (pool.folder / "log").read_text(), re.M)[-1] == "012"
    assert "\n005 (" not in (pool.folder / "log").read_text()


def test_no_text_that_would_make_the_queue_unreadable(pool: SubmitPool) -> None:
    """An ad holds no NUL: one in a reason of a user, a negotiator or a shadow host would never be read again."""
    cluster = pool.submit(procs=2)
    answer = pool.ask(ActOnJobs(action=JobAction.HOLD, ids=((cluster, 0),), reason="a\0b"))
    assert (answer.code, "NUL" in answer.text) == ("malformed", True)
    pool.central.tell(Address(SCHEDD, "schedd"), RequestsRejected(cycle=1, submitter=f"{USER}@test", rejections=(
        Rejection(autocluster=1, job_id=f"{cluster}.0", reason="a\0b"),)))
    pool.match()
    host = pool.net.probe(pool.net.systems[pool.processes.alive[pool.owner_host_pid()]])
    host.tell(Address(SCHEDD, "schedd"), RunEnded(run_id=f"{cluster}.1#1@schedd@test", outcome="hold", attributes=b"",
                                                  reason="a\0b"))
    pool.run(30.0)
    assert [job.get_int("JobStatus") for job in pool.jobs()] == [JobStatus.RUNNING] * 2
    pool.kill_schedd()
    pool.start_schedd()
    assert len(pool.jobs()) == 2


NAMES = sorted({name for names in re.findall(r"get_str\(['\"](\w+)|\(\"\w+\", \"(\w+)\"\)",
                                             Path(event_text.__file__).read_text()) for name in names if name})


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029",
                                    "\x1b]0;"])
@pytest.mark.parametrize("event", sorted({*event_text.EVENT_NAMES} - {JobEventType.JOB_AD_INFORMATION}))
def test_no_fact_of_any_event_is_another_event(event: int, ending: str) -> None:
    """Each fact that an event names, made by a machine: it stays on its line, and XML stays XML."""
    assert {"SlotName", "ExecuteHost", "CondorScratchDir", "JobCoreFileName"} <= {*NAMES}
    facts = ClassAd({name: FORGED.replace("\n", ending) for name in (*NAMES, "AssignedGPUs", "AssignedCpus")})
    facts.update({"ExitBySignal": True, "JobCoreDumped": True, "GPUsProvisioned": 1, "CpusProvisioned": 1})
    text = event_text.event_text(event, 1, 0, 0.0, facts)
    lines = re.split("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", text)
    assert [line for line in lines if re.match(r"\d\d\d \(", line)] == lines[:1]
    assert [number for number, line in enumerate(lines) if line.rstrip() == "..."] == [len(lines) - 2]
    assert "\x1b" not in text
    (element,) = ElementTree.fromstring(f"<l>{event_text.event_xml(event, 1, 0, 0.0, facts)}</l>")
    assert [each.find("s").text for each in element if each.get("n") == "MyType"] == [event_text.EVENT_NAMES[event]]


OTHER_FILES = ["../../.ssh/id_rsa", "/etc/shadow", "x,/home/alice/secret", "x;out=/home/alice/.profile", "..", "a\nb",
               "a\u2028b"]


@pytest.mark.parametrize("value", OTHER_FILES)
@pytest.mark.parametrize("attribute", ["Cmd", "In", "Out", "Err", "UserLog", "Iwd", "TransferInput", "OutputDirectory",
                                       "TransferOutputRemaps", "JobRoot", "x509userproxy", "AnythingElse"])
@pytest.mark.parametrize("reference", ["$$(Arch)", "$$([TARGET.Arch])", "$$([strcat(Arch, \"\")])"])
def test_a_slot_leads_to_no_other_file_of_the_owners(attribute: str, value: str, reference: str) -> None:
    job = ClassAd({attribute: reference})
    with pytest.raises(CannotExpand, match=attribute):
        expand_slot_references(job, ClassAd({"Arch": value}))


@pytest.mark.parametrize(("attribute", "text", "value"), [
    ("Environment", "A=$$(Arch)", "x LD_PRELOAD=/tmp/x.so"), ("Environment", "B=1 A=$$(Arch) C=1", "x\tLD_PRELOAD=y"),
    ("Environment", "'A=$$(Arch)'", "x' LD_PRELOAD=/tmp/x.so 'y="), ("Environment", "'A=$$(Arch)'", "' 'LD_PRELOAD=x"),
    ("Environment", "$$(Arch)=1", "LD_PRELOAD"), ("Environment", "A=1 $$(Arch)", "LD_PRELOAD=x"),
    ("Environment", "A=$$(Arch)", "'"), ("Env", "A=$$(Arch)", "x;LD_PRELOAD=/tmp/x.so")])
def test_a_slot_sets_no_variable_that_the_job_does_not_name(attribute: str, text: str, value: str) -> None:
    with pytest.raises(CannotExpand, match=attribute):
        expand_slot_references(ClassAd({attribute: text}), ClassAd({"Arch": value}))


def test_what_a_slot_may_say() -> None:
    slot_ad = ClassAd({"Arch": "X86_64", "Python": "/opt/python3", "OpSysLongName": "Debian GNU/Linux 12"})
    job = ClassAd({
        "Cmd": "/home/a/prog.$$(Arch)", "Arguments": "$$(Python) '$$(OpSysLongName)'", "Out": "o.$$(Nothing:/tmp/own)",
        "Environment": "'OS=$$(OpSysLongName)' P=$$(Python)",
        "In": '$$([ifThenElse(TARGET.Arch == "X86_64", "/data/x86", "/data/other")])'})
    expand_slot_references(job, slot_ad)
    assert job["Cmd"] == "/home/a/prog.X86_64"
    assert job["Arguments"] == "/opt/python3 'Debian GNU/Linux 12'"
    assert job["Environment"] == "'OS=Debian GNU/Linux 12' P=/opt/python3"
    assert (job["Out"], job["In"]) == ("o./tmp/own", "/data/x86")
    there = ClassAd({"Cmd": "$$(Python)", "TransferExecutable": False, "JobUniverse": 5})
    expand_slot_references(there, slot_ad)
    assert there["Cmd"] == "/opt/python3"
