"""condor_ssh_to_job -L: a port at which a job listens, brought to the user's machine."""

from __future__ import annotations

import hashlib
import os
import signal
import socket
import threading

import pytest

from tests.harness.forwarded_ports import DEADLINE_S, forwarded
from tests.pool_fixture import PersonalPool, until

SIZE_BYTES = 3_000_000
"""More than may be on its way in either direction."""
SERVER = """
import hashlib, os, socket, sys, threading
def serve(connection):
    with connection:
        told = connection.recv(1)
        if told == b"q":
            return
        if told == b"h":
            connection.sendall(b"bye")
            connection.shutdown(socket.SHUT_WR)
        digest, size = hashlib.sha256(), 0
        while data := connection.recv(65536):
            digest.update(data)
            size += len(data)
        print(told, size, digest.hexdigest(), flush=True)
        if told == b"h":
            return
        connection.sendall(f"{size} {digest.hexdigest()}\\n".encode())
        connection.sendall(b"x" * size)
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


def said_by(pool: PersonalPool, job: str) -> str:
    return pool.tool("condor_tail", job).stdout.partition("\n")[0]


@pytest.fixture(scope="module")
def served(pool: PersonalPool) -> tuple[str, int]:
    """A running job and its port."""
    (pool.work / "server.py").write_text(SERVER)
    cluster = pool.submit("executable = /usr/bin/python3\narguments = server.py\ntransfer_executable = false\n"
                          "transfer_input_files = server.py\nstream_output = true\noutput = server.out\n"
                          "log = server.log\nqueue\n")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    port = until(lambda: said_by(pool, job), "the job's port")
    return job, int(port)


def talk(port: int, size: int) -> bytes:
    """Send so many bytes, say that there are no more, and hear all that comes."""
    data = b"s" + b"a" * size
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        heard = bytearray()
        while more := connection.recv(65536):
            heard += more
    return bytes(heard)


def answer(size: int) -> bytes:
    return f"{size} {hashlib.sha256(b'a' * size).hexdigest()}\n".encode() + b"x" * size


def test_many_connections_and_both_ends(pool: PersonalPool, served: tuple[str, int]) -> None:
    job, port = served
    with forwarded(pool, "-L", f"0:{port}", "-L", f"127.0.0.1:0:localhost:{port}", job) as (_, ports):
        assert talk(ports[0], 10) == answer(10)
        assert talk(ports[1], SIZE_BYTES) == answer(SIZE_BYTES)
        results: list[bytes] = []
        threads = [threading.Thread(target=lambda: results.append(talk(ports[0], 100_000))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert results == [answer(100_000)] * 8
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=DEADLINE_S) as connection:
            connection.sendall(b"q")  # the job hangs up
            assert connection.recv(10) == b""
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=DEADLINE_S) as slow:
            slow.sendall(b"s" + b"a" * SIZE_BYTES)
            slow.shutdown(socket.SHUT_WR)
            assert talk(ports[0], 7) == answer(7)  # one that does not read holds up no other
        assert talk(ports[0], 8) == answer(8)


def test_a_job_that_has_said_all_still_hears(pool: PersonalPool, served: tuple[str, int]) -> None:
    job, port = served
    with forwarded(pool, "-L", f"0:{port}", job) as (_, (here,)):
        with socket.create_connection(("127.0.0.1", here), timeout=DEADLINE_S) as connection:
            connection.sendall(b"h")
            heard = b""
            while more := connection.recv(10):
                heard += more
            assert heard == b"bye"
            connection.sendall(b"a" * SIZE_BYTES)
        expected = f"{SIZE_BYTES} {hashlib.sha256(b'a' * SIZE_BYTES).hexdigest()}"
        until(lambda: expected in pool.tool("condor_tail", "-maxbytes", "4096", job).stdout, "all to be heard")


def test_a_port_at_which_it_does_not_listen(pool: PersonalPool, served: tuple[str, int]) -> None:
    job, port = served
    with socket.create_server(("127.0.0.1", 0)) as free:
        other = free.getsockname()[1]
    with forwarded(pool, "-L", f"0:{other}", "-L", f"0:{port}", job) as (tool, ports):
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=DEADLINE_S) as connection:
            assert connection.recv(10) == b""
        assert tool.stderr is not None
        assert tool.stderr.readline() == f"condor_ssh_to_job: port {other}: the job does not listen on port {other}\n"
        assert talk(ports[1], 3) == answer(3)
        tool.send_signal(signal.SIGINT)
        assert tool.wait(DEADLINE_S) != 0
        assert "Traceback" not in tool.stderr.read()


@pytest.mark.skipif(os.geteuid() != 0, reason="jobs of a pool without root have this account themselves")
def test_a_port_of_another_account(pool: PersonalPool, served: tuple[str, int]) -> None:
    """Of the machine's loopback, where services often take everybody for someone they know."""
    with socket.create_server(("127.0.0.1", 0)) as others, forwarded(
            pool, "-L", f"0:{others.getsockname()[1]}", served[0]) as (tool, ports):
        with socket.create_connection(("127.0.0.1", ports[0]), timeout=DEADLINE_S) as connection:
            assert connection.recv(10) == b""
        assert tool.stderr is not None
        assert "the job does not listen on port" in tool.stderr.readline()
        others.setblocking(False)
        with pytest.raises(BlockingIOError):
            others.accept()


