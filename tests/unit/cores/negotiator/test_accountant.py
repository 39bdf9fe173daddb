"""The accountant learns from what has changed alone, and knows what it would know of everything."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.accountant import Accountant
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.messages.advertise import AdChange, AdKind


def change(chance: Random) -> AdChange:
    """A slot or a submitter that comes, changes or goes."""
    number, user = chance.randrange(8), f"user{chance.randrange(4)}@dom"
    gone = chance.random() < 0.2
    if chance.random() < 0.5:
        ad = ClassAd({"Name": f"slot{number}@m", "Cpus": chance.choice((1, 2, 4)), "MyAddress": "<1.1.1.1:1>",
                      "State": chance.choice(("Claimed", "Unclaimed")), "RemoteUser": user})
        return AdChange(ad_kind=AdKind.SLOT, name=f"slot{number}@m", ad=b"" if gone else ad.to_bytes())
    key = f"{user}\ns{number % 3}"
    ad = ClassAd({"Name": user, "ScheddName": f"s{number % 3}", "IdleJobs": chance.choice((0, 0, 1, 5)),
                  "RunningJobs": chance.choice((0, 2))})
    return AdChange(ad_kind=AdKind.SUBMITTER, name=key, ad=b"" if gone else ad.to_bytes())


@pytest.mark.parametrize("seed", range(6))
def test_what_follows_from_changes_is_what_follows_from_everything(seed: int) -> None:
    chance, view, policy = Random(seed), PoolView(), FairShare(FairShareSettings())
    accountant = Accountant(policy)
    for step in range(400):
        if chance.random() < 0.02:
            view.reset()
        view.apply([change(chance) for _ in range(chance.randrange(1, 4))])
        policy.wants({name for name in policy.users if chance.random() < 0.1}, float(step))
        wanted_before = {record.name for record in policy.users.values() if record.wanting}
        changed = set(view.users)
        accountant.learn(view, float(step))
        held: dict[str, tuple[float, int]] = {}
        for slot in view.slots.values():
            if slot.holds:
                weight, count = held.get(slot.user, (0.0, 0))
                held[slot.user] = (weight + slot.weight(), count + 1)
        assert {record.name: (record.holding, record.slots) for record in policy.users.values() if record.slots} == held
        idle = {each.name for each in view.submitters.values() if each.idle}
        assert {each.name for each in view.wanting()} == idle
        assert {record.name for record in policy.users.values() if record.wanting} == {
            name for name in wanted_before if name in idle or name not in changed}
        for ad in map(ClassAd.from_bytes, accountant.ads(float(step))):
            mine = [each for each in view.submitters.values() if each.name == ad.get_str("Name")]
            assert ad.get_float("Requested") == sum(each.idle + each.running for each in mine)
