"""A stranger with ten thousand connections: nobody of the pool waits long for its collector or a schedd meanwhile."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine, ip
from tests.security.conftest import AttackedPool

pytestmark = [*NEED_NAMESPACES, pytest.mark.alone]

SOURCES, OF_ONE = 100, 50
FLOOD = """
import resource, selectors, socket, ssl, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
sources, of_one, doors = int(sys.argv[1]), int(sys.argv[2]), [each.rsplit(":", 1) for each in sys.argv[3:]]
hello, nothing = ssl.MemoryBIO(), ssl.MemoryBIO()
greeter = ssl.create_default_context().wrap_bio(nothing, hello, server_hostname="x")
try:
    greeter.do_handshake()
except ssl.SSLWantReadError:
    hello = hello.read()
words = [b"", hello[:5], hello, b"GET / HTTP/1.1\\r\\n\\r\\n"]
kept, made, waiting = [], 0, selectors.DefaultSelector()

def heard(most):
    \"\"\"Say what is to be said where a connection has come about, until so few are waited for.\"\"\"
    global made
    while len(waiting.get_map()) > most:
        for key, _ in waiting.select():
            waiting.unregister(key.fileobj)
            made += key.fileobj.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0
            try:
                key.fileobj.send(key.data)
            except OSError:
                pass  # it was hung up

for number in range(sources * of_one):
    for host, port in doors:
        each = socket.socket()
        each.setblocking(False)
        each.bind((f"10.88.7.{100 + number % sources}", 0))
        each.connect_ex((host, int(port)))
        waiting.register(each, selectors.EVENT_WRITE, words[number % len(words)])
        kept.append(each)
    heard(400)
heard(0)
print(made, flush=True)
sys.stdin.read()
"""


@contextmanager
def flood(pool: AttackedPool) -> Iterator[int]:
    """So many connections stay open at the collector and at a schedd, half of each, of four kinds."""
    evil = pool.evil
    inner = next(line.split()[1].partition("@")[0] for line in ip("-n", evil.namespace, "-o", "link").splitlines()
                 if "veth" in line or "@" in line)
    for number in range(SOURCES):
        ip("-n", evil.namespace, "addr", "add", f"10.88.7.{100 + number}/24", "dev", inner)
    doors = [node.strip("<>") for node in (pool.collector, pool.node(pool.submit, "schedd"))]
    running = subprocess.Popen(
        evil.command("python", "-c", FLOOD, str(SOURCES), str(OF_ONE), *doors), env=evil.environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with running:
        assert running.stdout is not None
        said = running.stdout.readline()
        assert said.strip(), f"the flood has ended\n{pool.wire.logs()}"
        yield int(said)
        running.kill()


def ask(machine: Machine, *words: str) -> None:
    """A question that is answered within seconds, at home and over the network."""
    done = subprocess.run(machine.command(*words), cwd=machine.work, env=machine.environment, capture_output=True,
                          text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{machine.wire.logs()}"


def test_ten_thousand_connections(attacked: AttackedPool) -> None:
    questions = (
        (attacked.submit, ("condor_status", "-schedd", "-af", "Name")),  # to the collector, by TLS
        (attacked.manager, ("condor_q", "-name", "submit.trio", "-af", "ClusterId")),  # to the schedd, by TLS
        (attacked.submit, ("condor_q", "-af", "ClusterId")),  # to the schedd, by its socket
    )
    with flood(attacked) as count:
        assert count == SOURCES * OF_ONE * 2
        for machine, words in questions:
            ask(machine, *words)
    for machine, words in questions:
        ask(machine, *words)