def test_it_ends_with_the_job(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /usr/bin/python3\narguments = server.py\ntransfer_executable = false\n"
                          "transfer_input_files = server.py\nlog = removed.log\nstream_output = true\n"
                          "output = removed.out\nqueue\n")
    job = f"{cluster}.0"
    pool.until_status(job, 2)
    port = int(until(lambda: said_by(pool, job), "the job's port"))
    with forwarded(pool, "-L", f"0:{port}", job) as (tool, (here,)):
        with socket.create_connection(("127.0.0.1", here), timeout=DEADLINE_S) as connection:
            connection.sendall(b"s" + b"a" * 1000)
            pool.run("condor_rm", job)
            assert connection.recv(10) == b""
        pool.until_status(job, 0)
        with socket.create_connection(("127.0.0.1", here), timeout=DEADLINE_S) as connection:
            assert connection.recv(10) == b""
        assert tool.wait(DEADLINE_S) == 1
        assert tool.stderr is not None
        assert f"Job {job} not found" in tool.stderr.read()


@pytest.mark.parametrize(("words", "said"), [
    (("-L", "8888", "1.0", "ls"), "-L brings ports here and runs no command"),
    (("-L", "8888:example.org:80", "1.0"), "write localhost in place of example.org"),
    (("-L", "99999", "1.0"), "expected PORT, PORT:JOBPORT"), (("-L", "0", "1.0"), "expected PORT, PORT:JOBPORT"),
    (("-L", "a:b:c:d:e", "1.0"), "expected PORT, PORT:JOBPORT"), (("-L", "8888", "987654.0"), "Job 987654.0 not found"),
])
def test_what_cannot_be(pool: PersonalPool, words: tuple[str, ...], said: str) -> None:
    done = pool.tool("condor_ssh_to_job", *words)
    assert done.returncode == 1
    assert said in done.stderr


def test_a_job_without_a_network(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\nlog = alone.log\n"
                          "want_job_networking = false\nqueue\n")
    pool.until_status(f"{cluster}.0", 2)
    with forwarded(pool, "-L", "0:8888", f"{cluster}.0") as (tool, (here,)):
        with socket.create_connection(("127.0.0.1", here), timeout=DEADLINE_S) as connection:
            assert connection.recv(10) == b""
        assert tool.stderr is not None
        assert "has no network" in tool.stderr.readline()
    pool.run("condor_rm", str(cluster))
