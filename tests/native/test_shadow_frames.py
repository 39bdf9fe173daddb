"""The shadow against a hostile runtime: whatever bytes come, it answers with an errno or ends that session."""

from __future__ import annotations

import os
import random
import select
import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from condor_actors.machine.native.shadow import EventKind

REQUEST = struct.Struct("<IHH6q")
ANSWER = struct.Struct("<IHHq")
HELLO, ADOPT, EXIT = 1000, 1007, 1002

PROGRAM = """
import sys, random
sys.path.insert(0, {root!r})
from tests.native.test_shadow_frames import attack
attack(int(sys.argv[1]), int(sys.argv[2]))
"""


def request(call: int, arguments: tuple[int, ...] = (), payload: bytes = b"", size: int | None = None) -> bytes:
    """Return one frame; SIZE may lie."""
    words = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    return REQUEST.pack(len(payload) if size is None else size, 7, call, *words) + payload


def hello() -> bytes:
    return request(HELLO, (1 << 20,), struct.pack("<4I", 2, 0, 4242, 0))


def random_frame(dice: random.Random) -> bytes:
    """Return a frame that looks like something: mostly known calls with nonsense inside.

    The only path it names is one of the working directory.
    """
    call = dice.choice([dice.randrange(460), dice.randrange(1000, 1024), dice.randrange(65536)])
    interesting = [0, 1, 2, 3, -1, -100, 4095, 4096, 5120, 1 << 20, (1 << 20) + 1, 1 << 31, 1 << 62, -(1 << 63)]
    arguments = tuple(dice.choice([*interesting, dice.randrange(-(1 << 63), 1 << 63)]) for _ in range(6))
    payload = dice.randbytes(dice.choice([0, 0, 1, 8, 16, 32, 100, 5000]))
    if dice.random() < 0.3:
        payload = b"scratch\0" + payload
    if call in (62, 231, 87, 263, 82, 316, 264):  # nothing may be removed or renamed by chance
        call = 257
    return request(call, arguments, payload)


def confine() -> None:
    """Let nothing but the working directory be within reach: hostile frames must not find the machine's files."""
    if os.geteuid() == 0:
        os.chmod(".", 0o777)
        os.chroot(".")
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def open_descriptors() -> int:
    """Return how many descriptors this process has; it may have no /proc."""

    def is_open(number: int) -> bool:
        try:
            os.fstat(number)
        except OSError:
            return False
        return True

    return sum(map(is_open, range(4096)))


def attack(seed: int, frames: int) -> None:
    """In a process of its own: sessions of 50 frames each; whatever happens, the process stays."""
    from condor_actors.machine.native.shadow import ShadowHost, Task

    host = ShadowHost()
    confine()
    dice = random.Random(seed)
    own = os.open("standard", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(frames // 50):
        ours, theirs = socket.socketpair()
        theirs.settimeout(60)
        host.open(ours, Task(program="x", arguments=["x"], environment={}, standard_fds=(own, own, own)))
        try:
            theirs.sendall(hello())
            theirs.setblocking(False)
            for _ in range(50):
                try:
                    theirs.send(random_frame(dice))
                    theirs.recv(1 << 20)
                except BlockingIOError:
                    continue
        except OSError:
            pass
        theirs.close()
        list(host.events())
    assert open_descriptors() < 500
    print("alive")


@pytest.mark.parametrize("seed", range(3))
def test_random_frames(seed: int, tmp_path: Path) -> None:
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(root=root), str(seed), "4000"],
        cwd=tmp_path, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, b"alive\n"), done.stderr.decode()[-2000:]


@pytest.mark.soak
def test_many_random_frames(tmp_path: Path) -> None:
    for seed in range(1000, 1040):
        folder = tmp_path / str(seed)
        folder.mkdir()
        test_random_frames(seed, folder)


class Peer:
    """The runtime's side of a session, by hand."""

    def __init__(self) -> None:
        from condor_actors.machine.native.shadow import ShadowHost, Task

        ours, self.socket = socket.socketpair()
        self.socket.settimeout(60)
        null = os.open("/dev/null", os.O_RDWR)  # only sane questions are asked here
        self.host = ShadowHost()
        task = Task(program="x", arguments=["x"], environment={"A": "b"}, standard_fds=(null, null, null))
        self.host.open(ours, task)
        os.close(null)
        self.over = False

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()
        self.wait_for_end()

    def wait_for_end(self) -> None:
        while not self.over:
            assert select.select([self.host], [], [], 60)[0]
            self.over = any(event.kind is EventKind.ENDED for event in self.host.events())

    def ask(self, frame: bytes) -> tuple[int, bytes]:
        self.socket.sendall(frame)
        size, _id, _hints, result = ANSWER.unpack(self._exactly(ANSWER.size))
        return result, self._exactly(size)

    def ask_often(self, frame: bytes, times: int) -> None:
        for _ in range(times):
            self.ask(frame)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise ConnectionResetError
            data += piece
        return data


