"""Images and layers compressed with zstd: honest ones, and those that are cut short, huge, or none."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from condor_actors.machine.containers.image_tree import BadImage, NoRoom
from condor_actors.machine.containers.zstd_stream import MOST_WINDOW_BYTES, ZstdStream, is_zstd
from tests.harness.images import docker_archive, oci_archive, root_folder, rootfs_tar
from tests.unit.machine.containers.test_unpack import everything_in, tar_of, unpacked

TEXT = b"".join(b"%d\n" % number for number in range(100_000))
SKIPPED = b"\x50\x2a\x4d\x18\x05\x00\x00\x00notes"
"""A frame that readers pass over, as builders leave them with tables of contents."""


def compressed(data: bytes, **settings: int | bool) -> bytes:
    return zstandard.ZstdCompressor(level=3, **settings).compress(data)  # type: ignore[arg-type]


def repacked(archive: Path, change: Callable[[bytes], bytes]) -> bytes:
    """An archive whose layers are changed."""
    made = io.BytesIO()
    with tarfile.open(archive) as old, tarfile.open(fileobj=made, mode="w") as new:
        for member in old:
            data = old.extractfile(member).read()  # type: ignore[union-attr]
            if member.name.endswith("layer.tar"):
                data = change(data)
                member.size = len(data)
            new.addfile(member, io.BytesIO(data))
    return made.getvalue()


def test_it_reads_as_what_was_compressed_forwards_and_backwards() -> None:
    stream = ZstdStream(io.BytesIO(compressed(TEXT)))
    assert stream.read(1000) == TEXT[:1000]
    assert stream.seek(300_000) == stream.tell() == 300_000
    assert stream.read(10) == TEXT[300_000:300_010]
    assert stream.seek(17) == 17
    assert stream.read(len(TEXT)) == TEXT[17:]
    assert stream.read(1) == b""
    assert stream.seek(len(TEXT) + 5) == len(TEXT)


@pytest.mark.parametrize("settings", [{}, {"write_checksum": True}, {"write_content_size": False}])
def test_frames_follow_one_another_and_some_are_passed_over(settings: dict[str, bool]) -> None:
    whole = SKIPPED + compressed(TEXT[:5000], **settings) + SKIPPED + compressed(TEXT[5000:], **settings) + SKIPPED
    assert is_zstd(io.BytesIO(whole))
    assert ZstdStream(io.BytesIO(whole)).read(len(TEXT) + 1) == TEXT


def test_what_is_no_zstd_is_not_taken_for_it() -> None:
    for data in (b"", b"\x28\xb5", b"ustar", bytes(512)):
        stream = io.BytesIO(data)
        assert not is_zstd(stream)
        assert stream.tell() == 0


def test_a_stream_that_is_cut_anywhere_is_no_stream() -> None:
    whole = compressed(os.urandom(300_000), write_checksum=True) + SKIPPED
    frame = len(whole) - len(SKIPPED)
    ends = [*range(5, 40), 131_000, 200_000, frame - 1, frame + 3, len(whole) - 1]
    for end in ends:
        with pytest.raises((EOFError, zstandard.ZstdError)):
            ZstdStream(io.BytesIO(whole[:end]))


def test_what_stands_behind_the_last_frame_is_refused() -> None:
    with pytest.raises((EOFError, zstandard.ZstdError)):
        ZstdStream(io.BytesIO(compressed(TEXT) + b"something else"))


def test_an_image_is_the_same_whatever_its_layers_are_compressed_with(tmp_path: Path) -> None:
    archive = docker_archive(root_folder(tmp_path / "source"), tmp_path / "image.tar")
    plain = unpacked(archive.read_bytes(), tmp_path / "plain")
    assert unpacked(repacked(archive, compressed), tmp_path / "zstd") == plain
    assert everything_in(tmp_path / "zstd") == everything_in(tmp_path / "plain")
    assert not (tmp_path / "zstd/etc/removed").exists()


@pytest.mark.parametrize("made", [docker_archive, oci_archive, rootfs_tar])
def test_the_whole_archive_may_be_compressed(tmp_path: Path, made: Callable[[Path, Path], Path]) -> None:
    archive = made(root_folder(tmp_path / "source"), tmp_path / "image.tar").read_bytes()
    plain = unpacked(archive, tmp_path / "plain")
    assert unpacked(compressed(archive), tmp_path / "zstd") == plain
    assert everything_in(tmp_path / "zstd") == everything_in(tmp_path / "plain")
    assert (tmp_path / "zstd/bin/busybox").read_bytes() == (tmp_path / "plain/bin/busybox").read_bytes()


def test_an_archive_that_is_cut_between_two_files_is_refused(tmp_path: Path) -> None:
    """The library ends quietly there, and the reader of tar files takes it for the end."""
    whole = tar_of(("one", tarfile.REGTYPE, "", os.urandom((128 << 10) - 512)), ("two", tarfile.REGTYPE, "", b"x"))
    packed = zstandard.ZstdCompressor(level=1, write_content_size=False).compress(whole)
    first = next(end for end in range((128 << 10), len(packed)) if _unpacks(packed[:end]) == 128 << 10)
    with pytest.raises(BadImage, match="cut short"):
        unpacked(packed[:first], tmp_path / "out")


def _unpacks(data: bytes) -> int:
    return len(zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)).read(1 << 20))


def test_a_small_file_does_not_become_a_full_disk(tmp_path: Path) -> None:
    bomb = compressed(tar_of(("zeros", tarfile.REGTYPE, "", bytes(32 << 20))))
    assert len(bomb) < 64 << 10
    with pytest.raises(NoRoom, match="unpacked it has more than the 8 MB"):
        unpacked(bomb, tmp_path / "out", 8 << 20)


def test_a_window_that_takes_too_much_memory_is_refused(tmp_path: Path) -> None:
    """A frame says itself how much of what was unpacked its reader has to keep: here two gigabytes."""
    assert MOST_WINDOW_BYTES == 1 << 27
    frame = b"\x28\xb5\x2f\xfd" + bytes([0, (31 - 10) << 3]) + b"\x01\x00\x00"
    with pytest.raises(BadImage, match="memory"):
        unpacked(frame, tmp_path / "out")
