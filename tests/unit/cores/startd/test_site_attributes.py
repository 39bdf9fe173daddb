"""What programs of the site say reaches the slots that it is for, and overwrites nothing of the startd's own."""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd, Expr, parse_expression
from condor_actors.cores.site_programs.programs import SiteAd
from condor_actors.cores.startd.site_attributes import write_site


def says(text: dict[str, str], **about: Any) -> SiteAd:
    return SiteAd(program="p", attributes={name: parse_expression(value) for name, value in text.items()}, **about)


def slot(number: int = 1, **more: Any) -> ClassAd:
    return ClassAd({"Name": f"slot{number}@host", "SlotID": number, "SlotTypeId": 1, "Cpus": 2, **more},
                   parent=ClassAd({"Machine": "host", "Arch": "X86_64"}))


def written(ad: ClassAd, *sites: SiteAd, names: set[str] | None = None,
            defaults: dict[str, Expr] | None = None) -> set[str]:
    return write_site(sites, ad, set() if names is None else names, defaults or {})


def test_what_is_said_of_one_slot_counts_more_than_what_is_said_of_all() -> None:
    sites = (says({"Value": "1"}, slot_id=1), says({"Value": "2"}, slot_id=2), says({"Value": "10"}))
    for number, value in ((1, 1), (2, 2), (3, 10)):
        ad = slot(number)
        assert written(ad, *sites) == set()
        assert ad.evaluate("Value") == value


def test_the_ways_to_name_slots_in_the_order_of_their_weight() -> None:
    ad = slot(1)
    sites = [says({"V": "5"}, constraint=parse_expression("TARGET.Cpus == 2")), says({"V": "4"}, slot_name="slot1"),
             says({"V": "3"}, slot_type=1), says({"V": "2"}, slot_id=1), says({"V": "1"})]
    names: set[str] = set()
    while sites:
        written(ad, *sites, names=names)
        assert ad.evaluate("V") == len(sites)
        del sites[0]
    for other in (says({"V": "9"}, constraint=parse_expression("Missing")), says({"V": "9"}, slot_name="gpu"),
                  says({"V": "9"}, slot_type=2), says({"V": "9"}, slot_id=7), says({"V": "9"}, slots=frozenset({2}))):
        ad = slot(1)
        written(ad, other)
        assert "V" not in ad


def test_the_startds_own_attributes_are_refused() -> None:
    ad = slot(1, State="Unclaimed")
    own = {"Name": '"x"', "State": '"Claimed"', "Machine": '"other"', "arch": '"ARM"', "RemoteOwner": '"mallory"',
           "Requirements": "true", "Start": "true", "MyAddress": '"<evil:1>"', "TotalTimeOwnerIdle": "1",
           "Cpus": "1000"}
    assert written(ad, says({**own, "Ours": "1"})) == set(own)
    assert ad.to_bytes().splitlines() == [*slot(1, State="Unclaimed").to_bytes().splitlines(), b"Ours = 1"]


def test_what_is_said_no_longer_goes_and_a_default_comes_back() -> None:
    default = {"Healthy": parse_expression("false")}
    ad = slot(1, Healthy=parse_expression("false"))
    names: set[str] = set()
    site = says({"Healthy": "true", "Temp": "20"})
    assert written(ad, site, names=names, defaults=default) == set()
    assert (ad.evaluate("Healthy"), ad.evaluate("Temp"), names) == (True, 20, {"healthy", "temp"})
    assert written(ad, site, names=names, defaults=default) == set()
    written(ad, names=names, defaults=default)
    assert (ad.evaluate("Healthy"), "Temp" in ad, names) == (False, False, set())
