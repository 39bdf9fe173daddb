"""Numbers that are none, or have no end, where a user, a job or another pool says them: no daemon breaks of them."""

from __future__ import annotations

from pathlib import Path

import msgpack
import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.slurm_jobs import read_record
from condor_actors.cores.starter.run_spec import read_spec, signal_number
from condor_actors.messages.claim import ClaimGranted
from condor_actors.messages.codec import MalformedMessage, decode, encode
from condor_actors.messages.codes import JobEventType, JobStatus
from condor_actors.messages.envelope import Address
from condor_actors.messages.negotiate import Match, MatchesMade, Rejection, RequestsRejected
from condor_actors.messages.queue import ActOnJobs, EditJobs, JobAction, QueryJobs
from condor_actors.messages.submission import ReserveCluster, SubmitItems
from condor_actors.numerals import INT64, job_numbers, moment, numeral, whole
from condor_actors.userlog.event_text import event_text, event_xml
from tests.harness.processor_time import at_most
from tests.harness.submit_side import EXECUTE, SCHEDD, SLOT_AD, USER, SubmitPool

MOST_S = 20.0
"""Of processor time, for what takes a few milliseconds."""
DIGITS = "9" * 5000
"""Python refuses to make a number of so many."""
UINT64 = (1 << 64) - 1
ENDLESS = ('real("INF")', 'real("-INF")', 'real("NaN")', "1.0e300")


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def stands(pool: SubmitPool, before: object) -> None:
    """The schedd has not broken, and works for others."""
    assert pool.schedd.actor is before, "the schedd broke"
    cluster = pool.submit()
    pool.match()
    assert pool.status(cluster) == JobStatus.RUNNING


@pytest.mark.parametrize("value", ENDLESS)
def test_subcodes_of_holds(pool: SubmitPool, value: str) -> None:
    before = pool.schedd.actor
    cluster = pool.submit(f"PeriodicHold = true\nPeriodicHoldSubCode = {value}\nOnExitHold = true\n"
                          f"OnExitHoldSubCode = {value}\n".encode())
    pool.run(400.0)
    assert pool.status(cluster) == JobStatus.HELD
    stands(pool, before)


@pytest.mark.parametrize("value", ENDLESS)
@pytest.mark.parametrize("name", ["KeepClaimIdle", "JobLeaseDuration", "DeferralPrepTime", "DeferralWindow",
                                  "AllowedJobDuration", "JobPrio", "NextJobStartDelay", "MaxTransferInputMB"])
def test_times_of_jobs(pool: SubmitPool, name: str, value: str) -> None:
    before = pool.schedd.actor
    deferral = f"DeferralTime = {int(pool.net.clock.seconds()) + 500}\n" if name.startswith("Deferral") else ""
    cluster = pool.submit(f"{name} = {value}\n{deferral}".encode())
    pool.match()
    pool.run(5.0)
    if f"{cluster}.0#1" in pool.execute.runs:
        pool.execute.begin(f"{cluster}.0#1")
        pool.run()
        pool.execute.finish(f"{cluster}.0#1")
    pool.run(600.0)
    stands(pool, before)


@pytest.mark.parametrize("words", [
    f"JobMachineAttrsHistoryLength = {INT64}\n", f"JobMachineAttrsHistoryLength = {-INT64}\n",
    "JobMachineAttrsHistoryLength = 1.0e300\n", "Rank = 1\n"])
@pytest.mark.parametrize("names", ["Cpus", "Cpus," * 20_000, "Cpus\\nOwner", "Cpus = 1, , x y, \\x, ä"])
def test_what_is_kept_of_machines(pool: SubmitPool, words: str, names: str) -> None:
    """How much that is says the job: the schedd counted up to it in one turn."""
    before = pool.schedd.actor
    cluster = pool.submit(f'{words}JobMachineAttrs = "{names}"\n'.encode())
    with at_most(MOST_S):
        pool.match()
        pool.run(5.0)
    assert pool.status(cluster) == JobStatus.RUNNING
    stands(pool, before)


@pytest.mark.parametrize("job_id", [f"{DIGITS}.0", f"1.{DIGITS}", "٣.0", "-1.0", "1.", "²." + "0"])
def test_ids_in_what_a_negotiator_of_another_pool_says(pool: SubmitPool, job_id: str) -> None:
    before = pool.schedd.actor
    pool.submit()
    pool.central.tell(Address(SCHEDD, "schedd"), RequestsRejected(
        cycle=1, submitter=f"{USER}@test", rejections=(Rejection(autocluster=1, job_id=job_id, reason="no"),)))
    pool.central.tell(Address(SCHEDD, "schedd"), MatchesMade(cycle=1, submitter=f"{USER}@test", matches=(Match(
        autocluster=77, job_id=job_id, slot_name="slot1@execute", startd_address=EXECUTE, slot_ad=SLOT_AD,
        capability="c"),)))
    pool.run()
    stands(pool, before)


