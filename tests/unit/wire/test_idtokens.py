"""Tokens: what they say, who can forge them, and what is revoked."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import jwt
import pytest

from condor_actors.wire.idtokens.exchange import fitting, packed, show
from condor_actors.wire.idtokens.private_files import NotPrivate, read_private, write_private
from condor_actors.wire.idtokens.revoked_tokens import RevokedTokens, keep_revocations, kept_revocations
from condor_actors.wire.idtokens.signed_token import (
    BadToken,
    binding_of,
    check,
    derived_key,
    levels_of,
    parted,
    proof_of,
    read_claims,
    sign,
)
from condor_actors.wire.idtokens.signing_keys import SigningKeys

SECRET = b"s" * 64
NOW_S = 1_700_000_000.0
BINDING = binding_of(b"certificate", b"n" * 32, b"c" * 32)


def token(**options: Any) -> str:
    options = {"now_s": NOW_S, **options}
    return sign(options.pop("secret", SECRET), "POOL", options.pop("issuer", "physics"),
                options.pop("subject", "alice@physics"), **options)


def forged(header: dict[str, Any], body: dict[str, Any]) -> str:
    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).decode().rstrip("=") for each in (header, body)]
    return ".".join(parts)


def checked(text: str, *, binding: bytes = BINDING, proof: bytes | None = None, now_s: float = NOW_S) -> Any:
    shown, signature = parted(text)
    return check(shown, proof_of(signature, BINDING) if proof is None else proof, binding, SECRET, "physics", now_s)


def test_a_token_says_whose_it_is() -> None:
    claims = checked(token(levels=("READ", "WRITE"), life_s=60.0))
    assert (claims.subject, claims.issuer, claims.key_id) == ("alice@physics", "physics", "POOL")
    assert claims.levels == {"READ", "WRITE"}
    assert claims.ends_s == NOW_S + 60
    assert checked(token()).levels is None


def test_any_jwt_library_reads_it() -> None:
    body = jwt.decode(token(levels=("READ",)), derived_key(SECRET), algorithms=["HS256"], issuer="physics")
    assert body["sub"] == "alice@physics"
    assert body["scope"] == "condor:/READ"


def test_forgeries() -> None:
    good = token()
    shown, signature = parted(good)
    body = {"iss": "physics", "sub": "root@physics", "iat": int(NOW_S), "jti": "x"}
    other = forged({"alg": "HS256", "kid": "POOL"}, body)
    with pytest.raises(BadToken, match="signature"):
        check(other, proof_of(signature, BINDING), BINDING, SECRET, "physics", NOW_S)
    with pytest.raises(BadToken, match="signature"):
        checked(token(secret=b"t" * 64))
    with pytest.raises(BadToken, match="signature"):
        checked(good, proof=b"\0" * 32)
    with pytest.raises(BadToken, match="signature"):
        checked(good, binding=binding_of(b"another", b"n" * 32, b"c" * 32))
    with pytest.raises(BadToken, match="'other'"):
        checked(token(issuer="other"))
    with pytest.raises(BadToken, match="run out"):
        checked(token(life_s=60.0), now_s=NOW_S + 60)
    with pytest.raises(BadToken, match="future"):
        checked(token(now_s=NOW_S + 3600))
    assert shown


@pytest.mark.parametrize(("header", "change"), [
    ({"alg": "none", "kid": "POOL"}, {}),
    ({"alg": "RS256", "kid": "POOL"}, {}),
    ({"alg": "HS256"}, {}),
    ({"alg": "HS256", "kid": 1}, {}),
    ({"alg": "HS256", "kid": "POOL"}, {"sub": "alice"}),
    ({"alg": "HS256", "kid": "POOL"}, {"sub": "a@b@c"}),
    ({"alg": "HS256", "kid": "POOL"}, {"sub": "*@physics"}),
    ({"alg": "HS256", "kid": "POOL"}, {"iat": "now"}),
    ({"alg": "HS256", "kid": "POOL"}, {"exp": "never"}),
    ({"alg": "HS256", "kid": "POOL"}, {"exp": True}),
    ({"alg": "HS256", "kid": "POOL"}, {"exp": 10 ** 400}),
    ({"alg": "HS256", "kid": "POOL"}, {"iat": -10 ** 400}),
    ({"alg": "HS256", "kid": "POOL"}, {"scope": ["condor:/READ"]}),
    ({"alg": "HS256", "kid": "POOL"}, {"jti": None}),
])
def test_what_no_token_of_ours_says(header: dict[str, Any], change: dict[str, Any]) -> None:
    body = {"iss": "physics", "sub": "alice@physics", "iat": int(NOW_S), "jti": "x", **change}
    with pytest.raises(BadToken):
        read_claims(forged(header, body))


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c", ".." * 5, "x" * 100_000, "é.é.é", "a.b.!"])
def test_what_is_no_token(text: str) -> None:
    with pytest.raises(BadToken):
        read_claims(parted(text)[0])


def test_a_scope_of_others_gives_no_level() -> None:
    body = {"iss": "physics", "sub": "alice@physics", "iat": int(NOW_S), "jti": "x", "scope": "storage.read:/"}
    assert read_claims(forged({"alg": "HS256", "kid": "POOL"}, body)).levels == frozenset()


def test_levels_that_people_name() -> None:
    assert levels_of(["READ,WRITE", "condor:/ADMINISTRATOR"]) == ("READ", "WRITE", "ADMINISTRATOR")
    with pytest.raises(BadToken, match="WRIET"):
        levels_of(["WRIET"])


def test_subjects_are_whole_identities() -> None:
    for subject in ("alice", "@physics", "a b@physics", "*@physics", "a@b@c", "a/x@physics"):
        with pytest.raises(BadToken):
            token(subject=subject)


def test_revocation() -> None:
    claims = read_claims(parted(token())[0]).attributes()
    assert RevokedTokens().reason(claims) == ""
    assert claims["jti"] in RevokedTokens.made([claims["jti"]], []).reason(claims)
    for expression in ('sub == "alice@physics"', f"iat <= {int(NOW_S)}", 'kid == "POOL"'):
        assert RevokedTokens.made([], [expression]).reason(claims)
    assert RevokedTokens.made([], ['sub == "bob@physics"', "nonsense =?= 1"]).reason(claims) == ""
    with pytest.raises(BadToken, match="expression"):
        RevokedTokens.made([], ["sub =="])


def test_revocations_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "revoked"
    assert kept_revocations(path) == RevokedTokens()
    keep_revocations(path, kept_revocations(path).also(["a"], ["iat < 5"]))
    keep_revocations(path, kept_revocations(path).also(["b"], ["iat < 5"]))
    kept = kept_revocations(path, 'sub == "x"')
    assert (kept.ids, kept.expressions) == ({"a", "b"}, ("iat < 5", 'sub == "x"'))
    path.write_bytes(b"{")
    with pytest.raises(BadToken):
        kept_revocations(path)


def test_keys_are_private(tmp_path: Path) -> None:
    keys = SigningKeys(tmp_path / "keys" / "POOL", tmp_path / "keys", "POOL")
    with pytest.raises(BadToken, match="no signing key"):
        keys.secret("POOL")
    keys.make_pool_key()
    before = keys.secret("POOL")
    keys.make_pool_key()
    assert keys.secret("POOL") == before
    assert keys.names() == ("POOL",)
    for name in ("../POOL", "", ".hidden", "a/b", "x" * 100):
        with pytest.raises(BadToken):
            keys.secret(name)
    keys.pool_key.chmod(0o640)
    with pytest.raises(BadToken, match="chmod 600"):
        keys.secret("POOL")


def test_private_files(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_private(path, b"secret")
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_private(path, {os.getuid()}) == b"secret"
    with pytest.raises(NotPrivate):
        read_private(path, {os.getuid() + 1})
    with pytest.raises(FileExistsError):
        write_private(path, b"other", replace=False)
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(NotPrivate):
        read_private(tmp_path / "fifo", {os.getuid()})
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError):
        read_private(tmp_path / "link", {os.getuid()})


def test_a_bearer_shows_what_fits() -> None:
    offer = json.dumps({"issuer": "physics", "keys": ["POOL"], "nonce": packed(b"n" * 32)}).encode()
    mine = {"a": token(issuer="other"), "b": token()}
    assert fitting(mine, offer) == mine["b"]
    with pytest.raises(BadToken, match="a is of other"):
        fitting({"a": mine["a"]}, offer)
    line = json.loads(show(mine["b"], offer, b"certificate"))
    assert parted(mine["b"])[0] == line["token"]
    assert base64.urlsafe_b64encode(parted(mine["b"])[1]).decode().rstrip("=") not in json.dumps(line)
