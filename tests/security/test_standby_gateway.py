"""Two gateways of one pool, of which one stands by, and who would like to be one of them.

Strangers, other pools, and machines without the role: at the address of a partner's standby, and over links to our two.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.harness.namespaces import NEED_NAMESPACES, a_wire, ip
from tests.pool_fixture import until
from tests.security.intruder import intrude
from tests.security.test_partner_gateway import GATEWAY, Attacked

pytestmark = NEED_NAMESPACES

STANDBY = "10.88.7.44"
"""Where the partner's standby is said to be; its first gateway is at the address of the machine ``evil``."""
OWN = "GATEWAY_HOST = 10.88.7.2, 10.88.7.3\nFLOCK_FROM = calm, evil\nFLOCK_TO = calm\n"
AUTHORITIES = """
from condor_actors.wire.certificates.authority import Authority, create_pool
from condor_actors.wire.partners.invitation import invitation_text
from condor_actors.wire.partners.partner_store import Partner

def member(files, folder, host, role):
    key, made = make_key(), PoolFiles.below(folder)
    certificate = Authority.load(files).sign_request(make_request(key, folder), [host], [role])
    for path, data in ((made.host_key, key_pem(key)), (made.host, certificate), (made.ca, ca.encode())):
        write_whole(path, data, 0o600)

result = {}
for name, host in (("calm", address), ("evil", standby), ("stranger", standby)):
    files = PoolFiles.below(name)
    create_pool(files, name, [host], roles=["gateway"])
    gateways = (f"<{standby}:9701>", f"<{address}:9702>") if name == "calm" else ()
    result[name] = invitation_text(Partner(name=name, central=f"<{address}:9618>", ca=files.ca.read_bytes(),
                                           gateways=gateways))
    if name == "calm":
        member(files, "calm-second", "second.calm", "gateway")
        member(files, "calm-roleless", standby, "schedd")
    write_whole(files.ca, ca.encode())  # what it expects of others
"""
LISTEN = """
import ssl, time
listening = socket.create_server((host, port))
listening.settimeout(1.0)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
files = PoolFiles.below(folder)
context.load_cert_chain(files.host, files.host_key)
Path("listening").touch()
result, given = 0, b""
while not Path("enough").exists():
    try:
        plain = listening.accept()[0]
    except TimeoutError:
        continue
    result += 1
    plain.settimeout(10.0)
    try:
        tls = context.wrap_socket(plain, server_side=True)
        if not line_of(tls).endswith("condor circuit 1"):
            continue
        line_of(tls)
        tls.sendall(b"+\\n")
        bare = socket.socket(fileno=tls.detach())
        bare.settimeout(10.0)
        given += bare.recv(1)
        bare.close()
    except (OSError, ValueError):
        plain.close()
result = [result, given.hex()]
"""
HELLO = "16"
"""The first byte of TLS: what a circuit begins with, from end to end.  An alert, which ends one, has another."""


@pytest.fixture(scope="module")
def attacked() -> Iterator[Attacked]:
    """A pool with two gateways, which knows two others."""
    with a_wire() as wire:
        manager = wire.manager(config=OWN)
        gateway = wire.member(manager, "gateway", "master,gateway", OWN)
        standby = wire.member(manager, "standby", "master,gateway", OWN)
        evil = wire.machine("evil")
        ip("-n", evil.namespace, "addr", "add", f"{STANDBY}/24", "dev", evil._inner)
        invitations = intrude(evil, AUTHORITIES, address=evil.address, standby=STANDBY,
                              ca=(manager.dir / "etc" / "pool" / "ca.crt").read_text())
        for name in ("calm", "evil"):
            fingerprint = manager.tool("condor_flock", "accept", "-", stdin=invitations[name]).stdout.split("\n")[1]
            manager.run("condor_flock", "accept", "-", "--fingerprint", fingerprint.strip(), stdin=invitations[name])
        for each in (gateway, standby):
            until((each.dir / "run" / "gateway.address").exists, "the gateway to listen")
        until(lambda: manager.tool("condor_flock", "status").stdout.count("calm ") == 2, "both to know their partners")
        yield Attacked(wire, manager, manager, evil, gateway)


