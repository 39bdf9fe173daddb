"""What two gateways cost: ``python -m benchmarks.gateways``.

Four processes on loopback: one of the pool math, its gateway, the gateway of physics, and a daemon of physics.
Questions and answers one after the other, and a stream of bytes, straight over mutual TLS and through both gateways,
which pass on the same TLS as ciphertext.  CPU of the gateways is that of both together.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import attrs
from twisted.internet.defer import succeed
from twisted.internet.protocol import Factory, Protocol
from twisted.logger import Logger

from benchmarks.wire import Answerer, Asker, _cpu_s, _system
from condor_actors.cores.gateway.client_limits import ClientLimits, GatewaySettings
from condor_actors.cores.gateway.routes import OwnHosts, Routes
from condor_actors.daemons.gateway.circuit_edges import real_edges
from condor_actors.daemons.gateway.circuits import Circuits
from condor_actors.messages.envelope import Identity
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from condor_actors.wire.nodes import tls_node
from condor_actors.wire.partners.partner_store import Partner
from condor_actors.wire.post_office import PostOffice
from condor_actors.wire.relays.lines import CIRCUIT_LINE

SINK_LINE = b"condor sink 1\n"
ECHO_LINE = b"condor echo 1\n"
SIGN = bytes(200)
SIGN_S = 30
"""A link without traffic says so this often, in so many bytes."""
BLOCK = bytes(256 << 10)
HOST = "127.0.0.1"


class Sink(Protocol):
    """Takes so many bytes, then says so."""

    def __init__(self, total: int) -> None:
        self._left = total

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Some of them."""
        self._left -= len(data)
        if self._left <= 0:
            assert self.transport is not None
            self.transport.write(b"+")


class Source(Protocol):
    """Sends so many bytes as fast as they are taken."""

    def __init__(self, total: int, done: Callable[[float], None]) -> None:
        self._left = total
        self._done = done
        self._began_s = 0.0

    def connectionMade(self) -> None:  # noqa: N802
        """Begin."""
        transport: Any = self.transport
        transport.write(SINK_LINE)
        self._began_s = time.perf_counter()
        transport.registerProducer(self, False)

    def resumeProducing(self) -> None:  # noqa: N802
        """The next block."""
        transport: Any = self.transport
        transport.write(BLOCK)
        self._left -= len(BLOCK)
        if self._left <= 0:
            transport.unregisterProducer()

    def stopProducing(self) -> None:  # noqa: N802
        """The other end is gone."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """All is there."""
        self._done(time.perf_counter() - self._began_s)


def office_of(reactor: Any, name: str, folder: str, own: str, other: str) -> PostOffice:
    """A post office of a process of the pool ``own``, which trusts ``other``."""
    credentials = PoolFiles.below(f"{folder}/{own}").credentials()
    assert credentials is not None
    partner = Partner(name=other, central=f"<{HOST}:1>", ca=PoolFiles.below(f"{folder}/{other}").ca.read_bytes())
    return PostOffice(reactor, random=random.Random(os.urandom(8)), process=name, uid_domain="here",
                      credentials=attrs.evolve(credentials, partners=(partner,)))


class Meter:
    """Tells the parent the CPU time of this process when it asks, or ends it."""

    def __init__(self, reactor: Any, pipe: Connection) -> None:
        self._reactor = reactor
        self._pipe = pipe
        reactor.addReader(self)

    def fileno(self) -> int:
        """For the reactor."""
        return self._pipe.fileno()

    def logPrefix(self) -> str:  # noqa: N802 - Twisted's
        """For the reactor's log."""
        return "meter"

    def doRead(self) -> None:  # noqa: N802
        """A word of the parent's."""
        if self._pipe.recv() == "stop":
            self._reactor.stop()
        else:
            self._pipe.send(_cpu_s())

    def connectionLost(self, reason: object) -> None:  # noqa: N802
        """Nothing to do."""


