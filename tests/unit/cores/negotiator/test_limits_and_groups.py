"""Concurrency limits and accounting groups."""

from __future__ import annotations

from condor_actors.classads import ClassAd, parse_expression
from condor_actors.cores.negotiator.concurrency_limits import ConcurrencyLimits, limits_of, parse_limits
from condor_actors.cores.negotiator.group_quotas import Group, GroupBudget, GroupTree
from condor_actors.cores.negotiator.pool_view import Handout, PoolView, Slot


def test_limits_are_parsed() -> None:
    assert parse_limits("Matlab:2, db, matlab") == {"matlab": 3.0, "db": 1.0}
    assert parse_limits("a:x b:-1") == {"a": 1.0, "b": 1.0}
    assert limits_of(ClassAd({"ConcurrencyLimits": "x:4"})) == {"x": 4.0}
    assert limits_of(ClassAd()) == {}


def test_limits_count_running_jobs_and_matches_on_their_way() -> None:
    view = PoolView()
    ad = ClassAd({"ConcurrencyLimits": "db:2"})
    view.slots["a"] = Slot("a", ad, b"", "c", "<n>", "Claimed", "alice@dom", False, ("cpus",))
    view.slots["b"] = Slot("b", ClassAd(), b"", "c", "<n>", "Unclaimed", "", False, ("cpus",),
                           [Handout({"cpus": 1}, 10.0, {"db": 1.0})])
    limits = ConcurrencyLimits(lambda name: 4.0, view)
    assert limits.in_use == {"db": 3.0}
    assert limits.why_not({"db": 1.0}) == ""
    limits.take({"db": 1.0})
    assert "db is reached (4 of 4 in use)" in limits.why_not({"db": 1.0})
    assert limits.why_not({"other": 4.0}) == ""


TREE = GroupTree.of([
    Group(name="physics", quota=60.0), Group(name="physics.hep", fraction=0.5),
    Group(name="bio", quota=20.0, accept_surplus=True),
])


def test_users_belong_to_the_longest_group() -> None:
    assert TREE.group_of("physics.hep.alice@dom") == "physics.hep"
    assert TREE.group_of("Physics.bob@dom") == "physics"
    assert TREE.group_of("alice@dom") == ""


def test_quotas_are_weights_or_fractions_of_the_parent() -> None:
    assert TREE.quotas(100.0) == {"physics": 60.0, "physics.hep": 30.0, "bio": 20.0}


def test_quotas_are_cut_down_where_that_is_asked_for() -> None:
    tree = GroupTree.of([Group(name="a", quota=80.0), Group(name="b", quota=80.0)], allow_oversubscription=False)
    assert tree.quotas(100.0) == {"a": 50.0, "b": 50.0}


def test_a_budget_counts_for_the_group_and_all_above() -> None:
    budget = GroupBudget(TREE, 100.0, {"physics.hep.alice@dom": 25.0, "bio.carol@dom": 20.0})
    assert budget.permits("physics.hep.alice@dom", 5.0)
    assert not budget.permits("physics.hep.alice@dom", 6.0)
    assert budget.permits("physics.bob@dom", 35.0)
    assert not budget.permits("physics.bob@dom", 36.0)
    assert not budget.permits("bio.carol@dom", 1.0)
    assert budget.permits("dave@dom", 1000.0)
    budget.surplus_round = True
    assert budget.permits("bio.carol@dom", 1.0)
    assert not budget.permits("physics.hep.alice@dom", 6.0)


def test_the_group_furthest_below_its_quota_is_first_and_nobody_is_last() -> None:
    budget = GroupBudget(TREE, 100.0, {"physics.bob@dom": 30.0, "bio.carol@dom": 1.0})
    assert list(budget.order(["", "physics", "bio"])) == ["bio", "physics", ""]
    tree = GroupTree(groups=TREE.groups, sort=parse_expression("-GroupQuota"))
    assert list(GroupBudget(tree, 100.0, {}).order(["", "physics", "bio"])) == ["physics", "bio", ""]
