"""When a cycle begins, for whom it waits, and who gets what: core against plain values."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.negotiator.cycle_settings import CycleRules, CycleSettings
from condor_actors.cores.negotiator.fair_share import FairShare, FairShareSettings
from condor_actors.cores.negotiator.group_quotas import Group, GroupTree
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.negotiator.negotiation_cycle import SOFT_REST, NegotiationCycle
from condor_actors.cores.negotiator.pool_view import HANDOUT_S, HARD, SOFT, Handout, PoolView
from condor_actors.cores.negotiator.refusals import GAP_S
from condor_actors.cores.negotiator.user_priority import UserRecord
from condor_actors.effects import Answer, Ask, Effect, Send, SetTimer
from condor_actors.messages.advertise import AdChange, AdKind
from condor_actors.messages.envelope import AskFailed
from condor_actors.messages.negotiate import MatchesMade, RequestsRejected, ResourceRequest, ResourceRequests
from condor_actors.messages.pool import KnownPartner

ALICE, BOB = "alice@dom", "bob@dom"
JOB = {"Requirements": True, "RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1, "Rank": 0.0}


class Pool:
    """Slots, submitters that each want some jobs, and one negotiator."""

    def __init__(self, slots: int, wants: dict[str, int], *, rules: CycleRules | None = None,
                 users: dict[str, UserRecord] | None = None, job: dict[str, Any] | None = None,
                 **settings: Any) -> None:
        self.wants = wants
        self.job = ClassAd({**JOB, **(job or {})}).to_bytes()
        self.view = PoolView()
        self.view.apply([*map(self._slot, range(slots)), *(self._submitter(name) for name in wants)])
        self.cycle = NegotiationCycle(CycleSettings(**settings), MatchSettings(), self.view,
                                      FairShare(FairShareSettings(), users), rules)

    @staticmethod
    def _slot(number: int) -> AdChange:
        ad = ClassAd({"Name": f"slot{number}", "MyAddress": "<m:1>", "Cpus": 1, "Memory": 100, "Disk": 100, "SlotID": 1,
                      "State": "Unclaimed", "Requirements": True, "Rank": 0.0, "MachineResources": "Cpus Memory Disk"})
        private = ClassAd({"Capability": f"right to {number}"}).to_bytes()
        return AdChange(ad_kind=AdKind.SLOT, name=f"slot{number}", ad=ad.to_bytes(), private=private)

    def _submitter(self, name: str) -> AdChange:
        ad = ClassAd({"Name": name, "ScheddName": "s", "MyAddress": f"<{name}:1>", "IdleJobs": self.wants[name]})
        return AdChange(ad_kind=AdKind.SUBMITTER, name=name, ad=ad.to_bytes())

    def answer(self, ask: Ask, now_s: float) -> tuple[Effect, ...]:
        name = ask.message.submitter
        request = ResourceRequest(autocluster=1, job_id="1.0", count=self.wants[name], job_ad=self.job)
        return self.cycle.answered(Answer(ask.tag, ResourceRequests(submitter=name, requests=(request,))), now_s)

    def run(self, now_s: float = 0.0) -> dict[str, int]:
        """A whole cycle; how many slots each submitter got."""
        effects = self.cycle.begin(now_s)
        for ask in asks(effects):
            effects = self.answer(ask, now_s)
        return gained(effects)


def asks(effects: tuple[Effect, ...]) -> list[Ask]:
    return [each for each in effects if isinstance(each, Ask)]


def gained(effects: tuple[Effect, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    slots: list[str] = []
    for each in effects:
        if isinstance(each, Send) and isinstance(each.message, MatchesMade):
            slots += [match.slot_name for match in each.message.matches]
            found[each.message.submitter] = found.get(each.message.submitter, 0) + len(each.message.matches)
    assert len(slots) == len(set(slots)), "a slot is given once"
    return found


def reasons(effects: tuple[Effect, ...]) -> list[str]:
    sent = [each.message for each in effects if isinstance(each, Send)]
    return [rejection.reason for message in sent if isinstance(message, RequestsRejected)
            for rejection in message.rejections]


def delay_of(effects: tuple[Effect, ...]) -> float:
    """After how long the next cycle begins."""
    (delay_s,) = [each.delay_s for each in effects if isinstance(each, SetTimer) and each.key == "cycle"]
    return delay_s


def test_after_a_cycle_the_negotiator_rests_as_long_as_it_took() -> None:
    """Else it does nothing but compute in a busy pool, and answers nobody."""
    pool = Pool(2, {ALICE: 1})
    pool.run(100.0)
    pool.cycle.busy_s = 5.0
    assert delay_of(pool.cycle.wish(SOFT, 100.0)) == pytest.approx(5.0 * SOFT_REST)
    assert delay_of(pool.cycle.wish(HARD, 100.0)) == pytest.approx(5.0)


def test_cycles_keep_their_distance() -> None:
    pool = Pool(2, {ALICE: 1}, min_interval_s=20.0)
    pool.run(100.0)
    assert delay_of(pool.cycle.wish(HARD, 101.0)) == pytest.approx(19.0)
    assert pool.cycle.wish(HARD, 102.0) == (), "it is due already"


def test_what_happens_during_a_cycle_leads_to_the_next() -> None:
    pool = Pool(2, {ALICE: 1})
    (ask,) = asks(pool.cycle.begin(0.0))
    assert pool.cycle.wish(HARD, 0.5) == (), "not two at a time"
    assert delay_of(pool.answer(ask, 1.0)) >= 0.0


def test_a_schedd_that_does_not_answer_is_waited_for_with_patience() -> None:
    pool = Pool(3, {ALICE: 1, BOB: 1}, patience_s=2.0)
    effects = pool.cycle.begin(0.0)
    assert SetTimer("patience", 2.0) in effects
    of_alice = next(ask for ask in asks(effects) if ask.message.submitter == ALICE)
    assert gained(pool.answer(of_alice, 0.1)) == {}
    assert gained(pool.cycle.out_of_patience(2.0)) == {ALICE: 1}
    of_bob = next(ask for ask in asks(effects) if ask.message.submitter == BOB)
    assert delay_of(pool.answer(of_bob, 3.0)) >= 0.0, "a late answer leads to the next cycle"


def test_a_schedd_that_cannot_be_reached_stops_nobody() -> None:
    pool = Pool(2, {ALICE: 1, BOB: 1})
    of_alice, of_bob = asks(pool.cycle.begin(0.0))
    pool.cycle.answered(Answer(of_alice.tag, AskFailed(reason="unreachable", text="nobody answers")), 0.1)
    assert gained(pool.answer(of_bob, 0.2)) == {of_bob.message.submitter: 1}


def test_who_has_used_less_is_served_more() -> None:
    users = {ALICE: UserRecord(ALICE, priority=30.0), BOB: UserRecord(BOB, priority=10.0)}
    pool = Pool(8, {ALICE: 100, BOB: 100}, users=users)
    assert pool.run() == {ALICE: 2, BOB: 6}


def test_who_has_used_least_gets_the_last_slot() -> None:
    users = {ALICE: UserRecord(ALICE, priority=30.0), BOB: UserRecord(BOB, priority=10.0)}
    assert Pool(1, {ALICE: 100, BOB: 100}, users=users).run() == {BOB: 1}


def test_nobody_gets_more_than_his_ceiling() -> None:
    users = {ALICE: UserRecord(ALICE, ceiling=3.0)}
    assert Pool(8, {ALICE: 100}, users=users).run() == {ALICE: 3}


def test_matches_that_no_ad_shows_yet_count_against_a_ceiling_and_a_share() -> None:
    """A second cycle, right after the first, knows what that one gave."""
    pool = Pool(8, {ALICE: 8}, users={ALICE: UserRecord(ALICE, ceiling=2.0)})
    assert pool.run(0.0) == {ALICE: 2}
    assert pool.run(1.0) == {}
    assert pool.run(1.0 + HANDOUT_S) == {ALICE: 2}, "nobody claimed the first ones"
    pool = Pool(4, {ALICE: 8})
    pool.run(0.0)
    pool.view.apply([pool._submitter(ALICE), *map(pool._slot, range(4, 8))])
    pool.wants[BOB] = 8
    pool.view.apply([pool._submitter(BOB)])
    assert pool.run(1.0) == {BOB: 4}


LIMITED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("a ceiling", {"wants": {ALICE: 8}, "users": {ALICE: UserRecord(ALICE, ceiling=2.0)}}),
    ("a quota", {"wants": {"g.alice@dom": 8},
                 "rules": CycleRules(groups=GroupTree.of([Group(name="g", quota=2.0)]))}),
    ("a concurrency limit", {"wants": {ALICE: 8}, "rules": CycleRules(limit_of=lambda name: 2.0),
                             "job": {"ConcurrencyLimits": "licence"}}),
)


@pytest.mark.parametrize(("limit", "pool"), LIMITED, ids=[limit for limit, _ in LIMITED])
def test_a_slot_that_waits_for_its_schedd_counts_as_the_match_it_is(limit: str, pool: dict[str, Any]) -> None:
    """``Matched`` is neither free nor anybody's: the ad shows the match, and not whose it is."""
    of_pool = Pool(8, **pool)
    (user,) = pool["wants"]
    assert of_pool.run(0.0) == {user: 2}
    given = [key for key, slot in of_pool.view.slots.items() if slot.handouts]
    of_pool.view.apply(in_state(of_pool, key, "Matched") for key in given)
    assert of_pool.run(1.0) == {}, limit
    assert of_pool.run(1.0 + 2 * HANDOUT_S) == {}, "the startd waits as long as its MATCH_TIMEOUT says"
    of_pool.view.apply(in_state(of_pool, key, "Unclaimed") for key in given)
    assert of_pool.run(2.0 + 2 * HANDOUT_S) == {user: 2}, "nobody came for them"


