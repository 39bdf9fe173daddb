"""Claims that become one: when nothing runs on them, in one turn, and nobody comes between."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import DropClaim, SaveClaim
from condor_actors.cores.startd.claims.claim_joining import JOIN_WAIT_S
from condor_actors.effects import Ask, Persist
from condor_actors.messages.admin import VacateSlots
from condor_actors.messages.claim import ClaimActivity, ClaimGranted, ClaimRefused, CloseClaim, JoinClaims, OpenClaim
from condor_actors.messages.envelope import TimerFired
from tests.unit.cores.startd.startd_bench import JOB, STARTER, Startd

WIDE = JOB.replace("RequestCpus = 1", "RequestCpus = 4")


def two(**policy: str) -> tuple[Startd, ClaimGranted, ClaimGranted]:
    """A machine with four processors, two of them claimed and busy."""
    startd = Startd(policy)
    first, second = startd.claim(job=JOB), startd.claim(job=JOB)
    startd.busy(first)
    startd.busy(second, "2.0")
    return startd, first, second


def join(startd: Startd, *claims: ClaimGranted, job: str = WIDE) -> None:
    startd.hear(JoinClaims(claims=tuple((each.claim_id, each.secret) for each in claims), job_ad=job.encode()))


def idle(startd: Startd, claim: ClaimGranted) -> None:
    startd.hear(ClaimActivity(claim_id=claim.claim_id, activity="idle"), STARTER)


def test_they_become_one_when_nothing_runs_on_them() -> None:
    startd, first, second = two()
    join(startd, first, second)
    idle(startd, first)
    assert startd.replies() == []
    assert startd.slot("slot1_1").claim is not None, "it is kept, so that nobody else gets it"
    idle(startd, second)
    assert [(type(each), each.claim_id) for each in startd.sent(STARTER)] == [
        (CloseClaim, first.claim_id), (CloseClaim, second.claim_id)]
    (asked,) = [each.message for each in startd.out if isinstance(each, Ask)]
    assert isinstance(asked, OpenClaim)
    assert startd.slot().free.cpus == 0
    dropped = [each.operation.claim_id for each in startd.out
               if isinstance(each, Persist) and isinstance(each.operation, DropClaim)]
    assert dropped == [first.claim_id, second.claim_id]
    startd.opened()
    (granted,) = startd.replies()
    assert isinstance(granted, ClaimGranted)
    assert b"Cpus = 4" in granted.slot_ad
    (saved,) = [each.operation for each in startd.out if isinstance(each, Persist)]
    assert isinstance(saved, SaveClaim)
    assert saved.record.owner == "alice@x"
    for each in (first, second):
        startd.closed(each)
    assert startd.place("slot1_1") == op.CLAIMED


def test_claims_on_which_nothing_runs_are_joined_at_once() -> None:
    startd = Startd()
    join(startd, startd.claim(job=JOB), startd.claim(job=JOB))
    startd.opened()
    assert isinstance(startd.replies()[0], ClaimGranted)


def test_a_claim_that_ends_meanwhile_is_the_end_of_it() -> None:
    startd, first, second = two()
    join(startd, first, second)
    startd.hear(VacateSlots(slots=("slot1_1",), fast=True))
    startd.closed(first)
    assert [reply.reason for reply in startd.replies()] == ["one of the claims has ended meanwhile"]
    idle(startd, second)
    assert startd.place("slot1_2") == op.CLAIMED


def test_a_run_that_does_not_leave_is_not_waited_for_for_ever() -> None:
    startd, first, second = two()
    join(startd, first, second)
    startd.tell(TimerFired(key=("join", first.claim_id)), JOIN_WAIT_S)
    assert [reply.reason for reply in startd.replies()] == ["what runs on the claims takes long to leave"]


def test_what_does_not_fit_is_refused_and_the_parts_are_free() -> None:
    startd = Startd()
    join(startd, startd.claim(job=JOB), startd.claim(job=JOB), job=JOB.replace("RequestCpus = 1", "RequestCpus = 5"))
    assert ["it wants 5 cpus, 4 are left" in reply.reason for reply in startd.replies()] == [True]
    assert startd.slot().free.cpus == 4


@pytest.mark.parametrize(("case", "said"), [
    ("wrong secret", "is over"), ("twice", "named twice"), ("two users", "not claimed for one user"),
    ("two slots", "not parts of one"), ("asked already", "being joined already"), ("no ad", "cannot be read"),
    ("ending", "is ending")])
def test_what_is_refused(case: str, said: str) -> None:
    slots: dict[str, Any] = {"types": {1: "cpus=2", 2: "cpus=2"}, "counts": {1: 1, 2: 1},
                             "partitionable": {1: True, 2: True}}
    startd = Startd(**slots) if case == "two slots" else Startd()
    first = startd.claim(job=JOB)
    second = startd.claim("slot2" if case == "two slots" else "slot1", JOB,
                          "bob@x" if case == "two users" else "alice@x")
    for each in (first, second):
        startd.busy(each)
    if case == "ending":
        startd.hear(VacateSlots(slots=("slot1_1",)))
    if case == "asked already":
        join(startd, first, second)
    secret = "guessed" if case == "wrong secret" else second.secret
    other = (first.claim_id, first.secret) if case == "twice" else (second.claim_id, secret)
    startd.hear(JoinClaims(claims=((first.claim_id, first.secret), other),
                           job_ad=b"]" if case == "no ad" else JOB.encode()))
    (reply,) = startd.replies()
    assert isinstance(reply, ClaimRefused)
    assert said in reply.reason