def serve(folder: str, total: int, pipe: Connection) -> None:
    """The daemon of physics."""
    from twisted.internet import reactor

    office = office_of(reactor, "server", folder, "physics", "math")
    _system(reactor, office).spawn("answerer", Answerer)
    office.services[SINK_LINE] = lambda _: Sink(total)
    office.services[ECHO_LINE] = lambda _: Echo()
    pipe.send(office.listen_tls(HOST, 0))
    Meter(reactor, pipe)
    reactor.run()  # type: ignore[attr-defined]


def relay(folder: str, own: str, other: str, next_one: str, door: str, pipe: Connection) -> None:
    """A gateway of ``own`` that knows where that of ``other`` is, and a daemon of its own pool."""
    from twisted.internet import reactor

    office = office_of(reactor, "gateway", folder, own, other)
    routes, hosts = Routes(), OwnHosts()
    routes.configure((other,), ())
    routes.learn(attrs.evolve(each.known(), gateways=(next_one,)) for each in
                 (office.tls.credentials.partners if office.tls is not None else ()))
    hosts.learn([tls_node(door)])
    limits = ClientLimits(GatewaySettings(), 10_000)
    circuits = Circuits(reactor, real_edges(reactor, office), routes, hosts, limits, _anybody, _nobody,
                        lambda _: succeed(None), Logger())
    office.services[CIRCUIT_LINE] = circuits.circuit
    pipe.send(office.listen_tls(HOST, 0))
    Meter(reactor, pipe)
    reactor.run()  # type: ignore[attr-defined]


def _anybody(identity: Identity) -> bool:
    return True


def _nobody(link: str, number: str, node: str, refused: Callable[[str], None]) -> None:
    refused("nobody dials here")


class Quiet(Protocol):
    """A connection as a running job's: a few bytes now and then, and their answer."""

    def __init__(self, begun: Callable[[], None]) -> None:
        self._begun = begun

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's
        """Say what for."""
        transport: Any = self.transport
        transport.write(ECHO_LINE + SIGN)

    def dataReceived(self, data: bytes) -> None:  # noqa: N802
        """It is there, both ways."""
        self._begun()
        self._begun = lambda: None

    def sign(self) -> None:
        """A sign of life."""
        transport: Any = self.transport
        transport.write(SIGN)


class Echo(Protocol):
    """Answers with the same."""

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's
        """Back."""
        transport: Any = self.transport
        transport.write(data)


def many(folder: str, node: str, gateway: str, number: int, span_s: float, pipe: Connection) -> None:
    """The process of math: so many connections through the gateways at a time, as of running jobs; tells when they are
    there, and when they have been for ``span_s``."""
    from twisted.internet import reactor

    office = office_of(reactor, "client", folder, "math", "physics")
    office.gateways = (tls_node(gateway),)
    endpoint = office.endpoint(node.replace(HOST, f"{HOST}%physics"))
    there: list[Quiet] = []

    def begun() -> None:
        if len(there) < number:
            dial()
        else:
            pipe.send(None)
            for index, each in enumerate(there):
                for round_s in range(0, int(span_s), SIGN_S):
                    reactor.callLater(round_s + SIGN_S * index / number, each.sign)  # type: ignore[attr-defined]
            reactor.callLater(span_s, over)  # type: ignore[attr-defined]

    def over() -> None:
        pipe.send(None)
        pipe.recv()
        reactor.stop()  # type: ignore[attr-defined]

    def dial() -> None:
        endpoint.connect(Factory.forProtocol(lambda: Quiet(begun))).addCallbacks(there.append, print)

    dial()
    reactor.run()  # type: ignore[attr-defined]


def client(folder: str, node: str, gateway: str, what: str, amount: int, pipe: Connection) -> None:
    """The process of math: questions one after the other, or one stream; tells the seconds they took."""
    from twisted.internet import reactor

    office = office_of(reactor, "client", folder, "math", "physics")
    office.gateways = (tls_node(gateway),) if gateway else ()

    def done(span_s: float) -> None:
        pipe.send(span_s)
        reactor.stop()  # type: ignore[attr-defined]

    foreign = node.replace(HOST, f"{HOST}%physics")
    if what == "questions":
        _system(reactor, office).spawn("asker", lambda: Asker(foreign, 1, amount, done))
    else:
        office.endpoint(foreign).connect(Factory.forProtocol(lambda: Source(amount, done)))
    reactor.run()  # type: ignore[attr-defined]


