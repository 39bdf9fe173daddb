"""An execute machine that answers for its job with whatever it likes: no frame reaches what the job has not opened.

Beside the random frames of test_shadow_frames: attacks with a purpose, against a process that serves other jobs too.
"""

from __future__ import annotations

import array
import os
import resource
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.shadow import ShadowHost, Task
from tests.native.attacks import NATIVE
from tests.native.test_job_root import HERE, Confined
from tests.native.test_shadow_frames import ADOPT, EXIT, REQUEST, hello, open_descriptors, request

EBADF, EAGAIN, EINVAL, ENFILE, ENOSYS, EPROTO, ETOOMANYREFS = -9, -11, -22, -23, -38, -71, -109
MANY = 10_000
MOST_HELD = 128 << 20
"""Bytes that a family's sockets have under way."""
CANCEL, DESCRIBE, IMAGE_BEGIN, IMAGE_END, HOLD, RELEASE, PATH_OF, TAKE, LIMIT_FILES, FACTS = (
    1001, 1006, 1008, 1009, 1011, 1012, 1017, 1021, 1023, 1019)
NO_ANSWER = 0xFFFF
NUMBERS = [-1, -100, -(1 << 31), 1 << 31, 1 << 32, (1 << 32) + 1, 1 << 62, -(1 << 63), 4095, 4096, 5120]
"""Of descriptors and handles that nobody has."""


class Machine(Confined):
    """A hostile machine's end of a job's channel."""

    def __init__(self, folder: Path) -> None:
        ours, self.socket = socket.socketpair()
        self.socket.settimeout(60)
        self.host, self.over = ShadowHost(), False
        self.host.open(ours, Task(program="x", arguments=["x"], environment={}, directory=str(folder), journal=False,
                                  image=str(folder / "image"), standard_fds=(-1, -1, -1)))

    def is_cut(self, frame: bytes) -> bool:
        """Whether the frame ends the session."""
        self.socket.sendall(frame)
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def peer(tmp_path: Path) -> Iterator[Machine]:
    with Machine(tmp_path) as it:
        assert it.ask(hello())[0] == 0
        yield it


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """A file that the process at home has open, for itself or for another job."""
    path = tmp_path / "secret"
    path.write_text("secret")
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor, path
    assert path.read_text() == "secret"
    assert os.pread(descriptor, 10, 0) == b"secret"
    os.close(descriptor)


def calls_on_descriptors() -> list[tuple[int, str, int]]:
    """Number, name and place of the argument, of each call on a descriptor that is done at home."""
    found = []
    for line in (NATIVE / "syscalls.tbl").read_text().splitlines():
        words = line.split()
        if len(words) > 3 and words[0].isdigit() and words[2] == "remote":
            found += [(int(words[0]), words[1], place) for place, kind in enumerate(words[3:]) if kind == "fd"]
    return found


def test_no_call_reaches_a_descriptor_that_the_job_has_not_opened(peer: Machine, secret: tuple[int, Path]) -> None:
    calls = calls_on_descriptors()
    assert len(calls) > 40
    for number, name, place in calls:
        for descriptor in (secret[0], *NUMBERS):
            words = [1] * 6
            words[place] = descriptor
            result = peer.ask(request(number, tuple(words), b"a\0" * 200))[0]
            assert result < 0, (name, descriptor)


def test_handles_that_were_not_given(peer: Machine, secret: tuple[int, Path]) -> None:
    for handle in (secret[0], 4096, 4097, *NUMBERS):
        assert peer.ask(request(17, (handle, 1, 10, 0)))[0] == EBADF
        assert peer.ask(request(18, (handle, 1, 4, 0), b"evil"))[0] == EBADF
        assert peer.ask(request(RELEASE, (handle,)))[0] == EBADF
        assert peer.ask(request(HOLD, (handle, 1)))[0] == EBADF
        assert peer.ask(request(PATH_OF, (handle,)))[0] < 0
        assert peer.ask(request(FACTS, (handle,)))[0] == EBADF


def test_handles_without_end(peer: Machine, tmp_path: Path) -> None:
    descriptor = peer.call(257, HERE, "own", os.O_RDWR | os.O_CREAT, 0o600)
    before, given = open_descriptors(), 0
    while peer.ask(request(HOLD, (descriptor,)))[0] >= 0:
        given += 1
        assert given < 100_000
    assert peer.ask(request(HOLD, (descriptor,)))[0] == ENFILE
    assert open_descriptors() == before


def test_descriptors_beside_a_frame_are_not_kept(peer: Machine) -> None:
    """Any number of them may come over a socket of this machine; nothing of the shadow's is crowded out."""
    frame = request(39)
    peer.ask(frame)
    before = open_descriptors()
    reader, writer = os.pipe()
    for _ in range(50):
        peer.socket.sendmsg([frame], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [reader, writer] * 50))])
        peer._exactly(16)
    os.close(reader)
    os.close(writer)
    assert open_descriptors() == before