@pytest.mark.parametrize(("limit", "pool"), LIMITED, ids=[limit for limit, _ in LIMITED])
def test_a_match_counts_while_the_job_that_it_displaces_leaves(limit: str, pool: dict[str, Any]) -> None:
    of_pool = Pool(8, **pool)
    (user,) = pool["wants"]
    given = ("slot0", "slot1")
    limits = {"licence": 1.0} if "job" in pool else {}
    of_pool.view.apply(in_state(of_pool, key, "Claimed", RemoteUser=BOB) for key in given)
    for key in given:
        of_pool.view.handed_out(of_pool.view.slots[key], Handout({"cpus": 1}, HANDOUT_S, limits, user, 1.0))
    of_pool.view.apply(in_state(of_pool, key, "Preempting", RemoteUser=BOB) for key in given)
    assert of_pool.run(1.0) == {}, limit


def in_state(pool: Pool, name: str, state: str, **more: Any) -> AdChange:
    """The slot's ad, with the same capability, in another state."""
    made = pool._slot(int(name.removeprefix("slot")))
    ad = ClassAd.from_bytes(made.ad)
    ad.update({"State": state, **more})
    return AdChange(ad_kind=AdKind.SLOT, name=name, ad=ad.to_bytes(), private=made.private)


def test_matches_that_no_ad_shows_yet_count_against_a_groups_quota() -> None:
    rules = CycleRules(groups=GroupTree.of([Group(name="g", quota=2.0)]))
    pool = Pool(8, {"g.alice@dom": 8}, rules=rules)
    assert pool.run(0.0) == {"g.alice@dom": 2}
    assert pool.run(1.0) == {}


