"""Which requests for tokens need no person: those of new daemons, from a network, for a time, and no others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest
from twisted.internet.address import IPv4Address
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import Logger

from condor_actors.messages.envelope import Level
from condor_actors.messages.tokens import TokenRequest
from condor_actors.wire.idtokens.approval_rules import BEFORE_S, LEVELS, MOST_RULES, ApprovalRules, is_of_this_machine
from condor_actors.wire.idtokens.signed_token import BadToken, parted, read_claims
from condor_actors.wire.idtokens.signing_keys import SigningKeys
from condor_actors.wire.idtokens.token_issuer import TokenIssuer, TokenRequestDoor
from condor_actors.wire.idtokens.verifier import TokenVerifier

NOW_S = 1_700_000_000.0
REQUEST = TokenRequest(request_id="1", identity="condor@physics", levels=("ADVERTISE_STARTD",), lifetime_s=0.0,
                       address="192.0.2.7", asked_s=NOW_S)


@pytest.fixture
def rules() -> ApprovalRules:
    made = ApprovalRules("physics", is_own=lambda address: False)
    made.add("192.0.2.0/26", 600.0, NOW_S)
    return made


def approves(rules: ApprovalRules, now_s: float = NOW_S, **changes: Any) -> bool:
    return rules.approving(attrs.evolve(REQUEST, **changes), now_s) is not None


def test_a_new_daemon_in_the_network_is_approved(rules: ApprovalRules) -> None:
    assert approves(rules)
    assert approves(rules, levels=tuple(sorted(LEVELS)))
    assert approves(rules, address="::ffff:192.0.2.7")


@pytest.mark.parametrize("identity", [
    "root@physics", "alice@physics", "condor@elsewhere", "condor@", "condor", "condor_pool@physics", "*@physics",
    "Condor@physics", "condor@physics.evil", "condor@physics ", "a@condor@physics"])
def test_nobody_gets_another_name(rules: ApprovalRules, identity: str) -> None:
    assert not approves(rules, identity=identity)


@pytest.mark.parametrize("level", sorted({level.name for level in Level} - LEVELS))
def test_nobody_gets_another_level(rules: ApprovalRules, level: str) -> None:
    assert not approves(rules, levels=(level,))
    assert not approves(rules, levels=("ADVERTISE_STARTD", level))


def test_nobody_gets_a_token_without_limits(rules: ApprovalRules) -> None:
    assert not approves(rules, levels=())


@pytest.mark.parametrize("address", ["192.0.2.64", "198.51.100.7", "2001:db8::7", "", "desk1.physics", "192.0.2.7/26"])
def test_nobody_elsewhere_is_approved(rules: ApprovalRules, address: str) -> None:
    assert not approves(rules, address=address)


def test_a_rule_ends_and_reaches_back_a_minute(rules: ApprovalRules) -> None:
    assert approves(rules, now_s=NOW_S + 600.0)
    assert not approves(rules, now_s=NOW_S + 600.1)
    assert approves(rules, asked_s=NOW_S - BEFORE_S)
    assert not approves(rules, asked_s=NOW_S - BEFORE_S - 0.1)


def test_no_rule_lasts_longer_than_allowed() -> None:
    rules = ApprovalRules("physics", longest_s=60.0, is_own=lambda address: False)
    assert rules.add("192.0.2.0/26", 1e9, NOW_S).until_s == NOW_S + 60.0


def test_users_of_the_central_manager_are_not_approved(rules: ApprovalRules) -> None:
    rules.is_own = lambda address: address == "192.0.2.7"
    assert not approves(rules)
    assert approves(rules, address="192.0.2.8")
    assert is_of_this_machine("127.0.0.1")
    assert is_of_this_machine("127.9.9.9")
    assert is_of_this_machine("::1")
    assert not is_of_this_machine("192.0.2.7")


@pytest.mark.parametrize(("netblock", "life_s"), [
    ("192.0.2.0/26", 0.0), ("192.0.2.0/26", -1.0), ("192.0.2.0/26", float("nan")), ("192.0.2.0/33", 1.0),
    ("physics", 1.0), ("", 1.0), ("*", 1.0)])
def test_a_rule_that_says_nothing_is_refused(netblock: str, life_s: float) -> None:
    with pytest.raises(BadToken):
        ApprovalRules("physics").add(netblock, life_s, NOW_S)


def test_rules_are_few_and_old_ones_go() -> None:
    rules = ApprovalRules("physics")
    for _ in range(MOST_RULES):
        rules.add("192.0.2.0/26", 10.0, NOW_S)
    with pytest.raises(BadToken, match="condor_reconfig"):
        rules.add("192.0.2.0/26", 10.0, NOW_S)
    rules.add("192.0.2.0/26", 10.0, NOW_S + 11.0)
    assert len(rules.rules) == 1


def asked(issuer: TokenIssuer, identity: str, levels: list[str], host: str) -> list[dict[str, str]]:
    """What someone at ``host`` is told who asks."""
    door = TokenRequestDoor(issuer, Clock(), Logger())
    transport = StringTransport(peerAddress=IPv4Address("TCP", host, 4000))
    door.makeConnection(transport)
    door.dataReceived(json.dumps({"identity": identity, "levels": levels, "lifetime_s": 60.0}).encode() + b"\n")
    said = [json.loads(line) for line in transport.value().splitlines()]
    if not transport.disconnecting:
        door.connectionLost()
    return said


def test_the_door_gives_what_a_rule_approves_at_once(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path / "POOL", tmp_path, "POOL")
    keys.make_pool_key()
    issuer = TokenIssuer(TokenVerifier("physics", keys, tmp_path / "revoked"), allowed_keys=("POOL",))
    issuer.rules.add("192.0.2.0/26", 600.0, issuer.verifier.clock())
    number, given = asked(issuer, "condor@physics", ["ADVERTISE_STARTD"], "192.0.2.7")
    claims = read_claims(parted(given["token"])[0])
    assert (claims.subject, claims.levels) == ("condor@physics", {"ADVERTISE_STARTD"})
    assert number["request_id"] not in issuer.pending
    for identity, levels, host in (("root@physics", ["ADVERTISE_STARTD"], "192.0.2.7"),
                                   ("condor@physics", ["ADMINISTRATOR"], "192.0.2.7"),
                                   ("condor@physics", ["ADVERTISE_STARTD"], "127.0.0.1")):
        assert [set(each) for each in asked(issuer, identity, levels, host)] == [{"request_id"}]
