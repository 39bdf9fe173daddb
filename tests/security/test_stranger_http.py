"""A stranger keeps others from a pool's metrics and from its page: with idle connections, slow ones, endless heads."""

from __future__ import annotations

import http.client
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from condor_actors.services.telemetry.metrics import CONNECTIONS, CONNECTIONS_OF_SOURCE
from tests.harness.registry import localhost_certificate
from tests.pool_fixture import PersonalPool, fresh_folder, until

IDLE = 2_000
OF_ADDRESS = 20
"""WEB_MAX_CONNECTIONS_OF_ADDRESS of the page."""


@attrs.frozen
class Door:
    """A server of a pool.

    Attributes:
        path: which is answered there.
        of_source: how many connections one user of this machine may have there.
        secure: whether it is HTTPS.
    """

    host: str
    port: int
    path: str
    of_source: int
    secure: bool

    def connect(self) -> socket.socket:
        """A connection that has said nothing, not even for TLS."""
        return socket.create_connection((self.host, self.port), timeout=60)

    def spoken(self, connection: socket.socket) -> socket.socket:
        """The connection after the handshake, where there is one."""
        if not self.secure:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(connection)

    def is_answered(self) -> bool:
        """Whether a request on a new connection has its answer."""
        connection: Any = http.client.HTTPConnection(self.host, self.port, timeout=60)
        connection.sock = self.spoken(self.connect())
        with closing(connection):
            connection.request("GET", self.path)
            answer = connection.getresponse()
            return answer.status == 200 and len(answer.read()) > 100


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made_files = localhost_certificate(folder)
        with open(made_files["certificate"], "ab") as file:
            file.write(Path(made_files["key"]).read_bytes())
        made = PersonalPool(folder, slots=1, web=True, config=(
            f"METRICS_PORT = 0\nMETRICS_CERTIFICATE = {folder}/certificate.pem\n"
            f"WEB_MAX_CONNECTIONS_OF_ADDRESS = {OF_ADDRESS}\n"))
        yield made
        made.stop()


@pytest.fixture(scope="module")
def metrics(pool: PersonalPool) -> Door:
    address = str(until(lambda: pool.run("condor_status", "-master", "-af", "MetricsAddress").strip().replace(
        "undefined", ""), "the master's ad"))
    host, _, port = address.rpartition(":")
    return Door(host, int(port), "/metrics", CONNECTIONS_OF_SOURCE, secure=True)


@pytest.fixture(scope="module")
def page(pool: PersonalPool) -> Door:
    address = (pool.dir / "run" / "web.url").read_text().strip().removeprefix("http://").rstrip("/")
    host, _, port = address.rpartition(":")
    return Door(host, int(port), "/api/summary", OF_ADDRESS, secure=False)


@pytest.fixture(params=["metrics", "page"])
def door(request: pytest.FixtureRequest) -> Door:
    found: Door = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def many() -> Iterator[ExitStack]:
    """Holds what a test opens; the process may have as many descriptors as it needs."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE + 1000
    if before[1] != resource.RLIM_INFINITY and before[1] < wanted:
        pytest.skip(f"a process may have {before[1]} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], wanted), before[1]))
    with ExitStack() as stack:
        yield stack
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_cut(connection: socket.socket) -> bool:
    """Whether the server has ended a connection."""
    try:
        connection.setblocking(False)
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_two_thousand_idle_connections_leave_a_question_answered(door: Door, many: ExitStack) -> None:
    held = []
    for number in range(IDLE):
        held.append(many.enter_context(door.connect()))
        if number % 400 == 399:
            assert door.is_answered()
    until(lambda: sum(not is_cut(each) for each in held) <= door.of_source, "the idle ones beyond a share end")
    assert door.is_answered()


def test_requests_that_come_a_letter_at_a_time_leave_a_question_answered(door: Door, many: ExitStack) -> None:
    slow = []
    for _ in range(2 * CONNECTIONS):
        connection = many.enter_context(door.connect())
        with suppress(OSError):  # the server may have ended it for a later one
            connection = many.enter_context(door.spoken(connection))
            connection.sendall(b"GET /")
            slow.append(connection)
    for letter in b"a HTTP/1.1\r\nX: ":
        for connection in slow:
            with suppress(OSError):
                connection.sendall(bytes([letter]))
    assert door.is_answered()
    until(lambda: sum(not is_cut(each) for each in slow) <= door.of_source, "the slow ones beyond a share end")


@pytest.mark.parametrize("piece", [b"x" * 65536, b"X: x\r\n" * 10_000])
def test_a_head_without_end_is_cut_off(door: Door, piece: bytes) -> None:
    with door.spoken(door.connect()) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(OSError, match=r"pipe|reset|EOF|closed"):  # noqa: PT012 - whichever is first
            for _ in range(2_000):
                connection.sendall(piece)
    assert door.is_answered()


def test_a_body_is_not_taken(door: Door) -> None:
    with door.spoken(door.connect()) as connection:
        connection.sendall(b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1099511627776\r\n\r\n")
        said = b""
        with suppress(OSError):
            while piece := connection.recv(4096):
                said += piece
    assert said.startswith(b"HTTP/1.1 413 ")


def test_what_strangers_ask_for_is_not_written_down(door: Door, pool: PersonalPool) -> None:
    with door.spoken(door.connect()) as connection:
        connection.sendall(b"GET /never-written-down HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 404 ")
    logs = [path for path in Path(pool.dir / "log").iterdir() if path.is_file()]
    assert logs
    assert not [path for path in logs if b"never-written-down" in path.read_bytes()]