@pytest.mark.parametrize("question", [
    QueryJobs(since=DIGITS, source="history"), QueryJobs(cursor=DIGITS), QueryJobs(cursor=f"1/{DIGITS}.0"),
    QueryJobs(source="factories", cursor=DIGITS), QueryJobs(ids=((INT64, INT64),)),
    QueryJobs(ids=((INT64, INT64),), source="history"), QueryJobs(ids=((UINT64, 0),), source="history"),
    QueryJobs(ids=((UINT64, UINT64),)), QueryJobs(ids=((1, UINT64),), source="epochs"),
    QueryJobs(ids=((UINT64, 0),), source="factories"), QueryJobs(limit=UINT64, source="history"),
    QueryJobs(source="history", cursor="0/" + "9" * 30), QueryJobs(source="epochs", cursor="0/-" + "9" * 30),
    QueryJobs(source="history", ids=tuple((number, 0) for number in range(2000))),
    ActOnJobs(action=JobAction.HOLD, ids=((UINT64, UINT64),)), EditJobs(ids=((UINT64, -1),), attributes=b"A = 1"),
    ReserveCluster(count=UINT64), SubmitItems(cluster_id=UINT64, page=UINT64, cluster_ad=b"", items=(), last=True)])
def test_questions(pool: SubmitPool, question: object) -> None:
    before = pool.schedd.actor
    pool.ask(question)
    stands(pool, before)


def test_no_message_has_a_number_that_is_none() -> None:
    good = ClaimGranted(claim_id="1", secret="s", slot_name="s", slot_ad=b"", starter_node="", lease_s=1.0)
    fields = msgpack.unpackb(encode(good))
    assert decode(good.KIND, good.VERSION, msgpack.packb(fields)) == good
    with pytest.raises(MalformedMessage, match="lease_s"):
        decode(good.KIND, good.VERSION, msgpack.packb({**fields, "lease_s": float("nan")}))


@pytest.mark.parametrize("word", [DIGITS, "9" * 400, "1e400", "inf", "nan", "-5", "٣", "²", "\0"])
def test_what_a_job_writes_beside_its_folder(word: str) -> None:
    """The files by which a script in Slurm tells its grid manager are its owner's, so its program's as well."""
    record = read_record({"prepared": "", "began": f"{word} {'h' * 5000}", "batch_id": f"{word} {word}",
                          "end": f"{word} {word}m{word}s {word}m{word}s", "death": ""}, word)
    assert (record.began_s, record.submitted_s, record.status) == (0.0, 0.0, None)
    assert (record.batch_id, record.claim) == ("", "")
    assert len(record.host) < 300


@pytest.mark.parametrize("word", [DIGITS, "0", "-1", "65", "99999", "٣", ""])
def test_signals_that_are_none(word: str) -> None:
    assert signal_number(word, 15) == 15
    read_spec(ClassAd({"Cmd": "x", "KillSig": word, "Iwd": "/"}))


@pytest.mark.parametrize("when_s", [float("inf"), float("-inf"), float("nan"), 1e300, -1e300, 1e12])
def test_dates_that_no_calendar_has(when_s: float) -> None:
    facts = ClassAd({"ExecuteHost": "<1.2.3.4:5>"})
    facts["CompletionDate"] = INT64
    for event in (JobEventType.EXECUTE, JobEventType.JOB_TERMINATED):
        assert event_text(event, 1, 0, when_s, facts).endswith("\n...\n")
        assert "<c>" in event_xml(event, 1, 0, when_s, facts)


def test_numbers_are_taken_with_care() -> None:
    assert [numeral(text) for text in ("12", DIGITS, "٣", "-1", "", " 1")] == [12, None, None, None, None, None]
    assert [job_numbers(text) for text in ("12.3", "12", f"1.{DIGITS}")] == [(12, 3), None, None]
    assert [whole(value, 7) for value in (1.9, True, "x", float("inf"), float("nan"), 1e300, -1e300)] == [
        1, 1, 7, 7, 7, INT64, -INT64 - 1]
    assert moment(float("inf")).year >= 9999
    ad = ClassAd.from_bytes(b'I = real("INF")\nN = real("NaN")\nB = 1.0e300\n')
    assert [ad.get_int(name, 5) for name in "INB"] == [5, 5, INT64]
    assert ad.get_float("N", 2.5) == 2.5
