"""Links under /proc lead past every name to what a process has open: no call of a program at home follows one.

The table is native/syscalls.tbl's: a call with a name that is not tried here fails the test.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.shadow import ShadowHost, Task
from tests.native.attacks import NATIVE
from tests.native.test_job_root import HERE, Confined, snapshot
from tests.native.test_shadow_frames import hello, request

ELOOP = -40
NOFOLLOW, FOLLOW, DO_NOT_FOLLOW = 0x100, 0x400, 0x2000000
WATCHES = 3  # the first descriptor behind the standard ones
TIMES = bytes(32)
ATTRIBUTE = b"user.x\0"

FOLLOWING: dict[str, list[tuple[int, tuple[int | str, ...], bytes]]] = {
    "openat": [(257, (HERE, "WAY", flags, 0o600), b"") for flags in (
        os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_PATH, os.O_CREAT | os.O_RDWR)],
    "truncate": [(76, ("WAY", 0), b"")],
    "chdir": [(80, ("WAY",), b"")],
    "utime": [(132, ("WAY", 1), bytes(16))],
    "statfs": [(137, ("WAY", 1), b"")],
    "setxattr": [(188, ("WAY", 1, 1, 1, 0), ATTRIBUTE + b"v")],
    "getxattr": [(191, ("WAY", 1, 1, 100), ATTRIBUTE)],
    "listxattr": [(194, ("WAY", 1, 100), b"")],
    "removexattr": [(197, ("WAY", 1), ATTRIBUTE)],
    "fchownat": [(260, (HERE, "WAY", 1, 1, 0), b"")],
    "futimesat": [(261, (HERE, "WAY", 1), TIMES)],
    "newfstatat": [(262, (HERE, "WAY", 1, 0), b"")],
    "linkat": [(265, (HERE, "WAY", HERE, "stolen", FOLLOW), b"")],
    "fchmodat": [(268, (HERE, "WAY", 0o777), b"")],
    "faccessat": [(269, (HERE, "WAY", 0), b"")],
    "utimensat": [(280, (HERE, "WAY", 1, 0), TIMES)],
    "statx": [(332, (HERE, "WAY", 0, 0x7FF, 1), b"")],
    "faccessat2": [(439, (HERE, "WAY", 0, 0), b"")],
    "inotify_add_watch": [(254, (WATCHES, "WAY", 2), b"")],
}
"""WAY is the name; it is followed to its end."""

STAYING: dict[str, list[tuple[int, tuple[int | str, ...], bytes]]] = {
    "lsetxattr": [(189, ("WAY", 1, 1, 1, 0), ATTRIBUTE + b"v")],
    "lgetxattr": [(192, ("WAY", 1, 1, 100), ATTRIBUTE)],
    "llistxattr": [(195, ("WAY", 1, 100), b"")],
    "lremovexattr": [(198, ("WAY", 1), ATTRIBUTE)],
    "mkdirat": [(258, (HERE, "WAY", 0o777), b"")],
    "mknodat": [(259, (HERE, "WAY", 0o100666, 0), b"")],
    "unlinkat": [(263, (HERE, "WAY", 0), b""), (263, (HERE, "WAY", 0x200), b"")],
    "renameat": [(264, (HERE, "WAY", HERE, "stolen"), b""), (264, (HERE, "file", HERE, "WAY"), b"")],
    "renameat2": [(316, (HERE, "WAY", HERE, "stolen", flags), b"") for flags in (0, 1, 2)]
    + [(316, (HERE, "file", HERE, "WAY", flags), b"") for flags in (0, 1, 2)],
    "linkat": [(265, (HERE, "WAY", HERE, "stolen", 0), b""), (265, (HERE, "file", HERE, "WAY", 0), b"")],
    "symlinkat": [(266, ("x", HERE, "WAY"), b"")],
    "readlinkat": [(267, (HERE, "WAY", 1, 100), b"")],
    "fchownat": [(260, (HERE, "WAY", 1, 1, NOFOLLOW), b"")],
    "newfstatat": [(262, (HERE, "WAY", 1, NOFOLLOW), b"")],
    "utimensat": [(280, (HERE, "WAY", 1, NOFOLLOW), TIMES)],
    "statx": [(332, (HERE, "WAY", NOFOLLOW, 0x7FF, 1), b"")],
    "faccessat2": [(439, (HERE, "WAY", 0, NOFOLLOW), b"")],
    "inotify_add_watch": [(254, (WATCHES, "WAY", 2 | DO_NOT_FOLLOW), b"")],
    "openat": [(257, (HERE, "WAY", os.O_RDONLY | os.O_NOFOLLOW, 0), b"")],
}
"""The directory of WAY is found by the link; its last part is not followed."""


class AtHome(Confined):
    """A hostile runtime whose program may use what its owner may."""

    def __init__(self, places: Path, *, journal: bool = False) -> None:
        ours, self.socket = socket.socketpair()
        self.socket.settimeout(60)
        self.host, self.over = ShadowHost(), False
        self.host.open(ours, Task(program="x", arguments=["x"], environment={}, directory=str(places / "root"),
                                  image=str(places / "image"), journal=journal, journal_from_start=journal))


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """What the process at home has open, and the program's own folder."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "file").write_text("mine")
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "secret").write_text("secret")
    return tmp_path


@pytest.fixture
def held(places: Path) -> Iterator[tuple[int, int]]:
    """Descriptors of that process: a file and a folder."""
    opened = os.open(places / "held" / "secret", os.O_RDWR), os.open(places / "held", os.O_PATH)
    yield opened
    for descriptor in opened:
        os.close(descriptor)


