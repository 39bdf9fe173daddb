"""Claims at the startd: granted, renewed, displaced, found again after a restart."""

from __future__ import annotations

import attrs
import pytest

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import SaveClaim
from condor_actors.cores.startd.startd_events import StarterDied
from condor_actors.effects import Answer, Ask, Persist, SetTimer
from condor_actors.messages.admin import VacateSlots
from condor_actors.messages.claim import (
    ClaimActivity,
    ClaimGranted,
    ClaimRefused,
    ClaimRevoked,
    ClaimsRenewed,
    CloseClaim,
    DeclineMatch,
    ReleaseClaim,
    RenewClaims,
    RequestClaim,
    StarterHostHello,
)
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Identity, TimerFired
from condor_actors.messages.negotiate import MatchNotice
from tests.unit.cores.startd.startd_bench import JOB, NODE, SCHEDD, STARTER, Startd


def test_a_claim_is_opened_then_stored_then_told() -> None:
    startd = Startd()
    startd.request()
    assert startd.replies() == []
    startd.opened()
    order = [type(effect).__name__ for effect in startd.out]
    assert order.index("Persist") < order.index("Reply")
    saved = next(effect.operation for effect in startd.out if isinstance(effect, Persist))
    granted = startd.replies()[0]
    assert isinstance(saved, SaveClaim)
    assert saved.record.secret == granted.secret
    assert granted.secret.encode() not in granted.slot_ad
    assert (granted.claim_id, granted.slot_name, granted.starter_node) == ("<s:9>#1000#1", "slot1_1@h", NODE)


def test_a_match_is_over_when_its_claim_is_declined() -> None:
    startd = Startd(types={1: "cpus=1"}, counts={1: 2}, hello=False)
    startd.hear(MatchNotice(slot_name="slot1@h", submitter="alice@x", schedd_address="<q:1>"))
    assert startd.place() == op.MATCHED
    startd.request(capability="of a former match")
    assert startd.place() == op.MATCHED, "it is someone else's"
    startd.request()
    startd.tell(TimerFired(key="starter-wait"), 20.0)
    assert [reply.reason for reply in startd.replies()] == ["the starter host does not start"]
    assert startd.place() == op.UNCLAIMED, "the negotiator may give it to the next"


@pytest.mark.parametrize("first", ["the negotiator", "the schedd"])
def test_a_match_is_over_when_its_schedd_declines_it(first: str) -> None:
    """The job was removed in the moment of the match; the two words come in either order."""
    startd = Startd(types={1: "cpus=1"}, counts={1: 2})
    notice = MatchNotice(slot_name="slot1@h", submitter="alice@x", schedd_address="<q:1>")
    declined = DeclineMatch(slot_name="slot1@h", capability=startd.slot().capability, submitter="alice@x")
    for message in (notice, declined) if first == "the negotiator" else (declined, notice):
        startd.hear(message)
    assert startd.place() == op.UNCLAIMED
    startd.hear(notice)
    assert startd.place() == op.MATCHED, "the next match is another"


def test_only_who_was_matched_declines() -> None:
    startd = Startd(types={1: "cpus=1"}, counts={1: 2})
    startd.hear(MatchNotice(slot_name="slot1@h", submitter="alice@x", schedd_address="<q:1>"))
    startd.hear(DeclineMatch(slot_name="slot1@h", capability="of a former match", submitter="alice@x"))
    assert startd.place() == op.MATCHED


def test_refusals_say_why() -> None:
    startd = Startd({"START": "TARGET.Owner != \"bob\""})
    startd.request(capability="stale")
    assert startd.replies()[0] == ClaimRefused(slot_name="slot1@h", reason="the match is out of date")
    startd.request(job=JOB.replace("RequestCpus = 1", "RequestCpus = 5"))
    assert "it wants 5 cpus, 4 are left" in startd.replies()[0].reason
    startd.request(job=JOB.replace("alice", "bob"))
    assert "slot" in startd.replies()[0].reason
    startd.request(job=JOB.replace("TARGET.Cpus >= 1", "TARGET.Cpus >= 100"))
    assert "job" in startd.replies()[0].reason


