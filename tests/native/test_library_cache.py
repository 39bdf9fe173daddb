"""Where an execute machine keeps contents of files: what is on a shelf is what its digest says, whatever happens."""

from __future__ import annotations

import hashlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from condor_actors.machine.standard.library_cache import HEAD, MAGIC, MOST_CONTENTS, LibraryCache, shelf_name
from condor_actors.machine.standard.run_library import MOST_ROOMS, MOST_STORED_AT_ONCE, RunLibrary

ALICE, BOB = shelf_name("alice@dom here"), shelf_name("bob@dom here")
LIMIT = 1 << 20
ROOT = Path(__file__).parents[2]


def content(number: int, size: int = 10_000) -> bytes:
    return random.Random(number).randbytes(size)


@contextmanager
def handed_over(*contents: bytes, digests: Sequence[bytes] = ()) -> Iterator[int]:
    """A file as a run makes it."""
    source = os.memfd_create("contents")
    for number, each in enumerate(contents):
        digest = digests[number] if digests else hashlib.sha256(each).digest()
        os.write(source, HEAD.pack(MAGIC, len(each), digest) + each)
    try:
        yield source
    finally:
        os.close(source)


def add(cache: LibraryCache, name: str, *contents: bytes) -> int:
    with handed_over(*contents) as source:
        return cache.add(name, source)


def lent(cache: LibraryCache, name: str) -> list[bytes]:
    """What a run can read, after it was compared."""
    cache.load(name)
    got = cache.lend(name)
    assert got is not None
    descriptor, shelf = got
    found = [os.pread(descriptor, each.size, each.offset) for each in shelf.contents]
    assert [hashlib.sha256(each).digest() for each in found] == [each.digest for each in shelf.contents]
    os.close(descriptor)
    return found


def taken(cache: LibraryCache) -> int:
    return sum(path.stat().st_size for path in cache.folder.iterdir())


def test_contents_stay_and_are_each_owners(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path / "cache", LIMIT)
    assert lent(cache, ALICE) == []
    assert add(cache, ALICE, content(1), content(2)) == 2
    assert add(cache, ALICE, content(2), content(3), content(3)) == 1
    assert lent(cache, ALICE) == [content(1), content(2), content(3)]
    assert lent(cache, BOB) == []
    assert lent(LibraryCache(tmp_path / "cache", LIMIT), ALICE) == [content(1), content(2), content(3)]
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in cache.folder.iterdir()} == {0o600}


def test_a_new_process_compares_first(tmp_path: Path) -> None:
    add(LibraryCache(tmp_path, LIMIT), ALICE, content(1))
    assert LibraryCache(tmp_path, LIMIT).lend(ALICE) is None


