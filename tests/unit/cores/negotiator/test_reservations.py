"""Reservations: which machines are set aside, for whom, when, and never against an owner."""

from __future__ import annotations

from pathlib import Path

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.reservations import DropReservation, Reservation, Reservations, SaveReservation
from condor_actors.store.accountant import AccountantStore


def slot(number: int, state: str = "Unclaimed", user: str = "", memory: int = 1024) -> ClassAd:
    ad = ClassAd({"Name": f"slot1@m{number}", "Machine": f"m{number}", "MyAddress": f"<m{number}:1>", "State": state,
                  "Memory": memory, "Cpus": 1})
    if user:
        ad.update({"RemoteUser": user, "PublicClaimId": f"claim{number}"})
    return ad


def one(**changes: object) -> Reservation:
    return Reservation(**{"name": "demo", "submitter": "alice@x", "machines": 2, "constraint": "", "from_s": 1000.0,
                          "until_s": 2000.0, "ahead_s": 100.0, **changes})  # type: ignore[arg-type]


def test_machines_are_set_aside_ahead_and_the_least_used_first() -> None:
    slots = [slot(1, "Claimed", "bob@x"), slot(2), slot(3)]
    held = Reservations([one()])
    held.set_aside(slots, 800.0)
    assert held.aside == {}
    held.set_aside(slots, 950.0)
    assert sorted(held.aside) == ["m2", "m3"]
    assert not held.may_use("m2", "bob@x")
    assert held.may_use("m2", "alice@x")
    assert held.may_use("m1", "bob@x")
    assert held.ads(950.0)[0]["State"] == "draining"


def test_an_owner_keeps_the_machine_and_another_takes_its_place() -> None:
    held = Reservations([one()])
    held.set_aside([slot(1, "Owner"), slot(2), slot(3), slot(4)], 950.0)
    assert sorted(held.aside) == ["m2", "m3"]
    held.set_aside([slot(1), slot(2, "Owner"), slot(3), slot(4)], 960.0)
    assert sorted(held.aside) == ["m1", "m3"], "m3 stays, m2 is its owner's"
    held.set_aside([slot(1, "Owner"), slot(2, "Owner"), slot(3), slot(4, "Owner")], 970.0)
    assert sorted(held.aside) == ["m3"], "an owner is never driven out"


def test_claims_of_others_end_with_their_job_and_are_vacated_when_it_begins() -> None:
    slots = {"slot1@m1": slot(1, "Claimed", "bob@x"), "slot1@m2": slot(2, "Claimed", "alice@x")}
    held = Reservations([one()])
    held.set_aside(slots.values(), 950.0)
    assert held.to_end(slots, 950.0) == {("<m1:1>", "demo", True): ("slot1@m1",)}, "what runs may finish"
    assert held.to_end(slots, 960.0) == {}
    assert held.to_end(slots, 1000.0) == {("<m1:1>", "demo", False): ("slot1@m1",)}
    assert held.to_end(slots, 1010.0) == {}


def test_what_cannot_be_kept_is_refused() -> None:
    slots = [slot(1), slot(2, memory=9000), slot(3, "Owner")]
    held = Reservations()
    assert held.why_not(one(), slots, 0.0) == ""
    assert "machines fit" in held.why_not(one(machines=4), slots, 0.0)
    assert "1 machines fit" in held.why_not(one(constraint="Memory > 5000"), slots, 0.0)
    assert "cannot be read" in held.why_not(one(constraint="Memory >"), slots, 0.0)
    assert held.why_not(one(machines=0), slots, 0.0)
    assert held.why_not(one(until_s=999.0), slots, 0.0)
    held.all["demo"] = one()
    assert "already" in held.why_not(one(), slots, 0.0)
    assert "promised to others" in held.why_not(one(name="second"), slots, 0.0)
    assert held.why_not(one(name="later", from_s=3000.0, until_s=4000.0), slots, 0.0) == ""


def test_moments_and_the_end() -> None:
    held = Reservations([one()])
    assert [held.next_s(now_s) for now_s in (0.0, 900.0, 1000.0, 2000.0)] == [900.0, 1000.0, 2000.0, None]
    assert held.expire(1999.0) == ()
    assert held.expire(2000.0) == ("demo",)
    assert not held


def test_they_are_kept(tmp_path: Path) -> None:
    store = AccountantStore(tmp_path / "accountant.sqlite")
    store.commit([SaveReservation(one()), SaveReservation(one(name="other"))])
    store.commit([DropReservation("other")])
    store.close()
    again = AccountantStore(tmp_path / "accountant.sqlite")
    assert again.reservations() == (one(),)
    again.close()
