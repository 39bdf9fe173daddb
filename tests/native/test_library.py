"""Contents of files that an execute machine keeps: they save bytes, and nobody can tell them from those at home."""

from __future__ import annotations

import hashlib
import os
import random
import sys
import time
from pathlib import Path

import pytest

from condor_actors.machine.native.shadow import ShadowHost
from condor_actors.machine.standard.library_cache import LibraryCache, shelf_name
from tests.native.conftest import DEADLINE_S
from tests.native.library_runs import OWNER, Outcome, run, warmed

LIMIT = 1 << 30
PADDING = "# " + "x" * 4096 + "\n"
SECRET = "value = 'known to its owner'\n"


@pytest.fixture
def cache(tmp_path: Path) -> LibraryCache:
    return LibraryCache(tmp_path / "cache", LIMIT)


def program(folder: Path, *modules: str) -> list[str]:
    """A program that says what the files MODULES say, and where they are."""
    (folder / "lib").mkdir(exist_ok=True)
    names = [str(folder / "lib" / name) for name in modules]
    code = "import sys\nfor name in sys.argv[1:]:\n    scope = {}\n    exec(open(name).read(), scope)\n"
    return [sys.executable, "-I", "-S", "-c", code + "    print(scope['value'])\n", *names]


def write(path: Path, text: str) -> None:
    """In place, as an editor that truncates does."""
    path.write_text(text + PADDING)


def test_a_warm_start_brings_a_fraction_of_the_bytes(tmp_path: Path, cache: LibraryCache) -> None:
    folders = [*{os.path.realpath(each) for each in ("/usr", "/lib", "/lib64", sys.base_prefix)}]
    command = [sys.executable, "-I", "-c", "import json; print(json.dumps(1))"]
    host = ShadowHost()
    cold = run(host, None, command, tmp_path, folders)
    warm = warmed(host, cache, command, tmp_path, folders)
    assert (cold.output, warm.output) == ("1\n", "1\n")
    assert warm.statistics.bytes_out * 10 < cold.statistics.bytes_out
    assert warm.statistics.bytes_kept_there > 1 << 20
    assert cache.hits > 0


def test_a_run_in_which_nothing_is_kept_is_as_ever(tmp_path: Path, cache: LibraryCache) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "one", "value = 1\n")
    command = program(tmp_path, "one")
    warmed(ShadowHost(), cache, command, tmp_path, [str(tmp_path / "lib")])
    off = run(ShadowHost(), None, command, tmp_path, [str(tmp_path / "lib")])
    elsewhere = run(ShadowHost(), cache, command, tmp_path, [])
    assert (off.output, off.statistics.files_kept_there) == ("1\n", 0)
    assert (elsewhere.output, elsewhere.statistics.files_kept_there) == ("1\n", 0)


@pytest.mark.parametrize("how", ["in place", "replaced", "in place, its time set back"])
def test_a_changed_library_is_never_stale(tmp_path: Path, cache: LibraryCache, how: str) -> None:
    (tmp_path / "lib").mkdir()
    library, host = tmp_path / "lib" / "one", ShadowHost()
    write(library, "value = 1\n")
    command, folders = program(tmp_path, "one"), [str(tmp_path / "lib")]
    assert warmed(host, cache, command, tmp_path, folders).output == "1\n"
    before = library.stat()
    if how == "replaced":
        write(tmp_path / "lib" / "fresh", "value = 2\n")
        (tmp_path / "lib" / "fresh").rename(library)
    else:
        write(library, "value = 2\n")  # as long as it was
    if how.endswith("set back"):
        os.utime(library, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [run(host, cache, command, tmp_path, folders).output for _ in range(3)] == ["2\n"] * 3
    assert warmed(host, cache, command, tmp_path, folders).output == "2\n"


def test_a_library_that_changes_all_the_time_is_never_stale(tmp_path: Path, cache: LibraryCache) -> None:
    """Also where the digest is being computed, and where the change is a moment old."""
    (tmp_path / "lib").mkdir()
    library, host = tmp_path / "lib" / "one", ShadowHost()
    write(library, "value = 0\n")
    command, folders = program(tmp_path, "one"), [str(tmp_path / "lib")]
    warmed(host, cache, command, tmp_path, folders)
    for number in range(30):
        write(library, f"value = {number % 10}\n")
        assert run(host, cache, command, tmp_path, folders).output == f"{number % 10}\n"


MAPS = """
import hashlib, mmap, sys, threading
def tell():
    with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        print(len(view), hashlib.sha256(view[: 1 << 20]).hexdigest(), hashlib.sha256(view).hexdigest())
thread = threading.Thread(target=tell)
thread.start()
thread.join()
"""
"""Maps a file long after its start, and in another thread, as the Java machine does."""


def mapped(data: bytes) -> str:
    return f"{len(data)} {hashlib.sha256(data[: 1 << 20]).hexdigest()} {hashlib.sha256(data).hexdigest()}\n"


def test_a_file_that_is_mapped_later_is_not_sent_again_and_never_stale(tmp_path: Path, cache: LibraryCache) -> None:
    (tmp_path / "lib").mkdir()
    library, host, folders = tmp_path / "lib" / "large", ShadowHost(), [str(tmp_path / "lib")]
    data = bytearray(random.Random(1).randbytes(40_000_123))
    library.write_bytes(data)
    command = [sys.executable, "-I", "-S", "-c", MAPS, str(library)]

    def warm() -> Outcome:
        end_s = time.monotonic() + DEADLINE_S
        while time.monotonic() < end_s:
            found = run(host, cache, command, tmp_path, folders)
            assert found.output == mapped(data)
            if found.statistics.bytes_kept_there > 39_000_000:
                return found
            time.sleep(0.2)
        raise AssertionError("it is sent each time")

    first = run(host, None, command, tmp_path, folders)
    assert warm().statistics.bytes_out < first.statistics.bytes_out - 39_000_000
    for at in (0, 20_000_000, len(data) - 1):
        data[at] ^= 1
        with library.open("r+b") as file:
            file.seek(at)
            file.write(data[at : at + 1])
        assert run(host, cache, command, tmp_path, folders).output == mapped(data)
        warm()
    shelf = cache.folder / f"{shelf_name(OWNER)}.contents"
    with shelf.open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"damage")
    assert run(host, cache, command, tmp_path, folders).output == mapped(data)


