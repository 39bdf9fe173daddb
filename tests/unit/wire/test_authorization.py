"""ALLOW_ and DENY_ lists, and what holds without them."""

from __future__ import annotations

import attrs
import pytest

from condor_actors.config import ConfigError
from condor_actors.messages.envelope import SELF, Identity, Level
from condor_actors.wire.authorization import IMPLIED_BY, OF_DAEMONS, Authorization
from condor_actors.wire.peer_patterns import parse_entry

OWN_UID = 500
ALICE = Identity(name="alice@dom", method="local", uid=1000)
ROOT = Identity(name="root@dom", method="local", uid=0)
CONDOR = Identity(name="condor@dom", method="local", uid=OWN_UID)
STARTD = Identity(name="condor@pool", method="tls", roles=frozenset({"startd", "master"}), host="w1.example")
MANAGER = Identity(name="condor@pool", method="tls", roles=frozenset({"collector", "negotiator", "startd", "schedd",
                                                                          "master"}), host="cm.example")
SHADOW = Identity(name="shadow:alice@s.example", method="tls", roles=frozenset({"shadow"}), host="s.example")
USER = Identity(name="bob@s.example", method="tls", roles=frozenset({"user"}), host="s.example")


class Lists:
    """The lists of a test."""

    subsystem = "SCHEDD"

    def __init__(self, **values: str) -> None:
        self.values = values

    def text(self, name: str) -> str | None:
        return self.values.get(name)

    def where(self, name: str) -> tuple[str, int]:
        return "condor_config", 7

    def unusable(self, name: str, problem: str) -> ConfigError:
        return ConfigError(f"{name}: {problem}", file="condor_config", line=7, name=name, value=self.values[name])


def levels(identity: Identity, **lists: str) -> set[str]:
    authorization = Authorization(Lists(**lists), OWN_UID)
    return {level.value for level in Level if authorization.allows(identity, level)}


EVERYTHING = {level.value for level in Level}


def test_without_lists() -> None:
    assert levels(ALICE) == {"READ", "WRITE", "CLIENT"}
    assert levels(USER) == {"READ", "WRITE", "CLIENT"}
    assert levels(SHADOW) == {"CLIENT"}
    assert levels(ROOT) == levels(CONDOR) == levels(SELF) == EVERYTHING
    advertise = {"ADVERTISE_STARTD", "ADVERTISE_SCHEDD", "ADVERTISE_MASTER"}
    own = {"ADVERTISE_STARTD", "ADVERTISE_MASTER"}
    assert levels(STARTD) == {"READ", "WRITE", "DAEMON", "CLIENT"} | own
    assert levels(STARTD, ALLOW_ADVERTISE_SCHEDD="w1.example") >= own | {"ADVERTISE_SCHEDD"}
    assert levels(MANAGER) == {"READ", "WRITE", "DAEMON", "CLIENT", "NEGOTIATOR", "ADMINISTRATOR", "OWNER"} | advertise
    assert levels(Identity(name="x@y", method="tls")) == {"CLIENT"}


def test_a_list_replaces_the_default() -> None:
    assert "DAEMON" not in levels(STARTD, ALLOW_DAEMON="*/other.example")
    assert "DAEMON" in levels(STARTD, ALLOW_DAEMON="condor@pool/*.example")
    assert "ADMINISTRATOR" in levels(ALICE, ALLOW_ADMINISTRATOR="alice@dom, bob@dom")
    assert "OWNER" in levels(ALICE, ALLOW_OWNER="*")
    assert levels(ALICE, ALLOW_READ="bob@dom", ALLOW_WRITE="bob@dom") == {"CLIENT"}


def test_deny_wins_but_not_over_who_owns_the_machine() -> None:
    assert "WRITE" not in levels(ALICE, DENY_WRITE="ALICE@DOM")
    assert "READ" in levels(ALICE, DENY_WRITE="alice@dom")
    assert levels(ROOT, DENY_READ="*") == EVERYTHING
    assert "WRITE" not in levels(STARTD, DENY_WRITE="w1.example")
    assert "DAEMON" in levels(STARTD, DENY_WRITE="w1.example")


def test_a_level_that_is_denied_gives_none_that_it_implies() -> None:
    lists = {"ALLOW_ADMINISTRATOR": "alice@dom", "ALLOW_READ": "bob@dom", "ALLOW_WRITE": "bob@dom"}
    assert levels(ALICE, **lists) == {"READ", "WRITE", "OWNER", "ADMINISTRATOR", "CLIENT"}
    assert levels(ALICE, **lists, DENY_ADMINISTRATOR="alice@dom") == {"CLIENT"}