def test_start_is_asked_again_when_the_claim_comes() -> None:
    """Also where Requirements do not speak of START: the owner may have come back since the match."""
    startd = Startd({"START": "TARGET.Owner != \"bob\""}, num_slots=4)
    startd.slot().ad.insert_text("Requirements", "true")
    startd.request(job=JOB.replace("alice", "bob"))
    assert [reply.reason for reply in startd.replies()] == ["START does not hold any more"]
    assert startd.place() == op.UNCLAIMED


def test_requests_wait_for_the_starter_host() -> None:
    startd = Startd(hello=False)
    startd.request()
    assert startd.replies() == []
    startd.hear(StarterHostHello(node=NODE, pid=42), STARTER)
    startd.opened()
    assert isinstance(startd.replies()[0], ClaimGranted)


def test_a_starter_that_does_not_open_refuses_the_claim() -> None:
    startd = Startd()
    startd.request()
    startd.opened(AskFailed(reason="timeout", text="too slow"))
    assert isinstance(startd.replies()[0], ClaimRefused)
    assert startd.slot().free.cpus == 4
    assert [type(message) for message in startd.sent(STARTER)] == [CloseClaim], "it may open it yet"


def test_a_slot_that_was_taken_back_while_its_gate_was_opened_is_not_granted() -> None:
    startd = Startd()
    startd.request()
    ask = next(effect for effect in startd.out if isinstance(effect, Ask))
    startd.hear(VacateSlots(fast=True))
    assert [type(message) for message in startd.sent(STARTER)] == [CloseClaim]
    startd.tell(Answer(ask.tag, Done()))
    assert [type(reply) for reply in startd.replies()] == [ClaimRefused]
    startd.hear(ClaimActivity(claim_id=ask.message.claim_id, activity="closed"), STARTER)
    assert startd.slot().free.cpus == 4


def test_a_granted_claim_outlives_a_link_that_breaks_while_it_is_opened_again() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.busy(granted)
    hello = StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "1.0#1"),))
    startd.hear(hello, STARTER)
    startd.opened(AskFailed(reason="link-lost", text=""))
    assert (startd.out, startd.place("slot1_1")) == ([], op.BUSY)
    startd.hear(hello, STARTER)
    startd.opened()
    assert startd.place("slot1_1") == op.BUSY


def test_gates_of_no_claim_are_shut_when_the_starter_host_says_hello() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.hear(ReleaseClaim(claim_id=granted.claim_id, secret=granted.secret))
    assert startd.place("slot1_1") == op.KILLING
    startd.hear(StarterHostHello(node=NODE, pid=42, idle=(granted.claim_id, "forgotten")), STARTER)
    assert [message.claim_id for message in startd.sent(STARTER)] == ["forgotten", granted.claim_id]
    assert startd.place("slot1_1") == op.KILLING, "until the claim is closed"
    startd.closed(granted)
    assert startd.slot("slot1_1") is None


def test_leases_are_renewed_and_run_out() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.hear(RenewClaims(claims=((granted.claim_id, granted.secret), ("other", "x"))))
    assert startd.replies() == [ClaimsRenewed(gone=("other",))]
    assert SetTimer(("lease", granted.claim_id), granted.lease_s) in startd.out
    startd.hear(RenewClaims(claims=((granted.claim_id, "wrong"),)))
    assert startd.replies() == [ClaimsRenewed(gone=(granted.claim_id,))]
    startd.tell(TimerFired(key=("lease", granted.claim_id)))
    assert isinstance(startd.sent(STARTER)[0], CloseClaim)


def test_rank_displaces_and_the_newcomer_waits() -> None:
    startd = Startd({"RANK": "TARGET.Owner == \"carol\" ? 10 : 0"}, num_slots=4)
    old = startd.claim()
    startd.busy(old)
    startd.request(job=JOB.replace("alice", "carol"), submitter="carol@x")
    assert isinstance(startd.sent(STARTER)[0], CloseClaim)
    assert startd.sent(SCHEDD) == [
        ClaimRevoked(claim_id=old.claim_id, reason="preempted by carol@x (rank)", final=False)]
    startd.closed(old)
    startd.opened()
    new = startd.replies()[0]
    assert isinstance(new, ClaimGranted)
    assert new.claim_id != old.claim_id
    startd.request(job=JOB)
    assert "likes better" in startd.replies()[0].reason


