"""The collector's tables: what is found by number, address and expiry is what is in them, and so are the totals."""

from __future__ import annotations

from random import Random

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.collector import ad_table
from condor_actors.cores.collector.ad_table import ADS_PER_PAGE, MOST_GONE, AdTable, TooManyAds
from condor_actors.messages.advertise import AdKind
from condor_actors.messages.codec import MAX_BODY_BYTES, encode

LIFE_S = 900.0


def slot(number: int, **more: object) -> bytes:
    """A slot of one of seven machines."""
    return ClassAd({"Name": f"slot{number}@m", "MyAddress": f"<10.0.0.{number % 7}:1>", "State": "Unclaimed", "Cpus": 2,
                    "Memory": 100, **more}).to_bytes()


def names(table: AdTable) -> list[str]:
    """Of all slots, page by page."""
    found, cursor = [], ""
    while True:
        page = table.page(AdKind.SLOT, None, ("Name",), 0, cursor)
        found += [ClassAd.from_bytes(ad).get_str("Name") for ad in page.ads]
        cursor = page.cursor
        if not cursor:
            return found


@pytest.mark.parametrize("seed", range(5))
def test_every_way_to_a_record_leads_to_what_is_there(seed: int) -> None:
    chance, table, known = Random(seed), AdTable(), {}
    for step in range(3000):
        now_s, number = float(step), chance.randrange(60)
        act = chance.choice(("update", "update", "update", "names", "address", "expire", "host"))
        if act == "update":
            address, state = f"<10.0.0.{chance.randrange(7)}:1>", chance.choice(("Claimed", "Owner", "Unclaimed"))
            table.update(AdKind.SLOT, slot(number, MyAddress=address, State=state), b"", now_s=now_s,
                         lifetime_s=float(chance.randrange(1, 200)), host=f"h{number % 9}")
        elif act == "names":
            table.invalidate(AdKind.SLOT, (f"slot{number}@m",), "")
        elif act == "address":
            table.invalidate(AdKind.SLOT, (f"slot{number}@m",) if number % 2 else (), f"<10.0.0.{number % 7}:1>",
                             may=lambda record: record.number % 3 > 0)
        elif act == "expire":
            gone = table.expire(now_s)
            assert all(record.expires_s <= now_s for record in gone)
            assert all(record.expires_s > now_s for record in table.tables[AdKind.SLOT].values())
        else:
            table.drop_hosts({f"h{number % 9}"} if number < 5 else set())
        known = table.tables[AdKind.SLOT]
        assert names(table) == [record.name for record in sorted(known.values(), key=lambda record: record.number)]
        totals = table.totals.attributes()
        claimed = [record.ad for record in known.values() if record.ad.get_str("State") == "Claimed"]
        assert (totals["HostsTotal"], totals["HostsClaimed"], totals["CpusInUse"], totals["TotalMemory"]) == (
            len(known), len(claimed), 2 * len(claimed), 100 * len(known))
    for address in range(7):
        mine = {record.name for record in known.values() if record.my_address == f"<10.0.0.{address}:1>"}
        assert {record.name for record in table.invalidate(AdKind.SLOT, (), f"<10.0.0.{address}:1>")} == mine
    assert not table.tables[AdKind.SLOT]
    assert set(table.totals.attributes().values()) == {0}


def test_what_comes_and_goes_leaves_nothing() -> None:
    table = AdTable()
    for number in range(5 * MOST_GONE):
        table.update(AdKind.SLOT, slot(number), b"", now_s=0.0, lifetime_s=LIFE_S)
        table.invalidate(AdKind.SLOT, (f"slot{number}@m",), "")
    assert max(len(table._numbered[AdKind.SLOT]), len(table._expiring)) <= MOST_GONE + 1
    assert not table._of_daemon


def test_what_is_gone_keeps_no_ad_while_lists_still_name_it() -> None:
    table = AdTable()
    record, _ = table.update(AdKind.SLOT, slot(1), b"ClaimId = 1\n", now_s=0.0, lifetime_s=LIFE_S)
    assert table.invalidate(AdKind.SLOT, ("slot1@m",), "") == [record]
    assert table._numbered[AdKind.SLOT] == [record] == [each[2] for each in table._expiring]
    assert (record.key, record.data, record.private, len(record.ad.own)) == ("slot1@m", b"", b"", 0)
    again, is_new = table.update(AdKind.SLOT, slot(1), b"", now_s=1.0, lifetime_s=LIFE_S)
    assert is_new
    assert names(table) == ["slot1@m"]
    assert again.ad.get_int("Cpus") == 2


