"""Tar files of an image's maker that say something else of themselves than what they are."""

from __future__ import annotations

import gzip
import io
import os
import resource
import tarfile
from pathlib import Path

import pytest

from condor_actors.machine.containers.image_tree import BadImage, Tree
from condor_actors.machine.containers.unpack import Budget, apply_layer, understood, unpack

ROOM = 8 << 20


def block(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> bytes:
    """The header of an entry with any size, as the library itself would write none."""
    made = bytearray(tarfile.TarInfo(name).tobuf(tarfile.GNU_FORMAT))
    made[124:136] = tarfile.itn(size, 12, tarfile.GNU_FORMAT)  # type: ignore[attr-defined]
    made[156:157] = kind
    made[148:156] = b" " * 8
    made[148:156] = b"%06o\0 " % sum(made)
    return bytes(made)


def attributes(**said: str) -> bytes:
    """An entry of extended attributes, for the entry behind it."""
    text = b""
    for written, value in said.items():
        name = written.replace("__", ".")
        length = len(f" {name}={value}\n")
        length = next(each for each in range(length, length + 9) if len(str(each)) + length == each)
        text += f"{length} {name}={value}\n".encode()
    return block("attributes", len(text), tarfile.XHDTYPE) + text.ljust(512, b"\0")


def tried(data: bytes, folder: Path, room: int = ROOM) -> str:
    """What is said of an image; empty: it was unpacked."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        unpack(io.BytesIO(data), opened, room)
    except BadImage as error:
        return str(error)
    finally:
        os.close(opened)
    return ""


@pytest.mark.parametrize("size", [-1, -512, -1024, -(1 << 40)])
def test_sizes_below_nothing(tmp_path: Path, size: int) -> None:
    """The library goes back with them and reads the same entry forever; each time there would be more room, too."""
    said = tried(block("x", 0) + block("y", 0) + block("z", size) + bytes(4096), tmp_path)
    assert "has the size -" in said


@pytest.mark.parametrize("size", ["-1", "-1024", "-99999999999999999999"])
def test_sizes_below_nothing_in_attributes(tmp_path: Path, size: str) -> None:
    said = tried(attributes(size=size) + block("z", 0) + bytes(4096), tmp_path)
    assert "has the size -" in said


@pytest.mark.parametrize("kind", [
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
])
def test_names_and_attributes_as_large_as_a_disk(tmp_path: Path, kind: bytes) -> None:
    """The library reads them into memory: four megabytes of a gzip file are four gigabytes of it."""
    made = io.BytesIO()
    with gzip.GzipFile(fileobj=made, mode="wb", compresslevel=1) as packed:
        packed.write(block("x", 64 << 20, kind))
        for _ in range(64):
            packed.write(bytes(1 << 20))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "header of an entry has 67,108,864 bytes" in tried(made.getvalue(), tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10


def test_a_file_with_holes_counts_with_them(tmp_path: Path) -> None:
    """A terabyte of nothing takes 1,024 bytes of a tar file."""
    said = tried(attributes(GNU__sparse__major="0", GNU__sparse__minor="1", GNU__sparse__size=str(1 << 40),
                            GNU__sparse__map="0,0") + block("holes", 0) + bytes(1024), tmp_path)
    assert "CONTAINER_IMAGE_LIMIT" in said
    assert not list(tmp_path.iterdir())


def test_more_entries_than_the_reader_keeps(tmp_path: Path) -> None:
    """An archive that is one of layers by its first entry, and has a hundred thousand others."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz", compresslevel=1) as archive:
        archive.addfile(tarfile.TarInfo("manifest.json"))
        for number in range(20_000):
            archive.addfile(tarfile.TarInfo(f"{number}"))
    assert "cannot be understood" in tried(made.getvalue(), tmp_path)


@pytest.mark.parametrize("names", [
    ("way", "way/.wh.victim"), ("way", "way/.wh..wh..opq"), ("way", ".wh.way/victim"), ("way", "way/.wh..."),
    (".wh.", ".wh.way"), ("way", "way/.wh..wh..plnk/1.2"),
])
def test_what_a_layer_takes_away_is_in_the_image(tmp_path: Path, names: tuple[str, ...]) -> None:
    """Over a link that leads out of it, by names that are none, by names of the folder above."""
    (tmp_path / "image").mkdir()
    (tmp_path / "victim").write_text("here")
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as archive:
        for number, name in enumerate(names):
            entry = tarfile.TarInfo(name)
            if not number:
                entry.type, entry.linkname = tarfile.SYMTYPE, ".."
            archive.addfile(entry)
    top = os.open(tmp_path / "image", os.O_RDONLY | os.O_DIRECTORY)
    tree = Tree(top)
    try:
        with understood():
            apply_layer(io.BytesIO(made.getvalue()), tree, Budget(ROOM))
    except BadImage:
        pass
    finally:
        tree.close()
        os.close(top)
    assert (tmp_path / "victim").read_text() == "here"
    assert (tmp_path / "image").is_dir()
