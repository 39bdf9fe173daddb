"""Ceilings, floors and factors that are set for a while come back to what they were.

No matter which process is killed meanwhile.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.accountant import Accountant, SaveUsers
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.effects import Effect, Persist, Reply, SetTimer
from condor_actors.messages.envelope import Done, Refused
from condor_actors.messages.negotiate import SetPriority
from condor_actors.store.accountant import AccountantStore

ANN = "ann@dom"


def reply_of(effects: tuple[Effect, ...]) -> Done | Refused:
    (reply,) = (effect.message for effect in effects if isinstance(effect, Reply))
    return reply


def timers(effects: tuple[Effect, ...]) -> list[float]:
    return [effect.delay_s for effect in effects if isinstance(effect, SetTimer)]


class World:
    """An accountant whose records are on a disk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "accountant.db"
        self.accountant = Accountant(FairShare(FairShareSettings()))

    def say(self, what: str, value: float = 0.0, duration_s: float = 0.0, at_s: float = 100.0) -> tuple[Effect, ...]:
        effects = self.accountant.set(SetPriority(submitter=ANN, what=what, value=value, duration_s=duration_s), at_s)
        return self.save(effects)

    def save(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        store = AccountantStore(self.path)
        store.commit([each.operation for each in effects if isinstance(each, Persist)])
        store.close()
        return effects

    def killed(self) -> None:
        self.accountant = Accountant(FairShare(FairShareSettings(), AccountantStore(self.path).load()))

    def ad(self, at_s: float) -> ClassAd:
        (ad,) = (ad for ad in map(ClassAd.from_bytes, self.accountant.ads(at_s)) if ad.get_str("Name") == ANN)
        return ad


@pytest.mark.parametrize(("what", "attribute", "before", "leased"), [
    ("ceiling", "Ceiling", -1.0, 5.0), ("floor", "Floor", -1.0, 2.0), ("factor", "PriorityFactor", 1000.0, 10.0)])
@pytest.mark.parametrize("ends", ["by itself", "cancelled", "while nobody was there"])
def test_what_was_before_comes_back(tmp_path: Path, what: str, attribute: str, before: float, leased: float,
                                    ends: str) -> None:
    world = World(tmp_path)
    effects = world.say(what, leased, 60.0)
    assert isinstance(reply_of(effects), Done)
    assert timers(effects) == [60.0]
    assert world.ad(130.0).get_float(attribute) == leased
    world.killed()
    assert world.ad(130.0).get_float(attribute) == leased
    assert timers(world.accountant.leases_over(130.0)) == [30.0]
    if ends == "cancelled":
        assert isinstance(reply_of(world.say(f"cancel-{what}", at_s=140.0)), Done)
    else:
        world.save(world.accountant.leases_over(160.0 if ends == "by itself" else 1e6))
    world.killed()
    ad = world.ad(1e6)
    assert ad.get_float(attribute) == before
    assert not [name for name in ad if "Lease" in name]
    assert not timers(world.accountant.leases_over(1e6))


def test_a_value_is_not_set_while_another_is_for_a_while(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.say("ceiling", 8.0)
    world.say("ceiling", 3.0, 60.0)
    for duration_s in (0.0, 30.0):
        refused = reply_of(world.say("ceiling", 9.0, duration_s))
        assert isinstance(refused, Refused)
        assert "-cancelceilinglease" in refused.text
    assert isinstance(reply_of(world.say("floor", 1.0)), Done), "another limit is free"
    assert isinstance(reply_of(world.say("ceiling", 9.0, at_s=161.0)), Done), "its time is over"
    assert world.ad(162.0).get_float("Ceiling") == 9.0


@pytest.mark.parametrize(("what", "duration_s"), [("priority", 5.0), ("ceiling", -1.0), ("factor", float("nan")),
                                                  ("floor", float("inf"))])
def test_what_makes_no_lease(tmp_path: Path, what: str, duration_s: float) -> None:
    world = World(tmp_path)
    assert isinstance(reply_of(world.say(what, 2.0, duration_s)), Refused)
    assert ANN not in world.accountant.policy.users


def test_a_lease_that_is_not_there_is_not_cancelled(tmp_path: Path) -> None:
    world = World(tmp_path)
    for what in ("cancel-ceiling", "cancel-nonsense"):
        refused = reply_of(world.say(what))
        assert isinstance(refused, Refused)
        assert "no lease to cancel" in refused.text


def test_a_record_on_its_way_to_the_disk_does_not_change(tmp_path: Path) -> None:
    world = World(tmp_path)
    effects = world.say("ceiling", 3.0, 60.0)
    world.accountant.leases_over(1e6)
    (saved,) = (each.operation for each in effects if isinstance(each, Persist))
    assert isinstance(saved, SaveUsers)
    assert set(saved.records[0].leases) == {"ceiling"}
