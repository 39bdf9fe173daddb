"""The report of what pools have lent each other."""

from __future__ import annotations

from condor_actors.classads import ClassAd
from condor_actors.tools.lib.flock_report import Flow, flow_of, report_text


def account(name: str, hours: float, slots: float = 0.0) -> ClassAd:
    return ClassAd({"Name": name, "WeightedAccumulatedUsage": hours * 3600.0, "WeightedResourcesUsed": slots})


def test_a_flow_is_of_one_pools_users() -> None:
    ads = [account("alice@home", 9.0, 4.0), account("bob@there%math", 1.5, 1.0), account("eve@there%math", 0.5),
           account("bob@there%biology", 3.0)]
    assert flow_of(ads, "math") == Flow(hours=2.0, slots=1.0, users=2)
    assert flow_of(ads, "chemistry") == Flow()


def test_the_report_says_what_is_not_known() -> None:
    text = report_text("math", [("physics", Flow(hours=1.0), Flow(hours=2.5, slots=3.0)),
                                ("biology", Flow(), "Error: nobody answers")])
    lines = text.splitlines()
    assert lines[1].split() == ["physics", "1.00", "h,", "0", "now", "2.50", "h,", "3", "now"]
    assert lines[2].split()[-2:] == ["not", "known"]
    assert lines[3].strip() == "Error: nobody answers"
    assert lines[-2:] == ["  math ── 2.50 h ──▶ physics", "  physics ── 1.00 h ──▶ math"]


def test_without_traffic_there_is_no_picture() -> None:
    assert "▶" not in report_text("math", [("physics", Flow(), Flow())])
