"""Names, what may be stored, and whose it is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from condor_actors.cores.credd.credentials import (
    ACCESS,
    EVERYBODY,
    MOST_SECRET_BYTES,
    REFRESH,
    Credential,
    CredentialRefused,
    CredentialTable,
    Name,
    Secret,
    at_home,
    checked_words,
    name_of,
    person,
    read_secret,
    whose,
)
from condor_actors.cores.credd.services import LocalIssuer
from condor_actors.messages.envelope import Identity

ALICE = Identity(name="alice@dom", method="local", uid=1000)
FAR_ALICE = Identity(name="alice@dom", method="token", roles=frozenset({"user"}), address="192.0.2.1")
MACHINE = Identity(name="condor@pool", method="tls", roles=frozenset({"schedd"}), host="m1")


def one(user: str, service: str, handle: str = "") -> Credential:
    return Credential(name=Name(user, service, handle), form=REFRESH, scopes="", audience="", stored_s=1.0,
                      sealed=b"sealed")


@pytest.mark.parametrize(("service", "handle", "file"), [
    ("box", "", "box.use"), ("BOX", "public", "box_public.use"), ("a-b2", "x_y.z", "a-b2_x_y.z.use")])
def test_names(service: str, handle: str, file: str) -> None:
    assert name_of("alice@dom", service, handle).file == file


@pytest.mark.parametrize(("service", "handle"), [
    ("", ""), ("a_b", ""), ("../x", ""), ("2box", ""), ("b" * 65, ""), ("büx", ""), ("box", "/x"), ("box", ".."),
    ("box", "-x"), ("box", "h" * 65), ("b\nx", "")])
def test_what_is_no_name(service: str, handle: str) -> None:
    with pytest.raises(CredentialRefused) as refused:
        name_of("alice@dom", service, handle)
    assert refused.value.code == "invalid"
    assert len(refused.value.text) < 300


@pytest.mark.parametrize(("data", "is_access", "found"), [
    (b"abc\n", False, (REFRESH, "abc", 0.0, False)),
    (b"abc", True, (ACCESS, "abc", 0.0, False)),
    (b'{"refresh_token": "r", "access_token": "a"}', False, (REFRESH, "r", 0.0, True)),
    (b'{"refresh_token": "r", "access_token": "a", "expires_in": 60}', True, (ACCESS, "a", 160.0, True)),
    (b' {"access_token": "a", "expires_at": 500.5, "expires_in": 1}', False, (ACCESS, "a", 500.5, True)),
    (b'{"access_token": "a", "expires_in": true}', False, (ACCESS, "a", 0.0, True)),
    (b'{"access_token": "a", "expires_in": 1e400}', False, (ACCESS, "a", 0.0, True)),
])
def test_what_may_be_stored(data: bytes, is_access: bool, found: tuple[object, ...]) -> None:
    secret = read_secret(data, is_access_token=is_access, now_s=100.0)
    assert (secret.form, secret.token, secret.ends_s, secret.is_json) == found
    assert Secret.from_bytes(secret.to_bytes()) == secret
    assert "token=" not in repr(secret)


@pytest.mark.parametrize("data", [
    b"", b"two words", b"{}", b"{", b"[1]x y", b'{"refresh_token": 7}', b'{"refresh_token": "a b"}', b"\xff\xfe",
    b"a\0b", b"x" * (MOST_SECRET_BYTES + 1), b"x" * 40_000, b'{"a":' + b"[" * 30_000, "tökén".encode()])
def test_what_may_not_be_stored(data: bytes) -> None:
    with pytest.raises(CredentialRefused) as refused:
        read_secret(data, is_access_token=False, now_s=0.0)
    assert data.decode("latin-1")[:20] not in refused.value.text or len(data) < 3


@given(st.binary(max_size=2000), st.booleans())
def test_nothing_but_the_refusal_comes_out(data: bytes, is_access: bool) -> None:
    try:
        secret = read_secret(data, is_access_token=is_access, now_s=0.0)
    except CredentialRefused:
        return
    assert secret.token.isprintable()
    assert " " not in secret.token


def test_words_are_sent_in_one_form() -> None:
    assert checked_words("read:/x,  write:/y", "scopes") == "read:/x write:/y"
    for text in ('a"b', "a\\b", "a\nb", "a" * 2001, "ä"):
        with pytest.raises(CredentialRefused):
            checked_words(text, "scopes")


def test_who_may_do_what() -> None:
    assert whose(ALICE, "", lambda: False) == whose(ALICE, "alice@dom", lambda: False) == "alice@dom"
    assert whose(FAR_ALICE, "", lambda: False) == "alice@dom"
    assert whose(ALICE, EVERYBODY, lambda: True) == EVERYBODY
    for identity, user in ((ALICE, "bob@dom"), (ALICE, EVERYBODY), (MACHINE, "alice@dom")):
        with pytest.raises(CredentialRefused, match="no administrator"):
            whose(identity, user, lambda: False)
    for identity in (MACHINE, Identity(name="alice@dom", method="token", roles=frozenset({"user"}), realm="other")):
        with pytest.raises(CredentialRefused, match="no user of this pool"):
            person(identity)
    assert at_home(ALICE) == "alice@dom"
    with pytest.raises(CredentialRefused, match="processes of this machine only"):
        at_home(FAR_ALICE)


def test_a_table_has_room_for_so_many_of_each_user() -> None:
    table = CredentialTable([one("alice@dom", "box")], lambda: 2)
    table.check_room(Name("alice@dom", "gdrive", ""))
    table.save(one("alice@dom", "gdrive"))
    table.check_room(Name("alice@dom", "box", ""))
    table.check_room(Name("bob@dom", "box", ""))
    with pytest.raises(CredentialRefused, match="CREDD_MAX_CREDENTIALS_PER_USER"):
        table.check_room(Name("alice@dom", "box", "second"))
    assert table.drop([Name("alice@dom", "box", ""), Name("alice@dom", "none", "")]).names == (
        Name("alice@dom", "box", ""),)
    assert [str(each.name) for each in table.of("alice@dom")] == ["gdrive"]


def test_pages_show_each_once() -> None:
    table = CredentialTable([one(f"u{number:04}@dom", "box", handle) for number in range(700) for handle in ("", "h")],
                            lambda: 2)
    seen, cursor = [], ""
    while True:
        facts, cursor = table.page(EVERYBODY, cursor)
        seen += [(each.user, each.handle) for each in facts]
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == 1400
    assert [each.user for each in table.page("u0007@dom", "")[0]] == ["u0007@dom"] * 2


def test_what_the_pools_own_tokens_say() -> None:
    issuer = LocalIssuer(name="scitokens", issuer="https://m1", key_id="local", algorithm="ES256", private_key=b"",
                         template="read:/user/{username} write:/user/{username}", audience=("https://a", "https://b"),
                         version="scitoken:2.0", life_s=60.0, is_json=True)
    said = issuer.claims("alice@dom", "", "", "id", 1000.5)
    assert json.loads(json.dumps(said)) == {
        "iss": "https://m1", "sub": "alice", "jti": "id", "iat": 1000, "nbf": 1000, "exp": 1060, "ver": "scitoken:2.0",
        "scope": "read:/user/alice write:/user/alice", "aud": ["https://a", "https://b"]}
    less = issuer.claims("alice@dom", "read:/user/alice", "https://b", "id", 0.0)
    assert (less["scope"], less["aud"]) == ("read:/user/alice", "https://b")
    with pytest.raises(CredentialRefused, match="scitokens_oauth_permissions asks for read:/user/bob"):
        issuer.claims("alice@dom", "read:/user/bob", "", "id", 0.0)
    with pytest.raises(CredentialRefused, match="scitokens_oauth_resource"):
        issuer.claims("alice@dom", "", "https://c", "id", 0.0)
    for login in ("", ".", "..", "a write:/", "../bob", "a/../bob", "a\twrite:/", "a\xa0write:/", "a\0", "a\x1f"):
        with pytest.raises(CredentialRefused, match="could mean something else"):
            issuer.claims(f"{login}@dom", "", "", "id", 0.0)
