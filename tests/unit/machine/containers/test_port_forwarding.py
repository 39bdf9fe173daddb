"""Connections to a port of the machine are passed on to a service, in a process of their own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from condor_actors.machine.containers import port_forwarding

DEADLINE_S = 60.0
MUCH = bytes(range(256)) * 16_000  # more than the sockets between take


def listening() -> socket.socket:
    made = socket.create_server(("127.0.0.1", 0))
    made.settimeout(DEADLINE_S)
    return made


@pytest.fixture
def service() -> Iterator[socket.socket]:
    with listening() as made:
        yield made


@pytest.fixture
def client(service: socket.socket) -> Iterator[socket.socket]:
    """One who has connected to a port that leads to the service."""
    with listening() as port:
        order = json.dumps({"account": None, "services": [(port.fileno(), service.getsockname()[1])]})
        process = subprocess.Popen([sys.executable, "-m", port_forwarding.__name__], stdin=subprocess.PIPE,
                                   pass_fds=(port.fileno(),))
        where = port.getsockname()
    try:
        assert process.stdin is not None
        process.stdin.write(order.encode())
        process.stdin.close()
        with socket.create_connection(where, timeout=DEADLINE_S) as made:
            yield made
    finally:
        process.kill()
        process.wait()


def read(stream: socket.socket) -> bytes:
    found = bytearray()
    while block := stream.recv(1 << 20):
        found += block
    return bytes(found)


def test_what_both_sides_say_arrives_whole_and_so_do_their_ends(client: socket.socket, service: socket.socket) -> None:
    heard = []

    def serve() -> None:
        near, _ = service.accept()
        with near:
            near.settimeout(DEADLINE_S)
            heard.append(read(near))  # the client's end comes through, and the service answers after it
            near.sendall(MUCH[::-1])

    thread = threading.Thread(target=serve)
    thread.start()
    client.sendall(MUCH)
    client.shutdown(socket.SHUT_WR)
    assert read(client) == MUCH[::-1]
    thread.join()
    assert heard == [MUCH]


def test_who_comes_when_nobody_listens_is_hung_up(client: socket.socket, service: socket.socket) -> None:
    service.close()
    try:
        said = read(client)
    except ConnectionResetError:
        said = b""
    assert said == b""


def test_the_service_hangs_up_first(client: socket.socket, service: socket.socket) -> None:
    near, _ = service.accept()
    near.sendall(b"last words")
    near.close()
    assert read(client) == b"last words"
