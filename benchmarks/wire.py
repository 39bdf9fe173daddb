"""What a question and its answer cost between two processes: ``python -m benchmarks.wire``.

Two processes, each with an actor system and a post office, joined by a UNIX socket and by mutual TLS; so many
questions under way at once.  CPU is that of both processes together, per question answered (two messages).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from condor_actors.actors import Actor, ActorSystem
from condor_actors.messages.admin import Ping
from condor_actors.messages.envelope import Address, Delivery, Done
from condor_actors.wire.certificates.authority import PoolFiles, create_pool
from condor_actors.wire.post_office import PostOffice

QUESTIONS = 20_000


class Answerer(Actor):
    """Says yes."""

    def receive(self, delivery: Delivery) -> None:
        """A question."""
        self.context.reply(delivery, Done(text="yes"))


class Asker(Actor):
    """Keeps ``width`` questions under way until ``total`` were answered."""

    def __init__(self, node: str, width: int, total: int, done: Callable[[float], None]) -> None:
        self._to = Address(node, "answerer")
        self._left = total + width
        self._warm = width
        self._width = width
        self._open = 0
        self._done = done
        self._began_s = 0.0

    def started(self) -> None:
        """Ask the first."""
        for _ in range(self._width):
            self._ask()

    def _ask(self) -> None:
        self._left -= 1
        self._open += 1
        self.context.ask(self._to, Ping(), timeout_s=60.0, then=self._answered)

    def _answered(self, delivery: Delivery) -> None:
        assert isinstance(delivery.message, Done), delivery.message
        self._open -= 1
        if self._warm:
            self._warm -= 1
            if not self._warm:
                self._began_s = time.perf_counter()
        if self._left > 0:
            self._ask()
        elif not self._open:
            self._done(time.perf_counter() - self._began_s)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _system(reactor: Any, office: PostOffice) -> ActorSystem:
    return ActorSystem(clock=reactor, wall_clock=time.time, post=office, authorize=lambda identity, level: True,
                       random=random.Random(os.urandom(8)))


def _office(reactor: Any, name: str, folder: str) -> PostOffice:
    return PostOffice(reactor, random=random.Random(os.urandom(8)), process=name, uid_domain="here",
                      credentials=PoolFiles.below(folder).credentials())


def serve(folder: str, pipe: Connection) -> None:
    """The answering process: says where it listens, and its CPU time whenever it is asked."""
    from twisted.internet import reactor

    office = _office(reactor, "server", folder)
    system = _system(reactor, office)
    system.spawn("answerer", Answerer)
    office.listen_unix(f"{folder}/socket")
    pipe.send(office.listen_tls("127.0.0.1", 0))

    class Pipe:
        def fileno(self) -> int:
            return pipe.fileno()

        def logPrefix(self) -> str:  # noqa: N802 - Twisted's
            return "pipe"

        def doRead(self) -> None:  # noqa: N802
            if pipe.recv() == "stop":
                reactor.stop()  # type: ignore[attr-defined]
            else:
                pipe.send(_cpu_s())

        def connectionLost(self, reason: object) -> None:  # noqa: N802
            """Nothing to do."""

    reactor.addReader(Pipe())  # type: ignore[attr-defined]
    reactor.run()  # type: ignore[attr-defined]


def measure(folder: str, node: str, width: int, total: int, pipe: Connection, profile: str = "") -> tuple[float, float]:
    """(questions a second, CPU microseconds a question in both processes); runs in a process of its own."""
    from twisted.internet import reactor

    office = _office(reactor, "client", folder)
    system = _system(reactor, office)
    result: list[float] = []

    def done(span_s: float) -> None:
        result.append(span_s)
        reactor.stop()  # type: ignore[attr-defined]

    pipe.send("cpu")
    before_s = pipe.recv() + _cpu_s()
    system.spawn("asker", lambda: Asker(node, width, total, done))
    if profile:
        import cProfile

        profiler = cProfile.Profile()
        profiler.enable()
        reactor.run()  # type: ignore[attr-defined]
        profiler.disable()
        profiler.dump_stats(profile)
    else:
        reactor.run()  # type: ignore[attr-defined]
    pipe.send("cpu")
    cpu_s = pipe.recv() + _cpu_s() - before_s
    return total / result[0], cpu_s / total * 1e6


def _client(folder: str, node: str, width: int, total: int, pipe: Connection, back: Connection, profile: str) -> None:
    back.send(measure(folder, node, width, total, pipe, profile))


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--widths", default="1,10,100")
    parser.add_argument("--profile", default="", help="write the asking side's profile here (one kind, one width)")
    parser.add_argument("--kinds", default="unix,tls")
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="ca") as folder:
        create_pool(PoolFiles.below(folder), "bench", ["localhost", "127.0.0.1"])
        ours, theirs = context.Pipe()
        server = context.Process(target=serve, args=(folder, theirs))
        server.start()
        nodes = {"unix": f"unix:{folder}/socket", "tls": ours.recv()}
        sys.stdout.write(f"{'socket':8}{'under way':>10}{'questions/s':>14}{'CPU µs each':>14}\n")
        for kind in arguments.kinds.split(","):
            for width in map(int, arguments.widths.split(",")):
                back, there = context.Pipe()
                client = context.Process(target=_client, args=(folder, nodes[kind], width, arguments.questions, ours,
                                                               there, arguments.profile))
                client.start()
                rate, cpu = back.recv()
                client.join()
                sys.stdout.write(f"{kind:8}{width:10}{rate:14,.0f}{cpu:14.1f}\n")
        ours.send("stop")
        server.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
