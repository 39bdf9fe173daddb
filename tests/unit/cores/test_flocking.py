"""How far jobs are offered, and what is believed of other pools' jobs."""

from __future__ import annotations

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.flock_lists import MOST_CHARACTERS, MOST_POOLS, FlockLists, list_problem, named_pools
from condor_actors.cores.flocking import FlockLevels, foreign_job, foreign_submitter, home_name
from condor_actors.cores.negotiator.fair_share import FairShareSettings
from condor_actors.cores.submit_commands import objection
from condor_actors.messages.pool import KnownPartner

A, B = (KnownPartner(name=name, central=f"<{name}.example%{name}:9618>") for name in ("a", "b"))
ALICE = "alice@dom"


def levels(*wanted: str, step: int = 1) -> FlockLevels:
    found = FlockLevels(FlockLists(wanted, step=step))
    found.learn((A, B))
    return found


def test_one_pool_after_the_other() -> None:
    flock = levels("b", "a.example")
    assert flock.targets == (B, A)
    assert flock.pools(ALICE) == ()
    assert flock.reaches(ALICE, "")
    assert not flock.reaches(ALICE, "b")
    assert not flock.unserved(ALICE, "b")  # nothing was offered there
    assert flock.unserved(ALICE, "")
    assert flock.pools(ALICE) == (B,)
    assert not flock.unserved(ALICE, "")  # the last one that was offered them decides
    assert flock.unserved(ALICE)
    assert flock.pools(ALICE) == (B, A)
    assert not flock.goes_on(ALICE)
    assert not flock.unserved(ALICE, "a")
    assert flock.served(ALICE) == (B, A)
    assert flock.pools(ALICE) == ()
    assert flock.pools("bob@dom") == ()


def test_several_pools_at_a_time() -> None:
    flock = levels("a", "b", step=5)
    assert flock.unserved(ALICE, "")
    assert flock.pools(ALICE) == (A, B)


def test_partners_come_and_go() -> None:
    flock = FlockLevels(FlockLists(("a", "c")))
    assert not flock.goes_on(ALICE)
    assert flock.learn((A, B))
    assert not flock.learn((A, B))
    assert flock.unknown() == ("c",)
    assert flock.unserved(ALICE)
    assert flock.learn((B,))
    assert flock.pools(ALICE) == ()
    assert not flock.reaches(ALICE, "a")


def asking(*pools: str) -> ClassAd:
    return ClassAd({"FlockTo": ", ".join(pools)}) if pools else ClassAd()


def lists(*default: str, is_default: bool = True, least: int = 0) -> FlockLevels:
    found = FlockLevels(FlockLists(("b", "a"), default, is_default=is_default, least=least))
    found.learn((A, B))
    return found


def test_jobs_name_pools_beside_the_defaults() -> None:
    flock = lists("b")
    assert flock.unserved(ALICE, "", [asking(), asking("A.example")])
    assert flock.pools(ALICE) == (B,)
    assert flock.unserved(ALICE, "b", [asking(), asking("A.example")])
    assert flock.pools(ALICE) == (B, A)
    assert not flock.sends("a", asking(), 0.0)
    assert flock.sends("a", asking("x", "A.example"), 0.0)
    assert flock.sends("b", asking("a"), 0.0)
    assert flock.served(ALICE) == (B, A)
    assert flock.unserved(ALICE, None, [asking()])
    assert not flock.unserved(ALICE, None, [asking()])  # nobody names the other one now
    assert flock.pools(ALICE) == (B,)
    assert flock.unserved(ALICE, None, [asking("a")])
    assert flock.pools(ALICE) == (B, A)


def test_jobs_that_name_no_pool_may_stay_at_home() -> None:
    flock = lists("b", is_default=False, least=1)
    assert not flock.unserved(ALICE, "", [asking(), asking("c")])
    assert flock.pools(ALICE) == ()
    assert not any(flock.sends(realm, asking("c"), 0.0) for realm in ("a", "b"))
    assert flock.sends("", asking(), 0.0)
    assert flock.unserved(ALICE, "", [asking("Default")])
    assert flock.pools(ALICE) == (B,)
    assert flock.sends("b", asking("default"), 0.0)
    assert not flock.sends("a", asking("default"), 0.0)


