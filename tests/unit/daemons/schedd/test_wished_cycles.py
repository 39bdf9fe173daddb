"""When a schedd asks the negotiator for a cycle although its users want no more jobs run than before."""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.cores.schedd.runs.job_verdict import FAILURE_DELAYS_S
from condor_actors.messages.negotiate import NegotiateRequests, RequestCycle
from condor_actors.messages.queue import EditJobs
from tests.harness.submit_side import USER, SubmitPool


@pytest.fixture
def pool(tmp_path: Path) -> SubmitPool:
    return SubmitPool(tmp_path)


def cycles_wished(pool: SubmitPool) -> int:
    return sum(isinstance(each, RequestCycle) for each in pool.central.messages)


def test_a_job_that_is_edited_to_match_other_slots_asks_for_one(pool: SubmitPool) -> None:
    cluster = pool.submit()
    pool.ask(NegotiateRequests(cycle=1, submitter=f"{USER}@test"), pool.central)
    pool.run(1.0)
    expected = cycles_wished(pool)
    edits = ((b"JobPrio = 7\n", 0, False), (b"RequestCpus = 3\n", 0, True), (b"Requirements = Memory > 5\n", -1, True),
             (b"Requirements = Memory > 5\n", -1, False))
    for attributes, proc, matters in edits:
        pool.ask(EditJobs(attributes=attributes, ids=((cluster, proc),)))
        pool.run(1.0)
        expected += matters
        assert cycles_wished(pool) == expected, attributes


def test_a_job_whose_time_to_wait_is_over_asks_for_one(pool: SubmitPool) -> None:
    """Its run has failed: it has counted as idle since then, and the negotiator was told of nothing new."""
    cluster = pool.submit()
    pool.match()
    pool.execute.finish(f"{cluster}.0#1", cause="transfer-failed", exit_code=-1, reason="a link was down")
    pool.run(0.5)
    (job,) = pool.jobs()
    assert (job.get_int("JobStatus"), job.get_int("NumFailedStarts")) == (1, 1)
    assert pool.execute.released == pool.execute.granted, "no claim is kept that it could have"
    before = cycles_wished(pool)
    pool.run(FAILURE_DELAYS_S[1] + 1.0)
    assert cycles_wished(pool) == before + 1
