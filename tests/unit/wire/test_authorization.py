"""ALLOW_ and DENY_ lists, and what holds without them."""

from __future__ import annotations

import pytest

from condor_actors.config import ConfigError
from condor_actors.messages.envelope import SELF, Identity, Level
from condor_actors.wire.authorization import IMPLIED_BY, Authorization

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


def test_a_network_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError) as caught:
        Authorization(Lists(ALLOW_READ="10.0.0.0/8"), OWN_UID)
    assert "condor_config, line 7" in str(caught.value)
    assert "network" in str(caught.value)


def test_new_lists_take_effect_and_bad_ones_do_not() -> None:
    authorization = Authorization(Lists(), OWN_UID)
    assert authorization.allows(ALICE, Level.WRITE)
    with pytest.raises(ConfigError):
        authorization.reconfigure(Lists(DENY_WRITE="alice@dom 10.0.0.0/8"))
    assert authorization.allows(ALICE, Level.WRITE)
    authorization.reconfigure(Lists(DENY_WRITE="alice@dom"))
    assert not authorization.allows(ALICE, Level.WRITE)


def test_every_level_but_client_is_in_the_table() -> None:
    assert set(IMPLIED_BY) == set(Level) - {Level.CLIENT}
