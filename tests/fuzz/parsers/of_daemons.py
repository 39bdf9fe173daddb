"""Parsers of what users, token servers and forwarded ports say to the newer daemons."""

from __future__ import annotations

import contextlib
import struct
from types import SimpleNamespace
from typing import Any

from twisted.internet.testing import StringTransport

from condor_actors.cores.credd.credentials import CredentialRefused, Secret, checked_words, name_of, read_secret
from condor_actors.cores.credd.services import OAuthService
from condor_actors.cores.credd.tickets import read_cache, secret_of, stored_cache
from condor_actors.cores.credd.token_lives import Received
from condor_actors.cores.flock_lists import MOST_POOLS, list_problem, named_pools
from condor_actors.daemons.credd import token_request
from condor_actors.daemons.starter.interactive.ports import PortConnection
from condor_actors.messages.interactive import PORT_WINDOW_BYTES, PortData
from condor_actors.services.telemetry import traces
from tests.unit.cores.credd.test_tickets import ALICE, HEADER, TGT

__all__ = ["OF_DAEMONS"]

SERVICE = OAuthService(name="box", token_url="https://box.example/token", client_id="x")
LONGEST_PIECE = 64 * 1024
"""The most that a transport reads at once."""


def credential(data: bytes) -> None:
    """What a user stores, and what it is called: none is kept that could not go into a header or a file."""
    text = data.decode("utf-8", "surrogateescape")
    for is_access_token in (False, True):
        with contextlib.suppress(CredentialRefused):
            secret = read_secret(data, is_access_token=is_access_token, now_s=1.7e9)
            assert Secret.from_bytes(secret.to_bytes()) == secret
            assert secret.content(1.7e9).isascii()
            assert secret.token.isprintable()
    service, _, handle = text.partition("*")
    with contextlib.suppress(CredentialRefused):
        file = name_of("alice@here", service, handle).file
        assert "/" not in file
        assert not file.startswith(".")
    with contextlib.suppress(CredentialRefused):
        assert checked_words(checked_words(text, "scopes"), "scopes").isprintable()


def ticket(data: bytes) -> None:
    """A user's Kerberos cache: what is kept reads as itself, has one ticket of the owner's own realm, and no more."""
    with contextlib.suppress(CredentialRefused):
        kept = read_cache(data, 0.0)
        assert read_cache(kept.cache, 0.0) == kept
        assert stored_cache(secret_of(kept).token) == kept.cache
        assert kept.principal.isprintable()
        assert len(kept.cache) <= len(data)


def oauth_answer(data: bytes) -> None:
    """What a token server says: a status, and its words; what is said of a failure holds nothing of the answer."""
    status, _, body = data.partition(b"\n")
    answered = token_request._read(SERVICE, int(status) if status.isdigit() and len(status) < 4 else 200, body)  # noqa: SLF001
    assert answered.refresh_token.isascii()
    if isinstance(answered.event, Received):
        assert answered.event.token.isprintable()
        assert 0 <= answered.event.life_s < 1e10
    else:
        assert len(answered.event.why) < 200


def flock_to(data: bytes) -> None:
    """A job's list of pools counts whole, or not at all and with a reason."""
    text = data.decode("utf-8", "surrogateescape")
    pools = named_pools(text)
    assert len(pools) <= MOST_POOLS
    assert not (pools and list_problem(text))


class _Job(StringTransport):
    """The job's end of a connection; what it is sent, it takes when it likes."""

    def loseWriteConnection(self) -> None:  # noqa: N802 - Twisted's name
        """It hears no more."""

    def unregisterProducer(self) -> None:  # noqa: N802
        """As a connection of the reactor's, which does not mind that there is none."""
        self.producer = None


def port_words(data: bytes) -> None:
    """A user's side that says what it likes, to a job that does: neither gets more under way than a window."""
    told: list[PortData] = []
    context = SimpleNamespace(as_turn=lambda function: function, tell=lambda to, message: told.append(message))
    run: Any = SimpleNamespace(context=context, shadow="shadow")
    connection, job = PortConnection(run, "x", lambda: None), _Job()
    is_up = False
    taken = 0
    for kind, size, count in struct.iter_unpack(">BHH", data[:len(data) // 5 * 5]):
        if kind % 8 == 0 and not is_up:
            is_up = True
            connection.makeConnection(job)
        elif kind % 8 == 1 and is_up and job.producerState == "producing" and not job.disconnecting:
            connection.dataReceived(b"j" * min(size + 1, LONGEST_PIECE))
        elif kind % 8 == 2 and is_up:
            connection.readConnectionLost()
        elif kind % 8 == 3 and is_up:
            connection.writeConnectionLost()
        elif kind % 8 == 4:
            connection.take(PortData(shell_id="x", taken=count - 30_000))
            taken += max(0, count - 30_000)
        else:
            connection.take(PortData(shell_id="x", data=b"u" * size, has_ended=kind & 32 > 0, is_closed=kind & 64 > 0))
        passed_on = sum(len(each.data) for each in told)
        assert passed_on - taken <= PORT_WINDOW_BYTES + LONGEST_PIECE
        assert connection._passed_on.waiting_bytes <= PORT_WINDOW_BYTES  # noqa: SLF001
    assert sum(each.is_closed for each in told) <= 1


def span(data: bytes) -> None:
    """Texts and times of spans: each can be sent."""
    traces._sendable(data.decode("utf-8", "surrogateescape")).encode()  # noqa: SLF001
    for (time_s,) in struct.iter_unpack("<d", data[:len(data) // 8 * 8]):
        assert 0 <= traces._nanoseconds(time_s) < 1 << 63  # noqa: SLF001


OF_DAEMONS: dict[str, tuple[Any, ...]] = {
    "credential": (lambda: [b"abc.def", b'{"access_token": "a", "expires_in": 3600, "expires_at": 1e10}',
                            b'{"refresh_token": "r"}', b"box*a_handle", b"read write, all", b"{" + b"[" * 5_000],
                   credential),
    "ticket": (lambda: [HEADER + ALICE + TGT, b"\5\4\0\0" + ALICE + TGT + TGT], ticket),
    "oauth_answer": (lambda: [b'200\n{"access_token": "a", "expires_in": 3600, "refresh_token": "b"}',
                              b'400\n{"error": "invalid_grant"}', b'200\n{"access_token": "a", "expires_in": "60"}',
                              b"500\n<html>", b"200\n" + b"[" * 5_000], oauth_answer),
    "flock_to": (lambda: [b"physics, math", b"default", b"a " * 40, b"A,,B\tc"], flock_to),
    "port_words": (lambda: [bytes((0, 0, 0, 0, 0, 5, 255, 255, 0, 0, 1, 255, 255, 0, 0, 4, 0, 0, 255, 255,
                                   37, 0, 1, 0, 0, 2, 0, 0, 0, 0, 3, 0, 0, 0, 0)) * 3,
                            bytes((5, 200, 0, 0, 0, 0, 0, 0, 0, 0)) + bytes((1, 255, 255, 0, 0)) * 9], port_words),
    "span": (lambda: [b"exit code 1", struct.pack("<3d", 1.7e9, -1e300, float("inf"))], span),
}
"""By name: seeds, the call, and what it may raise."""
