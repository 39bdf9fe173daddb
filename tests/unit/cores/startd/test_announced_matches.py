"""A schedd of another pool has the matches that our negotiator has announced, each once, and no larger."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.cores.startd.claims.announced_matches import GOOD_S, AnnouncedMatches
from condor_actors.messages.negotiate import MatchNotice

GUEST = "gus@there%math"
SLOT = ClassAd({"Cpus": 8, "Memory": 100})


def notice(cpus: int = 1) -> MatchNotice:
    return MatchNotice(slot_name="slot1@h", submitter=GUEST, schedd_address="<s:1>", cost=(("cpus", cpus),))


def test_each_match_is_good_for_one_claim() -> None:
    matches = AnnouncedMatches()
    job = ClassAd({"RequestCpus": 1})
    assert not matches.knows("slot1@h", GUEST, 0.0)
    matches.announce(notice(), 0.0)
    assert matches.why_not("slot1@h", GUEST, job, SLOT, 1.0) == ""
    assert "no match" in matches.why_not("slot1@h", GUEST, job, SLOT, 1.0)
    assert matches.why_not("slot1@h", "alice@here", job, SLOT, 1.0) == ""


def test_a_claim_is_no_larger_than_its_match() -> None:
    matches = AnnouncedMatches()
    matches.announce(notice(2), 0.0)
    assert "more of the slot" in matches.why_not("slot1@h", GUEST, ClassAd({"RequestCpus": 3}), SLOT, 1.0)
    assert matches.why_not("slot1@h", GUEST, ClassAd({"RequestCpus": 2}), SLOT, 1.0) == ""


def test_matches_do_not_last() -> None:
    matches = AnnouncedMatches()
    matches.announce(notice(), 0.0)
    assert not matches.knows("slot1@h", GUEST, GOOD_S + 1.0)
    assert "no match" in matches.why_not("slot1@h", GUEST, ClassAd({}), SLOT, GOOD_S + 1.0)
