"""What a user with a shell does to the credential daemon of his machine: names that lead elsewhere, contents that are
huge or deep, other ways in, and so many questions that nobody else's is answered.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator

import attrs
import pytest

from tests.pool_fixture import until
from tests.security.local_users import NEED_USERS, SharedPool, a_shared_pool

pytestmark = NEED_USERS

ODD_NAMES = [
    ("../../log/x", ""), ("/etc/passwd", ""), ("..", ""), (".", ""), ("", ""), ("a/b", ""), ("box\0", ""),
    ("box\n", ""), ("ｂｏｘ", ""), ("\u212arb", ""), ("LONG", ""), ("box", "../x"), ("box", "..x/../y"),
    ("box", ".hidden"), ("box", "a/b"), ("box", "x\0y"), ("box", "x\n"), ("box", " "), ("box", "LONG"),
    ("box", "é"), ("krb", "x"), ("box", "*"), ("*", ""), ("box_x", "")]
ODD_SECRETS = {
    "huge": "b'x' * (1 << 20)", "just too long": "b'x' * 8193", "nothing": "b''", "blanks": "b'a b'",
    "no text": "b'\\xff'", "deep": "b'{\"access_token\": ' + b'[' * 60000",
    "digits": "b'{\"access_token\": \"x\", \"expires_in\": ' + b'9' * 60000 + b'}'",
    "no object": "b'{}'", "a list": "b'{\"access_token\": [1]}'", "a header": "b'x\\r\\nHost: evil'",
    "escaped": "b'{\"access_token\": \"x\\\\r\\\\nHost: evil\"}'", "surrogates": "b'{\"access_token\": \"\\\\ud800\"}'"}
STORE = """
from condor_actors.messages.credentials import *
def refusal(client, message):
    answer = said(client, "credd", message)
    return answer.partition(":")[0]
"""


@attrs.frozen
class Attacked:
    """A pool with a credential daemon whose one service never answers."""

    pool: SharedPool
    service: socket.socket


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as service:
        config = (f"DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CREDD\n"
                  f"BOX_TOKEN_URL = http://127.0.0.1:{service.getsockname()[1]}/token\nBOX_CLIENT_ID = pool\n")
        with a_shared_pool(config, slots=1, drops_root=True) as pool:
            until((pool.dir / "run" / "credd.sock").exists, "the credential daemon")
            yield Attacked(pool, service)


def test_names_that_lead_elsewhere_or_are_none(attacked: Attacked) -> None:
    pool = attacked.pool
    answers = pool.attack(pool.mallory, STORE + """
with unix_client(node) as client:
    result = []
    for service, handle in [["x" * 100_000 if word == "LONG" else word for word in pair] for pair in names]:
        wanted = (WantedToken(service=service, handle=handle),)
        for message in (
                lambda: StoreCredential(service=service, handle=handle, secret=b"token", is_access_token=True),
                lambda: DeleteCredential(service=service, handle=handle),
                lambda: CheckServices(wanted=wanted), lambda: FetchTokens(wanted=wanted)):
            try:
                made = message()
            except ValueError:
                continue
            result.append([service[:20], handle[:20], refusal(client, made)])
""", node=pool.socket("credd"), names=ODD_NAMES)
    taken = [answer for answer in answers if answer[2] not in ("invalid", "malformed", "ValueError")]
    krb = [answer for answer in taken if answer[:2] == ["krb", "x"]]
    assert all(answer[2] in ("not-found", "denied") for answer in krb), krb
    assert [answer for answer in taken if answer not in krb] == []
    shown = pool.tool_as(pool.mallory, "condor_store_cred", "query")
    assert (shown.returncode, shown.stdout.strip()) == (1, "No credentials are stored.")


@pytest.mark.parametrize("kind", sorted(ODD_SECRETS))
def test_contents_that_are_none(attacked: Attacked, kind: str) -> None:
    pool = attacked.pool
    answers = pool.attack(pool.mallory, STORE + f"""
secret = {ODD_SECRETS[kind]}
with unix_client(node) as client:
    result = [refusal(client, StoreCredential(service=service, secret=secret, is_access_token=is_access))
              for service, is_access in (("box", False), ("drive", True), ("krb", False))]
""", node=pool.socket("credd"))
    assert set(answers) <= {"invalid", "denied", "malformed", "too-large"}, answers


def test_a_number_that_has_no_end_is_no_time(attacked: Attacked) -> None:
    """A token may say that it counts forever, or less than no time: it is kept, and says nothing of when it ends."""
    pool = attacked.pool
    ends = pool.attack(pool.mallory, STORE + """
result = []
with unix_client(node) as client:
    for number in ("1e400", "-1e400", "NaN", "-1", "1e11", "true", '"x"'):
        secret = f'{{"access_token": "x", "expires_in": {number}, "expires_at": {number}}}'.encode()
        stored = refusal(client, StoreCredential(service="odd", secret=secret, is_access_token=True))
        fetched = client.ask("credd", FetchTokens(wanted=(WantedToken(service="odd"),)))
        result.append([stored, fetched.tokens[0].ends_s])
    client.ask("credd", DeleteCredential(service="odd"))
""", node=pool.socket("credd"))
    assert ends == [["Done", 0.0]] * 7


@pytest.mark.parametrize("role", ["user", "shadow"])
def test_tokens_go_over_no_network_not_even_to_their_owner(attacked: Attacked, role: str) -> None:
    """With a certificate: as himself, and as his shadow."""
    pool = attacked.pool
    answers = pool.attack(pool.mallory, STORE + """
with tls_client(node, paths) as client:
    result = [refusal(client, message) for message in (
        FetchTokens(wanted=(WantedToken(service="box"),)),
        StoreCredential(service="box", secret=b"x", is_access_token=True) if role != "user" else
        FetchTokens(wanted=()))]
""", node=(pool.dir / "run" / "credd.address").read_text().split()[0], paths=pool.certificate(pool.mallory, role),
                          role=role)
    assert answers == ["denied", "denied"]


def test_many_processes_of_one_user_take_no_more_places_than_one(attacked: Attacked) -> None:
    """Questions that wait for a service are counted by user: else ten processes keep everybody from their tokens."""
    pool = attacked.pool
    answers = pool.attack(pool.mallory, STORE + """
with unix_client(node) as client:
    client.ask("credd", StoreCredential(service="box", secret=b"refresh"))
question = FetchTokens(wanted=(WantedToken(service="box"),))
first = unix_client(node)
for _ in range(1000):
    first._send("credd", question, 120.0)
first.ask("credd", QueryCredentials())  # all before it have been looked at
import os
reading, writing = os.pipe()
if os.fork() == 0:
    with unix_client(node) as another:
        os.write(writing, said(another, "credd", question)[:200].encode())
    os._exit(0)
os.wait()
result = os.read(reading, 200).decode()
""", node=pool.socket("credd"))
    assert answers == "busy: too many wait for tokens"
    pool.run_as(pool.alice, "condor_store_cred", "add-oauth", "-s", "drive", "-P", "-i", "-", stdin="hers\n")
    assert pool.run_as(pool.alice, "htcondor", "credential", "get", "oauth2", "--service", "drive") == "hers\n"
