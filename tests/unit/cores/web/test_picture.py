"""The pool's picture: looks by state, and only what differs is told."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.web.picture import LOOKS, PoolPicture, look_of


def slot(name: str, state: str = "Unclaimed", activity: str = "Idle", heard: int = 5, **others: object) -> bytes:
    ad = ClassAd({"Name": name, "Machine": name.partition("@")[2], "State": state, "Activity": activity, "Cpus": 1,
                  "LastHeardFrom": heard})
    for key, value in others.items():
        ad[key] = value
    return ad.to_bytes()


@pytest.mark.parametrize(("state", "activity", "draining", "look"), [
    ("Owner", "Idle", False, "owner"), ("Unclaimed", "Idle", False, "free"), ("Claimed", "Busy", False, "running"),
    ("Claimed", "Idle", False, "matched"), ("Claimed", "Suspended", False, "suspended"),
    ("Claimed", "Retiring", True, "running"), ("Preempting", "Vacating", False, "leaving"),
    ("Unclaimed", "Idle", True, "drained"), ("Drained", "Idle", False, "drained"), ("", "", False, "owner"),
])
def test_looks(state: str, activity: str, draining: bool, look: str) -> None:
    assert look_of(state, activity, draining) == look
    assert look in LOOKS


def test_only_what_differs_is_told() -> None:
    picture = PoolPicture()
    assert len(picture.heard([slot("a@m"), slot("b@m")])) == 2
    assert picture.heard([slot("a@m", heard=9), slot("b@m", "Claimed", "Busy")]) == [picture.slots["b@m"]]
    assert picture.newest_s == 9
    assert picture.keep_only({"b@m"}) == ["a@m"]
    assert picture.counts()["running"] == 1
    assert sum(picture.counts().values()) == 1


def test_an_owner_who_types_does_not_change_the_picture_each_second() -> None:
    picture = PoolPicture()
    picture.heard([slot("a@m", KeyboardIdle=61)])
    assert picture.heard([slot("a@m", KeyboardIdle=119)]) == []
    assert picture.heard([slot("a@m", KeyboardIdle=120)]) != []


def test_machines_have_the_sums_of_their_slots() -> None:
    picture = PoolPicture()
    picture.heard([slot("b@m", Memory=5), slot("a@m", "Owner", Memory=7), slot("x@k")])
    assert [(each["machine"], each["cpus"], each["memory"], each["looks"]) for each in picture.machines()] == [
        ("k", 1, 0, {"free": 1}), ("m", 2, 12, {"free": 1, "owner": 1})]


def test_what_is_no_ad_or_has_no_name_is_left_out() -> None:
    picture = PoolPicture()
    assert picture.heard([b"Name = ", b"State = \"Owner\"\n"]) == []
    assert picture.slots == {}