def listened(attacked: Attacked, folder: str, host: str, port: int) -> list[Any]:
    """How many connections came to a listener with a certificate, and how the circuits that it was given begin."""
    work = attacked.evil.work
    for name in ("listening", "enough"):
        (work / name).unlink(missing_ok=True)
    with ThreadPoolExecutor(1) as threads:
        listening = threads.submit(intrude, attacked.evil, GATEWAY + LISTEN, folder=folder, host=host, port=port)
        try:
            until((work / "listening").exists, "it to listen")
            attacked.manager.tool("condor_status", "-pool", "calm")
        finally:
            (work / "enough").touch()
        found: list[Any] = listening.result(120.0)
    return found


@pytest.mark.parametrize("who", ["stranger", "evil", "calm-roleless", "stolen"])
def test_an_impostor_at_the_address_of_the_standby_gets_no_circuit(attacked: Attacked, who: str) -> None:
    """A stranger, another partner's gateway, a machine of the very pool without the role, one of our own gateways."""
    if who == "stolen":
        intrude(attacked.evil, """
for name, target in (("host.crt", "host"), ("host.key", "host_key"), ("ca.crt", "ca")):
    write_whole(getattr(PoolFiles.below("stolen"), target), open(f"{stolen}/{name}", "rb").read(), 0o600)
""", stolen=str(attacked.gateway.dir / "etc" / "pool"))
    connections, given = listened(attacked, who, STANDBY, 9701)
    assert connections > 0
    assert given in ("", "15"), given


def test_the_partners_gateway_gets_it(attacked: Attacked) -> None:
    """What the others tried works for the one that it is for."""
    connections, given = listened(attacked, "calm", attacked.evil.address, 9702)
    assert connections > 0
    assert given.startswith(HELLO)


def test_a_circuit_is_brought_by_the_pool_that_was_asked_and_only_once(attacked: Attacked) -> None:
    """Its number is in other hands: another partner's, a machine's without the role; and it is shown again."""
    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(intrude, attacked.evil, GATEWAY + """
from condor_actors.messages.flock import AnnounceGateway
own = Intruder(PoolFiles.below("calm"))
with own.client(door) as client:
    announced = said(client, "gateway", AnnounceGateway())
    Path("announced").touch()
    ordered = client.receive(90.0)
    back = "condor circuit-back 2"
    others = [answered(door, folder, back, ordered.circuit) for folder in ("evil", "calm-roleless")]
    second = begun(door, "calm-second", back, ordered.circuit)
    result = [announced, type(ordered).__name__, others, line_of(second),
              answered(door, "calm", back, ordered.circuit)]
    second.close()
""", door=attacked.door)
        until((attacked.evil.work / "announced").exists, "it to have announced itself")
        attacked.manager.tool("condor_status", "-pool", "calm")
        announced, ordered, others, own, again = asking.result(120.0)
    assert (announced, ordered) == ("Done", "OpenCircuit")
    assert others == ["-nobody waits for that circuit"] * 2
    assert own == "+"
    assert again == "-nobody waits for that circuit"


@pytest.mark.parametrize("roles", ["schedd", "master,startd"])
def test_a_machine_of_ours_takes_over_while_the_first_gateway_lives(attacked: Attacked, roles: str) -> None:
    """Under its names, or with what a gateway says to daemons: the name is another's, and the role is not its own."""
    first = intrude(attacked.evil, """
try:
    Intruder.enrolled(token, *hosts)
    result = "in"
except RequestRefused as error:
    result = str(error)
""", token=attacked.token(roles), hosts=["standby.trio", "10.88.7.3"])
    assert "belongs to the machine with certificate" in first
    said = intrude(attacked.evil, GATEWAY + """
evil = Intruder.enrolled(token, name)
from condor_actors.messages.flock import AnnounceGateway, OpenCircuit
result = []
def line(first, second, node):
    connected = connect_tls(parse_node(node), ToolCredentials(certificate=str(evil.files.host),
                            key=str(evil.files.host_key), ca=str(evil.files.ca)), 20.0)
    connected.sendall(first.encode() + b"\\n" + second.encode() + b"\\n")
    return line_of(connected)
result.append(line("condor relayed 1", "calm", collector))
result.append(line("condor circuit-back 2", "0" * 32, door))
with evil.client(door) as client:
    result += [said(client, "gateway", AnnounceGateway()),
               said(client, "gateway", OpenCircuit(circuit="0" * 32, node=collector))]
""", token=attacked.token(roles), name=f"taker-{roles.replace(',', '-')}.trio", collector=attacked.collector,
                   door=attacked.door)
    assert said[0] == "hung up"
    assert said[1] == "-nobody waits for that circuit"
    assert all(each.startswith("denied") for each in said[2:]), said
