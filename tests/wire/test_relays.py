"""Circuits through gateways, of real post offices over real sockets; two pools that are both at 127.0.0.1."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import attrs
import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import deferLater
from twisted.internet.threads import deferToThread
from twisted.logger import Logger

from condor_actors.cores.gateway.client_limits import ClientLimits, GatewaySettings
from condor_actors.cores.gateway.routes import Dial, OwnHosts, Routes
from condor_actors.daemons.gateway.circuit_edges import real_edges
from condor_actors.daemons.gateway.circuits import Circuits
from condor_actors.machine.native.splice import Splice
from condor_actors.messages.admin import Ping
from condor_actors.messages.envelope import AskFailed, Done
from condor_actors.wire.blocking import Unreachable, connect
from condor_actors.wire.certificates.authority import Authority, PoolFiles, create_pool
from condor_actors.wire.certificates.credentials import Credentials
from condor_actors.wire.certificates.tool_credentials import ToolCredentials
from condor_actors.wire.membership import cut_the_revoked
from condor_actors.wire.nodes import tls_node
from condor_actors.wire.partners.partner_store import Partner, partners_text
from condor_actors.wire.relays.dialing import direct
from condor_actors.wire.relays.hop import NoCircuit, hop
from condor_actors.wire.relays.lines import CIRCUIT_LINE, RELAYED_LINE, words
from tests.wire.conftest import Process

Make = Callable[..., Process]
MEBIBYTE = 1 << 20


@attrs.frozen
class Pools:
    """``math``, whose process asks, and ``physics``, whose process answers; and what lies between them."""

    files: dict[str, PoolFiles]
    math: Process
    node: str
    gateway: str
    client_limits: tuple[ClientLimits, ClientLimits]
    routes: Routes
    gateways: tuple[Process, Process]


def credentials(files: dict[str, PoolFiles], own: str, other: str) -> Credentials:
    """Those of a pool that trusts another."""
    found = files[own].credentials()
    assert found is not None
    partner = Partner(name=other, central="<127.0.0.1:1>", ca=files[other].ca.read_bytes())
    files[own].partners.write_bytes(partners_text({other: partner}))
    return attrs.evolve(found, partners=(partner,))


def gateway(process: Process, other: str, at: str, known: tuple[tuple[str, int], ...],
            ) -> tuple[str, ClientLimits, Routes]:
    """Make a process its pool's gateway; its node, its accounts, and its routes."""
    routes, hosts = Routes(), OwnHosts()
    routes.configure((other,), ())
    routes.learn(attrs.evolve(each, gateways=(at,)) for each in process.office.partners())
    hosts.learn(known)
    limits = ClientLimits(GatewaySettings(), 1000)
    circuits = Circuits(reactor, real_edges(reactor, process.office), routes, hosts, limits, lambda identity: True,
                lambda link, number, node, refused: refused(NoCircuit("nobody dials here")),
                lambda host: succeed(None), Logger())
    process.office.services[CIRCUIT_LINE] = circuits.circuit
    process.office.cutters.append(circuits.cut_off)
    return process.office.listen_tls("127.0.0.1", 0), limits, routes


@pytest.fixture
def pools(processes: Make, tmp_path: Path) -> Pools:
    """Two pools with a gateway each."""
    files = {name: PoolFiles.below(tmp_path / name) for name in ("math", "physics")}
    for name, each in files.items():
        each.ca.parent.mkdir(parents=True, exist_ok=True)
        create_pool(each, name, ["127.0.0.1"])
    server = processes("server", credentials(files, "physics", "math"))
    node = server.office.listen_tls("127.0.0.1", 0)
    gateways = (processes("near", credentials(files, "math", "physics")),
                processes("far", credentials(files, "physics", "math")))
    far, theirs, _ = gateway(gateways[1], "math", "<127.0.0.1%math:1>", (tuple(tls_node(node)),))
    near, ours, routes = gateway(gateways[0], "physics", abroad(far), ())
    math = processes("math", credentials(files, "math", "physics"))
    math.office.gateways = (tls_node(near),)
    return Pools(files, math, node, near, (ours, theirs), routes, gateways)


def abroad(node: str) -> str:
    """A node of physics, as math has it."""
    return node.replace(":", "%physics:")


@pytest_twisted.ensureDeferred
async def test_the_true_ends_know_each_other(pools: Pools) -> None:
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done(text="hello"))
    assert answer.message == Done(text="condor@math hello")
    assert answer.identity.name == "condor@physics"
    assert answer.identity.hosts == {"127.0.0.1%physics"}
    assert [limits.between(name).streams for limits, name in zip(pools.client_limits, ("physics", "math"),
                                                                     strict=True)] == [1, 1]


