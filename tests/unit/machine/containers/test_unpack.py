"""Tar files that would leave their folder, fill the disk, or bring rights; and honest ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from condor_actors.machine.containers.image_tree import BadImage
from condor_actors.machine.containers.unpack import Budget, ImageFacts, facts_of, unpack
from tests.harness.images import docker_archive, oci_archive, root_folder, rootfs_tar

ROOM = 64 << 20


def unpacked(data: bytes, target: Path, room: int = ROOM) -> ImageFacts:
    target.mkdir(exist_ok=True)
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return unpack(io.BytesIO(data), folder, room)
    finally:
        os.close(folder)


def tar_of(*members: tuple[str, bytes, str, bytes], mode: str = "w", bits: int = 0o644) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode) as archive:  # type: ignore[call-overload]
        for name, kind, link, data in members:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size, member.mode = kind, link, len(data), bits
            archive.addfile(member, io.BytesIO(data))
    return stream.getvalue()


def everything_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.mark.parametrize("made", [docker_archive, oci_archive])
def test_layers_lie_over_one_another(tmp_path: Path, made: Callable[[Path, Path], Path]) -> None:
    archive = made(root_folder(tmp_path / "source"), tmp_path / "image.tar")
    facts = unpacked(archive.read_bytes(), tmp_path / "out")
    assert (tmp_path / "out/etc/second").read_text() == "layer\n"
    assert (tmp_path / "out/etc/image").read_text() == "made in a test\n"
    assert not (tmp_path / "out/etc/removed").exists()
    assert os.readlink(tmp_path / "out/bin/sh") == "busybox"
    assert os.access(tmp_path / "out/bin/busybox", os.X_OK)
    assert "FROM_IMAGE=yes" in facts.environment


def test_a_plain_root_directory(tmp_path: Path) -> None:
    archive = rootfs_tar(root_folder(tmp_path / "source"), tmp_path / "image.tar")
    facts = unpacked(archive.read_bytes(), tmp_path / "out")
    assert everything_in(tmp_path / "out") == everything_in(tmp_path / "source")
    assert facts.size_bytes > (tmp_path / "out/bin/busybox").stat().st_size


@pytest.mark.parametrize("name", ["../out-of-it", "a/../../out-of-it", "a/.."])
def test_names_that_lead_upwards_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadImage, match="entry called"):
        unpacked(tar_of((name, tarfile.REGTYPE, "", b"x")), tmp_path / "out")
    assert everything_in(tmp_path) == {"out"}


@pytest.mark.parametrize("link", ["/", "../..", "../../../../..", "/tmp"])
def test_links_lead_nowhere_but_into_the_image(tmp_path: Path, link: str) -> None:
    unpacked(tar_of(("way", tarfile.SYMTYPE, link, b""), ("way/evil", tarfile.REGTYPE, "", b"x")), tmp_path / "out")
    assert not os.path.lexists("/evil")
    assert not os.path.lexists("/tmp/evil")
    assert everything_in(tmp_path) - {"out/way"} <= {"out", "out/evil", "out/tmp", "out/tmp/evil"}


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadImage, match="circle"):
        unpacked(tar_of(("a", tarfile.SYMTYPE, "b", b""), ("b", tarfile.SYMTYPE, "a", b""),
                        ("a/x", tarfile.REGTYPE, "", b"x")), tmp_path / "out")


def test_a_hard_link_reaches_only_what_is_in_the_image(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for you")
    with pytest.raises(BadImage):
        unpacked(tar_of(("mine", tarfile.LNKTYPE, str(secret), b"")), tmp_path / "out")
    with pytest.raises(BadImage):
        unpacked(tar_of(("mine", tarfile.LNKTYPE, "../secret", b"")), tmp_path / "out")
    assert secret.stat().st_nlink == 1


def test_no_devices_and_no_rights_come_out(tmp_path: Path) -> None:
    unpacked(tar_of(
        ("disk", tarfile.BLKTYPE, "", b""), ("mem", tarfile.CHRTYPE, "", b""),
        ("pipe", tarfile.FIFOTYPE, "", b""), ("su", tarfile.REGTYPE, "", b"x"), bits=0o6755), tmp_path / "out")
    assert everything_in(tmp_path / "out") == {"su"}
    assert (tmp_path / "out/su").stat().st_mode & 0o7777 == 0o755


def test_a_bomb_is_stopped_when_its_room_is_over(tmp_path: Path) -> None:
    bomb = tar_of(("zeros", tarfile.REGTYPE, "", b"\0" * (4 << 20)), mode="w:gz")
    assert len(bomb) < 64 << 10
    with pytest.raises(BadImage, match="CONTAINER_IMAGE_LIMIT"):
        unpacked(bomb, tmp_path / "out", room=1 << 20)


@pytest.mark.parametrize("data", [
    b"", b"no tar at all" * 100, tar_of(("manifest.json", tarfile.REGTYPE, "", b"[]")),
    tar_of(("manifest.json", tarfile.REGTYPE, "", b'[{"Layers": ["x"], "Config": "manifest.json"}]')),
    tar_of(("oci-layout", tarfile.REGTYPE, "", b"{}"), ("index.json", tarfile.REGTYPE, "", b'{"manifests": 7}')),
])  # fmt: skip
def test_what_is_no_image_is_said_to_be_none(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadImage):
        unpacked(data, tmp_path / "out")


@pytest.mark.parametrize("compress", [
    gzip.compress, bz2.compress, lzma.compress, zstandard.ZstdCompressor(write_checksum=True).compress,
], ids=["gzip", "bzip2", "xz", "zstd"])
def test_checksums_are_compared(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    """They stand behind the end of the tar file, where its reader does not look by itself."""
    whole = compress(tar_of(("x", tarfile.REGTYPE, "", os.urandom(200_000))))
    unpacked(whole, tmp_path / "right")
    wrong = bytearray(whole)
    wrong[len(wrong) // 2] ^= 0xFF
    with pytest.raises(BadImage, match="no tar file that can be read"):
        unpacked(bytes(wrong), tmp_path / "wrong")


@pytest.mark.parametrize("word", ["A=\ud800", "A=a\0B=c", 7, None, ["A=1"]])
@pytest.mark.parametrize("name", ["Env", "Entrypoint"])
def test_words_that_no_program_can_have_are_refused_before_one_starts(name: str, word: object) -> None:
    with pytest.raises(BadImage, match=f"its {name} is no list of words"):
        facts_of({"config": {name: ["A=1", word]}}, Budget(1))
