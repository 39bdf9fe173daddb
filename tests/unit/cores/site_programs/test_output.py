"""What a program of the site prints is hostile text: ads come out, or nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.classads import ClassAd
from condor_actors.cores.site_programs.output import MOST_AD_BYTES, OutputReader, Printed
from condor_actors.cores.site_programs.programs import SiteProgram

SENSOR = SiteProgram(name="sensor", executable="/bin/sensor", prefix="Site_", slots=frozenset({1}))


def read(*pieces: bytes, program: SiteProgram = SENSOR) -> list[Printed]:
    reader = OutputReader(program)
    return [each for piece in pieces for each in reader.feed(piece, 100.0)] + reader.end(101.0)


def values(printed: Printed) -> dict[str, object]:
    ad = ClassAd(printed.ad.attributes)
    return {name: ad.evaluate(name) for name in printed.ad.attributes}


def test_ads_end_at_separators_and_at_the_end_of_the_program() -> None:
    first, second, third = read(b"Temp = 20 + 1\n# a comment\n\nRoom=\"b\"\n- one update:true\n",
                                b"Temp = 5\n-two update: FALSE\nTemp = 7")
    assert values(first) == {"Site_Temp": 21, "Site_Room": "b", "Site_LastUpdate": 100}
    assert [(each.ad.program, each.ad.tag, each.update) for each in (first, second, third)] == [
        ("sensor", "one", True), ("sensor", "two", False), ("sensor", "", None)]
    assert values(third)["Site_Temp"] == 7
    assert first.ad.slots == {1}


@pytest.mark.parametrize(("line", "tag", "update"), [
    (b"-", "", None), (b"- update:true", "", True), (b"-update:false", "", False), (b"- s1", "s1", None),
    (b"-s1 update : true", "s1", True),
])  # fmt: skip
def test_a_separator_has_a_tag_and_says_whether_it_is_urgent(line: bytes, tag: str, update: bool | None) -> None:
    (printed,) = read(b"A = 1\n" + line + b"\n")
    assert (printed.ad.tag, printed.update) == (tag, update)


def test_which_slots_an_ad_is_for_is_no_attribute_of_theirs() -> None:
    for line, found in ((b"SlotId = 2", (2, None, "", False)), (b"SlotTypeId = -1", (None, -1, "", False)),
                        (b'SlotName = "gpu"', (None, None, "gpu", False)), (b'Name = "x"', (None, None, "x", False)),
                        (b"SlotMergeConstraint = Cpus > 1", (None, None, "", True))):
        (printed,) = read(b"A = 1\n" + line + b"\n")
        ad = printed.ad
        assert (ad.slot_id, ad.slot_type, ad.slot_name, ad.constraint is not None) == found
        assert ad.attributes.keys() == {"Site_A", "Site_LastUpdate"}
        assert not ad.is_for_all


def test_pieces_may_be_cut_anywhere() -> None:
    text = b"A = 1\n- x update:true\nB = \"two\"\n-\n"
    whole = read(text)
    assert whole == read(*(text[index:index + 1] for index in range(len(text))))
    assert len(whole) == 2


def test_lines_that_are_none_are_kept_for_the_log_and_spoil_nothing() -> None:
    reader = OutputReader(SENSOR)
    (printed,) = reader.feed(b"oops\nA = \n= 3\nA = (1\n9x = 1\nB = 2\n\xff\xfe = 1\n- a b c\n", 1.0)
    assert printed.ad.attributes.keys() == {"Site_B", "Site_LastUpdate"}
    assert reader.strangers == 7
    assert reader.strange[0] == "'oops': no NAME = VALUE"


def test_long_lines_and_large_ads_are_dropped_and_what_follows_is_read() -> None:
    reader = OutputReader(SENSOR)
    found = []
    for _ in range(100):
        found += reader.feed(b"x" * 1000, 1.0)
    found += reader.feed(b"\nA = 1\n-\n", 1.0)
    assert [each.ad.attributes.keys() for each in found] == [{"Site_A", "Site_LastUpdate"}]
    assert reader.strangers == 1
    many = b"".join(b"A%d = %d\n" % (number, number) for number in range(501))
    assert reader.feed(many + b"-\n", 1.0) == []
    value = b"A = \"" + b"x" * 4000 + b"\"\n"
    assert reader.feed(value * 5 + b"-\n", 1.0) == []
    assert reader.strangers == 3
    assert len(reader.feed(b"A = 1\n-\n", 1.0)) == 1


@given(st.lists(st.binary(max_size=300), max_size=8))
def test_whatever_is_printed_nothing_else_than_ads_within_their_limits_comes_of_it(pieces: list[bytes]) -> None:
    for printed in read(*pieces):
        ad = printed.ad
        assert ad.size <= MOST_AD_BYTES
        assert all(name.startswith("Site_") for name in ad.attributes)
        ClassAd.from_bytes(ClassAd(ad.attributes).to_bytes())