def test_a_daemons_own_list_goes_before() -> None:
    assert "WRITE" in levels(ALICE, ALLOW_WRITE="bob@dom", ALLOW_WRITE_SCHEDD="alice@dom")
    assert "WRITE" not in levels(ALICE, ALLOW_WRITE="alice@dom", ALLOW_WRITE_SCHEDD="bob@dom")


def test_entries_without_an_at_are_hosts() -> None:
    assert "READ" in levels(STARTD, ALLOW_READ="*.example")
    assert "READ" in levels(ALICE, ALLOW_READ="localhost", ALLOW_WRITE="nobody@x")


def test_what_is_no_network_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        Authorization(Lists(ALLOW_READ="10.0.0.0/33"), OWN_UID)
    assert "condor_config, line 7" in str(caught.value)
    assert "network" in str(caught.value)


def test_new_lists_take_effect_and_bad_ones_do_not() -> None:
    authorization = Authorization(Lists(), OWN_UID)
    assert authorization.allows(ALICE, Level.WRITE)
    with pytest.raises(ConfigError):
        authorization.reconfigure(Lists(DENY_WRITE="alice@dom 10.0.0.0/99"))
    assert authorization.allows(ALICE, Level.WRITE)
    authorization.reconfigure(Lists(DENY_WRITE="alice@dom"))
    assert not authorization.allows(ALICE, Level.WRITE)


def test_every_level_but_client_is_in_the_table() -> None:
    assert set(IMPLIED_BY) == set(Level) - {Level.CLIENT}


FAR = attrs.evolve(STARTD, address="10.1.2.3", hosts=frozenset({"w1.example", "10.9.9.9"}))


@pytest.mark.parametrize(("entry", "address", "meant"), [
    ("10.1.0.0/16", "10.1.2.3", True), ("10.1.0.0/16", "10.2.2.3", False), ("10.1.0.0/255.255.0.0", "10.1.2.3", True),
    ("10.1.*", "10.1.2.3", True), ("10.1.*", "10.11.2.3", False), ("10.*.*.*", "10.1.2.3", True),
    ("10.1.2.3", "10.1.2.3", True), ("10.1.2.3", "10.1.2.30", False), ("10.1.2.3", "::ffff:10.1.2.3", True),
    ("10.9.9.9", "10.1.2.3", False), ("*/10.1.0.0/16", "10.1.2.3", True), ("*/10.1.*", "10.1.2.3", True),
    ("condor@pool/10.1.0.0/16", "10.1.2.3", True), ("condor@pool/10.1.0.0/16", "10.2.2.3", False),
    ("alice@dom/10.1.0.0/16", "10.1.2.3", False), ("fd00:1::/32", "fd00:1::7", True),
    ("fd00:1::/32", "fd00:2::7", False), ("fd00:1:*", "fd00:1::7", True), ("[::1]", "::1", True),
    ("[fd00:1::]/32", "fd00:1::7", True), ("::1", "fe80::1", False), ("0.0.0.0/0", "fd00::1", False),
    ("10.1.0.0/16", "", False), ("w1.example", "10.1.2.3", True), ("w1.*", "", True),
])
def test_networks_mean_the_address_of_the_link(entry: str, address: str, meant: bool) -> None:
    """Whatever addresses the peer's certificate has."""
    identity = attrs.evolve(FAR, address=address)
    assert parse_entry(entry).matches(identity) is meant
    assert ("READ" in levels(identity, ALLOW_READ=entry, ALLOW_WRITE="-", ALLOW_DAEMON="-")) is meant
    assert ("READ" in levels(identity, DENY_READ=entry)) is not meant


@pytest.mark.parametrize("entry", ["10.0.0.0/33", "10.0.0/8", "300.1.1.1", "10.1.*/8", "fd00::/129", "10.0.0.0/",
                                   "1.2.3", "*/10.0.0.0/33", "10.1*", "[::1::]"])
def test_what_looks_like_a_network_and_is_none(entry: str) -> None:
    with pytest.raises(ValueError, match="network"):
        parse_entry(entry)


def test_a_local_socket_is_this_machine() -> None:
    assert parse_entry("127.0.0.0/8").matches(ALICE)
    assert parse_entry("localhost").matches(ALICE)
    assert not parse_entry("10.0.0.0/8").matches(ALICE)
    assert not parse_entry("localhost").matches(attrs.evolve(TOKEN, address="10.1.2.3"))


TOKEN = Identity(name="alice@dom", method="token", roles=frozenset({"user"}), levels=frozenset({"READ"}))


