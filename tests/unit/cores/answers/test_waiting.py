"""Why a job waits, in plain words."""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.waiting import PoolFacts, why_it_waits

NOW_S = 1_700_000_000.0


def job(requirements: str = "TARGET.Memory >= RequestMemory", **more: Any) -> ClassAd:
    """A job of ann's that came five minutes ago."""
    ad = ClassAd({"ClusterId": 7, "ProcId": 0, "Owner": "ann", "User": "ann@dom", "JobStatus": 1, "RequestMemory": 1000,
                  "QDate": int(NOW_S) - 300, "EnteredCurrentStatus": int(NOW_S) - 300, **more})
    ad.insert_text("Requirements", requirements)
    return ad


def slot(start: str = "true", **more: Any) -> ClassAd:
    """A slot with 4,000 MB."""
    ad = ClassAd({"Name": "slot1@lab", "Machine": "lab", "Memory": 4000, "Cpus": 4, "State": "Unclaimed", **more})
    ad.insert_text("Start", start)
    ad.insert_text("Requirements", "Start")
    return ad


def said(ad: ClassAd, *slots: ClassAd, **more: Any) -> str:
    """The paragraph."""
    return why_it_waits(ad, PoolFacts(slots=slots, now_s=NOW_S, cycle_s=60.0, **more))


def test_no_machine_at_all() -> None:
    assert "has no machine now" in said(job())


def test_more_memory_than_any_machine_has() -> None:
    text = said(job(RequestMemory=9000), slot(), slot(Memory=2000))
    assert "None of the 2 slots" in text
    assert "condor_qedit 7.0 RequestMemory 4000" in text


def test_a_condition_that_nothing_meets() -> None:
    text = said(job("TARGET.HasMatlab =?= true"), slot())
    assert "It requires TARGET.HasMatlab =?= true" in text


def test_conditions_that_nothing_meets_together() -> None:
    text = said(job('TARGET.Os == "A" && TARGET.Cpus > 4'), slot(Os="A", Cpus=1), slot(Os="B", Cpus=9))
    assert "all together by none" in text
    assert "1 slot would do" in text


def test_machines_in_their_owners_hands() -> None:
    text = said(job(), slot("KeyboardIdle > 900", KeyboardIdle=30, State="Owner"))
    assert "are their owners' at the moment, used 30 seconds ago" in text
    assert "KeyboardIdle > 900" in text


def test_all_taken_by_whom_and_who_is_first() -> None:
    slots = [slot(RemoteOwner="bob@dom"), slot(RemoteOwner="bob@dom"), slot(RemoteOwner="ann@dom", Activity="Retiring")]
    text = said(job(), *slots, priorities={"ann@dom": 5.0, "bob@dom": 20.0})
    assert "2 of bob@dom and 1 of yours" in text
    assert "1 slot of them is being given up now" in text
    assert "is the best of those who run jobs there" in text
    assert "bob@dom (2.00) come before you" in said(job(), *slots, priorities={"ann@dom": 5.0, "bob@dom": 2.0})


def test_nobody_has_looked_yet() -> None:
    text = said(job(), slot())
    assert "has not looked at it yet" in text
    assert "within 1 minute" in text


def test_what_the_negotiator_said() -> None:
    refused = job(LastRejMatchTime=int(NOW_S) - 10, LastRejMatchReason="concurrency limit matlab is used up")
    text = said(refused, slot())
    assert "10 seconds ago it got none: concurrency limit matlab is used up" in text


def test_starts_that_failed() -> None:
    assert "last 3 starts failed" in said(job(NumFailedStarts=3), slot())


def test_a_time_of_its_own() -> None:
    assert "waits for its time" in said(job(DeferralTime=int(NOW_S) + 4000), slot())


def test_machines_that_sleep_and_are_being_woken() -> None:
    sleeps = {"Offline": True}
    text = said(job(), slot(**sleeps))
    assert "1 slot whose machine sleeps would suit it. None of them has been asked for since it waits" in text
    asked = slot(**sleeps, MachineLastMatchTime=int(NOW_S) - 60, Machine="lab2", Name="slot1@lab2")
    text = said(job(), slot(**sleeps), asked, slot(State="Claimed", RemoteOwner="bob@dom"))
    assert "2 slots whose machines sleep would suit it, and every other one runs a job" in text
    assert "lab2 is being woken for waiting jobs, asked for 1 minute ago" in text
    assert "is there a rooster" not in text


def test_a_machine_that_is_asked_for_and_does_not_wake() -> None:
    waits = job(QDate=int(NOW_S) - 9000, EnteredCurrentStatus=int(NOW_S) - 9000)
    assert "is there a rooster" in said(waits, slot(Offline=True, MachineLastMatchTime=int(NOW_S) - 3600))


def test_a_machine_that_is_awake_counts_before_those_that_sleep() -> None:
    assert "is free; the negotiator has not looked" in said(job(), slot(), slot(Offline=True))
