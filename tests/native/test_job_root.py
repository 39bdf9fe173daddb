"""job_root: the program uses files below one directory, and of the rest reads what every program needs."""

from __future__ import annotations

import os
import shutil
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, MOVED, Chain
from tests.native.conftest import finished, tool
from tests.native.test_shadow_frames import ADOPT, Peer, described_file, hello, request

EACCES, ELOOP, ENOENT, EPROTO = -13, -40, -2, -71
HERE = -100


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """Return a folder with a root, what is in it, and what is beside it."""
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (tmp_path / "rootless").write_text("its name begins like the root's")
    (tmp_path / "root" / "file").write_text("mine")
    (tmp_path / "root" / "way out").symlink_to(tmp_path / "outside" / "secret")
    (tmp_path / "root" / "way in").symlink_to("sub/../file")
    (tmp_path / "root" / "up").symlink_to("..")
    (tmp_path / "root" / "dangling").symlink_to(tmp_path / "outside" / "new")
    return tmp_path


class Confined(Peer):
    """A hostile runtime whose session has a root."""

    def __init__(self, places: Path, standard: tuple[int, int, int] = (-1, -1, -1)) -> None:
        import socket

        ours, self.socket = socket.socketpair()
        self.socket.settimeout(60)
        self.host = ShadowHost()
        self.over = False
        task = Task(
            program="x", arguments=["x"], environment={}, directory=str(places / "root"),
            job_root=str(places / "root"), image=str(places / "image"), standard_fds=standard,
        )  # fmt: skip
        self.host.open(ours, task)

    def call(self, number: int, *arguments: int | str, tail: bytes = b"") -> int:
        """Ask NUMBER; texts are paths."""
        payload = b"".join(os.fsencode(a) + b"\0" for a in arguments if isinstance(a, str)) + tail
        numbers = tuple(1 if isinstance(a, str) else a for a in arguments)
        return self.ask(request(number, numbers, payload))[0]


@pytest.fixture
def peer(places: Path) -> Iterator[Confined]:
    with Confined(places) as it:
        assert it.ask(hello())[0] == 0
        yield it


def snapshot(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else None
        found[str(path)] = (status.st_mode, status.st_uid, status.st_mtime_ns, status.st_nlink, content)
    return found


def ways(places: Path) -> list[str]:
    """Return names of the secret, all outside."""
    secret = str(places / "outside" / "secret")
    return [
        secret, "way out", "../outside/secret", "up/outside/secret", "sub/../../outside/secret",
        f"{places}/root/../outside/secret", f"/proc/self/root{secret}", f"//{secret}", f"{places}/rootless",
        "up/outside/../outside/secret",
    ]  # fmt: skip


def test_nothing_outside_is_opened_looked_at_or_changed(places: Path, peer: Confined) -> None:
    before = snapshot(places / "outside")
    times, attribute, value = bytes(32), b"user.x\0", b"v"
    for way in ways(places):
        refused = ELOOP if way.startswith("/proc/") else EACCES
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_PATH, os.O_CREAT | os.O_RDWR):
            assert peer.call(257, HERE, way, flags, 0o600) == refused, (way, flags)
        follow = [
            (262, (HERE, way, 1, 0), b""), (332, (HERE, way, 0, 0x7FF, 1), b""), (269, (HERE, way, 0), b""),
            (268, (HERE, way, 0o777), b""), (260, (HERE, way, 1, 1, 0), b""), (280, (HERE, way, 1, 0), times),
            (76, (way, 0), b""), (80, (way,), b""), (137, (way, 1), b""),
            (188, (way, 1, 1, 1, 0), attribute + value), (191, (way, 1, 1, 100), attribute), (194, (way, 1, 100), b""),
        ]  # fmt: skip
        for number, arguments, tail in follow:
            assert peer.call(number, *arguments, tail=tail) == refused, (way, number)
    for way in ways(places):
        if way == "way out":
            continue  # the name itself is the program's own
        stay = [
            (263, (HERE, way, 0)), (264, (HERE, way, HERE, "stolen")), (264, (HERE, "file", HERE, way)),
            (265, (HERE, way, HERE, "stolen", 0)), (265, (HERE, "file", HERE, way, 0)), (258, (HERE, way + "2", 0o777)),
            (259, (HERE, way + "2", 0o10666, 0)), (266, ("x", HERE, way + "2")), (267, (HERE, way, 1, 100)),
            (316, (HERE, "file", HERE, way, 1)), (262, (HERE, way, 1, 0x100)),
        ]  # fmt: skip
        for number, words in stay:
            assert peer.call(number, *words) == (ELOOP if way.startswith("/proc/") else EACCES), (way, number)
    assert peer.call(265, HERE, "way out", HERE, "stolen", 0x400) == EACCES
    assert peer.call(257, HERE, "dangling", os.O_CREAT | os.O_RDWR, 0o600) in (EACCES, ELOOP)
    assert peer.call(257, HERE, "up", os.O_RDONLY | os.O_DIRECTORY, 0) == EACCES
    assert snapshot(places / "outside") == before
    assert not (places / "outside" / "new").exists()