def test_some_defaults_are_offered_jobs_from_the_beginning() -> None:
    flock = lists("a", "b", least=1)
    assert flock.pools(ALICE) == (A,)
    assert not flock.unserved(ALICE, "")  # the pool that was offered them last has said nothing
    assert flock.unserved(ALICE, "a")
    assert flock.served(ALICE) == (A, B)
    assert flock.pools(ALICE) == (A,)


def test_no_list_gives_what_flock_to_does_not() -> None:
    flock = FlockLevels(FlockLists(("a",), ("a", "b")))
    flock.learn((A, B))
    assert flock.targets == (A,)
    assert flock.not_permitted() == ("b",)
    assert not flock.sends("b", asking("b"), 0.0)
    assert flock.unserved(ALICE, None, [asking("b")])
    assert not flock.unserved(ALICE, None, [asking("b")])
    flock.configure(FlockLists(("b",)))
    assert flock.pools(ALICE) == ()  # what was offered to a, which FLOCK_TO no longer names, is not b's
    assert not flock.sends("a", asking("a"), 0.0)


@pytest.mark.parametrize("value", [
    "x" * (MOST_CHARACTERS + 1), "a " * MOST_CHARACTERS, " ".join(f"p{number}" for number in range(MOST_POOLS + 1)),
    7, True, ["a"], ClassAd.from_text('FlockTo = strcat("a", "")').find("flockto")])
def test_a_list_that_is_none_counts_for_nothing_and_is_refused(value: object) -> None:
    assert named_pools(value) == frozenset()
    assert list_problem(value)
    ad = ClassAd()
    ad["FlockTo"] = value
    assert "FlockTo = " in str(objection(ad, ["FlockTo"]))
    assert "would have no effect" in str(objection(ad, ["FlockTo"]))


@pytest.mark.parametrize("text", ["", "a", " A.example:9618 ,, default", "%", "<1.2.3.4:5>", "*", "é\t\n"])
def test_odd_words_name_no_pool_that_is_not_called_so(text: str) -> None:
    assert not list_problem(text)
    flock = FlockLevels(FlockLists(("b", "a"), (), is_default=False))
    flock.learn((A, B))
    ad = ClassAd()
    ad["FlockTo"] = text
    assert flock.sends("a", ad, 0.0) is ("a" in text.lower().replace("default", ""))
    assert not flock.sends("b", ad, 0.0)
    assert objection(ad, ["FlockTo"]) is None


def test_what_another_pool_says_of_a_submitter_is_marked() -> None:
    ad = ClassAd({"Name": "group_physics.alice@dom", "Machine": "submit", "ScheddName": "submit",
                  "MyAddress": "<10.0.0.1:9618>", "ScheddIpAddr": "<10.0.0.2%physics:1>"})
    foreign_submitter(ad, "math")
    assert ad.get_str("Name") == "group_physics.alice@dom%math"
    assert ad.get_str("MyAddress") == "<10.0.0.1%math:9618>"
    assert ad.get_str("ScheddIpAddr") == ""
    assert ad.get_str("FlockFrom") == "math"
    assert home_name(ad.get_str("Name"), "math") == "group_physics.alice@dom"
    assert home_name("odd%name@dom", "") == "odd%name@dom"


def test_what_another_pools_job_says_of_its_owner_counts_for_nothing() -> None:
    ad = ClassAd({"Owner": "bob", "User": "bob@physics", "AcctGroup": "group_physics", "NiceUser": False})
    foreign_job(ad, "group_physics.alice@dom%math")
    assert (ad.get_str("Owner"), ad.get_str("User")) == ("alice%math", "group_physics.alice@dom%math")
    assert "%math" in ad.get_str("AcctGroup")
    own = ClassAd({"Owner": "bob"})
    foreign_job(own, "alice@dom")
    assert own.get_str("Owner") == "bob"


def test_users_of_other_pools_come_after_the_own() -> None:
    assert FairShareSettings().remote_factor > FairShareSettings().default_factor