def test_one_newcomer_waits_for_a_slot_and_the_next_is_sent_away() -> None:
    startd = Startd(num_slots=4)
    startd.busy(startd.claim())
    startd.request(submitter="bob@x")
    assert startd.replies() == []
    startd.request(submitter="carol@x")
    assert [reply.reason for reply in startd.replies()] == ["another claim already waits for it"]


def test_a_slot_has_one_claim_at_a_time() -> None:
    """Whatever comes, and however often: also before the first claim is open."""
    startd = Startd(num_slots=4)
    capability = startd.slot().capability
    startd.request()
    first = startd.slot().claim
    for again in (capability, startd.slot().capability):
        startd.request(capability=again, submitter="bob@x")
        assert startd.slot().claim is first
        assert [each for each in startd.out if isinstance(each, Ask)] == []
    assert [slot.claim for slot in startd.core.claims] == [first]


def test_capabilities_change_with_each_claim_of_a_static_slot() -> None:
    startd = Startd(num_slots=4)
    before = startd.slot().capability
    startd.claim()
    startd.request(capability=before)
    assert startd.replies()[0].reason == "the match is out of date"


def test_claims_survive_the_startd_and_meet_the_living_starter_host() -> None:
    first = Startd()
    granted = first.claim()
    record = first.slot("slot1_1").claim.record
    again = Startd(records=(record,), hello=False)
    assert again.place("slot1_1") == op.CLAIMED
    assert again.slot().free.cpus == 3
    again.hear(StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "5.0#1"), ("forgotten", "6.0#1"))),
               STARTER)
    assert again.place("slot1_1") == op.BUSY
    assert [ask.message.claim_id for ask in again.out if isinstance(ask, Ask)] == [granted.claim_id]
    assert [message.claim_id for message in again.sent(STARTER)] == ["forgotten"]
    again.hear(RenewClaims(claims=((granted.claim_id, granted.secret),)))
    assert again.replies() == [ClaimsRenewed(gone=())]


def test_a_startd_started_again_tells_its_schedds_where_it_is() -> None:
    first = Startd()
    kept, forgotten = first.claim(), first.claim(job=JOB.replace("128", "64"))
    records = tuple(slot.claim.record for slot in first.core.claims)
    assert {record.schedd_node for record in records} == {SCHEDD.node}
    again = Startd(records=records, hello=False)
    ask = next(effect for effect in again.begun if isinstance(effect, Ask))
    assert (ask.to, ask.message.startd) == (Address(SCHEDD.node, "schedd"), "<s:9>")
    assert set(ask.message.claims) == {(each.claim_id, each.secret) for each in (kept, forgotten)}
    again.tell(Answer(ask.tag, AskFailed(reason="unreachable")))
    assert SetTimer("kept", 20.0) in again.out
    ask = next(effect for effect in again.tell(TimerFired(key="kept")) if isinstance(effect, Ask))
    again.hear(StarterHostHello(node=NODE, pid=42), STARTER)
    for opening in [effect for effect in again.out if isinstance(effect, Ask)]:
        again.tell(Answer(opening.tag, Done()))
    again.tell(Answer(ask.tag, ClaimsRenewed(gone=(forgotten.claim_id,))))
    closing = [message.claim_id for message in again.sent(STARTER) if isinstance(message, CloseClaim)]
    assert closing == [forgotten.claim_id]
    assert again.tell(TimerFired(key="kept")) == []


def test_a_claim_its_schedd_never_heard_of_is_freed() -> None:
    startd = Startd()
    granted = startd.claim()
    assert SetTimer("kept", 20.0) in startd.out
    asking = startd.tell(TimerFired(key="kept"), 20.0)
    ask = next(effect for effect in asking if isinstance(effect, Ask))
    assert ask.message.claims == ((granted.claim_id, granted.secret),)
    startd.tell(Answer(ask.tag, ClaimsRenewed(gone=(granted.claim_id,))))
    assert [message.claim_id for message in startd.sent(STARTER)] == [granted.claim_id]


def test_a_claim_that_is_used_is_not_asked_about() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.busy(granted)
    assert not [effect for effect in startd.tell(TimerFired(key="kept"), 20.0) if isinstance(effect, Ask)]
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle"), STARTER)
    assert SetTimer("kept", 20.0) in startd.out
    young = startd.tell(TimerFired(key="kept"), 5.0)
    assert not [effect for effect in young if isinstance(effect, Ask)]
    assert [effect for effect in startd.tell(TimerFired(key="kept"), 20.0) if isinstance(effect, Ask)]


