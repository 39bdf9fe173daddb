"""Routes, limits and the pool's own machines, as a gateway decides."""

from __future__ import annotations

import attrs

from condor_actors.cores.gateway.client_limits import ClientLimits, GatewaySettings
from condor_actors.cores.gateway.routes import AskBack, Dial, NoRoute, OwnHosts, Routes
from condor_actors.messages.pool import KnownPartner

NODE = "<10.0.0.9%physics:9619>"
PHYSICS = KnownPartner(name="physics", central="<10.0.0.1%physics:9618>", gateways=(NODE,))
SILENT = KnownPartner(name="biology", central="<10.0.0.1%biology:9618>")


def routes(*partners: KnownPartner, sources: tuple[str, ...] = (), targets: tuple[str, ...] = ()) -> Routes:
    made = Routes()
    made.configure(sources, targets)
    made.learn(partners)
    return made


def limits(**settings: float) -> ClientLimits:
    return ClientLimits(GatewaySettings(**settings), room=1000)


def test_a_route_follows_the_links() -> None:
    made = routes(PHYSICS, SILENT, targets=("physics", "biology"))
    assert made.route("physics") == Dial(NODE)
    assert made.described("physics") == (False, f"{NODE} has not answered yet")
    made.down(NODE, "no route to host")
    assert made.described("physics") == (False, "no route to host")
    made.announced("physics", "in:7")
    assert made.route("physics") == AskBack("in:7")
    made.up("physics", NODE)
    assert made.route("physics") == Dial(NODE)
    made.down(NODE, "lost")
    made.down("in:7", "lost")
    assert made.route("physics") == Dial(NODE)
    assert isinstance(made.route("biology"), NoRoute)


def test_further_gateways_are_tried_and_one_that_gives_no_answer_comes_last() -> None:
    other = "<10.0.0.8%physics:9619>"
    made = routes(attrs.evolve(PHYSICS, gateways=(NODE, other)), targets=("physics",))
    assert made.routes("physics") == (Dial(NODE), Dial(other))
    made.announced("physics", "in:7")
    made.announced("physics", "in:8")
    made.up("physics", other)
    assert made.routes("physics") == (Dial(other), AskBack("in:8"), AskBack("in:7"), Dial(NODE))
    made.tried("physics", Dial(other), is_answered=False)
    made.tried("physics", AskBack("in:8"), is_answered=False)
    assert made.routes("physics") == (AskBack("in:7"), Dial(NODE), Dial(other), AskBack("in:8"))
    made.tried("physics", AskBack("in:8"), is_answered=True)
    assert made.route("physics") == AskBack("in:8")
    made.down(other, "lost")
    made.up("physics", other)
    assert made.route("physics") == Dial(other), "a link that was made anew is believed"
    assert made.routes("biology") == (made.route("biology"),)


def test_nothing_is_carried_for_who_is_not_named() -> None:
    made = routes(PHYSICS, SILENT, sources=("physics",))
    assert made.objection("physics") == ""
    assert "neither FLOCK_FROM nor FLOCK_TO" in made.objection("biology")
    assert "no partner" in made.objection("chemistry")
    assert isinstance(made.route("biology"), NoRoute)
    made.configure((), ("10.0.0.1",))
    assert made.objection("physics") == ""


def test_a_pattern_of_hosts_leaves_it_to_the_daemons() -> None:
    assert routes(SILENT, sources=("*.biology.example",)).objection("biology") == ""


def test_partners_that_go_take_their_links_along() -> None:
    made = routes(PHYSICS, targets=("physics",))
    made.announced("physics", "in:7")
    assert made.learn(()) == (frozenset(), frozenset({NODE}))
    assert made.learn((PHYSICS,)) == (frozenset({NODE}), frozenset())
    assert made.route("physics") == Dial(NODE)


def test_a_partner_has_so_many_ways_in_the_making_and_open() -> None:
    made = limits(most_opening=2, most_streams=3, most_per_s=100.0)
    assert [made.ask("physics", "physics", 0.0) for _ in range(2)] == ["", ""]
    assert "GATEWAY_MAX_OPENING" in made.ask("physics", "physics", 0.0)
    assert made.ask("biology", "biology", 0.0) == ""
    made.opened("physics", "physics")
    made.opened("physics", "physics")
    assert made.ask("physics", "physics", 0.0) == ""
    made.opened("physics", "physics")
    assert "GATEWAY_MAX_STREAMS" in made.ask("physics", "physics", 0.0)
    made.ended("physics", "physics", was_open=True, bytes_out=5, bytes_in=7)
    assert made.ask("physics", "physics", 0.0) == ""
    between = made.between("physics")
    assert (between.streams, between.opening, between.carried, between.refused) == (2, 1, 3, 2)
    assert (between.bytes_out, between.bytes_in) == (5, 7)


def test_a_partner_opens_no_faster_than_its_rate_and_members_do() -> None:
    made = limits(most_opening=1000, most_streams=1000, most_per_s=2.0)
    granted = [made.ask("physics", "physics", 0.0) for _ in range(8)]
    assert [bool(reason) for reason in granted] == [False] * 6 + [True] * 2
    assert "GATEWAY_MAX_RATE" in made.ask("physics", "physics", 0.1)
    assert made.ask("physics", "physics", 0.6) == ""
    assert [made.ask("schedd at desk", "physics", 0.0) for _ in range(50)] == [""] * 50


def test_the_last_of_the_room_is_for_those_who_have_little() -> None:
    made = ClientLimits(GatewaySettings(most_opening=1000, most_streams=1000, most_per_s=1000.0), room=40)
    for _ in range(30):
        assert made.ask("physics", "physics", 0.0) == ""
    assert "all it can" in made.ask("physics", "physics", 0.0)
    assert made.ask("biology", "biology", 0.0) == ""


def test_refusals_are_told_of_now_and_then() -> None:
    made = limits(most_opening=1, most_streams=1, most_per_s=100.0)
    assert made.to_tell("physics", 0.0) == 0
    for _ in range(3):
        made.ask("physics", "physics", 0.0)
    assert made.to_tell("physics", 0.0) == 2
    made.ask("physics", "physics", 1.0)
    assert made.to_tell("physics", 1.0) == 0
    assert made.to_tell("physics", 61.0) == 1


def test_the_collector_is_asked_now_and_then_and_for_a_newcomer() -> None:
    hosts = OwnHosts()
    assert hosts.is_due(0.0)
    hosts.learn([("Desk1.Math.Example", 9618)])
    assert hosts.has("desk1.math.example", 9618)
    assert not hosts.has("desk1.math.example", 22)
    assert not hosts.is_due(30.0, ("desk1.math.example", 9618))
    assert hosts.is_due(30.0, ("desk2", 9618))
    assert not hosts.is_due(31.0, ("desk3", 9618))
    assert hosts.is_due(90.0)