@pytest.mark.parametrize(("at", "whose"), [(0, "math"), (0, "physics"), (1, "math"), (1, "physics")])
@pytest_twisted.ensureDeferred
async def test_a_gateway_cuts_the_circuits_of_a_certificate_that_counts_no_longer(
        pools: Pools, at: int, whose: str) -> None:
    """Of who asked for it, and of who was asked; nothing but the bytes of others goes over it by then."""
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done())
    assert isinstance(answer.message, Done)
    office, limits = pools.gateways[at].office, pools.client_limits[at].between(("physics", "math")[at])
    cut_the_revoked(office, office.log)
    assert limits.streams == 1
    assert office.tls is not None
    before, files = office.tls.credentials, pools.files[whose]
    Authority.load(files).revoke([f"{serial}" for serial in Authority.load(files).issued()])
    crl = files.crl.read_bytes()
    own = whose == ("math", "physics")[at]
    office.renew(attrs.evolve(before, crl=crl) if own else attrs.evolve(
        before, partners=tuple(attrs.evolve(each, crl=crl) for each in before.partners)))
    cut_the_revoked(office, office.log)
    for _ in range(600):
        if not limits.streams:
            return
        await deferLater(reactor, 0.1)
    raise AssertionError("the circuit is open")


@pytest_twisted.ensureDeferred
async def test_who_asked_hears_why_there_is_no_circuit(pools: Pools) -> None:
    host, _, port = abroad(pools.node).rpartition(":")
    answer = await pools.math.box.ask(f"{host}:{int(port[:-1]) % 60000 + 1024}>", "echo", Done())
    assert isinstance(answer.message, AskFailed)
    assert "no daemon of this pool answers there" in answer.message.text
    other = await pools.math.box.ask(abroad(pools.node).replace("127.0.0.1", "10.9.8.7"), "echo", Done())
    assert isinstance(other.message, AskFailed)
    assert "no daemon of this pool answers there" in other.message.text
    pools.math.office.gateways = (tls_node("127.0.0.1:1"),)
    nobody = await pools.math.box.ask(abroad(pools.node).replace("127.0.0.1", "10.9.8.8"), "echo", Done())
    assert isinstance(nobody.message, AskFailed)
    assert "through the gateway <127.0.0.1:1>" in nobody.message.text


@pytest_twisted.ensureDeferred
async def test_a_partners_gateway_leads_to_its_own_pool_and_to_no_third(pools: Pools) -> None:
    tls, node = pools.gateways[0].office.tls, tls_node(pools.routes.partners["physics"].gateways[0])
    assert tls is not None
    for third in ("<127.0.0.1%biology:9618>", "<127.0.0.1%physics%biology:9618>"):
        with pytest.raises(NoCircuit, match="is no address of this pool"):
            await hop(reactor, tls, node, direct(reactor, node), words(CIRCUIT_LINE, third), role="gateway",
                      patience_s=10.0)
    chain = await pools.math.box.ask("<127.0.0.1%biology%physics:9618>", "echo", Done())
    assert isinstance(chain.message, AskFailed)


@pytest.mark.parametrize(("served", "said"), [
    (CIRCUIT_LINE, b"condor circuit 2\n"), (b"condor circuit 0\n", CIRCUIT_LINE),
    (RELAYED_LINE, b"condor relayed 2\n")])
@pytest_twisted.ensureDeferred
async def test_a_gateway_of_another_release_says_which_versions_meet(pools: Pools, served: bytes, said: bytes) -> None:
    """Older or newer: who asks hears both, and what both know goes on."""
    services = pools.gateways[0].office.services
    services[served] = services.pop(CIRCUIT_LINE)
    tls, node = pools.math.office.tls, tls_node(pools.gateway)
    assert tls is not None
    with pytest.raises(NoCircuit) as caught:
        await hop(reactor, tls, node, direct(reactor, node), words(said, "<127.0.0.1%physics:9618>"),
                  role="gateway", patience_s=10.0)
    words_of = served.strip().decode(), said.strip().decode()
    assert "this is another release: it speaks {}, and not {}".format(*words_of) in str(caught.value)
    assert caught.value.is_answer
    services[CIRCUIT_LINE] = services[served]
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done(text="hello"))
    assert answer.message == Done(text="condor@math hello")


@pytest_twisted.ensureDeferred
async def test_a_gateway_that_does_not_even_know_such_a_line_hangs_up_and_that_is_said(pools: Pools) -> None:
    pools.gateways[0].office.services.clear()
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done())
    assert isinstance(answer.message, AskFailed)
    assert "before an answer to 'condor circuit 1': has it another release?" in answer.message.text


