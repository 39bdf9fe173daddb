"""The shadow where things are larger, or of another kind, than usual."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.shadow import ShadowHost, Task
from tests.native.test_shadow_frames import ADOPT, ANSWER, Peer, described_file, hello, request

HERE, IMAGE_BEGIN, IMAGE_END = -100, 1008, 1009
READ, WRITE, SHUTDOWN, SOCKETPAIR, FCNTL, PIPE, POLL, DESCRIBE = 0, 1, 48, 53, 72, 293, 1003, 1006
NOBODY = (65534, 65534)


class Keeping(Peer):
    """A session that has an image, and a journal."""

    def __init__(self, folder: Path) -> None:
        ours, self.socket = socket.socketpair()
        self.socket.settimeout(10)
        self.host = ShadowHost()
        self.over = False
        task = Task(program="x", arguments=["x"], environment={}, directory=str(folder), image=str(folder / "image"),
                    journal_from_start=True, identity=NOBODY if os.geteuid() == 0 else None, standard_fds=(-1, -1, -1))
        self.host.open(ours, task)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Return a place that someone without rights can reach."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.fixture
def peer(folder: Path) -> Iterator[Keeping]:
    with Keeping(folder) as it:
        assert it.ask(hello())[0] == 0
        yield it


def adopt(peer: Peer, folder: Path) -> int:
    (folder / "file").touch()
    return peer.ask(request(ADOPT, (), described_file(bytes(folder / "file") + b"\0", os.O_RDONLY)))[0]


def record(kind: int, path: Path, size: int) -> bytes:
    name = bytes(path) + b"\0"
    return struct.pack("<4I2Q2I4q", kind, len(name), 0, 0, 0, size, 0, 0, 0, 0, 0, 0) + name


def test_a_journal_of_more_than_one_read_gives(peer: Keeping, folder: Path) -> None:
    """A program may overwrite more than 2 GiB between two checkpoints."""
    made = [folder / "before", folder / "after"]
    for path in made:
        path.touch()
    with open(folder / "image.undo" / "journal", "wb") as journal:
        journal.write(struct.pack("<2IQ", 0x4F444E55, 1, 1) + record(3, made[0], 0))
        journal.write(record(2, folder / "no such file", 3 << 30))
        journal.seek(3 << 30, os.SEEK_CUR)
        journal.write(record(3, made[1], 0))
    assert adopt(peer, folder) == 0
    assert not any(path.exists() for path in made)


def test_a_pipe_that_is_truncated_is_not_waited_for(peer: Keeping, folder: Path) -> None:
    assert adopt(peer, folder) == 0  # from now on there is a journal
    os.mkfifo(folder / "pipe")
    assert peer.ask(request(76, (1, 0), bytes(folder / "pipe") + b"\0"))[0] == -22


def test_images_that_are_given_up_leave_no_descriptors(peer: Keeping) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        assert peer.ask(request(IMAGE_BEGIN))[0] == 0
        assert peer.ask(request(IMAGE_END, (1, 12345)))[0] < 0
    assert len(os.listdir("/proc/self/fd")) <= before + 1


def test_a_file_that_cannot_be_read_cannot_be_deleted(peer: Keeping, folder: Path) -> None:
    """Since it could not be brought back; and the program does not wait for room."""
    (folder / "closed").touch(mode=0)
    assert peer.ask(request(263, (HERE, 1, 0), b"closed\0"))[0] == -13
    assert (folder / "closed").exists()


def pipe_of(peer: Peer) -> tuple[int, int]:
    """Return the descriptors of a new pipe."""
    result, ends = peer.ask(request(PIPE, (1, os.O_NONBLOCK)))
    assert result == 0
    reading, writing = struct.unpack("<2i", ends)
    return reading, writing


def test_a_pipe_that_cannot_be_copied_whole_is_no_pipe_of_an_image(peer: Keeping) -> None:
    """The kernel gives a user's pipes two pages each when all have 64 MiB: the shadow's copy would be cut."""
    _reading, writing = pipe_of(peer)
    data = bytes(range(256)) * 128
    assert peer.ask(request(WRITE, (writing, len(data), len(data)), data))[0] == len(data)
    assert peer.ask(request(DESCRIBE, (1 << 20,)))[0] > len(data)
    for _ in range(100):
        _reading, more = pipe_of(peer)
        room, _ = peer.ask(request(FCNTL, (more, fcntl.F_GETPIPE_SZ)))
        peer.ask(request(FCNTL, (more, fcntl.F_SETPIPE_SZ, 1 << 20)))
    if room >= 1 << 16:
        pytest.skip("this machine's pipes are not limited")
    assert peer.ask(request(DESCRIBE, (1 << 20,)))[0] == -errno.EPERM


def test_a_pipe_comes_back_though_pipes_have_little_room(peer: Keeping) -> None:
    """An image's pipe asks for no more room than its content needs."""
    _reading, writing = pipe_of(peer)
    assert peer.ask(request(WRITE, (writing, 5000, 5000), bytes(5000)))[0] == 5000
    size, described = peer.ask(request(DESCRIBE, (1 << 20,)))
    assert size > 5000
    assert peer.ask(request(ADOPT, (), described))[0] == 0
    assert peer.ask(request(FCNTL, (writing, fcntl.F_GETPIPE_SZ, 0)))[0] < 1 << 20


def socket_pair_of(peer: Peer, kind: int) -> tuple[int, int]:
    """Return the descriptors of a new pair of sockets."""
    result, ends = peer.ask(request(SOCKETPAIR, (socket.AF_UNIX, kind | socket.SOCK_NONBLOCK, 0, 1)))
    assert result == 0
    one, other = struct.unpack("<2i", ends)
    return one, other


