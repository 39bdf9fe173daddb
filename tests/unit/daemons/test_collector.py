"""The collector and the advertisers that keep it informed, on an in-memory network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.actors import ActorSystem
from condor_actors.classads import ClassAd
from condor_actors.config import load_config
from condor_actors.daemons import collector
from condor_actors.daemons.advertiser import ADVERTISER, Advertise, Advertiser, Withdraw
from condor_actors.messages.advertise import (
    AdKind,
    AdsChanged,
    AdsPage,
    InvalidateAd,
    OfflineMatched,
    QueryAds,
    SubscribeAds,
    UpdateAd,
)
from condor_actors.messages.codec import decode
from condor_actors.messages.envelope import Address, Done, Identity, Level, Refused
from tests.harness.local_post import LocalNetwork, Probe

NODE = "<cm:9618>"
COLLECTOR = Address(NODE, "collector")
LOCAL = Address("", ADVERTISER)


@pytest.fixture
def net() -> Any:
    network = LocalNetwork()
    yield network
    network.stop()
    network.run(30.0)
    assert not network.clock.getDelayedCalls()


def start_collector(net: LocalNetwork, **edges: Any) -> ActorSystem:
    daemon = collector.make_daemon(load_config(files=[]), net.world(NODE, **edges))
    net.adopt(NODE, daemon.system)
    daemon.start()
    net.run(0.1)
    return daemon.system


def slot(name: str, **values: Any) -> ClassAd:
    return ClassAd({"MyType": "Machine", "Name": name, "MyAddress": "<m:1>", "State": "Unclaimed", "Cpus": 1, **values})


def names(page: Any) -> list[str]:
    assert isinstance(page, AdsPage), page
    return [ClassAd.from_bytes(ad).get_str("Name") for ad in page.ads]


def ask(net: LocalNetwork, probe: Probe, message: Any) -> Any:
    probe.answers.clear()
    probe.ask(COLLECTOR, message)
    net.run(0.1)
    return probe.answers[-1]


def test_ads_are_found_by_constraint_and_cut_to_a_projection(net: LocalNetwork) -> None:
    start_collector(net)
    probe = net.probe(net.system("<m:1>"))
    for number in range(5):
        ad = slot(f"slot{number}@m", Memory=number * 100)
        assert ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes(), private=b'Capability = "x"\n')) == Done()
    assert len(names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT)))) == 5
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint="Memory >= 300"))) == ["slot3@m", "slot4@m"]
    page = ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint="Memory == 400", projection=("memory",)))
    assert page.ads == (b"Memory = 400\n",)
    assert len(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, limit=2)).ads) == 2
    assert ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint='Capability == "x"')).ads == ()
    refused = ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint="Memory >"))
    assert isinstance(refused, Refused)
    assert refused.code == "invalid"


def test_private_attributes_never_stay_in_the_public_part(net: LocalNetwork) -> None:
    start_collector(net)
    probe = net.probe(net.system("<m:1>"))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("s", ClaimId="secret").to_bytes()))
    assert b"secret" not in ask(net, probe, QueryAds(ad_kind=AdKind.SLOT)).ads[0]


def test_pages_neither_repeat_nor_skip(net: LocalNetwork) -> None:
    start_collector(net)
    probe = net.probe(net.system("<m:1>"))
    for number in range(9):
        probe.tell(COLLECTOR, UpdateAd(ad_kind=AdKind.GENERIC, ad=slot(f"n{number}", Big="x" * 100_000).to_bytes()))
    net.run(0.1)
    found: list[str] = []
    cursor = ""
    while True:
        page = ask(net, probe, QueryAds(ad_kind=AdKind.GENERIC, cursor=cursor))
        found += names(page)
        cursor = page.cursor
        if not cursor:
            break
    assert found == [f"n{number}" for number in range(9)]


def test_what_is_not_renewed_expires(net: LocalNetwork) -> None:
    start_collector(net)
    probe = net.probe(net.system("<m:1>"))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("short").to_bytes(), lifetime_s=60))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("long").to_bytes(), lifetime_s=600))
    net.run(100.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["long"]
    ask(net, probe, InvalidateAd(ad_kind=AdKind.SLOT, my_address="<m:1>"))
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == []


def test_only_who_may_speak_for_a_table_is_heard(net: LocalNetwork) -> None:
    allowed = (Level.DAEMON, Level.READ, Level.CLIENT)
    start_collector(net, authorize=lambda who, level: who.name != "eve" or level in allowed)
    eve = net.probe(net.system("<eve:1>", identity=Identity(name="eve", method="tls", host="m")))
    refused = ask(net, eve, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("s").to_bytes()))
    assert isinstance(refused, Refused)
    assert refused.code == "denied"
    assert "ADVERTISE_STARTD" in refused.text
    assert ask(net, eve, UpdateAd(ad_kind=AdKind.GENERIC, ad=slot("s").to_bytes())) == Done()


EVIL = Identity(name="condor@pool", roles=frozenset({"startd", "schedd", "master"}), host="evil", method="tls",
                hosts=frozenset({"evil", "10.0.0.66"}))


@pytest.mark.parametrize(("ad_kind", "values"), [
    (AdKind.SLOT, {"Name": "slot1@good", "Machine": "evil", "MyAddress": "<evil:1>"}),
    (AdKind.SLOT, {"Name": "slot1@evil", "Machine": "good", "MyAddress": "<evil:1>"}),
    (AdKind.SLOT, {"Name": "slot1@evil", "Machine": "evil", "MyAddress": "<good:1>"}),
    (AdKind.SLOT, {"Name": "slot1@evil", "Machine": "evil", "MyAddress": ""}),
    (AdKind.SCHEDD, {"Name": "good", "Machine": "evil", "MyAddress": "<evil:1>"}),
    (AdKind.MASTER, {"Name": "good", "Machine": "evil", "MyAddress": "<evil:1>"}),
    (AdKind.STARTD, {"Name": "good", "Machine": "evil", "MyAddress": "<evil:1>"}),
    (AdKind.SUBMITTER, {"Name": "ann@dom", "ScheddName": "good", "Machine": "good", "MyAddress": "<evil:1>"}),
    (AdKind.SUBMITTER, {"Name": "ann@dom", "ScheddName": "good", "MyAddress": "<good:1>"}),
])
def test_a_machine_advertises_itself_alone(net: LocalNetwork, ad_kind: AdKind, values: dict[str, str]) -> None:
    start_collector(net)
    evil = net.probe(net.system("<evil:1>", identity=EVIL))
    answer = ask(net, evil, UpdateAd(ad_kind=ad_kind, ad=ClassAd({"MyType": "x", **values}).to_bytes()))
    assert isinstance(answer, Refused)
    assert answer.code == "denied"


def test_a_machine_advertises_itself_and_takes_back_its_own_ads_alone(net: LocalNetwork) -> None:
    start_collector(net)
    good = net.probe(net.system("<good:1>", identity=attrs.evolve(EVIL, host="good", hosts=frozenset({"good"}))))
    evil = net.probe(net.system("<evil:1>", identity=EVIL))
    for probe, host in ((good, "good"), (evil, "EVIL"), (evil, "10.0.0.66")):
        ad = ClassAd({"MyType": "Machine", "Name": f"slot1@{host}", "Machine": host, "MyAddress": f"<{host}:1>"})
        assert ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes())) == Done()
    ask(net, evil, InvalidateAd(ad_kind=AdKind.SLOT, my_address="<good:1>"))
    ask(net, evil, InvalidateAd(ad_kind=AdKind.SLOT, names=("slot1@good", "slot1@10.0.0.66")))
    assert names(ask(net, good, QueryAds(ad_kind=AdKind.SLOT))) == ["slot1@good", "slot1@EVIL"]


def test_the_collector_describes_itself_and_the_pool(net: LocalNetwork) -> None:
    start_collector(net)
    probe = net.probe(net.system("<m:1>"))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("a").to_bytes()))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("b", State="Claimed").to_bytes()))
    (data,) = ask(net, probe, QueryAds(ad_kind=AdKind.COLLECTOR)).ads
    ad = ClassAd.from_bytes(data)
    assert (ad["HostsTotal"], ad["HostsClaimed"], ad["MyAddress"]) == (2, 1, NODE)


def test_a_subscriber_gets_a_snapshot_and_then_changes_once_per_iteration(net: LocalNetwork) -> None:
    start_collector(net)
    machine = net.probe(net.system("<m:1>"))
    ask(net, machine, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("a").to_bytes(), private=b'Capability = "k"\n'))
    negotiator = net.probe(net.system("<n:1>"), "negotiator")
    ask(net, negotiator, SubscribeAds(ad_kinds=(AdKind.SLOT,), subscriber="negotiator"))
    (snapshot,) = negotiator.messages
    assert isinstance(snapshot, AdsChanged)
    assert snapshot.snapshot
    assert not snapshot.more
    assert snapshot.changes[0].private == b'Capability = "k"\n'
    for state in ("Matched", "Claimed"):
        machine.tell(COLLECTOR, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("a", State=state).to_bytes()))
    machine.tell(COLLECTOR, UpdateAd(ad_kind=AdKind.GENERIC, ad=slot("g").to_bytes()))
    net.run(0.1)
    machine.tell(COLLECTOR, InvalidateAd(ad_kind=AdKind.SLOT, names=("a",)))
    net.run(0.1)
    changes = [change for message in negotiator.messages[1:] for change in message.changes]
    assert [change.name for change in changes][-1] == "a"
    assert changes[-1].ad == b""
    assert b"Claimed" in changes[-2].ad
    assert [message.sequence for message in negotiator.messages] == list(range(1, len(negotiator.messages) + 1))
    net.cut("<n:1>", NODE)
    net.run(1.0)
    assert not net.systems[NODE].actor("collector").memory.subscribers  # type: ignore[union-attr]


def test_an_advertiser_tells_changes_and_everything_to_a_collector_that_was_killed(net: LocalNetwork) -> None:
    start_collector(net)
    system = net.system("<m:1>")
    system.spawn(ADVERTISER, lambda: Advertiser((NODE,), 300.0))
    probe = net.probe(system)
    probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("a"), ClassAd({"Capability": "k"})))
    probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("b")))
    net.run(1.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["a", "b"]
    net.crash(NODE)
    net.run(1.0)
    probe.tell(LOCAL, Withdraw(AdKind.SLOT, "b"))
    probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("a", State="Claimed")))
    net.run(1.0)
    start_collector(net)
    net.run(10.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint='State == "Claimed"'))) == ["a"]
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["a"]
    net.run(2000.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["a"]
    system.stop_actor(ADVERTISER)
    net.run(0.1)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == []


def test_who_asks_the_daemon_itself_is_told_the_same(net: LocalNetwork) -> None:
    start_collector(net)
    system = net.system("<m:1>")
    system.spawn(ADVERTISER, lambda: Advertiser((NODE,), 300.0))
    probe = net.probe(system)
    for name in ("a", "b"):
        probe.tell(LOCAL, Advertise(AdKind.SLOT, slot(name), ClassAd({"Capability": "k"})))
    net.run(0.1)
    tool = net.probe(net.system("<t:1>"))
    tool.ask(Address("<m:1>", ADVERTISER), QueryAds(ad_kind=AdKind.SLOT, constraint='Name == "b"'))
    tool.ask(Address("<m:1>", ADVERTISER), QueryAds(ad_kind=AdKind.SLOT, constraint="Name =="))
    net.run(0.1)
    assert names(tool.answers[0]) == ["b"]
    assert b"Capability" not in tool.answers[0].ads[0]
    assert isinstance(tool.answers[1], Refused)


def test_an_advertiser_says_the_same_only_once_and_fast_changes_together(net: LocalNetwork) -> None:
    start_collector(net)
    system = net.system("<m:1>")
    system.spawn(ADVERTISER, lambda: Advertiser((NODE,), 300.0))
    probe = net.probe(system)
    net.run(1.0)
    before = len(net.carried)
    for cpus in (1, 1, 2, 3, 4):
        probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("a", Cpus=cpus)))
        net.run(0.001)
    net.run(1.0)
    sent = [each for _, to, each in net.carried[before:] if to == NODE and "UpdateAd" in each.kind]
    assert len(sent) == 2
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint="Cpus == 4"))) == ["a"]


def test_an_advertiser_repeats_only_what_was_not_told_within_the_interval(net: LocalNetwork) -> None:
    start_collector(net)
    system = net.system("<m:1>")
    system.spawn(ADVERTISER, lambda: Advertiser((NODE,), 300.0))
    probe = net.probe(system)
    net.run(1.0)
    before = len(net.carried)
    probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("same")))
    for cpus in range(1, 12):
        probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("new", Cpus=cpus)))
        net.run(300.0)
    told = [decode(each.kind, each.version, each.body).ad for _, to, each in net.carried[before:]
            if to == NODE and "UpdateAd" in each.kind]
    assert len([ad for ad in told if b'"new"' in ad]) == 11
    assert 10 <= len([ad for ad in told if b'"same"' in ad]) <= 11


# ---- machines that sleep

def sleeping(name: str, **values: Any) -> UpdateAd:
    number, machine = name.removeprefix("slot").split("@")
    ad = slot(name, Machine=machine, SlotID=int(number), Offline=True, **values)
    return UpdateAd(ad_kind=AdKind.SLOT, ad=ad.to_bytes(), lifetime_s=60)


def matched(net: LocalNetwork, probe: Probe) -> list[list[str]]:
    """Which dates of matches each ad has."""
    page = ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))
    return [sorted(name for name, _ in ClassAd.from_bytes(ad).stored_items() if name.endswith("LastMatchTime"))
            for ad in page.ads]


@pytest.fixture
def spool(tmp_path: Path) -> dict[str, str]:
    return {"COLLECTOR_PERSISTENT_AD_LOG": f"{tmp_path}/offline_ads"}


def collector_with(net: LocalNetwork, settings: dict[str, str]) -> ActorSystem:
    """A collector, in the place of one that was killed."""
    if NODE in net.systems:
        net.crash(NODE)
    daemon = collector.make_daemon(load_config(files=[], overrides=settings), net.world(NODE))
    net.adopt(NODE, daemon.system)
    daemon.start()
    net.run(0.1)
    return daemon.system


def test_the_ad_of_a_machine_that_sleeps_outlives_its_lifetime_and_the_collector(
        net: LocalNetwork, spool: dict[str, str]) -> None:
    collector_with(net, spool)
    probe = net.probe(net.system("<m:1>"))
    assert ask(net, probe, sleeping("slot1@m")) == Done()
    assert ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("slot1@n").to_bytes(), lifetime_s=60)) == Done()
    net.run(90.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["slot1@m"]
    collector_with(net, spool)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT, constraint="Offline"))) == ["slot1@m"]
    assert ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("slot1@m").to_bytes(), lifetime_s=60)) == Done()
    collector_with(net, spool)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == [], "it is awake, and says so itself"


def test_it_is_forgotten_in_time_and_when_it_is_withdrawn(net: LocalNetwork, spool: dict[str, str]) -> None:
    settings = {**spool, "OFFLINE_EXPIRE_ADS_AFTER": "1000"}
    collector_with(net, settings)
    probe = net.probe(net.system("<m:1>"))
    for name in ("slot1@m", "slot1@n"):
        assert ask(net, probe, sleeping(name)) == Done()
    assert ask(net, probe, InvalidateAd(ad_kind=AdKind.SLOT, names=("slot1@n",))) == Done()
    net.run(500.0)
    collector_with(net, settings)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == ["slot1@m"]
    net.run(520.0)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == []
    collector_with(net, settings)
    assert names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT))) == []


def test_matches_are_dated_in_the_ads_of_machines_that_sleep_alone(net: LocalNetwork, spool: dict[str, str]) -> None:
    collector_with(net, spool)
    probe = net.probe(net.system("<m:1>"))
    subscriber = net.probe(net.system("<neg:1>"), "negotiator")
    ask(net, subscriber, SubscribeAds(ad_kinds=(AdKind.SLOT,), subscriber="negotiator"))
    for name in ("slot1@m", "slot2@m", "slot3@m"):
        ask(net, probe, sleeping(name))
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("slot1@awake").to_bytes()))
    assert ask(net, subscriber, OfflineMatched(names=("slot2@m", "slot1@awake", "nobody"))) == Done()
    assert matched(net, probe) == [["slot2_MachineLastMatchTime"], ["MachineLastMatchTime"], [], []]
    told = [change for message in subscriber.messages if isinstance(message, AdsChanged) for change in message.changes]
    assert b"MachineLastMatchTime = " in told[-1].ad
    ask(net, probe, sleeping("slot2@m", Memory=7))
    assert matched(net, probe)[1] == ["MachineLastMatchTime"], "the machine says again that it sleeps"
    collector_with(net, spool)
    assert matched(net, probe) == [["slot2_MachineLastMatchTime"], ["MachineLastMatchTime"], []]
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=slot("slot2@m").to_bytes()))
    ask(net, probe, sleeping("slot2@m"))
    assert matched(net, probe)[1] == [], "it was awake: that match is history"


def test_what_a_machine_leaves_behind_when_it_goes_to_sleep_is_not_withdrawn(
        net: LocalNetwork, spool: dict[str, str]) -> None:
    collector_with(net, spool)
    system = net.system("<m:1>")
    system.spawn(ADVERTISER, lambda: Advertiser((NODE,), 300.0))
    probe = net.probe(system)
    asleep, awake = (slot(name, Machine="m", Offline=True) for name in ("slot1@m", "slot2@m"))
    probe.tell(LOCAL, Advertise(AdKind.SLOT, asleep, lasting=True))
    probe.tell(LOCAL, Advertise(AdKind.SLOT, awake, lasting=True))
    probe.tell(LOCAL, Advertise(AdKind.SLOT, slot("slot2@m")))
    net.run(1.0)
    system.stop_actor(ADVERTISER)
    net.run(0.1)
    reader = net.probe(net.system("<t:1>"))
    assert names(ask(net, reader, QueryAds(ad_kind=AdKind.SLOT))) == ["slot1@m"]


def test_a_machine_whose_ad_is_no_text_sleeps_like_any_other(net: LocalNetwork, spool: dict[str, str]) -> None:
    system = collector_with(net, spool)
    probe = net.probe(net.system("<m:1>"))
    ad = sleeping("slot1@m").ad + b'Words = "\xff\xfe"\n'
    ask(net, probe, UpdateAd(ad_kind=AdKind.SLOT, ad=ad))
    assert ask(net, probe, sleeping("slot1@n")) == Done(), "it goes on"
    assert system.actor("collector") is not None
    collector_with(net, spool)
    assert "slot1@n" in names(ask(net, probe, QueryAds(ad_kind=AdKind.SLOT)))
