"""condor_now: a job takes the place of another one, and nobody comes between them."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.queue import ActOnJobs, JobAction, RunNow
from condor_actors.messages.run import StopRun
from tests.unit.cores.schedd.test_claims_and_runs import ANN, Schedd, running

BOB = Identity(name="bob@dom", method="local", uid=1001)


def now(schedd: Schedd, job: int, *victims: int, identity: Identity = ANN) -> Any:
    (answer,) = schedd.send(RunNow(job=(job, 0), vacate=tuple((victim, 0) for victim in victims)), identity=identity)
    return answer


def test_it_gets_the_claim_when_the_other_has_left_before_those_that_wait_longer() -> None:
    schedd = Schedd()
    claim_id = running(schedd)
    schedd.submit(3, b"JobPrio = 10\n")
    wanted = schedd.submit(1, b"JobPrio = -10\n")
    assert isinstance(now(schedd, wanted, 1), Done)
    (stop,) = schedd.sent(StopRun)
    assert (stop.run_id, stop.how) == ("1.0#1@s", "vacate")
    assert f"for job {wanted}.0" in stop.reason
    assert [run.run_id for run in schedd.runs] == ["1.0#1@s"], "not before the other has left"
    schedd.ended("1.0#1@s", "evicted", reason=stop.reason)
    assert [(run.run_id.partition("#")[0], run.claim_id) for run in schedd.runs] == [
        ("1.0", claim_id), (f"{wanted}.0", claim_id)]
    assert (schedd.status(1), schedd.status(wanted)) == ("IDLE", "RUNNING")
    schedd.core.validate()


def test_one_that_has_gone_meanwhile_leaves_the_claim_to_others() -> None:
    schedd = Schedd()
    running(schedd)
    wanted = schedd.submit(1)
    assert isinstance(now(schedd, wanted, 1), Done)
    schedd.send(ActOnJobs(action=JobAction.REMOVE, ids=((wanted, 0),)))
    schedd.ended("1.0#1@s", "evicted")
    assert [run.run_id.partition("#")[0] for run in schedd.runs] == ["1.0", "1.0"]
    schedd.core.validate()


def test_a_claim_that_is_lost_leaves_it_idle() -> None:
    schedd = Schedd()
    running(schedd)
    wanted = schedd.submit(1)
    assert isinstance(now(schedd, wanted, 1), Done)
    schedd.ended("1.0#1@s", "lost", claim_usable=False)
    assert schedd.status(wanted) == "IDLE"
    assert len(schedd.runs) == 1
    schedd.core.validate()


@pytest.mark.parametrize(("ad", "said"), [
    (b"Requirements = TARGET.Memory > 5000\n", "do not fit"),
    (b"ConcurrencyLimits = \"licence\"\n", "do not fit"),
    (b"JobUniverse = 7\n", "is not of the vanilla universe"),
])  # fmt: skip
def test_one_that_does_not_fit_is_refused(ad: bytes, said: str) -> None:
    schedd = Schedd()
    running(schedd)
    answer = now(schedd, schedd.submit(1, ad), 1)
    assert isinstance(answer, Refused)
    assert said in answer.text
    assert schedd.sent(StopRun) == []


def test_what_cannot_be_asked() -> None:
    schedd = Schedd()
    running(schedd)
    wanted = schedd.submit(2)
    for jobs, said in (((wanted, 1, wanted), "are not joined"), ((wanted,), "are not joined"),
                       ((99, 1), "there is no job 99.0"), ((wanted, 99), "there is no job 99.0"),
                       ((1, wanted), "is not idle"), ((wanted, wanted), "is not running")):
        answer = now(schedd, *jobs)
        assert isinstance(answer, Refused), jobs
        assert said in answer.text
    assert now(schedd, wanted, 1, identity=BOB).code == "denied"
    assert isinstance(now(schedd, wanted, 1), Done)
    assert "on its way already" in now(schedd, wanted, 1).text
