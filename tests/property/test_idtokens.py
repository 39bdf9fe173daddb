"""Whatever a stranger sends where tokens are shown and asked for: he is refused, and nothing breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.logger import Logger

from condor_actors.wire.idtokens.exchange import TokenExchange, packed
from condor_actors.wire.idtokens.signed_token import BadToken, binding_of, parted, proof_of, read_claims, sign
from condor_actors.wire.idtokens.signing_keys import SigningKeys
from condor_actors.wire.idtokens.token_issuer import TokenIssuer, TokenRequestDoor
from condor_actors.wire.idtokens.verifier import TokenVerifier

NOWHERE = Path("/nonexistent")
NAMES = ("token", "proof", "nonce", "identity", "levels", "lifetime_s")
leaves = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20)
json_values = leaves | st.lists(leaves, max_size=3) | st.dictionaries(st.text(max_size=5), leaves, max_size=3)
fields = st.dictionaries(st.sampled_from(NAMES), json_values, max_size=6)
lines = st.binary(max_size=300).map(lambda data: data.replace(b"\n", b"")) | fields.map(
    lambda each: json.dumps(each).encode())


def verifier() -> TokenVerifier:
    return TokenVerifier("physics", SigningKeys(NOWHERE / "POOL", NOWHERE, "POOL"), NOWHERE / "revoked")


@given(lines, st.booleans())
def test_a_stranger_shows_anything(line: bytes, cut: bool) -> None:
    said: list[bytes] = []
    done: list[Any] = []
    exchange = TokenExchange(verifier(), b"certificate", said.append, done.append)
    exchange.begin()
    for part in (line[:7], line[7:] + b"\n") if cut else (line + b"\n",):
        if not done:
            exchange.received(part)
    assert [type(each) for each in done] == [BadToken]
    assert json.loads(said[-1])["error"]


@given(st.dictionaries(st.sampled_from(["iss", "sub", "iat", "jti", "exp", "scope", "kid"]), json_values),
       st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "b64"]), json_values))
def test_a_token_says_anything(body: dict[str, Any], header: dict[str, Any]) -> None:
    from jwt.utils import base64url_encode

    shown = ".".join(base64url_encode(json.dumps(each).encode()).decode() for each in (header, body))
    try:
        claims = read_claims(shown)
    except BadToken:
        return
    assert claims.subject.count("@") == 1


@given(lines)
def test_a_stranger_asks_for_anything(line: bytes) -> None:
    issuer = TokenIssuer(verifier(), allowed_keys=("POOL",))
    door = TokenRequestDoor(issuer, Clock(), Logger())
    transport = StringTransport()
    door.makeConnection(transport)
    door.dataReceived(line + b"\n")
    assert "error" in json.loads(transport.value())
    assert transport.disconnecting
    assert not issuer.pending
    door.connectionLost()


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_a_proof_is_for_one_link(one: bytes, other: bytes) -> None:
    signature = parted(sign(b"s" * 64, "POOL", "physics", "alice@physics", now_s=1.0))[1]
    first, second = (binding_of(b"certificate", nonce, b"c" * 32) for nonce in (one, other))
    assert (proof_of(signature, first) == proof_of(signature, second)) is (one == other)
    assert packed(signature) not in packed(proof_of(signature, first))