def test_a_scope_takes_levels_away_and_gives_none() -> None:
    assert levels(TOKEN) == {"READ", "CLIENT"}
    assert levels(attrs.evolve(TOKEN, levels=None)) == {"READ", "WRITE", "CLIENT"}
    assert levels(attrs.evolve(TOKEN, levels=frozenset({"WRITE"}))) == {"READ", "WRITE", "CLIENT"}
    assert levels(attrs.evolve(TOKEN, levels=frozenset({"ADMINISTRATOR"}))) == {"READ", "WRITE", "CLIENT"}
    assert levels(attrs.evolve(TOKEN, levels=frozenset())) == {"CLIENT"}
    assert levels(attrs.evolve(TOKEN, name="root@dom"), ALLOW_ADMINISTRATOR="root@dom") == {"READ", "CLIENT"}


@pytest.mark.parametrize(("identity", "level", "lists", "rule", "remedy"), [
    (ALICE, "READ", {}, "without ALLOW_READ it belongs to users of this machine", ""),
    (ALICE, "ADMINISTRATOR", {}, "machines with the role collector", "ALLOW_ADMINISTRATOR = alice@dom"),
    (ALICE, "WRITE", {"DENY_WRITE": "bob@dom ALICE@dom"}, "DENY_WRITE (condor_config, line 7) has 'ALICE@dom'",
     "take 'ALICE@dom' out of DENY_WRITE"),
    (ALICE, "WRITE", {"ALLOW_WRITE": "bob@dom"}, "ALLOW_WRITE (condor_config, line 7) has no entry for alice@dom",
     "add alice@dom to ALLOW_WRITE"),
    (FAR, "WRITE", {"ALLOW_WRITE": "10.2.*", "ALLOW_DAEMON": "10.2.*"}, "from 10.1.2.3", "add condor@pool/w1.example"),
    (ALICE, "READ", {"ALLOW_READ": "bob@dom"}, "without ALLOW_WRITE it belongs to users of this machine", ""),
    (ALICE, "READ", {"ALLOW_READ": "-", "ALLOW_WRITE": "-", "ALLOW_OWNER": "*"}, "and OWNER implies READ", ""),
    (TOKEN, "WRITE", {}, "good for READ only", "-authz WRITE"),
    (ROOT, "CONFIG", {"DENY_CONFIG": "*"}, "root of this machine", ""),
    (STARTD, "ADVERTISE_SCHEDD", {}, "machines with the role schedd",
     "ALLOW_ADVERTISE_SCHEDD = condor@pool/w1.example"),
])
def test_a_decision_is_explained(identity: Identity, level: str, lists: dict[str, str], rule: str, remedy: str) -> None:
    decision = Authorization(Lists(**lists), OWN_UID).explain(identity, Level(level))
    assert rule in decision.rule
    assert remedy in decision.remedy
    assert decision.allowed is (remedy == "")


@pytest.mark.parametrize("entry", ["*", "*/*", "*@*", "*.example", "10.0.0.0/8", "*@dom", "?*@s.example", "*/10.*",
                                   "127.0.0.1", "localhost"])
@pytest.mark.parametrize("level", sorted(each.value for each in OF_DAEMONS))
def test_where_somebody_is_makes_nobody_a_daemon(entry: str, level: str) -> None:
    """Users, local or with a proxy of their machine, shadows and tokens, whatever the networks of the lists."""
    for each in (ALICE, USER, SHADOW, TOKEN, attrs.evolve(TOKEN, levels=None)):
        there = each if each.is_local else attrs.evolve(each, address="10.1.2.3")
        assert level not in levels(there, **{f"ALLOW_{level}": entry}), each
        why = Authorization(Lists(**{f"ALLOW_{level}": entry}), OWN_UID).explain(there, Level(level))
        assert not why.allowed
    lists = Lists(**{f"ALLOW_{level}": "*"})
    assert "machines and to no user" in Authorization(lists, OWN_UID).explain(USER, Level(level)).rule


@pytest.mark.parametrize("level", sorted(each.value for each in OF_DAEMONS))
def test_a_user_who_is_named_has_what_daemons_have(level: str) -> None:
    assert level in levels(ALICE, **{f"ALLOW_{level}": "alice@dom"})
    assert level in levels(USER, **{f"ALLOW_{level}": "* bob@s.example"})
    assert level in levels(STARTD, **{f"ALLOW_{level}": "*"})
    assert level in levels(attrs.evolve(STARTD, address="10.1.2.3"), **{f"ALLOW_{level}": "10.0.0.0/8"})