def test_a_renewal_for_less_and_then_for_what_it_had() -> None:
    table = AdTable()
    for lifetime_s in (100.0, 50.0, 100.0):
        table.update(AdKind.SLOT, slot(1), b"", now_s=0.0, lifetime_s=lifetime_s)
    assert not table.expire(60.0)
    assert len(table.expire(100.0)) == 1


def test_an_ad_that_goes_between_two_pages_is_skipped_and_no_other() -> None:
    table = AdTable()
    for number in range(ADS_PER_PAGE + 10):
        table.update(AdKind.SLOT, slot(number), b"", now_s=0.0, lifetime_s=LIFE_S)
    page = table.page(AdKind.SLOT, None, ("Name",), 0, "")
    table.invalidate(AdKind.SLOT, (f"slot{ADS_PER_PAGE + 3}@m", "slot2@m"), "")
    rest = table.page(AdKind.SLOT, None, ("Name",), 0, page.cursor)
    last = [ClassAd.from_bytes(ad).get_str("Name") for ad in rest.ads]
    assert len(page.ads) + len(last) == ADS_PER_PAGE + 9
    assert f"slot{ADS_PER_PAGE + 3}@m" not in last


def test_submitters_of_one_name_at_several_schedds_go_by_name_or_with_their_schedd() -> None:
    table = AdTable()
    for schedd in range(4):
        ad = ClassAd({"Name": "alice@x", "ScheddName": f"s{schedd}", "MyAddress": f"<10.0.0.{schedd}:1>"})
        table.update(AdKind.SUBMITTER, ad.to_bytes(), b"", now_s=0.0, lifetime_s=LIFE_S)
    assert len(table.invalidate(AdKind.SUBMITTER, ("alice@x",), "<10.0.0.1:1>")) == 1
    assert len(table.invalidate(AdKind.SUBMITTER, ("alice@x",), "")) == 3


def test_large_ads_of_one_machine_keep_no_other_from_being_shown() -> None:
    """Each page is a message, also where a projection writes more than was sent."""
    table = AdTable()
    for number in range(9):
        table.update(AdKind.SLOT, slot(number, Long="x" * 280_000) if number % 2 else slot(number), b"", now_s=1.0,
                     lifetime_s=60.0)
    table.update(AdKind.SLOT, slot(9) + b'Raw = "' + b"\x01" * 280_000 + b'"\n', b"", now_s=1.0, lifetime_s=60.0)
    for projection in ((), ("Name", "Long", "Raw")):
        pages = [table.page(AdKind.SLOT, None, projection, 0, "")]
        while pages[-1].cursor:
            pages.append(table.page(AdKind.SLOT, None, projection, 0, pages[-1].cursor))
        assert max(len(encode(page)) for page in pages) <= MAX_BODY_BYTES
        found = [ClassAd.from_bytes(text).get_str("Name") for page in pages for text in page.ads]
        assert found == [f"slot{number}@m" for number in range(10)]


@pytest.mark.parametrize("ad", [slot(1, Long="x" * 400_000), slot(1, Name="x" * 2_000 + "@host")])
def test_an_ad_that_subscribers_could_not_be_told_of_is_refused(ad: bytes) -> None:
    table = AdTable()
    with pytest.raises(ValueError, match="an ad has at most 300 KiB, and its name 1024 letters"):
        table.update(AdKind.SLOT, ad, b"", now_s=1.0, lifetime_s=60.0)
    assert len(table) == 0


def test_one_machine_has_no_more_than_its_share_and_what_goes_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ad_table, "MOST_OF_MACHINE", 3)
    monkeypatch.setattr(ad_table, "MOST_BYTES_OF_MACHINE", 2000)
    table = AdTable()

    def update(number: int, host: str, **more: str) -> None:
        table.update(AdKind.SLOT, slot(number, **more), b"", now_s=0.0, lifetime_s=LIFE_S, host=host)

    for number in range(3):
        update(number, "evil")
    with pytest.raises(TooManyAds, match="evil has 3 ads"):
        update(3, "evil")
    for number in range(10, 20):
        update(number, "")  # this machine's own
        update(number + 10, f"other{number}")
    with pytest.raises(TooManyAds, match="of 0 MiB together"):
        update(1, "evil", Long="x" * 2000)
    update(1, "evil", Long="x" * 1000)
    with pytest.raises(TooManyAds):
        update(2, "evil", Long="x" * 1000)
    table.invalidate(AdKind.SLOT, ("slot1@m",), "")
    update(2, "evil", Long="x" * 1000)
    table.drop_hosts({"evil", "", *(f"other{number}" for number in range(10, 20))})
    assert not table._shares
