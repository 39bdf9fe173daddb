"""The blob store: whole or nothing, continued, verified, within its quota."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from condor_actors.transfer.blob_store import BlobStore, MissingBlob, WrongContent
from condor_actors.transfer.manifest import digest_bytes

DATA = b"a content" * 1000
DIGEST = digest_bytes(DATA)


def test_bytes_in_and_out(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "s")
    assert store.put_bytes(DATA) == DIGEST
    assert store.put_bytes(DATA) == DIGEST
    assert store.read(DIGEST) == DATA
    assert store.total_bytes == len(DATA)
    assert store.missing([DIGEST, "0" * 64, DIGEST, "0" * 64]) == ("0" * 64,)
    with pytest.raises(MissingBlob):
        store.open("0" * 64)
    with pytest.raises(MissingBlob):
        store.path("../../etc/passwd")


def test_a_blob_becomes_a_file(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "s")
    store.put_bytes(DATA)
    store.place(DIGEST, tmp_path / "g", 0o755)
    assert (tmp_path / "g").read_bytes() == DATA
    assert (tmp_path / "g").stat().st_mode & 0o777 == 0o755
    with pytest.raises(FileExistsError):
        store.place(DIGEST, tmp_path / "g", 0o755)


def test_a_shared_file_costs_no_copy(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "s")
    store.put_bytes(DATA)
    store.place(DIGEST, tmp_path / "g", 0o555, share=True)
    assert (tmp_path / "g").stat().st_ino == store.path(DIGEST).stat().st_ino
    store.place(DIGEST, tmp_path / "h", 0o755, share=True)
    assert (tmp_path / "h").stat().st_ino != store.path(DIGEST).stat().st_ino


def test_a_partial_blob_is_taken_up_by_the_next_process(tmp_path: Path) -> None:
    first = BlobStore(tmp_path / "s").begin(DIGEST, len(DATA))
    first.write(DATA[:4000])
    first._stream.close()  # kill -9
    store = BlobStore(tmp_path / "s")
    assert DIGEST not in store
    with store.begin(DIGEST, len(DATA)) as second:
        assert (second.offset, second.is_begun) == (0, True)
        second.read_back()
        assert (second.offset, second.is_begun) == (4000, False)
        second.write(DATA[4000:])
        second.commit()
    assert store.read(DIGEST) == DATA
    assert list((tmp_path / "s" / "partial").iterdir()) == []


def test_two_writers_of_one_blob_do_not_meet(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "s")
    with store.begin(DIGEST, len(DATA)) as one:
        one.write(DATA[:1000])
        with store.begin(DIGEST, len(DATA)) as other:
            assert other.offset == 0, "what someone is writing is not taken up"
            other.write(DATA[:500])
        one.write(DATA[1000:])
    assert sorted(path.stat().st_size for path in (tmp_path / "s" / "partial").iterdir()) == [500, len(DATA)]
    with store.begin(DIGEST, len(DATA)) as one, store.begin(DIGEST, len(DATA)) as other:
        for each in (one, other):
            each.restart()
            each.write(DATA)
        one.commit()
        other.commit()
    assert store.read(DIGEST) == DATA
    assert store.total_bytes == len(DATA)


def test_wrong_content_is_not_kept(tmp_path: Path) -> None:
    store = BlobStore(tmp_path / "s")
    with store.begin(DIGEST, 3) as partial:
        partial.write(b"abc")
        with pytest.raises(WrongContent):
            partial.commit()
    with store.begin(DIGEST, 3) as partial, pytest.raises(WrongContent):
        partial.write(b"abcd")
    assert DIGEST not in store
    assert list((tmp_path / "s" / "partial").iterdir()) == []


def test_a_blob_damaged_on_disk_is_found_out_and_dropped(tmp_path: Path) -> None:
    BlobStore(tmp_path / "s").put_bytes(DATA)
    store = BlobStore(tmp_path / "s")
    path = store.path(DIGEST)
    os.chmod(path, 0o644)
    path.write_bytes(b"X" + DATA[1:])
    with pytest.raises(WrongContent):
        store.open(DIGEST)
    assert DIGEST not in store
    assert not path.exists()


def test_the_quota_forgets_what_was_used_longest_ago_and_spares_pins(tmp_path: Path) -> None:
    now = [0.0]
    store = BlobStore(tmp_path / "s", quota_bytes=30, clock=lambda: now[0])
    digests = []
    for number in range(3):
        now[0] += 1
        digests.append(store.put_bytes(bytes([number]) * 10))
    now[0] += 1
    store.read(digests[0])
    store.pin(digests[1], "run")
    now[0] += 1
    store.put_bytes(b"n" * 10)
    assert [digest in store for digest in digests] == [True, True, False]
    store.put_bytes(b"x" * 25)  # what runs need is there, however much it is
    assert digests[1] in store
    store.unpin("run")
    store.put_bytes(b"y" * 25)
    assert store.missing(digests) == tuple(digests)
    assert store.total_bytes == 25


def test_what_does_not_fit_on_the_disk_is_refused_before_it_fills_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore(tmp_path / "s")
    old = store.put_bytes(b"o" * 100)
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=3, f_frsize=10))
    with store.begin(digest_bytes(b"n" * 30), 30) as partial:
        partial.write(b"n" * 20)
    with store.begin(digest_bytes(b"n" * 30), 30) as partial:
        partial.read_back()
        assert partial.offset == 20
    with pytest.raises(OSError, match=r"31 bytes do not fit on the disk: 30 are free.*/s"):
        store.begin(digest_bytes(b"x" * 31), 31)
    assert old not in store


def test_blobs_that_come_together_do_not_each_count_on_the_whole_disk(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore(tmp_path / "s")
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=100, f_frsize=1))
    first = store.begin(digest_bytes(b"n" * 60), 60)
    with pytest.raises(OSError, match="40 are free beside 60"):
        store.begin(digest_bytes(b"x" * 41), 41)
    first.discard()
    with store.begin(digest_bytes(b"x" * 41), 41):
        pass


def test_a_part_of_the_disk_is_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BlobStore(tmp_path / "s", floor_bytes=50)
    old = store.put_bytes(b"o" * 10)
    free = [100]
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_bavail=free[0], f_frsize=1))
    with pytest.raises(OSError, match=r"50 are free .* and 50 left to others"):
        store.begin(digest_bytes(b"x" * 51), 51)
    assert old not in store
    kept = store.put_bytes(b"k" * 10)
    free[0] = 60
    store.make_room()
    assert kept in store
    free[0] = 49  # someone else fills the disk
    store.make_room()
    assert kept not in store


def test_a_digest_is_no_right_to_anothers_blob(tmp_path: Path) -> None:
    """Neither to a whole one, nor to the beginning of one that is on its way; also for the next process."""
    store = BlobStore(tmp_path / "s")
    ann, bob = store.of("ann@dom"), store.of("bob@dom")
    assert ann.put_bytes(DATA) == DIGEST
    for holder in (bob, BlobStore(tmp_path / "s").of("bob@dom"), store.of("")):
        assert DIGEST not in holder
        assert holder.missing([DIGEST]) == (DIGEST,)
        for use in (lambda blobs: blobs.open(DIGEST), lambda blobs: blobs.read(DIGEST),
                    lambda blobs: blobs.place(DIGEST, tmp_path / "out", 0o600)):
            with pytest.raises(MissingBlob):
                use(holder)
    assert DIGEST not in store
    other = b"secret beginning" + DATA
    digest = digest_bytes(other)
    with ann.begin(digest, len(other)) as begun:
        begun.write(other[:16])
    with bob.begin(digest, len(other)) as partial:
        assert partial.offset == 0
    with ann.begin(digest, len(other)) as partial:
        partial.read_back()
        assert partial.offset == 16
        partial.write(other[16:])
        partial.commit()
        assert partial.digest == digest
    again = BlobStore(tmp_path / "s")
    assert again.of("ann@dom").read(digest) == other
    assert again.total_bytes == len(other) + len(DATA)


@pytest.mark.parametrize("name", ["../../etc/passwd", "of-" + "0" * 32, f"of-{'0' * 32}/..", "of-x/" + "0" * 64,
                                  f"of-{'0' * 32}/of-{'0' * 32}/{'0' * 64}"])
def test_what_is_no_digest_is_no_path(tmp_path: Path, name: str) -> None:
    store = BlobStore(tmp_path / "s")
    for blobs in (store, store.of("ann@dom")):
        with pytest.raises(MissingBlob):
            blobs.begin(name, 1)
        with pytest.raises(MissingBlob):
            blobs.open(name)
