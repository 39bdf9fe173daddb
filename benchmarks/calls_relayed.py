"""What a system call costs whose way home is two gateways' relays on loopback: ``python -m benchmarks.calls_relayed``.

No pool is started: one process does a program's calls, as home does, another has the far end of its channel, as a
starter host has, and two more pass bytes on, as gateways do (``ping.c``, with their own relays).  Three programs take
turns: one whose connection goes straight; one whose channel goes through both relays; and one where, at home too, a
relay lies between the connection and who does the calls, as it did before home's end was the session's own.  A time is
that of the batch of calls in the middle; a ratio is that of neighbouring turns.

``--alone`` (as root) is for a machine that has other things to do: what is measured goes before all else.  Whether
both ends share a processor decides much: ``--one-processor`` has everything on one.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.calls_apart import built
from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.relays import NativeRelays, NumberedChannel
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Task
from tests.native.numbered import Reactor

PROGRAM = """
import os, sys, time
out, took = os.open("out", os.O_WRONLY | os.O_CREAT), []
for _ in range(200):
    os.fstatvfs(out)
end_s = time.perf_counter() + float(sys.argv[1])
while time.perf_counter() < end_s:
    began_s = time.perf_counter()
    for _ in range(20):
        os.fstatvfs(out)
    took.append((time.perf_counter() - began_s) / 20)
print(1e6 * sorted(took)[len(took) // 2], flush=True)
"""
FAR_END = "far end"
STRAIGHT, RELAYED, THRICE = KINDS = "straight", "through two relays", "and one at home"
FIRST_PORT = 7200


def connected() -> tuple[socket.socket, socket.socket]:
    """Both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return at_once(socket.create_connection(listening.getsockname())), at_once(listening.accept()[0])


def at_once(sock: socket.socket) -> socket.socket:
    """Have it send without waiting for more."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def begun(words: list[str], says: str, *passed: int) -> subprocess.Popen[str]:
    """A process that has said that it is ready."""
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, pass_fds=passed)
    assert process.stdout is not None
    if process.stdout.readline() != f"{says}\n":
        raise SystemExit(f"{' '.join(words)} does not begin")
    return process


@contextmanager
def relayed(ping: Path, ports: Iterator[int]) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Both ends of a connection through two relays: far away, and at home."""
    processes: list[subprocess.Popen[str]] = []
    try:
        with socket.create_server(("127.0.0.1", 0)) as home:
            to = home.getsockname()[1]
            for port in (next(ports), next(ports)):
                processes.append(begun([str(ping), "relay", str(port), "127.0.0.1", str(to)], "listens"))
                to = port
            yield at_once(socket.create_connection(("127.0.0.1", to))), at_once(home.accept()[0])
    finally:
        for each in processes:
            each.kill()
            each.wait()


def called(channel: socket.socket | NumberedChannel, theirs: socket.socket, key: bytes, folder: str,
           turn_s: float) -> float:
    """Run the program; how long a call of it took, in µs."""
    host = ShadowHost()
    reader, writer = os.pipe()
    os.write(writer, key)
    os.close(writer)
    control, controls = socket.socketpair()
    with tempfile.TemporaryFile() as output, open(os.devnull) as null, control, controls, theirs:
        task = Task(program="/usr/bin/python3", arguments=["python3", "-c", PROGRAM, str(turn_s)], environment={},
                    directory=folder, standard_fds=(null.fileno(), output.fileno(), 2), key=key, direct=True)
        session = host.open(channel, task)
        passed = theirs.fileno(), controls.fileno(), reader
        words = [runtime_path(), str(passed[0]), "-", "family", f"control={passed[1]}", f"key={passed[2]}"]
        process = subprocess.Popen(words, pass_fds=passed, stdin=subprocess.DEVNULL)
        theirs.close()
        os.close(reader)
        ended = False
        while not ended:
            select.select([host], [], [])
            ended = any(each.session == session and each.kind is EventKind.ENDED for each in host.events())
        process.wait()
        output.seek(0)
        return float(output.read())


def turn(kind: str, ping: Path, ports: Iterator[int], folder: str, turn_s: float) -> float:
    """One turn of a kind."""
    key = os.urandom(32)
    if kind == STRAIGHT:
        theirs, ours = connected()
        return called(ours, theirs, key, folder, turn_s)
    with relayed(ping, ports) as (far, home):
        theirs, inner = socket.socketpair()
        with far, inner:
            words = [sys.executable, "-m", "benchmarks.calls_relayed", FAR_END, str(inner.fileno()), str(far.fileno())]
            process = begun(words, "ready", inner.fileno(), far.fileno())
        relays = NativeRelays(Reactor())
        ours, end = socket.socketpair() if kind == THRICE else (None, None)
        channel = relays.channel(end, lambda why: None)
        assert channel.attach(home, 0, listens=False)
        try:
            return called(channel if ours is None else ours, theirs, key, folder, turn_s)
        finally:
            process.kill()
            process.wait()


def serve_far_end(inner: int, connection: int) -> None:
    """Be the starter host's end of a channel, until killed."""
    relays = NativeRelays(Reactor())
    channel = relays.channel(socket.socket(fileno=inner), lambda why: None)
    assert channel.attach(socket.socket(fileno=connection), 0, listens=True)
    print("ready", flush=True)
    select.select([], [], [])


def middle(of: Callable[[dict[str, float]], float], turns: list[dict[str, float]]) -> str:
    """A figure of the turn in the middle, and of those at both ends."""
    found = sorted(map(of, turns))
    return f"{statistics.median(found):7.2f} ({found[0]:.2f} to {found[-1]:.2f})"


def main() -> None:
    """Entry."""
    if sys.argv[1:2] == [FAR_END]:
        serve_far_end(int(sys.argv[2]), int(sys.argv[3]))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.2, help="that a turn takes")
    parser.add_argument("--one-processor", action="store_true", help="all on one")
    parser.add_argument("--alone", action="store_true", help="with real-time priority")
    options = parser.parse_args()
    if options.one_processor:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    ports = iter(range(FIRST_PORT, 1 << 16))
    turns = []
    with tempfile.TemporaryDirectory() as folder:
        ping = built(Path(folder))
        if options.alone:
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(5))
        for _ in range(options.turns):
            turns.append({kind: turn(kind, ping, ports, folder, options.seconds) for kind in KINDS})
    for kind in KINDS:
        print(f"{kind:<20} {middle(lambda each, kind=kind: each[kind], turns)} µs; "
              f"{middle(lambda each, kind=kind: each[kind] / each[STRAIGHT], turns)} times as long as straight")


if __name__ == "__main__":
    main()
