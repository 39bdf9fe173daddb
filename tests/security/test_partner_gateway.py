"""The gateway of a partner that lies: what it can have ours do, and what comes out of ours at the daemons here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from tests.harness.namespaces import NEED_NAMESPACES, Machine, a_wire
from tests.pool_fixture import until
from tests.security.conftest import AttackedPool
from tests.security.intruder import intrude

pytestmark = NEED_NAMESPACES

AUTHORITY = """
from condor_actors.wire.certificates.authority import create_pool
from condor_actors.wire.partners.invitation import invitation_text
from condor_actors.wire.partners.partner_store import Partner

files = PoolFiles.below(name)
create_pool(files, name, [address], roles=roles)
result = invitation_text(Partner(name=name, central=f"<{address}:9618>", ca=files.ca.read_bytes()))
write_whole(files.ca, ca.encode())  # what it expects of others
"""
GATEWAY = """
import socket
from condor_actors.wire.blocking import connect_tls
from condor_actors.wire.nodes import parse_node

def shown(folder):
    files = PoolFiles.below(folder)
    return ToolCredentials(certificate=str(files.host), key=str(files.host_key), ca=str(files.ca))

def line_of(connected):
    data = b""
    while not data.endswith(b"\\n"):
        more = connected.recv(1)
        if not more:
            return "hung up"
        data += more
    return data.decode().strip()

def begun(node, folder, first, second):
    connected = connect_tls(parse_node(node), shown(folder), 20.0)
    connected.sendall(first.encode() + b"\\n" + second.encode() + b"\\n")
    return connected

def answered(node, folder, first, second):
    with begun(node, folder, first, second) as connected:
        return line_of(connected)
"""
NOBODY = "-no daemon of this pool answers there"
CIRCUIT = "condor circuit 1"
MOST = 20
OWN = f"GATEWAY_HOST = 10.88.7.2\nFLOCK_FROM = evil, calm, roleless\nGATEWAY_MAX_STREAMS = {MOST}\n"


@attrs.frozen
class Attacked(AttackedPool):
    """A pool with a gateway; ``evil`` is a partner, and ``quiet`` one that neither FLOCK_FROM nor FLOCK_TO names."""

    gateway: Machine

    @property
    def door(self) -> str:
        """The gateway's node."""
        return f"<{self.gateway.address}:9619>"

    def answer(self, second: str, first: str = CIRCUIT, folder: str = "evil", door: str = "") -> str:
        """What a door says to two lines of a partner's machine."""
        return str(intrude(self.evil, GATEWAY + "result = answered(node, folder, first, second)",
                           node=door or self.door, folder=folder, first=first, second=second))


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    """A pool with a gateway that has accepted four others."""
    with a_wire() as wire:
        manager = wire.manager(config=OWN)
        gateway = wire.member(manager, "gateway", "master,gateway", OWN)
        evil = wire.machine("evil")
        pool = Attacked(wire, manager, manager, evil, gateway)
        for name, roles in (("evil", ["master", "schedd", "gateway"]), ("calm", ["gateway"]), ("quiet", ["gateway"]),
                            ("roleless", ["schedd"])):
            invitation = intrude(evil, AUTHORITY, name=name, roles=roles, address=evil.address,
                                 ca=(manager.dir / "etc" / "pool" / "ca.crt").read_text())
            fingerprint = manager.tool("condor_flock", "accept", "-", stdin=invitation).stdout.split("\n")[1].strip()
            manager.run("condor_flock", "accept", "-", "--fingerprint", fingerprint, stdin=invitation)
        until(lambda: "roleless" in manager.tool("condor_flock", "status").stdout, "the gateway to know its partners")
        until((manager.dir / "run" / "startd.address").exists, "the startd to listen")
        yield pool