def test_what_not_everybody_may_read_is_not_kept(tmp_path: Path, cache: LibraryCache) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "public", "value = 1\n")
    write(tmp_path / "lib" / "secret", SECRET)
    (tmp_path / "lib" / "secret").chmod(0o640)
    command = program(tmp_path, "public", "secret")
    warm = warmed(ShadowHost(), cache, command, tmp_path, [str(tmp_path / "lib")])
    assert warm.output == "1\nknown to its owner\n"
    assert warm.statistics.files_kept_there == 1
    kept = b"".join(path.read_bytes() for path in cache.folder.iterdir())
    assert b"value = 1" in kept
    assert b"known to its owner" not in kept


def test_what_one_owner_has_is_no_other_ones(tmp_path: Path, cache: LibraryCache) -> None:
    """Even of files that everybody may read: a home that says a digest has to have the bytes."""
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "one", "value = 1\n")
    command, folders, host = program(tmp_path, "one"), [str(tmp_path / "lib")], ShadowHost()
    warmed(host, cache, command, tmp_path, folders)
    other = run(host, cache, command, tmp_path, folders, "bob@here here")
    assert (other.output, other.statistics.files_kept_there, other.added) == ("1\n", 0, 1)
    assert run(host, cache, command, tmp_path, folders, "alice@here there").statistics.files_kept_there == 0


def test_a_damaged_content_is_noticed(tmp_path: Path, cache: LibraryCache) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "one", "value = 1\n")
    write(tmp_path / "lib" / "two", "value = 2\n")
    command, folders, host = program(tmp_path, "one", "two"), [str(tmp_path / "lib")], ShadowHost()
    assert warmed(host, cache, command, tmp_path, folders).statistics.files_kept_there == 2
    shelf = cache.folder / f"{shelf_name(OWNER)}.contents"
    data = shelf.read_bytes()
    with shelf.open("r+b") as file:
        file.seek(data.index(b"value = 2"))
        file.write(b"value = 6")
    found = run(host, cache, command, tmp_path, folders)
    assert (found.output, found.statistics.files_kept_there, found.added) == ("1\n2\n", 1, 1)
    assert cache.damaged == 1
    again = run(host, cache, command, tmp_path, folders)
    assert (again.output, again.statistics.files_kept_there) == ("1\n2\n", 2)


def test_a_shelf_that_is_cut_off_under_a_run_is_no_harm(tmp_path: Path, cache: LibraryCache) -> None:
    """The runtime asks home for what it cannot read here."""
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "one", "value = 1\n")
    command, folders, host = program(tmp_path, "one"), [str(tmp_path / "lib")], ShadowHost()
    warmed(host, cache, command, tmp_path, folders)
    lend = cache.lend

    def cut(name: str) -> object:
        lent = lend(name)
        os.truncate(cache.folder / f"{name}.contents", 100)
        return lent

    cache.lend = cut  # type: ignore[method-assign, assignment]
    found = run(host, cache, command, tmp_path, folders)
    assert (found.output, found.statistics.files_kept_there) == ("1\n", 1)


def test_a_full_cache_disk_is_todays_way(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    write(tmp_path / "lib" / "one", "value = 1\n")
    command, folders, host = program(tmp_path, "one"), [str(tmp_path / "lib")], ShadowHost()
    tried: list[OSError] = []

    class Full(LibraryCache):
        def add(self, name: str, source: int) -> int:
            """As the starter, which says why in its log."""
            try:
                return super().add(name, source)
            except OSError as error:
                tried.append(error)
                return 0

    full = Full(tmp_path / "cache", 8192)  # no room for a file of more than half of that
    end_s = time.monotonic() + DEADLINE_S
    found: Outcome | None = None
    while not tried and time.monotonic() < end_s:
        found = run(host, full, command, tmp_path, folders)
        assert found.output == "1\n"
    assert tried
    assert found is not None
    assert found.statistics.files_kept_there == 0
