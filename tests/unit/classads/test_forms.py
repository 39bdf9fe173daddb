"""The four forms, each both ways, and streams of ads."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

import condor_actors.classads
from condor_actors.classads import ClassAd, ClassAdSyntaxError, RelativeTime, parse_expression
from condor_actors.classads.forms import long_form
from condor_actors.classads.forms.any_form import FORMS, ad_of, iter_ads, recognise, write_ads
from condor_actors.classads.forms.json_form import iter_json
from condor_actors.classads.forms.long_form import iter_long
from condor_actors.classads.forms.xml_form import iter_xml
from tests.harness.pure_classads import pure

NEW = (
    '[ A = 1; S = "x\\"y\\\\z\\n\\t<&>é"; R = 0.1; E = a =?= 3 && b isnt "q"; L = { 1,"b",{ c } };'
    " N = [ x = 1; y = [ z = 2 ] ]; U = undefined; X = error; B = true;"
    ' T = absTime("2020-01-01T00:00:00+01:00"); D = relTime("1+00:00:01") ]'
)


def sample() -> ClassAd:
    """An ad with a value of every kind."""
    return ClassAd.from_new(NEW)


def test_long_form_as_the_tools_write_it() -> None:
    ad = ClassAd({"A": 1, "B": 'x"y\\z', "C": 1.5, "L": [1, "a"], "F": 1e300, "Z": 100.0})
    ad.insert_text("D", 'A =?= 3 && B isnt "q"')
    assert ad.to_text() == (
        'A = 1\nB = "x\\"y\\z"\nC = 1.5\nL = { 1,"a" }\nF = 1E+300\nZ = 100.0\nD = A =?= 3 && B =!= "q"\n'
    )


def test_long_form_as_people_write_it() -> None:
    ad = ClassAd.from_text(
        '# comment\n\nCmd = "C:\\dir\\"\n  Args="a \\"b\\" c"  \n'
        'Requirements = A == "x\\y" && B\nNote = "two\nlines"\n'
    )
    assert ad["cmd"] == "C:\\dir\\"
    assert ad["Args"] == 'a "b" c'
    assert str(ad["Requirements"]) == 'A == "x\\\\y" && B'
    assert ad["Note"] == "two\nlines"
    assert ClassAd.from_text(ad.to_text()) == ad
    with pytest.raises(ClassAdSyntaxError) as caught:
        ClassAd.from_text("A = 1\nB = (2\n")
    assert caught.value.line == 2
    with pytest.raises(ClassAdSyntaxError):
        ClassAd.from_text("no assignment\n")


def test_the_wire_carries_everything() -> None:
    ad = sample()
    ad["Odd"] = "tail\\"
    ad["Bytes"] = b"\xff\x01".decode("utf-8", "surrogateescape")
    ad["Third"] = 1 / 3
    ad["Span"] = RelativeTime(0.25)
    ad["a b"] = 5
    again = ClassAd.from_bytes(ad.to_bytes())
    assert again == ad
    assert list(again) == list(ad)
    assert ClassAd.from_bytes(ad.to_bytes()).to_bytes() == ad.to_bytes()
    assert again["Third"] == 1 / 3
    changed = ClassAd.from_bytes(b"a = 5\nA2 = 17\nName = \"x\"\n")
    assert changed.to_bytes() == b'a = 5\nA2 = 17\nName = "x"\n'
    with pytest.raises(ClassAdSyntaxError) as caught:
        ClassAd.from_bytes(b"A = 1\nB = (\n")
    assert caught.value.line == 2


def test_spelling_travels() -> None:
    first = ClassAd.from_bytes(b"SpellingOne = 1\n")
    second = ClassAd.from_bytes(b"SPELLINGONE = 1\n")
    assert list(first) == ["SpellingOne"]
    assert list(second) == ["SPELLINGONE"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_reads_back(form: str) -> None:
    ad = sample()
    if form == "long":
        del ad["S"]
    text = "".join(write_ads([ad], form))  # type: ignore[arg-type]  # one of FORMS
    assert recognise(text) == form
    assert ad_of(text) == ad
    pieces = "".join(write_ads([ad, ClassAd({"n": 2})], form))  # type: ignore[arg-type]  # one of FORMS
    assert list(iter_ads(pieces)) == [ad, ClassAd({"n": 2})]


def test_json() -> None:
    ad = sample()
    decoded = json.loads(ad.to_json())
    assert decoded["A"] == 1
    assert decoded["U"] is None
    assert decoded["E"] == '/Expr(a is 3 && b isnt "q")/'
    assert decoded["N"] == {"x": 1, "y": {"z": 2}}
    assert "\\/Expr(" in ad.to_json()
    assert ClassAd.from_json('{"a": 1e999, "b": [null]}').evaluate("b") is not None
    assert [dict(ad) for ad in iter_json('[{"a":1},\n{"a":2}]')] == [{"a": 1}, {"a": 2}]
    for bad in ("[1]", "{", '{"a": "/Expr(1+)/"}', "{" + '"a":[' * 3000 + "]" * 3000 + "}"):
        with pytest.raises(ClassAdSyntaxError):
            ClassAd.from_json(bad)


def test_xml() -> None:
    text = (
        '<?xml version="1.0"?><!DOCTYPE classads SYSTEM "classads.dtd"><classads><c>'
        '<a n="MyType"><s>Job &amp; more</s></a><a n="n"><i>5</i></a><a n="r"><r>1.5</r></a>'
        '<a n="e"><e>a &lt; b</e></a><a n="b"><b v="t"/></a><a n="l"><l><i>1</i><un/></l></a></c></classads>'
    )
    ad = ClassAd.from_xml(text)
    assert ad["MyType"] == "Job & more"
    assert ad["b"] is True
    assert ad["e"] == parse_expression("a < b")
    assert list(iter_xml(io.StringIO(text.replace("><", ">\n<")))) == [ad]
    entity = '<!DOCTYPE c [<!ENTITY x "y">]><c/>'
    for bad in ("<c>", "<c><a n='x'><i>z</i></a></c>", "<d/>", "", "<c><a><i>1</i></a></c>", entity):
        with pytest.raises(ClassAdSyntaxError):
            ClassAd.from_xml(bad)


def test_streams() -> None:
    lines = ["A = 1\n", "\n", "\n", "# note\n", 'B = "2"\n', "C = 3"]
    assert [dict(ad) for ad in iter_long(lines)] == [{"A": 1}, {"B": "2", "C": 3}]


def chained(levels: int) -> ClassAd:
    """An ad with everything a line can hold, chained to so many others; names spelled anew, hidden, changed."""
    ad = ClassAd({"Count": 7, "None": 0, "Below": -12, "Least": -2**63, "Large": 2**63 - 1, "lOaD": 0.5, "Idle": True,
                  "Name": "a \"b\" \\ ä \udce9", "Tags": ["x", 2], "Gone": 1, "Inner": {"A": 1},
                  "Requirements": parse_expression("TARGET.Memory >= 5 && Idle"), "parent": "quoted", "No Word": 1})
    for level in range(levels):
        ad = ClassAd({"count": level, "LOAD": 1.5, f"New{level}": "x"}, parent=ad)
        if level == 0:
            del ad["gone"]
    return ad


@pytest.mark.parametrize("levels", range(4))
def test_the_wire_form_is_the_same_with_and_without_the_core(levels: int) -> None:
    ad = chained(levels)
    data = ad.to_bytes()
    assert data == long_form._lines_of(ad)
    for _ in range(2):
        own: dict[str, Any] = {}
        spellings = long_form._lines_into(own, data, {}, {}, long_form._wire_line)
        again = ClassAd.from_bytes(data)
        assert (own, spellings) == (again.own, again.spellings)
    assert again.to_bytes() == data


@pytest.mark.parametrize("text", ["", "plain text, (a) = b", *map(chr, range(1, 0x101)), "\udc80", "\U0001f600"])
def test_each_character_of_a_string_is_written_as_without_the_core(text: str) -> None:
    for whole in (text, f"before{text}", f"{text} and behind"):
        ad = ClassAd({"A": whole})
        assert ad.to_bytes() == long_form._lines_of(ad)
        assert ClassAd.from_bytes(ad.to_bytes()).evaluate("A") == whole


@pytest.mark.parametrize("engine", [condor_actors.classads, pure], ids=["in C", "in Python"])
def test_what_an_ad_has_deleted_of_its_parents_is_not_written(engine: Any) -> None:
    ad = engine.ClassAd({"A": 1})
    ad.parent = engine.ClassAd({"B": 2, "C": 3})
    del ad["B"]
    assert sorted(ad.to_bytes().split()) == [b"1", b"3", b"=", b"=", b"A", b"C"]
    alone = engine.ClassAd()
    alone.own = ad.own
    assert alone.to_bytes().lower() == b"a = 1\n"  # how a name is spelled is known by those who met it first


@pytest.mark.parametrize("engine", [condor_actors.classads, pure], ids=["in C", "in Python"])
def test_a_name_in_quotes_may_have_an_equals_sign(engine: Any) -> None:
    first, second = engine.ClassAd({"a = b": "x", "a = 1": 2}), engine.ClassAd({"a = c": 3, "a": 4})
    for _ in range(2):
        assert engine.ClassAd.from_bytes(first.to_bytes()) == first
        assert engine.ClassAd.from_bytes(second.to_bytes()) == second