@pytest.mark.parametrize("which", [0, 1])
@pytest_twisted.ensureDeferred
async def test_gateways_without_a_common_protocol_say_so_at_both_ends(
        pools: Pools, which: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """And those with one speak that."""
    near, far = pools.gateways
    office = (near, far)[which].office
    hello = office._hello()  # noqa: SLF001 - what it says is the subject
    ((node, _),) = [(each, None) for each in pools.routes.partners["physics"].gateways]
    monkeypatch.setattr(office, "_hello", lambda: hello._replace(protocols=(99, 1)))
    assert isinstance((await near.box.ask(node, "echo", Ping())).message, Done)
    for each in (near, far):
        for link in each.office.links():
            link.close("stopping", "the test goes on")
    monkeypatch.setattr(office, "_hello", lambda: hello._replace(protocols=(99,)))
    refused = await near.box.ask(node, "echo", Ping())
    while isinstance(refused.message, AskFailed) and "the test goes on" in refused.message.text:
        refused = await near.box.ask(node, "echo", Ping())
    assert isinstance(refused.message, AskFailed)
    assert f"{('near', 'far')[which]} speaks protocol 99, and its peer 1" in refused.message.text


@pytest_twisted.ensureDeferred
async def test_a_second_gateway_stands_by(pools: Pools) -> None:
    pools.math.office.gateways = (tls_node("127.0.0.1:1"), tls_node(pools.gateway))
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done())
    assert isinstance(answer.message, Done)
    assert str(pools.math.office.gateways[0]) == pools.gateway, "asked first from now on"


@pytest_twisted.ensureDeferred
async def test_a_partner_whose_first_gateway_is_gone_is_reached_by_its_second(pools: Pools) -> None:
    routes, live = pools.routes, pools.routes.partners["physics"]
    gone = "<127.0.0.1%physics:1>"
    routes.learn((attrs.evolve(live, gateways=(gone, *live.gateways)),))
    answer = await pools.math.box.ask(abroad(pools.node), "echo", Done())
    assert isinstance(answer.message, Done)
    assert routes.route("physics") == Dial(live.gateways[0]), "the one that gave no answer comes last"
    nobody = await pools.math.box.ask(abroad(pools.node).replace("127.0.0.1", "10.9.8.7"), "echo", Done())
    assert isinstance(nobody.message, AskFailed)
    assert nobody.message.text.count("no daemon of this pool answers there") == 1
    assert gone not in nobody.message.text, "what a partner's gateway has answered holds for all of them"


@pytest_twisted.ensureDeferred
async def test_a_tool_goes_by_the_same_circuit(pools: Pools) -> None:
    files = pools.files["math"]
    shown = ToolCredentials(certificate=str(files.host), key=str(files.host_key), ca=str(files.ca),
                            partners=str(files.partners), gateways=(pools.gateway,))

    def asked(node: str) -> Any:
        with connect(node, shown) as client:
            return client.ask("echo", Ping())

    assert await deferToThread(asked, abroad(pools.node)) == Done(text="condor@math ")
    with pytest.raises(Unreachable, match="no daemon of this pool"):
        await deferToThread(asked, "<10.9.8.7%physics:1>")


def connection() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = socket.create_connection(listening.getsockname())
        return there, listening.accept()[0]


def spliced() -> tuple[socket.socket, socket.socket, Splice, Deferred[None]]:
    """Two connections as one: its outer ends, the splice, and its end."""
    (first, inner), (second, other) = connection(), connection()
    ended: Deferred[None] = Deferred()
    return first, second, Splice(reactor, inner, other, lambda: ended.callback(None)), ended


@pytest_twisted.ensureDeferred
async def test_bytes_go_both_ways_and_a_slow_reader_loses_none() -> None:
    first, second, splice, ended = spliced()
    sent = Random(1).randbytes(32 * MEBIBYTE)

    def read(sock: socket.socket) -> bytes:
        parts = []
        while part := sock.recv(MEBIBYTE):
            parts.append(part)
        return b"".join(parts)

    def exchange() -> tuple[bytes, bytes]:
        second.sendall(b"back")
        first.sendall(sent[:MEBIBYTE])  # the other end reads nothing yet
        second.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 10)
        import threading

        writing = threading.Thread(target=lambda: (first.sendall(sent[MEBIBYTE:]), first.shutdown(socket.SHUT_WR)))
        writing.start()
        there = read(second)
        writing.join()
        second.sendall(b" and more, when all is said")
        second.close()
        return there, read(first)

    there, back = await deferToThread(exchange)
    assert there == sent
    assert back == b"back and more, when all is said"
    first.close()
    await ended
    assert splice.carried == (len(sent), len(back))


@pytest_twisted.ensureDeferred
@pytest.mark.parametrize("number", [0, 1])
async def test_the_end_of_one_is_the_end_of_both(number: int) -> None:
    ends = (*spliced(),)
    outer = (ends[0], ends[1])
    outer[number].sendall(b"last words")
    outer[number].close()
    assert await deferToThread(outer[1 - number].recv, 100) == b"last words"
    assert await deferToThread(outer[1 - number].recv, 100) == b""
    outer[1 - number].close()
    await ends[3]


@pytest_twisted.ensureDeferred
async def test_a_reset_ends_both() -> None:
    first, second, _, ended = spliced()
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
    first.close()
    await deferToThread(second.recv, 1)
    second.close()
    await ended
