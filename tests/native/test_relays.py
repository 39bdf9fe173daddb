"""The native relays: splices, and channels that outlive their connections, whose other end may be hostile."""

from __future__ import annotations

import random
import select
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.relays import NativeRelays, NumberedChannel
from tests.native.fuzz.building import NATIVE, Unbuildable, build_fuzzer, search

SEARCHED, LONGEST = 20_000, 4096
END = 0xFFFFFFFF
WINDOW_BYTES = 4 << 20
PATIENCE_S = 60


class Reactor:
    """Watches nothing: the test hears the news when it wants to."""

    def addReader(self, reader: object) -> None:  # noqa: N802 - Twisted's
        """Not here."""

    def removeReader(self, reader: object) -> None:  # noqa: N802
        """Not here."""


class Channel:
    """A numbered channel, the end of it that a process has, and what was heard of it."""

    def __init__(self, relays: NativeRelays) -> None:
        self.own, theirs = pair()
        self.own.settimeout(PATIENCE_S)
        self.ended: list[str] = []
        self.lost = 0
        self.relay: NumberedChannel = relays.channel(theirs, self.ended.append, self._lost)
        self._relays = relays

    def _lost(self) -> None:
        self.lost += 1

    def hear(self, *, until_lost: int = 0, until_ended: bool = False) -> None:
        """Take news until there are these."""
        while self.lost < until_lost or (until_ended and not self.ended):
            assert select.select([self._relays.fileno()], [], [], PATIENCE_S)[0], "no news"
            self._relays.doRead()


MADE: list[socket.socket] = []


def pair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets that are joined, and are closed when the test is over."""
    both = socket.socketpair()
    MADE.extend(both)
    return both


@pytest.fixture
def relays() -> Iterator[NativeRelays]:
    """Yield relays of nobody's reactor."""
    yield NativeRelays(Reactor())
    while MADE:
        MADE.pop().close()


def connect(home: Channel, far: Channel) -> tuple[socket.socket, socket.socket]:
    """Return the two ends that face each other of what both channels have as their connections."""
    to_home, homes = pair()
    to_far, fars = pair()
    at_home, at_far = home.relay.detach(), far.relay.detach()
    assert at_home is not None
    assert at_far is not None
    assert far.relay.attach(fars, at_home, listens=True)
    assert home.relay.attach(homes, at_far, listens=False)
    return to_home, to_far


def joined(relays: NativeRelays) -> tuple[Channel, Channel]:
    """Return two channels with one connection."""
    home, far = Channel(relays), Channel(relays)
    one, other = pair()
    assert far.relay.attach(other, 0, listens=True)
    assert home.relay.attach(one, 0, listens=False)
    return home, far


def pass_on(ends: tuple[socket.socket, socket.socket], chance: random.Random, rounds: int) -> None:
    """Pass on what both say for some rounds, in pieces; what was taken last is lost with the connection."""
    for _ in range(rounds):
        for number in select.select(ends, [], [], 0.01)[0]:
            data = number.recv(chance.choice((1, 7, 100, 5_000, 200_000)))
            if not data:
                return
            other = ends[1] if number is ends[0] else ends[0]
            if chance.random() < 0.03:
                other.sendall(data[: chance.randint(0, len(data))])
                return
            other.sendall(data)


def exchange(own: socket.socket, other: socket.socket, said: bytes, into: list[bytes]) -> list[threading.Thread]:
    """Start to say all that at one end and to take it at the other."""
    def take() -> None:
        left = len(said)
        while left and (data := other.recv(1 << 20)):
            into.append(data)
            left -= len(data)

    threads = [threading.Thread(target=own.sendall, args=(said,), daemon=True),
               threading.Thread(target=take, daemon=True)]
    for thread in threads:
        thread.start()
    return threads


@pytest.mark.parametrize("seed", range(8))
def test_every_byte_comes_once_and_in_order_wherever_connections_break(relays: NativeRelays, seed: int) -> None:
    chance = random.Random(seed)
    home, far = Channel(relays), Channel(relays)
    out, back = chance.randbytes(chance.randint(1, 9 << 20)), chance.randbytes(chance.randint(1, 1 << 20))
    there: list[bytes] = []
    here: list[bytes] = []
    threads = [*exchange(home.own, far.own, out, there), *exchange(far.own, home.own, back, here)]
    while any(thread.is_alive() for thread in threads):
        ends = connect(home, far)
        pass_on(ends, chance, 400)
        for each in ends:  # what is under way is lost
            each.close()
    assert b"".join(there) == out
    assert b"".join(here) == back
    for each in (home, far):
        each.relay.cut()
        each.hear(until_ended=True)
        each.own.close()