@pytest.mark.parametrize("ticket", [0, 1, *NUMBERS])
def test_tickets_that_were_not_given(peer: Machine, secret: tuple[int, Path], ticket: int) -> None:
    assert peer.is_cut(REQUEST.pack(0, NO_ANSWER, TAKE, ticket, secret[0], 0, 0, 0, 0))


def test_an_image_that_was_not_begun(peer: Machine, tmp_path: Path) -> None:
    for verdict in (0, 1, 2, *NUMBERS):
        for size in (0, 1 << 40, -1):
            assert peer.ask(request(IMAGE_END, (verdict, size)))[0] < 0
    assert not (tmp_path / "image").exists()


def test_an_image_that_says_more_than_it_has(peer: Machine, tmp_path: Path) -> None:
    """Its end without its bytes, with more than any disk has, or twice."""
    assert peer.ask(request(IMAGE_BEGIN))[0] >= 0
    assert peer.ask(request(IMAGE_END, (1, 1 << 50)))[0] < 0
    assert peer.ask(request(IMAGE_END, (1, 0)))[0] < 0
    assert not (tmp_path / "image").exists()


def test_lists_of_open_files_with_numbers_that_do_not_fit(peer: Machine, secret: tuple[int, Path]) -> None:
    name = bytes(secret[1]) + b"\0"
    for counts in ((1 << 32) - 1, (1 << 31), 5000):
        for place in range(1, 6):
            words = [0x46534443, 1, 1, 0, 0o22, 2]
            words[place] = counts
            blob = struct.pack("<6IQ", *words, 1) + b".\0" + b"\xff" * 200 + name
            assert peer.ask(request(ADOPT, (), blob))[0] < 0, (place, counts)
    assert peer.ask(request(0, (3, 1, 10)))[0] == EBADF


def test_sizes_that_no_answer_has(peer: Machine) -> None:
    """Directories, lists, attributes, descriptions: the room is asked for, and not there."""
    folder = peer.call(257, HERE, ".", os.O_RDONLY | os.O_DIRECTORY, 0)
    for size in ((1 << 20) + 1, 1 << 31, 1 << 32, 1 << 62, -1):
        assert peer.ask(request(217, (folder, 1, size)))[0] < 0
        assert peer.call(194, ".", 1, size) == EINVAL
        assert peer.call(267, HERE, "x", 1, size) == EINVAL
        assert peer.call(191, ".", 1, 1, size, tail=b"user.x\0") == EINVAL
    assert peer.ask(request(39))[0] >= ENOSYS


