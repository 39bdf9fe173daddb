"""The report of what pools have lent each other."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from condor_actors.classads import ClassAd
from condor_actors.tools.lib.flock_picture import WIDEST, flow_picture
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


SVG = "{http://www.w3.org/2000/svg}"


def test_the_picture_has_an_arrow_for_each_direction_that_was_used() -> None:
    flows: list[tuple[str, Flow, Flow | str]] = [
        ("physics", Flow(hours=1.0, slots=2.0), Flow(hours=4.0, slots=3.0)), ("biology", Flow(), Flow(hours=0.01)),
        ("chemistry", Flow(), Flow()), ("a<b", Flow(), "Error: nobody answers")]
    drawn = ElementTree.fromstring(flow_picture("math", flows))
    wide = {(line.get("class"), float(str(line.get("stroke-width")))) for line in drawn.iter(f"{SVG}line")
            if line.get("stroke-width")}
    assert wide == {("in", WIDEST / 2), ("out", WIDEST), ("out", 1.5)}, "by the square root of the hours"
    assert len(list(drawn.iter(f"{SVG}polygon"))) == 3
    assert [line.get("class") for line in drawn.iter(f"{SVG}line")].count("unknown") == 1
    texts = [str(each.text) for each in drawn.iter(f"{SVG}text")]
    assert {"math", "physics", "biology", "chemistry", "a<b", "4.00 h", "1.00 h", "0.01 h",
            "2 lent now, 3 borrowed", "0 lent now, borrowed: not known"} <= set(texts)


def test_everything_is_within_the_picture_however_many_partners_there_are() -> None:
    for count in (0, 1, 3, 40):
        text = flow_picture("math", [(f"p{n}", Flow(hours=n), Flow(hours=1.0)) for n in range(count)])
        drawn = ElementTree.fromstring(text)
        width, height = float(str(drawn.get("width"))), float(str(drawn.get("height")))
        boxes = [[float(str(box.get(name))) for name in ("x", "y", "width", "height")]
                 for box in drawn.iter(f"{SVG}rect")]
        assert len(boxes) == count + 1
        assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
        assert not re.search("nan|inf", text.replace("inherit", ""))