def test_it_gets_a_circuit_to_a_daemon_and_nowhere_else(attacked: Attacked) -> None:
    until(lambda: attacked.answer(attacked.collector) == "+", "a circuit to the collector")
    startd = attacked.node(attacked.manager, "startd")
    assert attacked.answer(startd) == "+"
    silent = ["<127.0.0.1:22>", "<localhost:9618>", f"<{attacked.manager.address}:1>",
              f"<{attacked.evil.address}:9618>", f"<{attacked.gateway.address}:1>", "<10.88.7.99:9618>"]
    assert [attacked.answer(node) for node in silent] == [NOBODY] * len(silent)


LISTENER = """
import socket, sys
opened = socket.create_server((sys.argv[1], 0))
print(opened.getsockname()[1], flush=True)
print(opened.accept()[0].recv(100).decode(), flush=True)
"""
KNOCK = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), 20).sendall(b"nobody else was here")
"""


def test_it_knocks_at_a_port_of_one_of_our_machines_that_is_no_daemons(attacked: Attacked) -> None:
    """Something else listens there: nothing comes to it, and the audit log has who wanted to."""
    command = attacked.manager.command
    with subprocess.Popen(command(sys.executable, "-c", LISTENER, attacked.manager.address), stdout=subprocess.PIPE,
                          text=True) as listener:
        assert listener.stdout is not None
        port = listener.stdout.readline().strip()
        wanted = f"<{attacked.manager.address}:{port}>"
        assert attacked.answer(wanted) == NOBODY
        subprocess.run(command(sys.executable, "-c", KNOCK, attacked.manager.address, port), check=True)
        assert listener.stdout.readline().strip() == "nobody else was here"
    log = attacked.gateway.dir / "log" / "GatewayAuditLog"
    told = until(lambda: [line for line in log.read_text().splitlines() if wanted in line], log.read_text)
    assert "result=denied" in told[0]
    assert "%evil" in told[0]


def test_it_gets_a_circuit_to_a_starter_host(attacked: Attacked) -> None:
    """Shadows of its jobs begin their runs there."""
    starter = (attacked.manager.dir / "run" / "starter-host.address").read_text().split()[0]
    until(lambda: attacked.answer(starter) == "+", "a circuit to the starter host")


@pytest.mark.parametrize("text", ["", "unix:/run/condor/collector.sock", "<10.88.7.1%evil:9618>", "<10.88.7.1:0>",
                                  "<10.88.7.1>", "x" * 500, "<fe80::1%eth0:1>", "\x00\xff"])
def test_it_names_what_is_no_machine_here(attacked: Attacked, text: str) -> None:
    assert attacked.answer(text).startswith("-")


def test_it_says_too_much_or_something_else(attacked: Attacked) -> None:
    assert attacked.answer("x" * 5000) == "hung up"
    assert attacked.answer(f"{attacked.collector}\nmore") == "hung up"
    assert attacked.answer(attacked.collector, first="condor weigh 1") == "hung up"


def test_a_machine_without_the_role_asks(attacked: Attacked) -> None:
    assert "only the gateway of a pool" in attacked.answer(attacked.collector, folder="roleless")


def test_a_pool_that_is_not_named_asks(attacked: Attacked) -> None:
    assert "neither FLOCK_FROM nor FLOCK_TO" in attacked.answer(attacked.collector, folder="quiet")


def test_it_brings_circuits_that_nobody_awaits(attacked: Attacked) -> None:
    assert attacked.answer("0" * 32, first="condor circuit-back 2") == "-nobody waits for that circuit"


@pytest.mark.parametrize("realm", ["evil", "quiet", ""])
def test_it_passes_for_our_gateway_at_a_daemon(attacked: Attacked, realm: str) -> None:
    assert attacked.answer(realm, first="condor relayed 1", door=attacked.collector) == "hung up"


def through(attacked: Attacked, inner: str, **known: Any) -> Any:
    """What comes of a connection to our collector through our gateway."""
    return intrude(attacked.evil, GATEWAY + """
