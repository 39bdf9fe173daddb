"""Ads as text."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from random import Random

import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.printing.formats import (
    AutoFormat,
    Format,
    FormatError,
    Row,
    json_lines,
    json_rows,
    json_rows_of_texts,
    long_rows,
    long_rows_of_texts,
    xml_rows,
)

AD = ClassAd.from_text(
    'ClusterId = 266\nProcId = 0\nJobStatus = 2\nCmd = "/bin/sleep"\nR = 1.5\nE = ClusterId + 1\n'
    'L = { 1,"a" }\nZ = 0.0\nB = true\nQ = "a\\"b"\nBack = "x\\y"\n'
)


def printed(*options: tuple[str, str, tuple[str, ...]]) -> str:
    """What the options print of the ad."""
    return "".join(Row.of(options).rows([AD]))


@pytest.mark.parametrize(
    ("qualifier", "row"),
    [
        ("", '266 /bin/sleep undefined 1.5 267 { 1,"a" } 0.0 3\n'),
        ("j", '266.0 266 /bin/sleep undefined 1.5 267 { 1,"a" } 0.0 3\n'),
        ("jr", '266.0 266 "/bin/sleep" undefined 1.5 ClusterId + 1 { 1,"a" } 0.0 JobStatus + 1\n'),
        ("V", '266 "/bin/sleep" undefined 1.5 267 { 1,"a" } 0.0 3\n'),
        (",", '266, /bin/sleep, undefined, 1.5, 267, { 1,"a" }, 0.0, 3\n'),
        ("t", '266\t/bin/sleep\tundefined\t1.5\t267\t{ 1,"a" }\t0.0\t3\n'),
        ("n", '266\n /bin/sleep\n undefined\n 1.5\n 267\n { 1,"a" }\n 0.0\n 3\n'),
        ("lng", '\nClusterId = 266\nCmd = /bin/sleep\nNope = undefined\nR = 1.5\nE = 267\nL = { 1,"a" }\nZ = 0.0\n'
                'JobStatus+1 = 3\n'),
    ],
)
def test_autoformat(qualifier: str, row: str) -> None:
    names = ("ClusterId", "Cmd", "Nope", "R", "E", "L", "Z", "JobStatus+1")
    assert printed(("af", qualifier, names)) == row


def test_headings_are_as_wide_as_what_stands_below() -> None:
    assert printed(("af", "h", ("ClusterId", "Cmd"))) == "ClusterId Cmd       \n266       /bin/sleep\n"
    assert printed(("af", "jh", ("Cmd",))) == " ID      Cmd       \n 266.0   /bin/sleep\n"
    assert list(Row.of([("af", "h", ("ClusterId",))]).rows([])) == []


def test_several_options_make_one_row() -> None:
    both = ("af", "j", ("Cmd",)), ("af", "V", ("Cmd",))
    assert printed(*both, ("af", "", ("R",))) == '266.0 /bin/sleep "/bin/sleep" 1.5\n'
    assert printed(("format", "%d.", ("ClusterId",)), ("format", "%d\\n", ("ProcId",))) == "266.0\n"
    assert printed(("format", "<%d>", ("ClusterId",)), ("af", "t", ("ProcId", "R"))) == "<266>\t0\t1.5\n"


def test_elapsed_times() -> None:
    assert printed(("af", "T", ("ClusterId", "ClusterId*1000"))) == "0+00:04:26 3+01:53:20\n"


@pytest.mark.parametrize(
    ("form", "attribute", "text"),
    [
        ("%s, ", "JobStatus", "2, "),
        ("%s", "RemoteHost", ""),
        ("\\n", "True", "\n"),
        ("%d", "R", "1"),
        ("%d", "Cmd", ""),
        ("%5.2f|", "ClusterId", "266.00|"),
        ("%v", "Nope", "undefined"),
        ("%V", "Cmd", '"/bin/sleep"'),
        ("%-12s|", "Cmd", "/bin/sleep  |"),
        ("x%%%dy\\n", "ClusterId", "x%266y\n"),
        ("%r", "E", "ClusterId + 1"),
        ("%lld\\t", "ClusterId", "266\t"),
        ("%s", "B", "true"),
        ("text,\\n", "ALWAYS", "text,\n"),
        ("(n:\\%d) \\\\", "ClusterId", "(n:266) \\"),
        ("%s", "E", "ClusterId + 1"),
        ("%s", "E + 0", "267"),
        ("%s", "L", '{ 1,"a" }'),
    ],
)
def test_printf_formats(form: str, attribute: str, text: str) -> None:
    assert Format.of(form, attribute).text(AD) == text


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(FormatError, match="qualifier 'z'"):
        AutoFormat.of("z", ["A"])
    with pytest.raises(FormatError, match="attribute"):
        AutoFormat.of("j", [])
    with pytest.raises(FormatError, match="A =="):
        Format.of("%d", "A ==")


def test_json_is_json_and_nothing_when_there_is_nothing() -> None:
    whole = json.loads("".join(json_rows([AD, AD], ["Cmd", "ClusterId"])))
    assert whole == [{"ClusterId": 266, "Cmd": "/bin/sleep"}] * 2
    assert "".join(json_rows([])) == ""
    assert json.loads("".join(json_rows([], when_empty="[\n]\n"))) == []


def test_xml_is_xml() -> None:
    document = ET.fromstring("".join(xml_rows([AD], ["Cmd"])).partition("\n")[2].partition("\n")[2])
    assert [node.get("n") for node in document.iter("a")] == ["Cmd"]


def test_long_is_sorted_and_the_quick_way_gives_the_same() -> None:
    slow = "".join(long_rows([AD, AD]))
    assert slow.splitlines()[0] == "B = true"
    assert slow.endswith("\n\n")
    assert 'Back = "x\\y"\n' in slow
    assert "".join(long_rows_of_texts([AD.to_bytes()] * 2)) == slow


def test_the_quick_ways_give_the_same() -> None:
    texts = [AD.to_bytes(), AD.to_bytes() + b"JobStatus = 5\n"]
    ads = [ClassAd.from_bytes(text) for text in texts]
    for attributes in ([], ["Cmd", "ClusterId", "JobStatus", "Nope"]):
        assert "".join(json_rows_of_texts(texts, attributes)) == "".join(json_rows(ads, attributes))
        assert "".join(long_rows_of_texts(texts, attributes)) == "".join(long_rows(ads, attributes))
    assert "".join(json_rows_of_texts([])) == ""


def test_json_lines_are_objects() -> None:
    lines = "".join(json_lines([AD, AD], ("Cmd", "L", "Q"))).splitlines()
    assert [json.loads(line) for line in lines] == [{"Cmd": "/bin/sleep", "L": [1, "a"], "Q": 'a"b'}] * 2


def test_what_ads_have_in_common_is_looked_at_once_and_may_end_anywhere() -> None:
    random = Random(1)
    names = [f"Name{number}" for number in range(12)]
    ads = []
    for cluster in range(30):
        common = {name: f"{cluster % 3} of {name}" for name in names[: random.randrange(1, 12)]}
        for proc in range(random.randrange(1, 9)):
            own = {name: random.choice((proc, "x", 'a "b"', 1.5, f"{proc} of {name}"))
                   for name in random.sample(names, 3)}
            end = {} if random.random() < 0.2 else dict.fromkeys(names[cluster % 5:8], f"{cluster % 2} ends")
            ads.append((common, own, end))
    texts = [b"".join(ClassAd(part).to_bytes() for part in parts) for parts in ads]
    whole = [ClassAd({**common, **own, **end}) for common, own, end in ads]
    for attributes in ((), ("Name3", "name1")):
        assert "".join(long_rows_of_texts(texts, attributes)) == "".join(long_rows(whole, attributes))
        assert "".join(json_rows_of_texts(texts, attributes)) == "".join(json_rows(whole, attributes))
