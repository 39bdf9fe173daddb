"""A job that was over a limit asks for more, as it has said, and is held when there is no more."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.schedd.raised_requests import larger_request
from condor_actors.messages.codes import HoldCode, HoldSubCode
from tests.unit.cores.schedd.test_claims_and_runs import Schedd

LIMIT = HoldCode.JOB_OUT_OF_RESOURCES
RULE = "NextRequestMemory = RequestMemory * 4\nMaxRequestMemory = 300"
MEMORY, DISK = HoldSubCode.MEMORY_EXCEEDED, HoldSubCode.DISK_EXCEEDED


@pytest.mark.parametrize(("ad", "subcode", "answer"), [
    ("RequestMemory = 100\nRetryRequestMemory = { 200, 400 }", MEMORY, ("RequestMemory", 200)),
    ("RequestMemory = 200\nRetryRequestMemory = { 200, 400 }", MEMORY, ("RequestMemory", 400)),
    ("RequestMemory = 400\nRetryRequestMemory = { 200, 400 }", MEMORY, None),
    ("RequestMemory = 100\nRetryRequestMemory = 300", MEMORY, ("RequestMemory", 300)),
    (f"RequestMemory = 100\n{RULE}", MEMORY, ("RequestMemory", 300)),
    (f"RequestMemory = 300\n{RULE}", MEMORY, None),
    ("RequestDisk = 10\nRetryRequestDisk = { 20 }", DISK, ("RequestDisk", 20)),
    ("RequestDisk = 10\nRetryRequestDisk = { 20 }", MEMORY, None),
    ("RequestMemory = 100", MEMORY, None),
    ('RequestMemory = 100\nRetryRequestMemory = { "x", error, true, 1e300 }', MEMORY, None),
    ("RequestMemory = 100\nNextRequestMemory = 0.0 / 0.0", MEMORY, None),
    ('RequestMemory = "many"\nRetryRequestMemory = { 200 }', MEMORY, None),
])
def test_what_is_asked_for_next(ad: str, subcode: int, answer: tuple[str, int] | None) -> None:
    assert larger_request(ClassAd.from_text(ad), LIMIT, subcode) == answer


def test_another_hold_is_a_hold() -> None:
    ad = ClassAd.from_text("RequestMemory = 100\nRetryRequestMemory = { 200 }")
    assert larger_request(ad, HoldCode.USER_REQUEST, MEMORY) is None


def test_a_job_runs_again_with_more_and_is_held_at_last() -> None:
    schedd = Schedd()
    cluster = schedd.submit(ad=b"RequestMemory = 100\nRetryRequestMemory = { 400 }\n")
    over = {"hold_code": int(LIMIT), "hold_subcode": int(MEMORY), "reason": "too much memory"}
    schedd.granted(schedd.matched()[0])
    schedd.ended(f"{cluster}.0#1@s", "hold", **over)
    job = schedd.core.context.queue.job(cluster, 0)
    assert job is not None
    assert (job.ad.get_int("RequestMemory"), job.ad.get_int("NumHolds")) == (400, 0)
    run = schedd.runs[-1].run_id if schedd.status(cluster) == "RUNNING" else ""
    if not run:
        schedd.granted(schedd.matched()[0])
        run = schedd.runs[-1].run_id
    schedd.ended(run, "hold", **over)
    assert schedd.status(cluster) == "HELD"
    assert job.ad.get_str("HoldReason") == "too much memory"
    schedd.core.validate()
