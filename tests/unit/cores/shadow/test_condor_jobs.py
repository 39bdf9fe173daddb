"""What another schedd is told of a job, and what its answers are taken for, also those that are meant to harm."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.condor_jobs import (
    CONDOR,
    home_of,
    job_number,
    question_for,
    read_job,
    record_of,
    remote_ad,
    remote_problems,
)
from condor_actors.cores.shadow.grid_events import BatchJob, Fits, FolderRecord
from condor_actors.cores.shadow.slurm_jobs import FENCE
from condor_actors.messages.codes import HoldCode

HOME = ClassAd.from_text("""
Cmd = "/home/a/x"
Iwd = "/home/a"
Owner = "alice"
GlobalJobId = "here#4.0#9"
JobUniverse = 9
GridResource = "condor there pool"
UserLog = "/home/a/log"
Out = "result"
Err = "/dev/null"
PeriodicHold = NumJobStarts > 3
AccountingGroup = "physics"
TransferOutputRemaps = "a=b"
Requirements = TARGET.Memory > 5
Mine = 7
Remote_Requirements = TARGET.HasIt
remote_Colour = "red"
ShouldTransferFiles = "IF_NEEDED"
""")


def test_the_ad_there() -> None:
    ad = remote_ad(HOME, "run")
    assert (ad.get_int("JobUniverse"), ad.get_str("Out"), ad.get_str("Err")) == (5, "_condor_stdout", "/dev/null")
    assert (ad.get_str("ShouldTransferFiles"), ad.get_int("Mine"), ad.get_str("Colour")) == ("YES", 7, "red")
    assert str(ad.expression("Requirements")) == "TARGET.HasIt"
    assert (ad.get_str("SubmitterRun"), ad.get_str("SubmitterId")) == ("run", "here/alice")
    ad["JobStatus"] = 3
    assert ad.evaluate("LeaveJobInQueue") is False
    ad["JobStatus"] = 4
    assert ad.evaluate("LeaveJobInQueue") is True
    for name in ("Owner", "UserLog", "GridResource", "PeriodicHold", "AccountingGroup", "TransferOutputRemaps",
                 "Remote_Requirements", "GlobalJobId"):
        assert name not in ad
    assert home_of(HOME) == "here/alice"
    assert question_for('a"b') == 'SubmitterId == "a\\"b" && SubmitterRun isnt undefined'


def test_output_and_error_in_one_file_stay_one() -> None:
    job = HOME.copy()
    job["Err"] = "result"
    assert remote_ad(job, "run").get_str("Err") == "_condor_stdout"


@pytest.mark.parametrize(("name", "value", "said"), [
    ("Remote_JobUniverse", 9, "universes"), ("remote_remote_x", 1, "once"), ("remote_GridResource", "a", "once"),
    ("remote_Owner", "bob", "grid manager"), ("ShouldTransferFiles", "NO", "travel")])
def test_what_cannot_be_said_there(name: str, value: object, said: str) -> None:
    assert not remote_problems(HOME)
    job = HOME.copy()
    job[name] = value
    assert said in remote_problems(job)


def ad_of(**facts: object) -> bytes:
    return ClassAd({"ClusterId": 3, "ProcId": 0, "SubmitterRun": "run", "JobStatus": 1, **facts}).to_bytes()


def test_a_job_is_read() -> None:
    job = read_job(ad_of(JobStatus=4, ExitBySignal=False, ExitCode=7, JobStartDate=50, LastRemoteHost="slot1@n"))
    assert job is not None
    assert (job.batch_id, job.run, job.ended, job.began_s, job.host) == ("3.0", "run", (7, False), 50.0, "slot1@n")
    found, record = record_of(True, "3.0", job, None)
    assert (found[0].state, record.status, record.signal, record.claim) == ("COMPLETED", 7, 0, "3.0")
    killed = read_job(ad_of(JobStatus=4, ExitBySignal=True, ExitSignal=9))
    assert killed is not None
    _, record = record_of(True, "3.0", killed, None)
    assert (record.status, record.signal, bool(record.began_s)) == (9, 9, True)


@pytest.mark.parametrize("text", [
    b"", b"\xff\xfe", b"[[[", b"ClusterId = 3\n", ad_of(ClusterId="3"), ad_of(ClusterId=-3), ad_of(ProcId=1 << 40),
    ad_of(ClusterId=True), ad_of(Big="x" * 100_000), b"ClusterId = " + b"(" * 50_000])
def test_nothing_can_be_said_of_it(text: bytes) -> None:
    assert read_job(text) is None


@pytest.mark.parametrize("facts", [
    {"ExitCode": "7", "ExitBySignal": False}, {"ExitCode": 7, "ExitBySignal": "no"}, {"ExitSignal": 70_000,
    "ExitBySignal": True}, {"ExitCode": 1 << 40, "ExitBySignal": False}, {}])
def test_a_completed_job_that_does_not_say_how_is_held(facts: dict[str, object]) -> None:
    job = read_job(ad_of(JobStatus=4, **facts))
    assert job is not None
    found, record = record_of(True, "3.0", job, None)
    assert record.status is None
    assert CONDOR.fits(found[0]) is Fits.OVER
    assert CONDOR.verdict("3.0", found[0], record)[0] == "hold"


def test_nothing_of_an_answer_is_evaluated_and_texts_are_cut() -> None:
    job = read_job(b'ClusterId = 3\nProcId = 0\nJobStatus = 2 + 3\nHoldReason = strcat("a", "b")\nSubmitterRun = "r"\n')
    assert job is not None
    assert (job.status, job.reason) == (0, "")
    held = read_job(ad_of(JobStatus=5, HoldReason="a\nb\x1b" + "x" * 5000, HoldReasonCode=-4, HoldReasonSubCode="x"))
    assert held is not None
    assert (held.reason[:4], len(held.reason), held.code, held.subcode) == ("a b ", 500, 0, 0)


def test_one_that_waits_for_its_input_has_not_been_let_go() -> None:
    job = read_job(ad_of(JobStatus=5, HoldReasonCode=16))
    assert record_of(True, "3.0", job, None) == ((), FolderRecord(prepared=True))
    assert record_of(True, "3.0", None, None) == ((), FolderRecord(prepared=True, claim="3.0"))
    assert record_of(True, FENCE, None, None) == ((), FolderRecord(prepared=True))


@pytest.mark.parametrize(("facts", "queued", "outcome", "code"), [
    ({"JobStatus": 5, "HoldReason": "too big", "HoldReasonCode": 34, "HoldReasonSubCode": 102}, True, "hold", 34),
    ({"JobStatus": 3, "RemoveReason": "by bob"}, False, "hold", HoldCode.STARTD_HELD_JOB),
    ({"JobStatus": 4, "ExitBySignal": False, "ExitCode": 0}, False, "hold", HoldCode.TRANSFER_OUTPUT_ERROR)])
def test_what_becomes_of_it_is_a_hold_with_the_reason(facts: dict[str, object], queued: bool, outcome: str,
                                                      code: int) -> None:
    job = read_job(ad_of(**facts))
    found, record = record_of(True, "3.0", job if queued else None, None if queued else job)
    assert CONDOR.fits(found[0]) is Fits.OVER
    said = CONDOR.verdict("3.0", found[0], record)
    assert (said[0], said[2]) == (outcome, code)
    assert str(facts.get("HoldReason", facts.get("RemoveReason", "fetched"))) in said[1]


def test_one_that_nobody_knows_is_lost() -> None:
    assert CONDOR.verdict("3.0", None, FolderRecord(claim="3.0"))[0] == "lost"
    assert CONDOR.fits(BatchJob("3.0", "UNKNOWN")) is Fits.WAITING


@pytest.mark.parametrize("text", ["", "3", "3.", ".0", "-3.0", "3.0.1", "a.b", "³.0", "9" * 30 + ".0", FENCE])
def test_no_number(text: str) -> None:
    assert job_number(text) is None