tls = begun(door, "evil", "condor circuit 1", collector)
assert line_of(tls) == "+"
plain = socket.socket(fileno=tls.detach())
plain.settimeout(20.0)
""" + inner, door=attacked.door, collector=attacked.collector, **known)


INNER = """
import ssl
def inner(certificate):
    context = shown(certificate).context() if certificate else ssl.create_default_context(cafile=shown("evil").ca)
    return context.wrap_socket(plain, server_hostname=parse_node(collector).host)
def end_of(connected):
    try:
        return connected.recv(1).hex() or "hung up"
    except OSError:
        return "hung up"
"""


def test_nobody_but_its_machines_comes_in_through_it(attacked: Attacked) -> None:
    """A certificate of our own pool that was stolen, one of another partner's, none at all: not through that door."""
    stolen = attacked.gateway.dir / "etc" / "pool"
    code = INNER + """
for name in ("host.crt", "host.key", "ca.crt"):
    target = getattr(PoolFiles.below("stolen"), {"host.crt": "host", "host.key": "host_key", "ca.crt": "ca"}[name])
    write_whole(target, open(f"{stolen}/{name}", "rb").read(), 0o600)
connected = inner(certificate)
connected.sendall(line.encode())
result = end_of(connected)
"""
    for certificate in ("stolen", "quiet", ""):
        for line in ("condor actors 1\n", "condor enrol 1\n", "condor token 1\n"):
            said = through(attacked, code, stolen=str(stolen), certificate=certificate, line=line)
            assert said == "hung up", (certificate, line)
    assert through(attacked, code, stolen=str(stolen), certificate="evil", line="condor actors 1\n") != "hung up"


@pytest.mark.parametrize("message", ["AnnounceGateway()", "OpenCircuit(circuit='0' * 32, node=collector)"])
def test_who_is_no_gateway_announces_and_orders(attacked: Attacked, message: str) -> None:
    said = intrude(attacked.evil, """
from condor_actors.messages.flock import AnnounceGateway, OpenCircuit
own = Intruder(PoolFiles.below("roleless"))
with own.client(door) as client:
    result = said(client, "gateway", eval(message))
""", door=attacked.door, collector=attacked.collector, message=message)
    assert said.startswith("denied"), said


def test_it_orders_circuits_over_a_link_that_it_has_dialled(attacked: Attacked) -> None:
    said = intrude(attacked.evil, """
from condor_actors.messages.flock import AnnounceGateway, OpenCircuit
own = Intruder(PoolFiles.below("evil"))
with own.client(door) as client:
    result = [said(client, "gateway", AnnounceGateway()),
              said(client, "gateway", OpenCircuit(circuit="0" * 32, node=collector))]
""", door=attacked.door, collector=attacked.collector)
    assert said[0] == "Done"
    assert said[1].startswith("denied"), said


def test_a_flood_of_circuits_harms_nobody_else(attacked: Attacked) -> None:
    """It wants more circuits than it may have, and keeps them; another partner gets its own; the flood is told of."""
    said = intrude(attacked.evil, GATEWAY + """
held, answers = [], []
for _ in range(count):
    held.append(begun(door, "evil", "condor circuit 1", collector))
    answers.append(line_of(held[-1]))
result = [answers, answered(door, "calm", "condor circuit 1", collector)]
for connected in held:
    connected.close()
""", door=attacked.door, collector=attacked.collector, count=3 * MOST)
    assert said[0] == ["+"] * MOST + [f"-{MOST} streams are carried (GATEWAY_MAX_STREAMS)"] * 2 * MOST
    assert said[1] == "+"
    until(lambda: attacked.answer(attacked.collector) == "+", "it to have circuits again")
    assert "circuits of evil refused" in (attacked.gateway.dir / "log" / "GatewayLog").read_text()
    assert f"{2 * MOST} refused" in attacked.manager.run("condor_flock", "status")