def test_the_inside_is_as_ever(places: Path, peer: Confined) -> None:
    root = places / "root"
    for name in ("file", "way in", str(root / "file"), "sub/../file", "./file", f"{places}/outside/../root/file"):
        descriptor = peer.call(257, HERE, name, os.O_RDWR | os.O_CREAT, 0o600)
        assert descriptor >= 0, name
        assert peer.ask(request(0, (descriptor, 1, 100)))[1] == b"mine"
        assert peer.call(3, descriptor) == 0
        assert peer.call(262, HERE, name, 1, 0) == 0
    assert peer.call(262, HERE, "nothing", 1, 0) == ENOENT
    assert peer.call(257, HERE, "new", os.O_RDWR | os.O_CREAT, 0o640) >= 0
    assert peer.call(257, HERE, "new", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640) == -17
    assert (root / "new").stat().st_mode & 0o777 == 0o640 & ~0o022
    assert peer.call(257, HERE, "way out", os.O_RDONLY | os.O_NOFOLLOW, 0) == ELOOP
    assert peer.call(267, HERE, "way out", 1, 200) == len(str(places / "outside" / "secret"))
    assert peer.call(262, HERE, "way out", 1, 0x100) == 0
    assert peer.call(258, HERE, "made/", 0o755) == 0
    assert peer.call(80, "made") == 0
    assert peer.call(264, HERE, "../new", HERE, "here") == 0
    assert peer.call(268, HERE, "here", 0o600) == 0
    assert peer.call(76, str(root / "made" / "here"), 7) == 0
    assert (root / "made" / "here").stat().st_size == 7
    assert peer.call(263, HERE, "here", 0) == 0
    assert peer.call(80, "..") == 0
    assert peer.call(80, "..") == EACCES
    assert peer.call(263, HERE, "made", 0x200) == 0
    assert peer.call(263, HERE, "way out", 0) == 0
    directory = peer.call(257, HERE, "sub", os.O_PATH, 0)
    assert peer.call(257, directory, "../file", os.O_RDONLY, 0) >= 0
    assert peer.call(257, directory, "../../outside/secret", os.O_RDONLY, 0) == EACCES
    assert peer.call(262, directory, "", 1, 0x1000) == 0
    assert peer.call(257, HERE, "/etc/passwd", os.O_RDONLY, 0) >= 0
    assert peer.call(257, HERE, "/dev/null", os.O_RDWR, 0) >= 0
    system = peer.call(257, HERE, "/usr/bin", os.O_RDONLY, 0)
    assert peer.call(91, system, 0o777) == EACCES
    assert peer.call(257, HERE, "/etc/passwd", os.O_RDWR, 0) == EACCES
    assert peer.call(262, HERE, str(places), 1, 0) == 0  # the way to it may be looked at
    assert peer.call(257, HERE, str(places), os.O_RDONLY, 0) == EACCES  # but not listed


def test_an_image_that_would_write_by_the_locks_of_a_file(places: Path, peer: Confined) -> None:
    """Locks are taken by an open file of their own, which may be written: no descriptor and no mapping gets it."""
    name = b"/etc/passwd\0"
    plain = struct.pack("<4BIiIqII", 0, 0, 0, 0, 0, os.O_RDONLY, 0o100644, 0, len(name), 0) + name
    records = struct.pack("<4BIiIqII", 9, 0, 0, 0, 0, os.O_RDWR, 0o100644, 0, len(name), 0) + name
    locks_at, mapped_at = 5120, 4096
    for place, answer in ((4, EPROTO), (mapped_at, EPROTO), (locks_at, 0)):
        head = struct.pack("<6IQ", 0x47534443, 2, 1 + (place < mapped_at), place >= mapped_at, 0o22, 2, 1) + b".\0"
        entries = struct.pack("<6I", 3, 0, 0, place, 1, 0)
        assert peer.ask(request(ADOPT, (), head + plain + records + entries))[0] == answer, place