def test_its_end_comes_after_its_last_byte_over_another_connection_too(relays: NativeRelays) -> None:
    home, far = Channel(relays), Channel(relays)
    far.own.sendall(b"last words")
    far.own.close()
    ends = connect(home, far)
    for each in ends:  # nothing has come
        each.close()
    home.hear(until_lost=1)
    pump = connect(home, far)
    thread = threading.Thread(target=pass_all, args=(pump,), daemon=True)
    thread.start()
    assert home.own.recv(100) == b"last words"
    assert home.own.recv(100) == b""
    far.hear(until_ended=True)
    home.hear(until_ended=True)
    thread.join()
    assert (home.ended, far.ended) == ([""], [""])
    assert home.relay.detach() is None


def pass_all(ends: tuple[socket.socket, socket.socket]) -> None:
    """Pass on all that both say, until one ends."""
    while True:
        for each in select.select(ends, [], [])[0]:
            data = each.recv(1 << 20)
            if not data:
                for one in ends:
                    one.close()
                return
            (ends[1] if each is ends[0] else ends[0]).sendall(data)


def test_who_listens_says_nothing_before_the_other_end_has(relays: NativeRelays) -> None:
    far = Channel(relays)
    one, other = pair()
    one.settimeout(PATIENCE_S)
    far.own.sendall(b"early")
    assert far.relay.attach(other, 0, listens=True)
    assert not select.select([one], [], [], 0.2)[0]
    one.sendall(struct.pack("<IQ", 0, 0))
    assert one.recv(100) == struct.pack("<IQ", 5, 0) + b"early"
    far.relay.cut()
    far.hear(until_ended=True)
    far.own.close()
    one.close()


def test_what_does_not_arrive_is_bounded(relays: NativeRelays) -> None:
    home = Channel(relays)
    home.own.setblocking(False)
    sent = 0
    while select.select([], [home.own], [], 0.5)[1]:
        try:
            sent += home.own.send(bytes(1 << 20))
        except BlockingIOError:
            continue
    assert WINDOW_BYTES <= sent < WINDOW_BYTES + (2 << 20)
    home.relay.cut()
    home.hear(until_ended=True)
    home.own.close()


def test_an_end_that_says_much_before_it_listens_is_not_stuck(relays: NativeRelays) -> None:
    """That it may say more is told behind the answers that it has not taken yet."""
    home, far = joined(relays)
    asked, answers = random.Random(3).randbytes(12 << 20), random.Random(4).randbytes(3 << 20)
    answering = threading.Thread(target=home.own.sendall, args=(answers,), daemon=True)
    answering.start()
    assert select.select([far.own], [], [], PATIENCE_S)[0]
    got: list[bytes] = []
    for thread in exchange(far.own, home.own, asked, got):
        thread.join(PATIENCE_S)
    assert b"".join(got) == asked
    heard = bytearray()
    while len(heard) < len(answers):
        heard += far.own.recv(1 << 20)
    assert heard == answers
    answering.join()
    for each in (home, far):
        each.relay.cut()
        each.hear(until_ended=True)
        each.own.close()


@pytest.mark.parametrize(("said", "why"), [
    (struct.pack("<IQ", 0, 4), "were not sent"),
    (struct.pack("<IQ", 0, 2**64 - 1), "were not sent"),
    (struct.pack("<IQ", 0, 3) + struct.pack("<IQ", 0, 2), "not to have that had"),
    (struct.pack("<IQ", (1 << 20) + 1, 0), "too long"),
    (struct.pack("<IQ", END - 1, 0), "too long"),
    (struct.pack("<IQ", END, 0) + struct.pack("<IQ", 1, 0) + b"x", "after the end"),
])
def test_a_hostile_end_ends_the_channel_and_nothing_else(relays: NativeRelays, said: bytes, why: str) -> None:
    victim, (home, far) = Channel(relays), joined(relays)
    one, other = pair()
    victim.own.sendall(b"abc")
    assert victim.relay.attach(other, 0, listens=False)
    one.settimeout(PATIENCE_S)
    heard = b""
    while not heard.endswith(b"abc"):
        heard += one.recv(100)
    one.sendall(said)
    victim.hear(until_ended=True)
    assert why in victim.ended[0]
    assert one.recv(100) == b""
    home.own.sendall(b"others go on")
    assert far.own.recv(100) == b"others go on"
    for each in (home, far):
        each.relay.cut()
        each.hear(until_ended=True)
        each.own.close()
    one.close()