def test_claims_of_another_starter_host_are_void() -> None:
    first = Startd()
    first.claim()
    record = first.slot("slot1_1").claim.record
    again = Startd(records=(record,), hello=False)
    again.hear(StarterHostHello(node="<h:2>", pid=43), STARTER)
    assert again.slot("slot1_1") is None


def test_a_starter_host_that_dies_takes_its_claims_along() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.busy(granted)
    startd.tell(StarterDied(42))
    assert startd.sent(SCHEDD)[-1].final
    assert startd.slot("slot1_1") is None
    assert startd.slot().free.cpus == 4


def test_a_claim_may_finish_what_runs_and_takes_nothing_new() -> None:
    startd = Startd(num_slots=4)
    running, idle = startd.claim("slot1"), startd.claim("slot2")
    startd.busy(running)
    startd.hear(VacateSlots(finish=True, reason="the machine is reserved (demo)"))
    assert startd.place("slot1") == op.RETIRING
    assert [message.claim_id for message in startd.sent(STARTER)] == [idle.claim_id], "only what idles is closed"
    assert {message.claim_id for message in startd.sent(SCHEDD)} == {running.claim_id, idle.claim_id}
    startd.hear(VacateSlots())
    assert startd.place("slot1") == op.VACATING


def test_a_match_notice_reserves_and_lapses() -> None:
    startd = Startd(num_slots=4)
    startd.hear(MatchNotice(slot_name="slot2@h", submitter="a@x", schedd_address="<q:1>"))
    assert startd.place("slot2") == op.MATCHED
    startd.tell(TimerFired(key=("slot", "slot2@h", "match")))
    assert startd.place("slot2") == op.UNCLAIMED
    assert [name for _, name, _ in startd.core.story("slot2")] == ["PolicyEvaluation", "Matched", "TimerExpired"]


def test_a_grant_says_how_long_the_claim_takes_jobs() -> None:
    startd = Startd()
    worklife = parse_expression('TARGET.Owner == "alice" ? 60 : -1')
    startd.core.slots.reconfigure(attrs.evolve(startd.core.slots.settings, worklife=worklife))
    granted = startd.claim()
    assert ClassAd.from_bytes(granted.slot_ad).get_int("ClaimWorklife") == 60


def test_a_dynamic_slot_gets_the_least_number_that_is_free() -> None:
    startd = Startd()
    granted = [startd.claim() for _ in range(3)]
    startd.hear(ReleaseClaim(claim_id=granted[1].claim_id, secret=granted[1].secret))
    startd.closed(granted[1])
    startd.hear(ReleaseClaim(claim_id=granted[0].claim_id, secret=granted[0].secret))
    startd.closed(granted[0])
    assert [startd.claim().slot_name for _ in range(3)] == ["slot1_1@h", "slot1_2@h", "slot1_4@h"]


def test_numbers_of_claims_that_the_store_had_are_taken() -> None:
    first = Startd()
    for _ in range(3):
        first.claim()
    again = Startd(records=(first.slot("slot1_2").claim.record,))
    assert [again.claim().slot_name for _ in range(3)] == ["slot1_1@h", "slot1_3@h", "slot1_4@h"]


@pytest.mark.parametrize("identity", [
    Identity(name="condor@pool", host="q", method="tls", roles=frozenset({"schedd"})),
    Identity(name="alice@h", method="local", uid=1001)])
def test_nobody_but_this_process_asks_for_fetched_work(identity: Identity) -> None:
    startd = Startd(types={1: "cpus=1"}, counts={1: 1})
    request = RequestClaim(slot_name="slot1@h", capability=startd.slot().capability, job_ad=JOB.encode(),
                           owner="fetched:SITE@x", submitter="fetched:SITE@x", schedd_name="fetched-work")
    startd.tell(Delivery(message=request, sender=SCHEDD, message_id="m", identity=identity))
    assert [reply.reason for reply in startd.replies()] == ["work is fetched by this machine alone"]
    startd.hear(request)
    startd.opened()
    assert isinstance(startd.replies()[0], ClaimGranted)