def test_an_image_that_names_files_outside(places: Path, peer: Confined) -> None:
    secret = os.fsencode(places / "outside" / "secret") + b"\0"
    assert peer.ask(request(ADOPT, (), described_file(secret, os.O_RDONLY)))[0] == EACCES
    outside = os.fsencode(places / "outside") + b"\0"
    head = struct.pack("<6IQ", 0x46534443, 0, 0, 0, 0o22, len(outside), 1) + outside
    assert peer.ask(request(ADOPT, (), head))[0] == EACCES
    reached, found = peer.ask(request(79, (1, 1000)))  # getcwd: the working directory stayed
    assert found[:reached].rstrip(b"\0") == os.fsencode(places / "root")


def test_what_an_image_names_outside_is_not_even_opened(places: Path, peer: Confined) -> None:
    """Anyone who waits for a reader of a pipe would see one come, and go again."""
    os.mkfifo(places / "outside" / "pipe")
    with pytest.raises(OSError, match="No such device"):
        os.open(places / "outside" / "pipe", os.O_WRONLY | os.O_NONBLOCK)
    writer = threading.Thread(target=lambda: opened.append(os.open(places / "outside" / "pipe", os.O_WRONLY)))
    opened: list[int] = []
    writer.start()
    pipe = os.fsencode(places / "outside" / "pipe") + b"\0"
    for _ in range(100):
        assert peer.ask(request(ADOPT, (), described_file(pipe, os.O_RDONLY)))[0] == EACCES
    seen = list(opened)
    ours = os.open(places / "outside" / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(ours)
    os.close(opened[0])
    assert not seen


def test_a_whole_program_and_its_moves(places: Path) -> None:
    code = (
        "import json\nfound = []\n"
        f"for name in ['file', {str(places / 'outside' / 'secret')!r}, 'way out', '../outside/secret']:\n"
        "    try:\n        found.append(open(name).read())\n"
        "    except OSError as error:\n        found.append(error.errno)\n"
        "total = sum(i % 7 for i in range(6000000))\n"
        "open('result', 'w').write(json.dumps(found))\nprint(total)"
    )
    python = shutil.which("python3", path="/usr/bin") or pytest.skip("needs the system's Python")

    class Rooted(Chain):
        job_root = str(places / "root")

    chain = Rooted([python, "-c", code], places, seed=1, work=places / "root")
    chain.start(runtime_path())
    assert chain.process
    chain.expect(EventKind.STARTED)
    chain.host.vacate(chain.session)
    chain.process.send_signal(CHECKPOINT_SIGNAL)
    chain.expect(EventKind.IMAGE)
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == MOVED
    chain.start(str(chain.image))
    chain.expect(EventKind.ENDED)
    assert chain.process.wait(DEADLINE_S) == 0
    os.close(chain.output)
    assert (places / "root" / "result").read_text() == '["mine", 13, 13, 13]'


def test_the_command_line(places: Path) -> None:
    root, image = str(places / "root"), str(places / "image")
    words = ["run", "--job-root", root, "--image", image, "--"]
    assert finished(tool(*words, "/bin/cat", "file"), places / "root") == (0, b"mine", b"")
    status, out, err = finished(tool(*words, "/bin/cat", str(places / "outside" / "secret")), places / "root")
    assert (status, out) == (1, b"")
    assert b"Permission denied" in err
    status, _out, err = finished(tool("run", "--job-root", str(places / "none"), "--", "/bin/true"), places)
    assert (status, b"no such directory" in err) == (1, True)
    status, _out, err = finished(tool("run", "--job-root", root, "--", "/bin/true"), places / "root")
    assert b"outside" in err
    assert status != 0
    stranger = places / "outside" / "program"
    shutil.copy("/bin/true", stranger)
    status, _out, err = finished(tool(*words, str(stranger)), places / "root")
    assert (status, b"Permission denied" in err) == (115, True)