def test_nothing_before_the_greeting() -> None:
    with Peer() as peer, pytest.raises(ConnectionResetError):
        peer.ask(request(39))


def test_lengths_that_lie() -> None:
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        path = b"/dev/null\0"
        assert peer.ask(request(257, (-100, 10, 0, 0), path[:-1]))[0] == -14  # no end
        assert peer.ask(request(257, (-100, 10, 0, 0), b""))[0] == -14
        fd, _ = peer.ask(request(257, (-100, 10, 2, 0), path))
        assert fd == 3
        assert peer.ask(request(1, (fd, 100, 100), b"short"))[0] == -22
        assert peer.ask(request(1, (fd, 5, 5), b"short"))[0] == 5
        assert peer.ask(request(0, (fd, 1 << 40, 1 << 40)))[0] == -22
        assert peer.ask(request(0, (99, 10, 10)))[0] == -9
        assert peer.ask(request(ADOPT, (), b"nonsense" * 10))[0] < 0
        peer.socket.sendall(request(1, (fd, 5, 5), b"", size=1 << 30))
        with pytest.raises(ConnectionResetError):
            peer._exactly(1)


def test_an_argument_that_is_longer_than_its_frame_is_not_read() -> None:
    """What lies behind the frame in the shadow's memory is not the program's."""
    efault, fsetxattr = -14, 190
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        fd, _ = peer.ask(request(257, (-100, 10, 2, 0), b"/dev/null\0"))
        for value in (b"", b"short"):
            assert peer.ask(request(fsetxattr, (fd, 10, 20, 100, 0), b"user.a\0" + value))[0] == efault


def test_a_second_greeting_is_refused() -> None:
    """A program must not make the shadow roll its files back while it runs."""
    eproto = -71
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        assert peer.ask(hello())[0] == eproto


def test_a_frame_in_small_pieces() -> None:
    with Peer() as peer:
        data = hello() + request(257, (-100, 10, 0, 0), b"/dev/null\0")
        for i in range(len(data)):
            peer.socket.sendall(data[i : i + 1])
        size, *_rest, result = ANSWER.unpack(peer._exactly(ANSWER.size))
        assert result == 0
        peer._exactly(size)
        assert ANSWER.unpack(peer._exactly(ANSWER.size))[-1] == 3


def described_file(path: bytes, flags: int) -> bytes:
    """Return what an image that has one open file says of it: the shadow opens it again at a restart."""
    head = struct.pack("<6IQ", 0x46534443, 1, 1, 0, 0o22, 2, 1) + b".\0"
    file = struct.pack("<4BIiIqII", 0, 0, 0, 0, 0, flags, 0o100644, 0, len(path), 0) + path
    return head + file + struct.pack("<3I", 3, 0, 0)


def test_the_shadows_own_memory_is_not_to_be_had() -> None:
    eacces = -13
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        threads = [f"/proc/{entry}/mem" for entry in os.listdir("/proc/self/task")]
        for name in ("/proc/self/mem", "/proc/thread-self/mem", *threads, "/proc/self/task/../mem"):
            path = name.encode() + b"\0"
            for flags in (os.O_RDONLY, os.O_RDWR):
                assert peer.ask(request(257, (-100, 0, flags, 0), path))[0] == eacces, name
                assert peer.ask(request(ADOPT, (), described_file(path, flags)))[0] == eacces, name
        directory, _ = peer.ask(request(257, (-100, 0, os.O_PATH, 0), b"/proc/self\0"))
        assert peer.ask(request(257, (directory, 0, os.O_RDONLY, 0), b"mem\0"))[0] == eacces
        assert peer.ask(request(257, (-100, 0, os.O_RDONLY, 0), b"/proc/meminfo\0"))[0] >= 0


def test_a_flood_of_events_ends_the_session() -> None:
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            peer.ask_often(request(1018), 100000)


def test_what_was_said_before_the_end_is_done(tmp_path: Path) -> None:
    path = bytes(tmp_path / "file") + b"\0"
    with Peer() as peer:
        assert peer.ask(hello())[0] == 0
        fd, _ = peer.ask(request(257, (-100, 0, os.O_RDWR | os.O_CREAT, 0o600), path))
        ask = request(63, (1,))  # uname: answers that nobody reads, until none more can be sent
        write = REQUEST.pack(4, 0xFFFF, 1, fd, 1, 4, 0, 0, 0) + b"said"
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        peer.socket.sendall(ask * 1500 + write)
        peer.socket.close()  # as the kernel does for a program that is killed
        peer.wait_for_end()
        assert (tmp_path / "file").read_bytes() == b"said"
