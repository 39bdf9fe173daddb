"""How far jobs are offered, and what is believed of other pools' jobs."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.flocking import FlockLevels, foreign_job, foreign_submitter, home_name
from condor_actors.cores.negotiator.fair_share import FairShareSettings
from condor_actors.messages.pool import KnownPartner

A, B = (KnownPartner(name=name, central=f"<{name}.example%{name}:9618>") for name in ("a", "b"))
ALICE = "alice@dom"


def levels(*wanted: str, step: int = 1) -> FlockLevels:
    found = FlockLevels(wanted, step)
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
    flock = FlockLevels(("a", "c"))
    assert not flock.goes_on(ALICE)
    assert flock.learn((A, B))
    assert not flock.learn((A, B))
    assert flock.unknown() == ("c",)
    assert flock.unserved(ALICE)
    assert flock.learn((B,))
    assert flock.pools(ALICE) == ()
    assert not flock.reaches(ALICE, "a")


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