def test_no_more_jobs_than_a_limit_allows() -> None:
    pool = Pool(8, {ALICE: 100}, rules=CycleRules(limit_of=lambda name: 2.0), job={"ConcurrencyLimits": "licence"})
    (ask,) = asks(pool.cycle.begin(0.0))
    effects = pool.answer(ask, 0.0)
    assert gained(effects) == {ALICE: 2}
    assert ["licence" in reason for reason in reasons(effects)] == [True]


def test_no_group_gets_more_than_its_quota() -> None:
    tree = GroupTree.of([Group(name="physics", quota=3.0)])
    assert Pool(8, {"physics.ann@dom": 100}, rules=CycleRules(groups=tree)).run() == {"physics.ann@dom": 3}


def turned_away(effects: tuple[Effect, ...]) -> list[str]:
    return [each.message.submitter for each in effects
            if isinstance(each, Send) and isinstance(each.message, RequestsRejected)]


def with_partner(slots: int, wants: dict[str, int]) -> Pool:
    pool = Pool(slots, wants)
    pool.cycle.lending.learn((KnownPartner(name="far", central="<cm%far:9618>"),), 0.0)
    return pool


def test_who_wants_something_of_a_pool_that_has_nothing_is_told_at_once() -> None:
    """Its schedd offers the job to the next pool then, and does not wait until it has lost patience."""
    pool = with_partner(0, {ALICE: 1, BOB: 2})
    (timer,) = pool.cycle.wish(HARD, 100.0)
    assert timer == SetTimer("turn-away", pytest.approx(pool.cycle.settings.delay_s))
    assert pool.cycle.wish(HARD, 100.0) == (), "one round is planned"
    assert turned_away(pool.cycle.turn_away(100.01)) == [ALICE, BOB]
    pool.wants[BOB] = 3
    pool.view.apply([pool._submitter(BOB)])
    (timer,) = pool.cycle.wish(HARD, 100.02)
    assert timer == SetTimer("turn-away", pytest.approx(GAP_S - 0.01))
    assert turned_away(pool.cycle.turn_away(100.12)) == [BOB], "the other was told"


@pytest.mark.parametrize("again", ["requested", "regularly"])
def test_who_asks_for_a_cycle_is_told_again(again: str) -> None:
    pool = with_partner(0, {ALICE: 1})
    pool.cycle.wish(HARD, 100.0)
    assert turned_away(pool.cycle.turn_away(100.0)) == [ALICE]
    pool.cycle.wish(HARD, 101.0)
    assert turned_away(pool.cycle.turn_away(101.0)) == []
    getattr(pool.cycle, again)(102.0)
    assert turned_away(pool.cycle.turn_away(102.0)) == [ALICE]


def test_nobody_is_turned_away_when_a_machine_has_come_meanwhile() -> None:
    pool = with_partner(0, {ALICE: 1})
    pool.cycle.wish(HARD, 100.0)
    pool.view.apply([pool._slot(1)])
    assert delay_of(pool.cycle.wish(HARD, 100.0)) >= 0.0
    assert pool.cycle.turn_away(100.01) == ()
    assert pool.run(100.02) == {ALICE: 1}


def test_in_a_pool_without_partners_nobody_is_turned_away_without_a_cycle() -> None:
    assert Pool(0, {ALICE: 1}).cycle.wish(HARD, 100.0) == ()
