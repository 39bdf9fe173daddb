"""Images of Apptainer: honest ones of its own tools' kind, and hostile ones."""

from __future__ import annotations

import io
import os
import random
from pathlib import Path

import pytest

from condor_actors.machine.containers.image_tree import BadImage, NoRoom
from condor_actors.machine.containers.sif import is_sif, squashfs_offset
from condor_actors.machine.containers.unpack import unpack
from tests.harness.sif import descriptor, sif, squashfs

MOST = 64 << 20
ROOT = b"hsqs" + bytes(200)


def unpacked(content: bytes, target: Path, most_bytes: int = MOST) -> Path:
    target.mkdir()
    folder = os.open(target, os.O_RDONLY | os.O_DIRECTORY)
    try:
        unpack(io.BytesIO(content), folder, most_bytes)
    finally:
        os.close(folder)
    return target


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    (made / "bin/deep").mkdir(parents=True)
    (made / "bin/program").write_bytes(random.Random(1).randbytes(300_000) + bytes(500_000) + b"end")
    (made / "bin/program").chmod(0o4755)
    (made / "empty").touch()
    (made / "bin/deep/small").write_text("small\n")
    (made / "sh").symlink_to("/bin/program")
    os.link(made / "empty", made / "again")
    os.mkfifo(made / "pipe")
    return made


@pytest.mark.parametrize("compression", ["gzip", "xz", "zstd"])
@pytest.mark.parametrize("packed", [True, False])
def test_what_is_in_an_image_comes_out_of_it(tmp_path: Path, tree: Path, compression: str, packed: bool) -> None:
    content = squashfs(tree, tmp_path / "image", "-comp", compression)
    root = unpacked(sif(b"a definition", content) if packed else content, tmp_path / "root")
    assert {str(path.relative_to(root)) for path in root.rglob("*")} == {
        "again", "bin", "bin/deep", "bin/deep/small", "bin/program", "empty", "sh"}
    assert (root / "bin/program").read_bytes() == (tree / "bin/program").read_bytes()
    assert (root / "bin/program").stat().st_mode & 0o7777 == 0o755
    assert os.readlink(root / "sh") == "/bin/program"
    assert (root / "bin/deep/small").read_text() == "small\n"


def test_it_is_no_larger_than_there_is_room(tmp_path: Path, tree: Path) -> None:
    with pytest.raises(NoRoom, match="unpacked it has more than"):
        unpacked(squashfs(tree, tmp_path / "image"), tmp_path / "root", 400_000)


@pytest.mark.parametrize(("content", "problem"), [
    (sif(ROOT, count=0), "has 0 parts"), (sif(ROOT, count=-1), "has -1 parts"), (sif(ROOT, count=1 << 40), "parts"),
    (sif(ROOT, count=9), "shorter than its header"), (sif(ROOT)[:100], "shorter than its header"),
    (sif(ROOT, rows=descriptor(offset=1 << 40, length=9)), "lies outside"),
    (sif(ROOT, rows=descriptor(offset=-9, length=9)), "lies outside"),
    (sif(ROOT, rows=descriptor(offset=128, length=-1)), "lies outside"),
    (sif(ROOT, rows=descriptor(offset=128, length=9)), "is no squashfs"),
    (sif(ROOT, rows=descriptor(offset=128, length=9, used=False)), "has 0 root directories"),
    (sif(ROOT, rows=descriptor(system=5, offset=128, length=9)), "is encrypted"),
    (sif(ROOT, rows=descriptor(system=2, offset=128, length=9)), "file system of the kind 2"),
    (sif(ROOT, ROOT, rows=descriptor(offset=1298, length=204) + descriptor(offset=1502, length=204)),
     "has 2 root directories"),
])
def test_a_header_that_lies(content: bytes, problem: str) -> None:
    assert is_sif(io.BytesIO(content))
    with pytest.raises(BadImage, match=problem):
        squashfs_offset(io.BytesIO(content))


def test_whatever_is_changed_in_one_it_is_an_image_or_none(tmp_path: Path, tree: Path) -> None:
    """Nothing but the errors of an image comes of it, and nothing is made beside the folder."""
    content, chance = sif(squashfs(tree, tmp_path / "image", "-noI", "-noF")), random.Random(3)
    for number in range(60):
        changed = bytearray(content)
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(changed) - 4000 if number % 2 else 0, len(changed))
            changed[at] = chance.randrange(256)
        (tmp_path / str(number)).mkdir()
        try:
            unpacked(bytes(changed), tmp_path / str(number) / "root")
        except (BadImage, OSError):
            pass
        assert [path.name for path in (tmp_path / str(number)).iterdir()] == ["root"]
