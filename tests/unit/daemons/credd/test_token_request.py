"""Tokens from a real OAuth2 server, over TLS; and from servers that are none."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from condor_actors.cores.credd.services import OAuthService
from condor_actors.cores.credd.token_lives import Failed, Received
from condor_actors.daemons.credd.token_request import ask_for_token
from tests.harness.oauth_server import CLIENT, SECRET, OAuthServer


@contextmanager
def served(folder: Path) -> Iterator[tuple[OAuthServer, OAuthService]]:
    secret = folder / "client-secret"
    secret.write_text(SECRET + "\n")
    secret.chmod(0o600)
    with OAuthServer(folder, 30) as server:
        yield server, OAuthService(name="box", token_url=server.url, client_id=CLIENT, secret_file=str(secret),
                                   ca_file=str(server.ca_file))


def test_a_token_and_the_next_refresh_token(tmp_path: Path) -> None:
    with served(tmp_path) as (server, service):
        first = ask_for_token(service, "refresh-of-alice", "", "")
        assert isinstance(first.event, Received)
        assert first.event.life_s == 30.0
        assert first.refresh_token in server.validator.refresh
        second = ask_for_token(service, first.refresh_token, "read", "")
        assert isinstance(second.event, Received)
        assert server.validator.access == [(first.event.token, "read write"), (second.event.token, "read")]
        used = ask_for_token(service, "refresh-of-alice", "", "")
        beyond = ask_for_token(service, second.refresh_token, "admin", "")
        assert isinstance(used.event, Failed)
        assert (used.event.is_final, used.event.why.partition(" ")[2]) == (True, "answered 400: invalid_grant")
        assert isinstance(beyond.event, Failed)
        assert beyond.event.is_final
        assert beyond.event.why.endswith("invalid_scope")
        assert first.event.token not in repr(first)
        assert first.refresh_token not in repr(first)


def test_who_is_not_trusted_gets_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as (server, service):
        stranger = ask_for_token(attrs.evolve(service, ca_file=""), "refresh-of-alice", "", "")
        assert isinstance(stranger.event, Failed)
        assert "its certificate is not trusted" in stranger.event.why
        assert not stranger.event.is_final
        Path(service.secret_file).chmod(0o644)
        loose = ask_for_token(service, "refresh-of-alice", "", "")
        assert isinstance(loose.event, Failed)
        assert "client-secret: others may read" in loose.event.why
        wrong = tmp_path / "wrong"
        wrong.write_text("wrong")
        wrong.chmod(0o600)
        unknown = ask_for_token(attrs.evolve(service, secret_file=str(wrong)), "refresh-of-alice", "", "")
        assert isinstance(unknown.event, Failed)
        assert unknown.event.why.endswith("401: invalid_client")
        assert server.validator.access == []


def answer(text: bytes) -> tuple[str, threading.Thread]:
    """A server that gives one answer, whatever it is asked; its URL."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener, listener.accept()[0] as peer:
            peer.settimeout(60)
            asked = b""
            while b"\r\n\r\n" not in asked:
                asked += peer.recv(65536)
            head, _, body = asked.partition(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            while len(body) < length:  # what is not read has the end of a connection look like a reset
                body += peer.recv(65536)
            peer.sendall(text)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/token", thread


def http(status: str, body: bytes) -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (status.encode(), len(body), body)


@pytest.mark.parametrize(("said", "why"), [
    (http("200 OK", b"<html>"), "answered 200 with no JSON object"),
    (http("200 OK", b"[" * 100_000), "answered 200 with no JSON object"),
    (http("200 OK", b"{" + b" " * 300_000 + b"}"), "answered 200 with no JSON object"),
    (http("200 OK", b'{"access_token": "a b"}'), "sent no access token that can be used"),
    (http("200 OK", json.dumps({"access_token": "x" * 40_000}).encode()), "sent no access token that can be used"),
    (http("302 Found", b"{}"), "answered 302: no error code"),
    (http("400 Bad", b'{"error": "<script> refresh-of-alice"}'), "answered 400: no error code"),
    (b"nonsense\r\n\r\n", "could not be asked: BadStatusLine"),
    (b"", "could not be asked: "),
])
def test_answers_that_are_none(said: bytes, why: str) -> None:
    url, thread = answer(said)
    service = OAuthService(name="box", token_url=url, client_id=CLIENT)
    found = ask_for_token(service, "refresh-of-alice", "", "").event
    thread.join(60)
    assert isinstance(found, Failed)
    assert why in found.why
    assert "refresh-of-alice" not in found.why
    assert not found.is_final


@pytest.mark.parametrize(("life", "found_s"), [("60", 60.0), ('"60"', 60.0), ("1e300", 0.0), ("-1", 0.0),
                                               ("true", 0.0), ("null", 0.0), ('"1e9"', 0.0)])
def test_lives(life: str, found_s: float) -> None:
    url, thread = answer(http("200 OK", b'{"access_token": "a", "expires_in": %s}' % life.encode()))
    found = ask_for_token(OAuthService(name="box", token_url=url, client_id=CLIENT), "r", "", "").event
    thread.join(60)
    assert found == Received("a", found_s)