@pytest.mark.parametrize("call", [0, 17, 39, 257, 262, 1003, DESCRIBE, IMAGE_BEGIN, LIMIT_FILES])
def test_questions_that_want_no_answer(peer: Machine, call: int) -> None:
    """A machine that only asks could fill the shadow with what it never reads."""
    assert peer.is_cut(REQUEST.pack(0, NO_ANSWER, call, 0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize("size", [1 << 27, 1 << 31, (1 << 32) - 1])
def test_a_frame_larger_than_any(peer: Machine, size: int) -> None:
    assert peer.is_cut(request(1, (3, 1, 1), b"", size=size))


def test_the_wrong_order(peer: Machine, tmp_path: Path) -> None:
    """Cancelling what was not asked, going on after the end, a greeting behind it."""
    for number in (0, 7, 0x3FFF, 0xFFFF):
        peer.socket.sendall(request(CANCEL, (number,)))
    assert peer.call(257, HERE, "own", os.O_RDWR | os.O_CREAT, 0o600) == 0
    assert peer.ask(request(EXIT, (0,)))[0] == 0
    assert peer.ask(hello())[0] == EPROTO
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own"]


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """So many as the limits of a family need."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < MANY:
        pytest.skip(f"a process may have {before[1]} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], MANY), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def all_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_open_files_that_it_sends_itself_and_closes(peer: Machine, many_descriptors: None) -> None:
    """They cost the process at home a descriptor each, and the job none."""
    assert peer.ask(request(LIMIT_FILES, (100,)))[0] == 0
    before, sent = all_descriptors(), 0
    pairs = [struct.unpack("<2i", peer.ask(request(53, (socket.AF_UNIX, socket.SOCK_STREAM, 0, 1)))[1])
             for _ in range(20)]
    result = 0
    while result >= 0 or (result == EAGAIN and len(pairs) > 1):
        if result == EAGAIN:
            pairs.pop()
        file = peer.call(257, HERE, ".", os.O_RDONLY | os.O_DIRECTORY, 0)
        words = (pairs[-1][0], socket.MSG_DONTWAIT, 0, 1, 1)
        result = peer.ask(request(46, words, struct.pack("<i", file) + b"x"))[0]
        sent += result > 0
        assert peer.ask(request(3, (file,)))[0] == 0
        assert sent < 1000
    assert result == ETOOMANYREFS
    assert 90 < sent < 110
    assert all_descriptors() - before < 2 * 20 + 110 + 10


def test_connections_that_nobody_accepts_and_it_closes(peer: Machine, many_descriptors: None) -> None:
    before, made, result = all_descriptors(), 0, 0
    for number in range(40):
        listener = peer.ask(request(41, (socket.AF_UNIX, socket.SOCK_STREAM, 0)))[0]
        name = struct.pack("<H", socket.AF_UNIX) + b"\0listener%d" % number
        assert peer.ask(request(49, (listener, len(name)), name))[0] == 0
        assert peer.ask(request(50, (listener, 1 << 20)))[0] == 0
        while result >= 0 and made < MANY:
            client = peer.ask(request(41, (socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK, 0)))[0]
            result = peer.ask(request(42, (client, len(name)), name))[0] if client >= 0 else client
            made += result >= 0
            if client >= 0:
                assert peer.ask(request(3, (client,)))[0] == 0
        if result != EAGAIN:  # else this listener has all that it takes
            break
        result = 0
    assert result == ENFILE
    assert made < 2 * 4096 + 10
    assert all_descriptors() - before < MANY


def test_bytes_that_nobody_reads(peer: Machine, many_descriptors: None) -> None:
    """All sockets of a job hold what some hundreds would; then senders wait, and what is read makes room again."""
    block = bytes(100_000)

    def send(to: int, data: bytes = block, kind: int = socket.MSG_DONTWAIT) -> int:
        return peer.ask(request(46, (to, kind, 0, 0, len(data)), data))[0]

    def fill(to: int) -> int:
        held = 0
        while (sent := send(to)) > 0:
            held += sent
        assert sent == EAGAIN
        return held

    def pair(kind: int) -> tuple[int, int]:
        one, other = struct.unpack("<2i", peer.ask(request(53, (socket.AF_UNIX, kind, 0, 1)))[1])
        return one, other

    ends = [end for number in range(500)
            for end in pair((socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM)[number % 3])]
    held = [fill(end) for end in ends]
    assert held[0] > 100_000
    assert MOST_HELD * 3 / 4 < sum(held) < MOST_HELD + 8192 * 1000
    assert 0 < held[-4] <= 4096  # of a stream, a little at a time
    assert held[-1] == 0  # a packet is all or nothing
    assert send(ends[-1], b"small") == 5
    assert send(ends[-1], b"small") == EAGAIN
    late = ends[996]  # the other end of a stream whose sender had to wait
    assert len(peer.ask(request(47, (late, 0, 0, 0, 4096)))[1]) > 4000
    assert send(ends[997]) > 0
    for end in ends:
        assert peer.ask(request(3, (end,)))[0] == 0
    assert fill(pair(socket.SOCK_STREAM)[0]) > 100_000


def test_empty_packets_count_too(peer: Machine, many_descriptors: None) -> None:
    """The kernel has something to remember of each; one that is cut short is gone all the same."""
    one, other = struct.unpack("<2i", peer.ask(request(53, (socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, 1)))[1])
    for _ in range(3):
        sent = 0
        while peer.ask(request(46, (one, socket.MSG_DONTWAIT, 0, 0, 0)))[0] == 0:
            sent += 1
            assert sent < 10_000
        assert sent > 10
        for _ in range(sent):
            assert peer.ask(request(47, (other, socket.MSG_DONTWAIT, 0, 0, 10)))[0] == 0
        assert peer.ask(request(46, (one, socket.MSG_DONTWAIT, 0, 0, 1000), bytes(1000)))[0] == 1000
        assert peer.ask(request(47, (other, socket.MSG_DONTWAIT, 0, 0, 10)))[0] == 10
        assert peer.ask(request(47, (other, socket.MSG_DONTWAIT, 0, 0, 10)))[0] == EAGAIN


def test_another_job_of_the_process_goes_on(tmp_path: Path) -> None:
    """Whatever ends one session: the other's descriptors, folder and mask are its own."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    with Machine(tmp_path / "a") as good:
        assert good.ask(hello())[0] == 0
        mine = good.call(257, HERE, "mine", os.O_RDWR | os.O_CREAT, 0o600)
        with Machine(tmp_path / "b") as bad:
            assert bad.ask(hello())[0] == 0
            assert bad.ask(request(95, (0o777,)))[0] >= 0
            assert bad.call(80, "/") == 0
            assert bad.ask(request(0, (mine, 1, 10)))[0] == EBADF
            assert bad.is_cut(request(1, (mine, 1, 1), b"", size=1 << 30))
        assert good.ask(request(1, (mine, 1, 4), b"mine"))[0] == 4
        assert good.call(258, HERE, "folder", 0o777) == 0
        assert (tmp_path / "a" / "folder").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "a" / "mine").read_text() == "mine"