def come_back(peer: Peer) -> None:
    """Let the shadow describe what it has open, and make it again from that."""
    size, described = peer.ask(request(DESCRIBE, (1 << 21,)))
    assert size > 0
    assert peer.ask(request(ADOPT, (), described))[0] == 0


def say(peer: Peer, descriptor: int, *texts: bytes) -> None:
    for text in texts:
        assert peer.ask(request(WRITE, (descriptor, len(text), len(text)), text))[0] == len(text)


def heard(peer: Peer, descriptor: int, most: int = 1 << 16) -> list[bytes]:
    """Return what is read from DESCRIPTOR until nothing is there (or it ends, which the last, empty one tells)."""
    texts = []
    while True:
        size, text = peer.ask(request(READ, (descriptor, most, most)))
        if size < 0:
            assert size == -errno.EAGAIN
            return texts
        texts.append(text[:size])
        if not size:
            return texts


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_SEQPACKET])
def test_packets_of_a_pair_come_back_as_packets(kind: int, peer: Keeping) -> None:
    one, other = socket_pair_of(peer, kind)
    say(peer, one, b"first", b"the second" * 1000, b"3")
    say(peer, other, b"back")
    for _ in range(2):  # and once more: looking takes nothing out
        come_back(peer)
    assert heard(peer, other) == [b"first", b"the second" * 1000, b"3"]
    assert heard(peer, one) == [b"back"]
    say(peer, one, b"a", b"b")
    assert heard(peer, other) == [b"a", b"b"]


def test_packets_of_a_pipe_come_back_as_packets(peer: Keeping) -> None:
    result, ends = peer.ask(request(PIPE, (1, os.O_NONBLOCK | os.O_DIRECT)))
    assert result == 0
    reading, writing = struct.unpack("<2i", ends)
    say(peer, writing, b"first", b"2" * 4096, b"third")
    come_back(peer)
    say(peer, writing, b"fourth")
    assert heard(peer, reading) == [b"first", b"2" * 4096, b"third", b"fourth"]


def test_a_stream_that_was_shut_down_comes_back_with_its_end(peer: Keeping) -> None:
    one, other = socket_pair_of(peer, socket.SOCK_STREAM)
    say(peer, one, *[b"%06d" % number for number in range(100)])
    assert peer.ask(request(SHUTDOWN, (one, socket.SHUT_WR)))[0] == 0
    say(peer, other, b"still heard")
    come_back(peer)
    assert heard(peer, other) == [b"".join(b"%06d" % number for number in range(100)), b""]
    assert peer.ask(request(WRITE, (one, 1, 1), b"x"))[0] == -errno.EPIPE
    say(peer, other, b", and still")
    assert b"".join(heard(peer, one)) == b"still heard, and still"


def test_a_stream_with_more_than_sockets_have_room_for_at_first(peer: Keeping) -> None:
    one, other = socket_pair_of(peer, socket.SOCK_STREAM)
    written = 0
    while (size := peer.ask(request(WRITE, (one, 1 << 15, 1 << 15), bytes(1 << 15)))[0]) > 0:
        written += size
    come_back(peer)
    assert sum(map(len, heard(peer, other))) == written


def test_a_file_whose_packets_do_not_add_up(peer: Keeping) -> None:
    """An image is as hostile as who wrote it."""
    for content in (b"\xff\xff\xff\xff", b"\1", b"\5\0\0\0abc", b"\0\0\0\1" + b"x" * 100):
        for kind, number in ((2, socket.SOCK_SEQPACKET), (3, socket.SOCK_SEQPACKET), (3, socket.SOCK_DGRAM)):
            head = struct.pack("<6IQ", 0x46534443, 1, 1, 0, 0o22, 2, 1) + b".\0"
            file = struct.pack("<4BIiIqII", kind, 0, 0, 0, 7, 0, 0o100644, number, 0, len(content)) + content
            assert peer.ask(request(ADOPT, (), head + file + struct.pack("<3I", 3, 0, 0)))[0] < 0


@pytest.fixture
def few_files() -> Iterator[int]:
    """Let this process have no more files open than the number returned; poll takes no longer list than that."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    yield 256
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def poll(descriptors: list[int]) -> bytes:
    """Return a request that waits for input of any of DESCRIPTORS, forever."""
    asked = b"".join(struct.pack("<ihh", descriptor, 1, 0) for descriptor in descriptors)
    return request(POLL, (len(descriptors), -1), asked)


def test_waiting_for_more_than_the_shadow_may_have_open(peer: Keeping, few_files: int) -> None:
    """Two threads wait, and a third one's question is answered all the same."""
    reading, writing = pipe_of(peer)
    for _ in range(2):
        peer.socket.sendall(poll([reading] * (few_files - 50)))
    assert peer.ask(request(63, (1,)))[0] == 0
    assert peer.ask(request(WRITE, (writing, 1, 1), b"x"))[0] == 1
    for _ in range(2):
        size, *_rest, found = ANSWER.unpack(peer._exactly(ANSWER.size))
        peer._exactly(size)
        assert found == few_files - 50


def test_a_list_that_the_kernel_does_not_take(peer: Keeping, few_files: int) -> None:
    reading, _writing = pipe_of(peer)
    bad = [200] * errno.EINVAL
    assert peer.ask(poll([reading] * (few_files + 50) + bad))[0] == -errno.EINVAL