def test_a_content_under_a_wrong_digest_is_refused(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    good = hashlib.sha256(content(1)).digest()
    with handed_over(content(2), content(3), digests=[good, hashlib.sha256(content(3)).digest()]) as source:
        assert cache.add(ALICE, source) == 1
    assert lent(cache, ALICE) == [content(3)]
    assert cache.refused == 1


@pytest.mark.parametrize("said", [
    b"", b"x" * 1000, HEAD.pack(MAGIC, 1 << 63, bytes(32)), HEAD.pack(MAGIC, 0, bytes(32)),
    HEAD.pack(MAGIC, 50_000_000, bytes(32)), HEAD.pack(MAGIC, 100, bytes(32)) + b"short"])
def test_nonsense_is_not_kept(tmp_path: Path, said: bytes) -> None:
    cache = LibraryCache(tmp_path, 1 << 30)
    source = os.memfd_create("contents")
    os.write(source, said)
    assert cache.add(ALICE, source) == 0
    os.close(source)
    assert lent(cache, ALICE) == []


def test_the_same_content_again_and_again_is_not_looked_at_without_end(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    repeated = [b"x"] * (MOST_CONTENTS - 1)
    with handed_over(*repeated, content(1), content(2)) as source:
        assert cache.add(ALICE, source) == 2
    assert lent(cache, ALICE) == [b"x", content(1)]


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    """A run can make its file as large as it likes: it says what is in it, and that is bounded."""
    cache = LibraryCache(tmp_path, 1 << 40)
    source = os.memfd_create("contents")
    at, size = 0, 60 << 20
    for number in range(4):
        os.pwrite(source, HEAD.pack(MAGIC, size, bytes([number]) * 32), at)
        at += HEAD.size + size
    os.ftruncate(source, 1 << 50)
    assert cache.add(ALICE, source) == 0
    assert cache.refused <= 2
    os.close(source)


def test_the_limit_holds_and_what_was_used_last_stays(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    first = content(0)
    add(cache, ALICE, first)
    for number in range(1, 300):
        got = cache.lend(ALICE)
        assert got is not None
        os.close(got[0])
        cache.note_used(next(each for each in got[1].contents if each.digest == hashlib.sha256(first).digest()))
        assert add(cache, ALICE, content(number)) == 1
        assert taken(cache) <= LIMIT
    found = lent(cache, ALICE)
    assert first in found
    assert content(299) in found
    assert content(1) not in found


def test_nobody_keeps_others_out_by_filling_their_own_shelf(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, BOB, *(content(number) for number in range(10)))
    for number in range(100, 500):
        add(cache, ALICE, content(number))
    assert len(lent(cache, BOB)) == 10
    assert taken(cache) <= LIMIT


def test_runs_go_on_with_a_shelf_that_was_made_smaller(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, ALICE, content(1), content(2))
    got = cache.lend(ALICE)
    assert got is not None
    for number in range(3, 300):
        add(cache, ALICE, content(number))
    assert [os.pread(got[0], each.size, each.offset) for each in got[1].contents] == [content(1), content(2)]
    os.close(got[0])


def test_a_limit_that_is_lowered_holds_for_what_is_there(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, ALICE, *(content(number) for number in range(50)))
    cache.limit_bytes = 200_000
    cache.trim()
    assert 0 < taken(cache) <= 200_000
    assert set(lent(cache, ALICE)) <= {content(number) for number in range(50)}
    cache.limit_bytes = 0
    cache.trim()
    assert taken(cache) == 0


def test_more_than_half_of_the_limit_is_not_kept(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    with pytest.raises(OSError, match="half"):
        add(cache, ALICE, content(1, LIMIT * 2 // 3))


def test_others_keep_the_rest_of_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = os.statvfs(tmp_path)
    nearly_full = os.statvfs_result((*disk[:3], disk[3], disk.f_blocks // 25, *disk[5:]))
    monkeypatch.setattr(os, "statvfs", lambda path: nearly_full)
    with pytest.raises(OSError, match="No space"):
        add(LibraryCache(tmp_path, LIMIT, floor_bytes=1 << 60), ALICE, content(1))
    assert add(LibraryCache(tmp_path, LIMIT, floor_bytes=4096), ALICE, content(1)) == 1


def test_a_disk_that_is_full_in_the_middle_leaves_what_was_there(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, ALICE, content(1))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    with handed_over(content(2), content(3, 50_000)) as source:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, hard))
        try:
            with pytest.raises(OSError, match="too large"):
                cache.add(ALICE, source)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, before)
    assert lent(cache, ALICE) == [content(1), content(2)]
    assert lent(LibraryCache(tmp_path, LIMIT), ALICE) == [content(1), content(2)]


@pytest.mark.parametrize("at", [8, 20, 70, 5000])
def test_damage_is_found(tmp_path: Path, at: int) -> None:
    """In a header or in a content: by this process, and by the next."""
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, ALICE, content(1), content(2))
    with (tmp_path / f"{ALICE}.contents").open("r+b") as file:
        file.seek(at)
        file.write(b"?")
    assert cache.lend(ALICE) is None
    assert set(lent(cache, ALICE)) <= {content(2)}
    assert set(lent(LibraryCache(tmp_path, LIMIT), ALICE)) <= {content(2)}
    assert add(cache, ALICE, content(1)) == 1
    assert content(1) in lent(cache, ALICE)


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    cache = LibraryCache(tmp_path / "cache", LIMIT)
    cache.folder.mkdir()
    (cache.folder / f"{ALICE}.contents").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        cache.lend(ALICE)
    with pytest.raises(OSError, match="symbolic links"):
        add(cache, ALICE, content(1))
    assert elsewhere.read_bytes() == b"mine"


def test_what_a_run_says_is_checked(tmp_path: Path) -> None:
    cache = LibraryCache(tmp_path, LIMIT)
    add(cache, ALICE, content(1))
    lent(cache, ALICE)
    waiting: list[Deferred[None]] = []

    def in_thread(function: Callable[..., object], *words: object) -> Deferred[None]:
        waiting.append(Deferred())
        return waiting[-1].addCallback(lambda _: function(*words))

    run = RunLibrary(cache, "alice@dom here", in_thread, Logger())
    for descriptor in run.open().values():
        os.close(descriptor)
    for number in (-1, 1, 1 << 62, 0):
        run.used(number)
    assert cache.hits == 1
    run.new()  # of nothing
    os.close(run.room())
    os.close(run.room())
    run.new()
    run.new()
    for _ in range(MOST_STORED_AT_ONCE - 1):
        os.close(run.room())
        run.new()
    assert len(waiting) == 1  # one after the other
    with pytest.raises(BlockingIOError):
        run.room()
    for number in range(MOST_STORED_AT_ONCE):
        waiting[number].callback(None)
    for _ in range(MOST_ROOMS - 1 - MOST_STORED_AT_ONCE):
        os.close(run.room())
    with pytest.raises(BlockingIOError):
        run.room()
    run.close()


ADDS_WITHOUT_END = """
import sys
from pathlib import Path
from condor_actors.machine.standard.library_cache import LibraryCache
from tests.native.test_library_cache import ALICE, add, content
cache = LibraryCache(Path(sys.argv[1]), 3 << 20)
for number in range(1, 1 << 40):
    add(cache, ALICE, content(number, 40_000), content(-number, 3_000))
    print(number, flush=True)
"""


def test_a_process_that_is_killed_while_it_stores_leaves_nothing_wrong(tmp_path: Path) -> None:
    chance = random.Random(3)
    folder = tmp_path / "cache"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for turn in range(8):
        with subprocess.Popen([sys.executable, "-c", ADDS_WITHOUT_END, str(folder)], stdout=subprocess.PIPE,
                              env=environment) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(1, 120)):
                assert process.stdout.readline()
            time.sleep(chance.random() / 1000)  # anywhere in the next store
            process.kill()
        cache = LibraryCache(folder, 3 << 20)
        cache.trim()  # as a starter host does when it begins: what was half written when it shrank goes
        found = lent(cache, ALICE)  # each has its digest
        assert found
        assert taken(cache) <= 3 << 20
        assert add(cache, ALICE, content(1 << 50 | turn)) == 1
        assert content(1 << 50 | turn) in lent(cache, ALICE)
