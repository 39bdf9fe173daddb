"""The startd's conversations, core against plain values: no network, no clock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claim import DropClaim, SaveClaim
from condor_actors.cores.startd.draining import Draining
from condor_actors.cores.startd.slot_resources import Custom, Share, plan_slots
from condor_actors.cores.startd.slots import Slots, SlotSettings, parse_policy
from condor_actors.cores.startd.startd_core import StartdCore
from condor_actors.cores.startd.startd_events import EndStartd, Hide, Observed, Show, StartdSettings, StarterDied
from condor_actors.effects import Answer, Ask, Persist, Reply, Send, SetTimer
from condor_actors.messages.admin import CancelDrain, Drain, IdleReading, VacateSlots
from condor_actors.messages.claim import (
    ClaimActivity,
    ClaimGranted,
    ClaimRefused,
    ClaimRevoked,
    ClaimsRenewed,
    CloseClaim,
    ContinueClaim,
    OpenClaim,
    ReleaseClaim,
    RenewClaims,
    RequestClaim,
    StarterHostHello,
    SuspendClaim,
)
from condor_actors.messages.envelope import Address, AskFailed, Delivery, Done, Refused, TimerFired
from condor_actors.messages.negotiate import MatchNotice

SCHEDD = Address("in:7", "schedd")
STARTER = Address("in:1", "starter-host")
NODE = "<h:1>"
POLICY = {"START": "true", "RANK": "0", "IS_OWNER": "START =?= false", "SUSPEND": "false", "CONTINUE": "true",
          "PREEMPT": "false", "KILL": "false", "WANT_SUSPEND": "false", "WANT_VACATE": "true",
          "MAXJOBRETIREMENTTIME": "0", "MACHINEMAXVACATETIME": "60"}
MACHINE = Share(cpus=4, memory_mib=4096, disk_kib=1_000_000, custom={"GPUs": Custom(2, ("G0", "G1"))})
JOB = ('RequestCpus = 1\nRequestMemory = 128\nRequestDisk = 1024\nRequirements = TARGET.Cpus >= 1\nJobUniverse = 5\n'
       'Owner = "alice"\n')


class Startd:
    """A core, its clock, what it said last, and what it said first (``begun``)."""

    out: list[Any]

    def __init__(self, policy: Mapping[str, str] | None = None, *, records: tuple[Any, ...] = (), hello: bool = True,
                 draining: Draining | None = None, **plan: Any) -> None:
        self.now_s = 1000.0
        self.secrets = iter(f"secret{number}" for number in range(1000))
        settings = SlotSettings(host="h", policy=parse_policy({**POLICY, **(policy or {})}))
        slots = Slots(settings, ClassAd({"Machine": "h", "Arch": "X86_64"}), lambda: next(self.secrets))
        slots.create(plan_slots(MACHINE, **{"types": {}, "counts": {}, "partitionable": {}, **plan}), self.now_s)
        self.core = StartdCore(slots, StartdSettings(address="<s:9>"), birth_s=1000.0,
                               new_secret=lambda: next(self.secrets), draining=draining)
        self.begun = self.out = list(self.core.start(records, self.now_s))
        self.tell(Observed(total_load=0.0, own_load=0.0))
        if hello:
            self.hear(StarterHostHello(node=NODE, pid=42), STARTER)

    def tell(self, event: Any, later_s: float = 1.0) -> list[Any]:
        self.now_s += later_s
        self.out = list(self.core.handle(event, self.now_s))
        self.core.validate()
        return self.out

    def hear(self, message: Any, sender: Address = SCHEDD) -> list[Any]:
        return self.tell(Delivery(message=message, sender=sender, message_id="m"))

    def slot(self, name: str = "slot1") -> Any:
        return self.core.slots.get(name)

    def place(self, name: str = "slot1") -> op.SlotState:
        return self.slot(name).machine.slot_state  # type: ignore[no-any-return]

    def replies(self) -> list[Any]:
        return [effect.message for effect in self.out if isinstance(effect, Reply)]

    def sent(self, to: Address) -> list[Any]:
        return [effect.message for effect in self.out if isinstance(effect, Send) and effect.to == to]

    def request(self, slot: str = "slot1", job: str = JOB, capability: str | None = None,
                submitter: str = "alice@x") -> list[Any]:
        found = self.slot(slot)
        return self.hear(RequestClaim(
            slot_name=f"{slot}@h", capability=found.capability if capability is None else capability,
            job_ad=job.encode(), owner=submitter, submitter=submitter, schedd_name="sub@x", schedd_node=SCHEDD.node))

    def opened(self, message: Any = None) -> list[Any]:
        ask = next(effect for effect in self.out if isinstance(effect, Ask))
        assert isinstance(ask.message, OpenClaim)
        return self.tell(Answer(ask.tag, message or Done()))

    def claim(self, slot: str = "slot1", job: str = JOB, submitter: str = "alice@x") -> ClaimGranted:
        self.request(slot, job, submitter=submitter)
        self.opened()
        granted = self.replies()[0]
        assert isinstance(granted, ClaimGranted), granted
        return granted

    def busy(self, claim: ClaimGranted, job_id: str = "1.0") -> None:
        self.hear(ClaimActivity(claim_id=claim.claim_id, activity="busy", job_id=job_id, job_ad=JOB.encode()), STARTER)

    def closed(self, claim: ClaimGranted) -> None:
        self.hear(ClaimActivity(claim_id=claim.claim_id, activity="closed"), STARTER)


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
    assert startd.place() == op.MATCHED, "it is somebody else's"
    startd.request()
    startd.tell(TimerFired(key="starter-wait"), 20.0)
    assert [reply.reason for reply in startd.replies()] == ["the starter host does not start"]
    assert startd.place() == op.UNCLAIMED, "the negotiator may give it to the next"


def test_a_partitionable_slot_is_carved_and_joined() -> None:
    startd = Startd()
    first, second = startd.claim(), startd.claim(job=JOB + "RequestGPUs = 1\n")
    parent = startd.slot()
    assert (parent.free.cpus, parent.free.custom["GPUs"].ids) == (2, ("G1",))
    assert parent.ad["NumDynamicSlots"] == 2
    assert startd.slot("slot1_2").ad["AssignedGPUs"] == "G0"
    startd.hear(ReleaseClaim(claim_id=first.claim_id, secret=first.secret))
    assert isinstance(startd.sent(STARTER)[0], CloseClaim)
    startd.closed(first)
    assert Persist(DropClaim(first.claim_id)) in startd.out
    assert startd.sent(SCHEDD) == [ClaimRevoked(claim_id=first.claim_id, reason="released by its schedd", final=True)]
    assert startd.slot("slot1_1") is None
    assert parent.free.cpus == 3
    startd.tell(TimerFired(key="publish"))
    assert Hide("slot1_1@h") in startd.out
    assert Show(parent) in startd.out
    assert second.slot_name == "slot1_2@h"


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


def test_busy_idle_and_suspended_by_policy() -> None:
    startd = Startd({"SUSPEND": "KeyboardIdle < 60", "CONTINUE": "KeyboardIdle > 300", "WANT_SUSPEND": "true"},
                    num_slots=4)
    granted = startd.claim()
    startd.busy(granted)
    assert startd.place() == op.BUSY
    startd.hear(IdleReading(source="x11::0", idle_s=0.0), Address("in:3", "kbdd"))
    assert startd.sent(STARTER) == [SuspendClaim(claim_id=granted.claim_id)]
    assert startd.place() == op.SUSPENDED
    startd.tell(Observed(total_load=0.0, own_load=0.0), later_s=301.0)
    assert startd.sent(STARTER) == [ContinueClaim(claim_id=granted.claim_id)]
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle"), STARTER)
    assert startd.place() == op.CLAIMED


def test_slots_that_do_not_mind_the_keyboard_look_idle_longer() -> None:
    startd = Startd(num_slots=2)
    startd.hear(IdleReading(source="tty:1", idle_s=5.0), Address("in:3", "kbdd"))
    assert startd.slot("slot1").ad["KeyboardIdle"] == 5
    assert startd.slot("slot2").ad["KeyboardIdle"] == 1205


def test_a_sensor_that_cannot_read_is_not_idle() -> None:
    startd = Startd()
    startd.hear(IdleReading(source="x11::0", idle_s=0.0, known=False, text="no access"), Address("in:3", "kbdd"))
    assert "KeyboardIdle" not in startd.slot().ad
    assert startd.core.idleness.unknown(startd.now_s) == ("x11::0: no access",)


def test_the_owner_takes_an_idle_machine_back() -> None:
    startd = Startd({"START": "KeyboardIdle > 900"})
    startd.hear(IdleReading(source="tty:1", idle_s=5.0), Address("in:3", "kbdd"))
    assert startd.place() == op.OWNER
    startd.tell(Observed(total_load=0.0, own_load=0.0, idle=(("tty:1", 901.0, ""),)), later_s=901.0)
    assert startd.place() == op.UNCLAIMED


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


def test_vacate_graceful_and_fast() -> None:
    startd = Startd(num_slots=4)
    granted = startd.claim()
    startd.busy(granted)
    startd.hear(VacateSlots(slots=("slot2@h",)))
    assert startd.replies() == [Done(text="0 claims are being vacated")]
    startd.hear(VacateSlots())
    assert startd.sent(STARTER)[0].vacate_s == 60.0
    startd.hear(VacateSlots(slots=("h",), fast=True))
    assert startd.sent(STARTER)[0].vacate_s == 0.0


def test_no_more_disk_is_offered_than_there_is() -> None:
    startd = Startd(num_slots=4)
    planned = startd.slot("slot1").ad.evaluate("Disk")
    startd.tell(Observed(total_load=0.0, own_load=0.0, disk_free_kib=100))
    assert startd.slot("slot1").ad.evaluate("Disk") == 100
    startd.request("slot1", JOB + "RequestDisk = 101\n")
    assert "do not hold" in startd.replies()[0].reason
    startd.tell(Observed(total_load=0.0, own_load=0.0, disk_free_kib=planned * 10))
    assert startd.slot("slot1").ad.evaluate("Disk") == planned
    startd.claim("slot1", JOB + "RequestDisk = 101\n")


def test_what_draining_would_cost_is_in_the_ads() -> None:
    startd = Startd({"MAXJOBRETIREMENTTIME": "1000", "MACHINEMAXVACATETIME": "50"}, num_slots=4)
    startd.tell(Observed(total_load=0.0, own_load=0.0))
    ad = startd.slot("slot3").ad
    assert ad.evaluate("ExpectedMachineGracefulDrainingBadput") == 0
    assert ad.evaluate("ExpectedMachineQuickDrainingCompletion") == int(startd.now_s)
    startd.busy(startd.claim("slot1"))
    began_s = startd.now_s
    startd.tell(Observed(total_load=0.0, own_load=0.0), 100.0)
    assert ad.evaluate("ExpectedMachineGracefulDrainingBadput") == 1000, "it runs on for 900 s, and all is lost"
    assert ad.evaluate("ExpectedMachineGracefulDrainingCompletion") == int(began_s + 1050)
    assert ad.evaluate("ExpectedMachineQuickDrainingBadput") == 100
    assert ad.evaluate("ExpectedMachineQuickDrainingCompletion") == int(began_s + 150)


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


def test_what_was_ended_before_the_starter_host_said_hello_is_closed_when_it_does() -> None:
    first = Startd()
    granted = first.claim()
    record = first.slot("slot1_1").claim.record
    again = Startd(records=(record,), hello=False)
    again.hear(VacateSlots(fast=True))
    assert again.place("slot1_1") == op.KILLING
    again.hear(StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "5.0#1"),)), STARTER)
    closing = [message for message in again.sent(STARTER) if isinstance(message, CloseClaim)]
    assert [(message.claim_id, message.vacate_s) for message in closing] == [(granted.claim_id, 0.0)]


def test_a_startd_goes_on_ending_what_the_one_before_had_asked_to_go() -> None:
    policy = {"KILL": '(Activity == "Vacating") && (time() - EnteredCurrentActivity) > 60', "WANT_VACATE": "true"}
    first = Startd(policy)
    granted = first.claim()
    again = Startd(policy, records=(first.slot("slot1_1").claim.record,), hello=False)
    again.hear(StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "5.0#1"),),
                                closing=((granted.claim_id, 45.0),)), STARTER)
    slot = again.slot("slot1_1")
    assert slot.machine.slot_state == op.VACATING
    assert again.now_s - slot.machine.activity_since_s == 45.0
    assert [each.claim_id for each in again.sent(STARTER) if isinstance(each, CloseClaim)] == [granted.claim_id]


def test_what_was_frozen_while_the_starter_host_was_out_of_reach_is_frozen_when_it_is_back() -> None:
    startd = Startd({"SUSPEND": "KeyboardIdle < 60", "CONTINUE": "KeyboardIdle > 300", "WANT_SUSPEND": "true"},
                    num_slots=1)
    granted = startd.claim()
    startd.busy(granted)
    startd.hear(IdleReading(source="x11::0", idle_s=0.0), Address("in:3", "kbdd"))
    assert startd.sent(STARTER) == [SuspendClaim(claim_id=granted.claim_id)]
    startd.hear(StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "5.0#1"),)), STARTER)
    assert SuspendClaim(claim_id=granted.claim_id) in startd.sent(STARTER), "it had not heard of it"
    startd.hear(StarterHostHello(node=NODE, pid=42, active=((granted.claim_id, "5.0#1"),),
                                 suspended=(granted.claim_id,)), STARTER)
    assert SuspendClaim(claim_id=granted.claim_id) not in startd.sent(STARTER)


def test_a_run_that_its_user_suspends_shows_in_the_slot() -> None:
    startd = Startd(num_slots=1)
    granted = startd.claim()
    startd.busy(granted)
    def halted(activity: str, by_user: bool) -> None:
        startd.hear(ClaimActivity(claim_id=granted.claim_id, activity=activity, job_id="1.0", by_user=by_user), STARTER)

    halted("suspended", True)
    assert startd.place() == op.SUSPENDED
    halted("busy", False)
    assert startd.place() == op.BUSY
    assert startd.sent(STARTER) == [], "nobody but the user had stopped it"


def test_drain_waits_resumes_and_is_cancelled() -> None:
    startd = Startd({"MAXJOBRETIREMENTTIME": "3600"}, num_slots=4)
    granted = startd.claim()
    startd.busy(granted)
    startd.hear(Drain(how="graceful", on_completion="resume"))
    assert startd.replies() == [Done(text="1000.1")]
    assert (startd.place("slot1"), startd.place("slot2")) == (op.RETIRING, op.DRAINING)
    startd.hear(Drain())
    assert startd.replies()[0].code == "busy"
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle"), STARTER)
    startd.closed(granted)
    assert {startd.place(f"slot{n}") for n in range(1, 5)} == {op.UNCLAIMED}
    startd.hear(Drain(how="fast", on_completion="exit"))
    assert EndStartd("exit") in startd.out
    assert startd.place() == op.DRAINED
    startd.hear(CancelDrain(request_id="1000.2"))
    assert startd.place() == op.UNCLAIMED
    startd.hear(Drain(check_expr="Cpus > 100"))
    assert isinstance(startd.replies()[0], Refused)
    assert startd.place() == op.UNCLAIMED


def test_a_desk_that_is_made_anew_goes_on_draining() -> None:
    former = Startd()
    former.hear(Drain())
    startd = Startd(draining=former.core.draining)
    assert startd.slot().machine.draining
    startd.request()
    assert [type(reply) for reply in startd.replies()] == [ClaimRefused]
    startd.hear(CancelDrain())
    startd.claim()


def test_a_drain_may_take_other_jobs_meanwhile() -> None:
    startd = Startd({"MAXJOBRETIREMENTTIME": "3600"})
    granted = startd.claim()
    startd.busy(granted)
    startd.hear(Drain(start_expr="TARGET.Filler =?= true +"))
    assert startd.replies()[0].code == "invalid"
    startd.hear(Drain(start_expr="TARGET.Filler =?= true", on_completion="resume"))
    assert startd.replies() == [Done(text="1000.1")]
    assert startd.place("slot1_1") == op.RETIRING
    assert startd.place("slot1") == op.UNCLAIMED
    startd.hear(RequestClaim(slot_name="slot1@h", capability=startd.slot().capability, job_ad=JOB.encode(),
                             owner="a@x", submitter="a@x", schedd_name="q", lease_s=2400.0))
    assert isinstance(startd.replies()[0], ClaimRefused)
    startd.hear(RequestClaim(slot_name="slot1@h", capability=startd.slot().capability, owner="a@x", submitter="a@x",
                             job_ad=f"{JOB}Filler = true\n".encode(), schedd_name="q", lease_s=2400.0))
    startd.opened()
    assert startd.place("slot1_2") == op.CLAIMED
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle"), STARTER)
    startd.closed(granted)
    # The last of the former claims is over: the fillers go, and the machine is in service again.
    assert startd.place("slot1_2") == op.KILLING
    held = startd.slot("slot1_2").claim
    startd.hear(ClaimActivity(claim_id=held.claim_id, activity="closed"), STARTER)
    assert startd.place("slot1") == op.UNCLAIMED
    assert startd.slot().policy.starts(ClassAd(), startd.now_s)


def test_a_peaceful_end_waits_for_what_runs() -> None:
    startd = Startd()
    granted = startd.claim()
    startd.busy(granted)
    out = startd.core.finish(startd.now_s)
    assert startd.place("slot1_1") == op.RETIRING
    assert not any(isinstance(effect, EndStartd) for effect in out)
    startd.tell(Observed(total_load=0.0, own_load=0.0), later_s=100_000.0)
    assert startd.place("slot1_1") == op.RETIRING
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle"), STARTER)
    startd.closed(granted)
    assert EndStartd("exit") in startd.out


def test_a_match_notice_reserves_and_lapses() -> None:
    startd = Startd(num_slots=4)
    startd.hear(MatchNotice(slot_name="slot2@h", submitter="a@x", schedd_address="<q:1>"))
    assert startd.place("slot2") == op.MATCHED
    startd.tell(TimerFired(key=("slot", "slot2@h", "match")))
    assert startd.place("slot2") == op.UNCLAIMED
    assert [name for _, name, _ in startd.core.story("slot2")] == ["PolicyEvaluation", "Matched", "TimerExpired"]


def test_requests_are_rounded_as_the_admin_says() -> None:
    startd = Startd()
    settings = startd.core.slots.settings
    rounding = {"RequestCpus": parse_expression("quantize(RequestCpus, {2})"),
                "RequestMemory": parse_expression("quantize(RequestMemory, {1000})"),
                "RequestDisk": parse_expression("nonsense")}
    startd.core.slots.reconfigure(attrs.evolve(settings, rounding=rounding))
    startd.claim()
    total = startd.slot("slot1_1").total
    assert (total.cpus, total.memory_mib, total.disk_kib) == (2, 1000, 1024)


def test_the_weight_of_a_slot_is_the_admins() -> None:
    settings = SlotSettings(host="h", policy=parse_policy(POLICY), weight="Cpus + Memory / 1024")
    slots = Slots(settings, ClassAd({"Machine": "h"}), lambda: "s")
    slots.create(plan_slots(MACHINE, types={}, counts={}, partitionable={}), 0.0)
    slot = slots.get("slot1")
    assert slot is not None
    assert slot.ad.get_float("SlotWeight") == 8.0


def test_a_grant_says_how_long_the_claim_takes_jobs() -> None:
    startd = Startd()
    worklife = parse_expression('TARGET.Owner == "alice" ? 60 : -1')
    startd.core.slots.reconfigure(attrs.evolve(startd.core.slots.settings, worklife=worklife))
    granted = startd.claim()
    assert ClassAd.from_bytes(granted.slot_ad).get_int("ClaimWorklife") == 60