def calls_with_names() -> set[str]:
    """Those of the table that are done at home, and take the name of a file."""
    found = set()
    for line in (NATIVE / "syscalls.tbl").read_text().splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == "remote" and "path" in words[3:]:
            found.add(words[1])
    others = {"memfd_create", "fsetxattr", "fgetxattr", "fremovexattr", "mq_open", "mq_unlink"}  # names of other things
    return found - others


def test_every_call_with_a_name_is_in_the_table() -> None:
    assert calls_with_names() == FOLLOWING.keys() | STAYING.keys()


def ways_to(places: Path, file: int, folder: int, *, follows: bool) -> list[str]:
    """Names that lead over a link under /proc; those that end in one are for calls that follow it."""
    own, secret = os.getpid(), places / "held" / "secret"
    (places / "root" / "folder link").symlink_to(f"/proc/self/fd/{folder}")
    (places / "root" / "root link").symlink_to(f"/proc/{own}/root")
    through = [
        f"/proc/self/fd/{folder}/secret", f"/proc/{own}/fd/{folder}/secret", f"/proc/thread-self/fd/{folder}/secret",
        f"/proc/{own}/task/{own}/fd/{folder}/secret", f"/proc/self/root{secret}", f"/proc/{own}/root{secret}",
        f"/proc/{own}/cwd/../../../../../../../../../..{secret}", "folder link/secret",
        f"root link{secret}", "../root/folder link/../held/secret", f"/proc/self/task/../fd/{folder}/secret",
    ]
    if not follows:
        return through
    (places / "root" / "link").symlink_to(f"/proc/self/fd/{file}")
    (places / "root" / "link to it").symlink_to("link")
    return [*through, f"/proc/self/fd/{file}", f"/proc/{own}/fd/{file}", f"/proc/thread-self/fd/{file}", "link",
            "link to it", "/proc/self/exe", "/proc/self/cwd", "/proc/self/root", "/dev/fd/0"]


@pytest.mark.parametrize("table", [FOLLOWING, STAYING], ids=["following", "staying"])
@pytest.mark.parametrize("journal", [False, True], ids=["plain", "journal"])
def test_no_call_follows_one(places: Path, held: tuple[int, int],
                             table: dict[str, list[tuple[int, tuple[int | str, ...], bytes]]], journal: bool) -> None:
    ways = ways_to(places, *held, follows=table is FOLLOWING)
    before = snapshot(places)
    with AtHome(places, journal=journal) as peer:
        assert peer.ask(hello())[0] == 0
        assert peer.call(294, 0) == WATCHES
        for way in ways:
            for name, calls in table.items():
                for number, words, tail in calls:
                    said = peer.call(number, *[way if word == "WAY" else word for word in words], tail=tail)
                    assert said == ELOOP, (name, way, words)
    after = snapshot(places)
    assert {path: facts for path, facts in after.items() if "/image" not in path} == before


def test_what_is_no_such_link_is_as_ever(places: Path) -> None:
    """The rest of /proc, links of other kinds, and calls that do not follow."""
    with AtHome(places) as peer:
        assert peer.ask(hello())[0] == 0
        (places / "root" / "link").symlink_to("file")
        (places / "root" / "dangling").symlink_to("made")
        for way in ("file", "link", "./link", str(places / "root" / "link"), "../root/file", "//proc/self/../version"):
            assert peer.call(262, HERE, way, 1, 0) == 0, way
            assert peer.call(269, HERE, way, 4) == 0, way
        assert peer.call(268, HERE, "link", 0o640) == 0
        assert (places / "root" / "file").stat().st_mode & 0o777 == 0o640
        assert peer.call(76, "link", 2) == 0
        assert (places / "root" / "file").read_text() == "mi"
        assert peer.call(257, HERE, "dangling", os.O_CREAT | os.O_RDWR, 0o600) >= 0
        assert (places / "root" / "made").exists()
        assert peer.call(264, HERE, "link", HERE, "renamed") == 0
        assert (places / "root" / "renamed").is_symlink()
        assert peer.call(267, HERE, "renamed", 1, 100) == len("file")
        assert peer.call(262, HERE, "nothing", 1, 0) == -2
        assert peer.call(262, HERE, "file/", 1, 0) == -20
        assert peer.call(258, HERE, "new/", 0o755) == 0
        assert peer.call(80, "new") == 0
        reached, found = peer.ask(request(79, (1, 1000)))
        assert found[:reached].rstrip(b"\0") == os.fsencode(places / "root" / "new")
        assert peer.call(263, HERE, "../new", 0x200) == 0


def test_going_back_follows_none_either(places: Path, held: tuple[int, int]) -> None:
    """A folder that was the program's own when a change was noted, and is a link when it is undone."""
    (places / "root" / "folder").mkdir()
    (places / "root" / "folder" / "secret").write_text("own")
    with AtHome(places, journal=True) as peer:
        assert peer.ask(hello())[0] == 0
        assert peer.call(268, HERE, "folder/secret", 0o666) == 0
        assert peer.call(76, "folder/secret", 0) == 0
        descriptor = peer.call(257, HERE, "folder/new", os.O_CREAT | os.O_RDWR, 0o600)
        assert descriptor >= 0
    (places / "root" / "folder").rename(places / "root" / "away")
    (places / "root" / "folder").symlink_to(f"/proc/self/fd/{held[1]}")
    before = snapshot(places / "held")
    (places / "held" / "new").write_text("stays")
    with AtHome(places, journal=True) as peer:
        assert peer.ask(hello())[0] == 0
    assert (places / "held" / "new").read_text() == "stays"
    (places / "held" / "new").unlink()
    assert {path: facts[:4] for path, facts in snapshot(places / "held").items()} == {
        path: facts[:4] for path, facts in before.items()}
    assert re.fullmatch("secret", (places / "held" / "secret").read_text())
