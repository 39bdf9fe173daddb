"""A connection that two post offices have checked becomes a plain socket at both ends."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.protocol import Factory, Protocol

from condor_actors.machine.standard.channel import FarChannel, HomeChannel
from condor_actors.transfer.standard_frames import CHANNEL_LINE
from condor_actors.wire.certificates.credentials import Credentials
from tests.wire.conftest import Process

RUN, KEY = "1.0#1", "a-transfer-key"
Dial = Callable[..., Deferred[tuple[socket.socket | None, bytes | None]]]


class Run:
    """What the starter has of a run."""

    def __init__(self, takes: bool) -> None:
        self.takes = takes
        self.channel: FarChannel | None = None
        self.label = 0

    def spared(self, channel: FarChannel, label: int, answer: Callable[[bool], None]) -> None:
        self.channel, self.label = channel, label
        reactor.callLater(0.0, answer, self.takes)

    def channelled(self, channel: FarChannel, answer: Callable[[bool], None]) -> None:
        self.channel = channel
        reactor.callLater(0.0, answer, self.takes)


@pytest.fixture(params=["unix", "tls"])
def dial(request: pytest.FixtureRequest, processes: Callable[..., Process], short_dir: Path,
         credentials: Credentials) -> Dial:
    """Dials a starter host that has one run, with a key."""
    server, client = processes("starter-host", credentials), processes("shadow-host", credentials)
    if request.param == "unix":
        server.office.listen_unix(str(short_dir / "s"))
        node = f"unix:{short_dir}/s"
    else:
        node = server.office.listen_tls("127.0.0.1", 0)

    def dialled(run: Run, key: str, label: int | None = None) -> Deferred[tuple[socket.socket | None, bytes | None]]:
        server.office.services[CHANNEL_LINE] = lambda identity: FarChannel(
            reactor, lambda run_id, shown: run if (run_id, shown) == (RUN, KEY) else None)
        found: Deferred[tuple[socket.socket | None, bytes | None]] = Deferred()
        home = HomeChannel(reactor, RUN, key, lambda sock, secret: found.callback((sock, secret)), label)
        client.office.endpoint(node).connect(Factory.forProtocol(lambda: home))
        return found

    return dialled


@pytest_twisted.ensureDeferred
async def test_both_ends_become_sockets(dial: Dial) -> None:
    run = Run(takes=True)
    home, secret = await dial(run, KEY)
    assert run.channel is not None
    assert home is not None
    assert (run.channel.secret or None) == secret
    far = run.channel.socket()
    with far, home:
        assert secret is None if home.family == socket.AF_UNIX else len(secret or b"") == 32
        for one, other in ((far, home), (home, far)):
            assert one.getblocking()
            one.sendall(b"as they are" * 1000)
            assert other.recv(11000, socket.MSG_WAITALL) == b"as they are" * 1000
        far.shutdown(socket.SHUT_WR)
        assert home.recv(1) == b""


@pytest_twisted.ensureDeferred
async def test_a_helpers_connection_has_a_label_and_no_secret(dial: Dial) -> None:
    run = Run(takes=True)
    home, secret = await dial(run, KEY, 7)
    assert run.channel is not None
    assert home is not None
    assert (run.label, run.channel.secret, secret) == (7, b"", None)
    with home, run.channel.socket() as far:
        far.sendall(b"as it is")
        assert home.recv(8, socket.MSG_WAITALL) == b"as it is"


@pytest.mark.parametrize("label", [None, 7])
@pytest.mark.parametrize(("takes", "key"), [(False, KEY), (True, "another key")])
@pytest_twisted.ensureDeferred
async def test_a_run_that_has_no_use_for_it(dial: Dial, takes: bool, key: str, label: int | None) -> None:
    assert (await dial(Run(takes=takes), key, label))[0] is None


@pytest_twisted.ensureDeferred
async def test_somebody_who_does_not_know_the_line(processes: Callable[..., Process], credentials: Credentials) -> None:
    server, client = processes("old", credentials), processes("shadow-host", credentials)
    node = server.office.listen_tls("127.0.0.1", 0)
    found: Deferred[socket.socket | None] = Deferred()
    home = HomeChannel(reactor, RUN, KEY, lambda sock, secret: found.callback(sock))
    client.office.endpoint(node).connect(Factory.forProtocol(lambda: home))
    assert await found is None


@pytest_twisted.ensureDeferred
async def test_what_does_not_say_whose_it_is_is_cut(processes: Callable[..., Process],
                                                    credentials: Credentials) -> None:
    server, client = processes("starter-host", credentials), processes("stranger", credentials)
    server.office.services[CHANNEL_LINE] = lambda identity: FarChannel(reactor, lambda run_id, key: None)
    node = server.office.listen_tls("127.0.0.1", 0)
    over: Deferred[None] = Deferred()

    class Stranger(Protocol):
        def connectionMade(self) -> None:  # noqa: N802
            assert self.transport is not None
            self.transport.write(CHANNEL_LINE + bytes(7) + b"and more")

        def connectionLost(self, reason: object = None) -> None:  # noqa: N802
            over.callback(None)

    client.office.endpoint(node).connect(Factory.forProtocol(Stranger))
    await over
