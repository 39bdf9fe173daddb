"""However slots change, are matched and are given up, the kept candidates equal those that are made anew."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.matchmaking import Matchmaker, Request
from condor_actors.cores.negotiator.pool_view import PoolView
from condor_actors.messages.advertise import AdChange, AdKind

NAMES = st.sampled_from([f"s{number}" for number in range(6)])
STATES = st.sampled_from(["Unclaimed", "Unclaimed", "Claimed", "Owner", "Drained", "Preempting"])


def ad_of(name: str, state: str, cpus: int, partitionable: bool, serial: int) -> AdChange:
    ad = ClassAd({"Name": name, "MyAddress": "<m:1>", "State": state, "Cpus": cpus, "Memory": cpus * 100, "Disk": 1000,
                  "SlotID": 1, "CurrentRank": 0.0, "MachineResources": "Cpus Memory Disk"})
    if partitionable:
        ad["PartitionableSlot"] = True
    if state in ("Claimed", "Preempting") and not partitionable:
        ad["RemoteUser"] = "bob@dom"
        ad.insert_text("Rank", "TARGET.RequestCpus")
    ad.insert_text("Requirements", "TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory")
    ad.insert_text("SlotWeight", "Cpus")
    private = ClassAd({"Capability": f"{name} {serial}"})
    return AdChange(ad_kind=AdKind.SLOT, name=name, ad=ad.to_bytes(), private=private.to_bytes())


def job(cpus: int) -> Request:
    ad = ClassAd({"RequestCpus": cpus, "RequestMemory": cpus * 50, "RequestDisk": 1, "Requirements": True, "Rank": 0.0})
    return Request(1, "1.0", 1, ad, "alice@dom", 500.0)


def matchmaker() -> Matchmaker:
    return Matchmaker(MatchSettings(), lambda user: 500.0, lambda wanting, holding: holding > wanting)


def shown(made: Matchmaker) -> dict[str, tuple[Any, ...]]:
    return {
        each.slot.key: (each.ad["Cpus"], each.ad["Memory"], each.weight, each.preempts, each.slot.capability,
                        each.entry[:5] if each.entry is not None else None)
        for each in made.candidates
    }


class CandidatesFollow(RuleBasedStateMachine):
    """Ads change, matches are made, time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.view = PoolView()
        self.made = matchmaker()
        self.now_s = 0.0
        self.serial = 0
        self.begun = False

    @rule(name=NAMES, state=STATES, cpus=st.integers(0, 4), partitionable=st.booleans(), renew=st.booleans())
    def change(self, name: str, state: str, cpus: int, partitionable: bool, renew: bool) -> None:
        self.serial += renew
        self.view.apply([ad_of(name, state, cpus, partitionable, self.serial)])
        self.begun = False

    @rule(name=NAMES)
    def go(self, name: str) -> None:
        self.view.apply([AdChange(ad_kind=AdKind.SLOT, name=name)])
        self.begun = False

    @rule()
    def begin(self) -> None:
        self.view.expire_handouts(self.now_s)
        self.made.begin(self.view, self.now_s)
        self.begun = True

    @precondition(lambda self: self.begun)
    @rule(cpus=st.integers(1, 3))
    def match(self, cpus: int) -> None:
        pick, _ = self.made.choose(job(cpus), lambda weight: True, lambda candidate: True)
        if pick is not None:
            self.made.take(pick, self.now_s + 10.0, {})

    @rule(span_s=st.floats(0.5, 15.0))
    def wait(self, span_s: float) -> None:
        self.now_s += span_s
        self.begun = False

    @invariant()
    def same_as_made_anew(self) -> None:
        if not self.begun:
            return
        anew = matchmaker()
        held, self.view.changed = self.view.changed, dict.fromkeys(self.view.slots)
        anew.begin(self.view, self.now_s)
        self.view.changed = held
        assert shown(self.made) == shown(anew)
        for cpus in (1, 3):
            ours, _ = self.made.choose(job(cpus), lambda weight: True, lambda candidate: True)
            theirs, _ = anew.choose(job(cpus), lambda weight: True, lambda candidate: True)
            assert (ours is None) == (theirs is None)

    @invariant()
    def sums_are_right(self) -> None:
        slots = self.view.slots.values()
        assert abs(self.view.total_weight - sum(slot.weight() for slot in slots)) < 1e-6
        held = [slot for slot in slots if slot.holds]
        expected = (sum(slot.weight() for slot in held), len(held))
        assert self.view.held.get("bob@dom", (0.0, 0)) == expected


TestCandidatesFollow = CandidatesFollow.TestCase
TestCandidatesFollow.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
