"""job_root: what the program gets at without a name, and names that change their meaning meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.native.test_job_root import EACCES, ELOOP, ENOENT, HERE, Confined, places, snapshot
from tests.native.test_shadow_frames import ADOPT, described_file, hello, request

__all__ = ["places"]
EMPTY_PATH = 0x1000


@pytest.fixture
def peer(places: Path) -> Iterator[Confined]:
    with Confined(places) as it:
        assert it.ask(hello())[0] == 0
        yield it


def test_a_descriptor_without_a_name_changes_nothing_outside(places: Path) -> None:
    secret = os.open(places / "outside" / "secret", os.O_RDONLY)
    with Confined(places, (secret, -1, -1)) as peer:  # its standard input
        assert peer.ask(hello())[0] == 0
        above = peer.call(257, HERE, "..", os.O_PATH, 0)
        assert above >= 0
        before, around = snapshot(places / "outside"), places.stat()
        for descriptor in (0, above):
            assert peer.call(280, descriptor, "", 1, EMPTY_PATH, tail=bytes(32)) == EACCES
            assert peer.call(260, descriptor, "", 1, 1, EMPTY_PATH) == EACCES
        assert peer.call(265, 0, "", HERE, "stolen", EMPTY_PATH) == EACCES
        assert snapshot(places / "outside") == before
        assert (places.stat().st_mtime_ns, places.stat().st_gid) == (around.st_mtime_ns, around.st_gid)
        assert peer.call(262, 0, "", 1, EMPTY_PATH) == 0
        own = peer.call(257, HERE, "file", os.O_RDWR, 0)
        assert peer.call(280, own, "", 1, EMPTY_PATH, tail=bytes(32)) == 0
    os.close(secret)


def test_nameless_files_of_other_processes(places: Path, peer: Confined) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"secret")
    deleted = os.open(places / "outside" / "secret", os.O_RDWR)
    (places / "outside" / "secret").unlink()
    memory = os.memfd_create("secret")
    for descriptor in (reading, writing, deleted, memory):
        name = f"/proc/self/fd/{descriptor}"  # of the shadow's process, here the test's own
        for flags in (os.O_RDONLY | os.O_NONBLOCK, os.O_RDWR | os.O_NONBLOCK, os.O_PATH):
            assert peer.call(257, HERE, name, flags, 0) == ELOOP, name
            assert peer.ask(request(ADOPT, (), described_file(os.fsencode(name) + b"\0", flags)))[0] == EACCES, name
    for descriptor in (reading, writing, deleted, memory):
        os.close(descriptor)


def test_a_name_that_becomes_a_link_at_the_wrong_moment(places: Path, peer: Confined) -> None:
    """Another member of the family makes and removes it, as fast as it can."""
    over = threading.Event()
    name = places / "root" / "racing"

    def race() -> None:
        while not over.is_set():
            name.symlink_to(places / "outside" / "secret")
            name.unlink()

    before = snapshot(places / "outside")
    racer = threading.Thread(target=race)
    racer.start()
    results = set()
    for _ in range(4000):
        results |= {peer.call(76, "racing", 0), peer.call(268, HERE, "racing", 0o777)}
    over.set()
    racer.join()
    assert results <= {EACCES, ENOENT}
    assert snapshot(places / "outside") == before


def test_a_slash_behind_a_directorys_name(places: Path, peer: Confined) -> None:
    assert peer.call(258, HERE, "made/", 0o755) == 0
    assert peer.call(264, HERE, "made/", HERE, "other/") == 0
    assert peer.call(262, HERE, "other/", 1, 0x100) == 0
    assert peer.call(263, HERE, "other/", 0x200) == 0
    assert not (places / "root" / "other").exists()
    (places / "root" / "link").symlink_to(places / "outside")
    assert peer.call(263, HERE, "link/", 0x200) < 0
    assert peer.call(262, HERE, "link/", 1, 0x100) == EACCES
    assert peer.call(257, HERE, "new/", os.O_CREAT | os.O_RDWR, 0o600) == -errno.EISDIR
    assert peer.call(262, HERE, "new/", 1, 0x100) == ENOENT


def test_the_status_of_a_directory_is_its_own(places: Path, peer: Confined) -> None:
    """Also where the call follows no link, as find and ls ask."""
    for name in ("sub", "sub/", ".", "sub/..", "./", f"{places}/root/"):
        _, found = peer.ask(request(262, (HERE, 1, 1, 0x100), os.fsencode(name) + b"\0"))
        assert stat.S_ISDIR(struct.unpack_from("<I", found, 24)[0]), name


@pytest.mark.parametrize("changed", ["undone", "kept"])
def test_a_journal_does_not_follow_what_is_swapped(places: Path, changed: str) -> None:
    """The directory of a recorded name is a link now, and back: a rollback must not write through it."""
    root = places / "root"
    (root / "sub" / "x").write_text("old")
    journal = places / "image.undo"
    journal.mkdir()
    path = os.fsencode(root / "sub" / "x") + b"\0"
    record = struct.pack("<4I2Q2I4q", 2, len(path), 0, 0, 0, 3, 0, 0, 0, 0, 0, 0) + path + b"new"
    (journal / "journal").write_bytes(struct.pack("<2IQ", 0x4F444E55, 1, 1) + record)
    if changed == "kept":
        shutil.rmtree(root / "sub")
        (places / "outside" / "x").write_text("old")
        (root / "sub").symlink_to(places / "outside")
    with Confined(places) as peer:
        assert peer.ask(hello())[0] == 0
        peer.ask(request(ADOPT, (), described_file(os.fsencode(root / "file") + b"\0", os.O_RDONLY)))
        found = (root if changed == "undone" else places / "outside") / ("sub/x" if changed == "undone" else "x")
        assert found.read_text() == ("new" if changed == "undone" else "old")
