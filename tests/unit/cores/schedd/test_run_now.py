"""condor_now: a job takes the place of another one, and nobody comes between them."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.effects import Answer, Ask
from condor_actors.messages.claim import ClaimGranted, ClaimRefused, ClaimRevoked, JoinClaims, ReleaseClaim
from condor_actors.messages.envelope import AskFailed, Done, Identity, Refused, TimerFired
from condor_actors.messages.queue import ActOnJobs, JobAction, RunNow
from condor_actors.messages.run import StopRun
from tests.unit.cores.schedd.test_claims_and_runs import ANN, LEASE_S, Schedd, running

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
    for jobs, said in (((wanted, 1, 1), "named twice"), ((wanted,), "name a job"),
                       ((wanted, 1, wanted), "is not running"),
                       ((99, 1), "there is no job 99.0"), ((wanted, 99), "there is no job 99.0"),
                       ((1, wanted), "is not idle"), ((wanted, wanted), "is not running")):
        answer = now(schedd, *jobs)
        assert isinstance(answer, Refused), jobs
        assert said in answer.text
    assert now(schedd, wanted, 1, identity=BOB).code == "denied"
    assert isinstance(now(schedd, wanted, 1), Done)
    assert "on its way already" in now(schedd, wanted, 1).text


# ---- several


PART = (b'Name = "slot1_%d@e"\nParentSlotName = "slot1@e"\nMachineResources = "Cpus Memory"\nCpus = 1\nMemory = 1000\n'
        b"Requirements = TARGET.RequestCpus <= MY.Cpus\n")
WIDE = b"RequestCpus = 2\nJobPrio = -10\n"


def on_parts(schedd: Schedd, *parents: bytes) -> None:
    """A job of one cluster runs on a part of each of these slots."""
    schedd.submit(len(parents), b"RequestCpus = 1\n")
    for number, (tag, parent) in enumerate(zip(schedd.matched(), parents, strict=True), 1):
        granted(schedd, tag, f"c#{number}", PART.replace(b'"slot1@e"', parent) % number, f"slot1_{number}@e")


def granted(schedd: Schedd, tag: object, claim_id: str, ad: bytes, name: str) -> None:
    schedd.send(Answer(tag, ClaimGranted(claim_id=claim_id, secret="s", slot_name=name, slot_ad=ad,
                                         starter_node="<e:2>", lease_s=LEASE_S)))


def wide(schedd: Schedd, *parents: bytes) -> tuple[int, Any]:
    """A job that needs the slots of both others; the answer when it is to have them."""
    on_parts(schedd, *(parents or (b'"slot1@e"',) * 2))
    schedd.submit(1, b"RequestCpus = 1\nJobPrio = 10\n")
    wanted = schedd.submit(1, WIDE)
    (answer,) = schedd.send(RunNow(job=(wanted, 0), vacate=((1, 0), (1, 1))))
    return wanted, answer


def asked(schedd: Schedd) -> Any:
    """The tag of the question to the startd."""
    (tag,) = [each.tag for each in schedd.out if isinstance(each, Ask) and isinstance(each.message, JoinClaims)]
    return tag


def test_the_slots_of_several_are_joined_when_all_have_left() -> None:
    schedd = Schedd()
    wanted, answer = wide(schedd)
    assert isinstance(answer, Done)
    assert [stop.run_id for stop in schedd.sent(StopRun)] == ["1.0#1@s", "1.1#1@s"]
    assert "on its way already" in now(schedd, wanted, 1).text
    schedd.ended("1.0#1@s", "evicted")
    assert len(schedd.runs) == 2, "the claim waits for the other one, and nobody else gets it"
    schedd.core.validate()
    schedd.ended("1.1#1@s", "evicted")
    (join,) = schedd.sent(JoinClaims)
    assert join.claims == (("c#1", "s"), ("c#2", "s"))
    tag = asked(schedd)
    for claim_id in ("c#1", "c#2"):
        schedd.send(ClaimRevoked(claim_id=claim_id, reason="joined", final=True),
                    identity=Identity(name="h", method="tls", host="e", roles=frozenset({"startd"})))
    granted(schedd, tag, "c#3", PART.replace(b"Cpus = 1", b"Cpus = 2") % 3, "slot1_3@e")
    assert [(run.run_id.partition("#")[0], run.claim_id) for run in schedd.runs[2:]] == [(f"{wanted}.0", "c#3")]
    assert schedd.status(wanted) == "RUNNING"
    schedd.core.validate()


@pytest.mark.parametrize("said", [ClaimRefused(slot_name="slot1@e", reason="no"),
                                  AskFailed(reason="timeout", text="nobody answers")])
def test_slots_that_are_not_joined_are_given_back(said: object) -> None:
    schedd = Schedd()
    wanted, _ = wide(schedd)
    for run in ("1.0#1@s", "1.1#1@s"):
        schedd.ended(run, "evicted")
    schedd.send(Answer(asked(schedd), said))
    assert {release.claim_id for release in schedd.sent(ReleaseClaim)} == {"c#1", "c#2"}
    assert schedd.status(wanted) == "IDLE"
    schedd.core.validate()


def test_a_claim_that_is_lost_lets_go_of_the_other() -> None:
    schedd = Schedd()
    wanted, _ = wide(schedd)
    schedd.ended("1.0#1@s", "evicted")
    schedd.ended("1.1#1@s", "lost", claim_usable=False)
    assert schedd.timers()["idle-claim", "c#1"] == 0.0
    schedd.core.validate()
    schedd.send(TimerFired(key=("idle-claim", "c#1")))
    assert [release.claim_id for release in schedd.sent(ReleaseClaim)] == ["c#1"]
    assert schedd.status(wanted) == "IDLE"
    schedd.core.validate()


def test_a_job_that_is_gone_meanwhile_leaves_the_claims_to_others() -> None:
    schedd = Schedd()
    wanted, _ = wide(schedd)
    schedd.ended("1.0#1@s", "evicted")
    schedd.send(ActOnJobs(action=JobAction.REMOVE, ids=((wanted, 0),)))
    schedd.ended("1.1#1@s", "evicted")
    assert schedd.sent(JoinClaims) == []
    assert [run.claim_id for run in schedd.runs[2:]] == ["c#2"]
    schedd.core.validate()


def test_slots_that_cannot_be_one_are_refused_before_anybody_is_vacated() -> None:
    schedd = Schedd()
    _, answer = wide(schedd, b'"slot1@e"', b'"slot2@e"')
    assert "not parts of one partitionable slot" in answer.text
    schedd = Schedd()
    on_parts(schedd, b'"slot1@e"', b'"slot1@e"')
    wanted = schedd.submit(1, b"RequestCpus = 3\n")
    (answer,) = schedd.send(RunNow(job=(wanted, 0), vacate=((1, 0), (1, 1))))
    assert "cannot run on slot1_1@e and slot1_2@e" in answer.text
    assert schedd.sent(StopRun) == []