@pytest.mark.parametrize("arrived", [4, 2**63 - 1])
def test_a_connection_whose_end_has_what_cannot_be_is_not_taken(relays: NativeRelays, arrived: int) -> None:
    home = Channel(relays)
    one, other = pair()
    assert not home.relay.attach(other, arrived, listens=False)
    assert one.recv(1) == b""
    one.close()
    home.relay.cut()
    home.hear(until_ended=True)
    home.own.close()


def connection() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        there = socket.create_connection(listening.getsockname())
        there.settimeout(PATIENCE_S)
        here = listening.accept()[0]
        MADE.extend((here, there))
        return there, here


def test_a_half_close_is_passed_on_after_what_came_before_and_answers_go_back(relays: NativeRelays) -> None:
    (first, inner), (second, other) = connection(), connection()
    ended: list[str] = []
    spliced = relays.splice(inner, other, ended.append, lambda: None)
    sent, back = random.Random(1).randbytes(8 << 20), b"and back"
    threads = exchange(first, second, sent, got := [])
    for thread in threads:
        thread.join()
    first.shutdown(socket.SHUT_WR)
    assert second.recv(1) == b""
    second.sendall(back)
    assert first.recv(100) == back
    second.close()
    assert first.recv(1) == b""
    first.close()
    while not ended:
        assert select.select([relays.fileno()], [], [], PATIENCE_S)[0]
        relays.doRead()
    assert b"".join(got) == sent
    assert spliced.carried == (len(sent), len(back))


def test_an_end_that_takes_nothing_more_is_told_of_when_the_other_is_gone(relays: NativeRelays) -> None:
    (first, inner), (second, other) = connection(), connection()
    told: list[str] = []
    spliced = relays.splice(inner, other, lambda why: told.append("ended"), lambda: told.append("lingers"))
    first.setblocking(False)
    while select.select([], [first], [], 0.3)[1]:
        first.send(bytes(1 << 20))
    first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    first.close()
    second.sendall(b"for whom?")
    while "lingers" not in told:
        assert select.select([relays.fileno()], [], [], PATIENCE_S)[0]
        relays.doRead()
    spliced.cut()
    while "ended" not in told:
        assert select.select([relays.fileno()], [], [], PATIENCE_S)[0]
        relays.doRead()
    second.close()


@pytest.fixture(scope="module")
def fuzzer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the fuzzer, built with clang's address and undefined-behaviour checks."""
    try:
        return build_fuzzer(tmp_path_factory.mktemp("relays"), "numbered_frames", relay_sources())
    except Unbuildable as why:
        pytest.skip(str(why))


def relay_sources() -> list[str]:
    """Return the relays' sources but the one that the harness includes."""
    return sorted(str(path) for path in (NATIVE / "relay").glob("*.c") if path.name != "relay.c")


def seeds() -> Iterator[bytes]:
    """Yield steps as honest and hostile ends take them."""
    def step(kind: int, data: bytes = b"") -> bytes:
        return bytes([kind, len(data)]) + data

    honest = step(2, b"request") + step(1, struct.pack("<IQ", 6, 7) + b"answer") + step(8) + step(7)
    end = step(1, struct.pack("<IQ", END, 0))
    for begun in (honest, honest * 3):
        yield begun
        yield begun + step(1, struct.pack("<IQ", 50, 7) + b"half") + step(6) + step(3, struct.pack("<Q", 7)) + honest
        yield begun + step(5) + end
        yield begun + end + step(6) + step(3, struct.pack("<Q", 7))
        yield begun + step(5) + step(1, struct.pack("<IQ", 0, 8))
        yield begun + step(4) + step(2, b"more") + step(3, struct.pack("<Q", 3)) + honest


@pytest.mark.timeout(1300)
def test_short_search_for_hostile_frames(fuzzer: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "frames"
    corpus.mkdir()
    for number, data in enumerate(seeds()):
        (corpus / str(number)).write_bytes(data)
    found = search(fuzzer, tmp_path, "-seed=1988", f"-runs={SEARCHED}", f"-max_len={LONGEST}", corpus.name)
    if found:
        pytest.fail(found, pytrace=False)
