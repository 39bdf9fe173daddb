"""The startd's conversations, core against plain values: no network, no clock."""

from __future__ import annotations

import attrs

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.startd import owner_policy as op
from condor_actors.cores.startd.claims.claim import DropClaim
from condor_actors.cores.startd.slot_resources import plan_slots
from condor_actors.cores.startd.slots import Slots, SlotSettings, parse_policy
from condor_actors.cores.startd.startd_events import DiskGrew, EndStartd, Hide, Observed, Show
from condor_actors.effects import Note, Persist, SetTimer
from condor_actors.messages.admin import CancelDrain, Drain, IdleReading, VacateSlots
from condor_actors.messages.claim import (
    ClaimActivity,
    ClaimRefused,
    ClaimRevoked,
    CloseClaim,
    ContinueClaim,
    ReleaseClaim,
    RequestClaim,
    StarterHostHello,
    SuspendClaim,
)
from condor_actors.messages.envelope import Address, Done, Refused, TimerFired
from tests.unit.cores.startd.startd_bench import JOB, MACHINE, NODE, POLICY, SCHEDD, STARTER, Startd


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


def test_a_part_is_shown_before_the_slot_that_it_was_taken_out_of() -> None:
    """Else the match has been taken up before anybody can see whose the part is."""
    startd = Startd()
    startd.claim()
    startd.claim()
    startd.core._publisher.all_changed()
    shown = [effect.slot.name for effect in startd.tell(TimerFired(key="publish")) if isinstance(effect, Show)]
    assert shown == ["slot1_1@h", "slot1_2@h", "slot1@h"]


def test_a_disk_that_was_full_is_divided_anew() -> None:
    """What a job has was promised to it, and stays as it is."""
    startd = Startd()
    startd.claim()
    parent, part = startd.slot(), startd.slot("slot1_1")
    had_kib, free_kib, part_kib = parent.total.disk_kib, parent.free.disk_kib, part.total.disk_kib
    startd.tell(DiskGrew({1: had_kib + 5000}, had_kib + 5000))
    assert (parent.total.disk_kib, parent.free.disk_kib, part.total.disk_kib) == (
        had_kib + 5000, free_kib + 5000, part_kib)
    assert (parent.ad["TotalSlotDisk"], parent.ad["TotalDisk"]) == (had_kib + 5000, had_kib + 5000)
    startd.tell(DiskGrew({1: had_kib}, had_kib))
    assert parent.total.disk_kib == had_kib + 5000


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


def test_an_end_and_the_next_start_may_be_one_report() -> None:
    startd = Startd({"MAXJOBRETIREMENTTIME": "3600"}, num_slots=1)
    granted = startd.claim()
    startd.busy(granted, "1.0")
    startd.tell(Observed(total_load=0.0, own_load=0.0), later_s=5.0)
    startd.busy(granted, "2.0", before=("1.1", "1.2"))
    texts = [effect.text for effect in startd.out if isinstance(effect, Note)]
    told = [" ".join(text.split()[:2]) for text in texts if "slot1" in text]
    assert told == ["1.0: has", "1.1: begins", "1.1: has", "1.2: begins", "1.2: has", "2.0: begins"]
    held = startd.slot().claim
    assert (startd.place(), held.job_id, held.jobs, held.job_began_s) == (op.BUSY, "2.0", 4, startd.now_s)
    startd.hear(Drain(how="graceful"))
    assert startd.place() == op.RETIRING
    startd.busy(granted, "3.0")  # begun before the schedd knew
    assert startd.place() == op.KILLING
    assert [type(message) for message in startd.sent(STARTER)] == [CloseClaim]


def test_the_next_run_of_the_same_job_stands_still_too_while_the_owner_is_there() -> None:
    """A gang ends because one of its nodes leaves, and begins again on the claims that stood still."""
    startd = Startd({"SUSPEND": "KeyboardIdle < 60", "CONTINUE": "KeyboardIdle > 300", "WANT_SUSPEND": "true"},
                    num_slots=1)
    granted = startd.claim()
    startd.busy(granted, "5.0")
    startd.hear(IdleReading(source="x11::0", idle_s=0.0), Address("in:3", "kbdd"))
    assert startd.place() == op.SUSPENDED
    startd.busy(granted, "5.0")  # one report of an end and the next start
    assert startd.sent(STARTER) == [SuspendClaim(claim_id=granted.claim_id)]
    assert startd.place() == op.SUSPENDED


def test_a_job_that_began_and_ended_between_two_reports_is_told_of() -> None:
    startd = Startd(num_slots=1)
    granted = startd.claim()
    startd.hear(ClaimActivity(claim_id=granted.claim_id, activity="idle", begun=("1.0",)), STARTER)
    texts = [effect.text for effect in startd.out if isinstance(effect, Note)]
    assert [" ".join(text.split()[:2]) for text in texts if "slot1" in text] == ["1.0: begins", "1.0: has"]
    held = startd.slot().claim
    assert (startd.place(), held.job_id, held.jobs) == (op.CLAIMED, "", 1)


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


def test_others_hear_when_the_disk_is_full_and_when_it_is_not_any_more() -> None:
    startd = Startd(num_slots=2)
    planned = startd.slot("slot1").ad.evaluate("Disk")

    def shown_with(free_kib: int) -> list[int]:
        if SetTimer("publish", 1.0) not in startd.tell(Observed(total_load=0.0, own_load=0.0, disk_free_kib=free_kib)):
            return []
        out = startd.tell(TimerFired(key="publish"))
        return [each.slot.ad.evaluate("Disk") for each in out if isinstance(each, Show)]

    startd.tell(TimerFired(key="publish"))
    assert shown_with(5) == [5, 5]
    assert shown_with(700) == [], "less than a megabyte either way"
    assert shown_with(planned * 10) == [planned, planned], "a job that fits would wait for the next regular ad"
    assert shown_with(planned * 10) == []
    assert shown_with(planned - planned // 20) == [], "a twentieth"
    assert shown_with(planned - planned // 5) == [planned - planned // 5] * 2


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