def started(target: Callable[..., None], *arguments: Any) -> tuple[Any, Connection]:
    """A process, and the pipe to it."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=target, args=(*arguments, there))
    process.start()
    return process, here


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=5_000)
    parser.add_argument("--mebibytes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=1_000, help="at once, as of so many running jobs")
    parser.add_argument("--seconds", type=float, default=60.0, help="for which they are there")
    options = parser.parse_args()
    total = options.mebibytes << 20
    with tempfile.TemporaryDirectory() as folder:
        for pool in ("math", "physics"):
            Path(folder, pool).mkdir()
            create_pool(PoolFiles.below(f"{folder}/{pool}"), pool, [HOST])
        server, server_pipe = started(serve, folder, total)
        node = server_pipe.recv()
        far, far_pipe = started(relay, folder, "physics", "math", "<127.0.0.1%math:1>", node)
        far_node = far_pipe.recv().replace(HOST, f"{HOST}%physics")
        near, near_pipe = started(relay, folder, "math", "physics", far_node, node)
        gateway = near_pipe.recv()
        for what, amount in (("questions", options.questions), ("bytes", total)):
            for through in ("", gateway):
                print(line(what, amount, through, best(folder, node, what, amount, through, options.rounds,
                                                       (near_pipe, far_pipe))))
        if options.connections:
            print(crowd(folder, node, gateway, options.connections, options.seconds, (near, far),
                        (near_pipe, far_pipe)))
        for process, pipe in ((server, server_pipe), (far, far_pipe), (near, near_pipe)):
            pipe.send("stop")
            process.join()


def best(folder: str, node: str, what: str, amount: int, through: str, rounds: int,
         gateways: tuple[Connection, ...]) -> tuple[float, float]:
    """The shortest of some rounds, and the gateways' CPU seconds in it."""
    found = []
    for _ in range(rounds):
        before_s = cpu_of(gateways)
        process, pipe = started(client, folder, node, through, what, amount)
        span_s = pipe.recv()
        process.join()
        found.append((span_s, cpu_of(gateways) - before_s))
    return min(found)


def crowd(folder: str, node: str, gateway: str, number: int, span_s: float, processes: tuple[Any, ...],
          gateways: tuple[Connection, ...]) -> str:
    """What many quiet connections cost the gateways."""
    empty, before_s = [resident_mb(each.pid) for each in processes], cpu_of(gateways)
    process, pipe = started(many, folder, node, gateway, number, span_s)
    pipe.recv()
    made_s, full = cpu_of(gateways) - before_s, [resident_mb(each.pid) for each in processes]
    before_s = cpu_of(gateways)
    pipe.recv()
    quiet_s = cpu_of(gateways) - before_s
    pipe.send(None)
    process.join()
    return (f"{number} connections       one gateway: {100 * quiet_s / 2 / span_s:.1f} % of a processor, "
            f"{full[0]:.0f} MB (without: {empty[0]:.0f}); making one: {made_s / 2 / number * 1e3:.1f} ms")


def resident_mb(pid: int) -> float:
    """The memory of a process."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def cpu_of(pipes: tuple[Connection, ...]) -> float:
    """CPU seconds of some processes so far."""
    for pipe in pipes:
        pipe.send("cpu")
    return float(sum(pipe.recv() for pipe in pipes))


def line(what: str, amount: int, through: str, measured: tuple[float, float]) -> str:
    """A row for people."""
    span_s, cpu_s = measured
    by = "through two gateways" if through else "straight"
    if what == "questions":
        return f"{by:<22} {span_s / amount * 1e6:8.0f} µs a question    gateways' CPU {cpu_s / amount * 1e6:6.0f} µs"
    return f"{by:<22} {amount / span_s / 1e6:8.0f} MB/s             gateways' CPU {cpu_s / (amount / 1e9):6.2f} s a GB"


if __name__ == "__main__":
    main()
