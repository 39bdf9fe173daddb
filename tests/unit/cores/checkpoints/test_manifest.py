"""Lists of checkpoints: what they carry, and that nothing else passes for one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from condor_actors.cores.checkpoints.manifest import (
    BadCheckpoint,
    CheckpointList,
    file_of_line,
    list_name,
    number_of,
    read_list,
    write_list,
)
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import digest_bytes

ODD = ("plain", "with blank", " *star", "back\\slash", "line\nend", "\udcff", "# comment", "ümlaut", "d/e")
MADE = CheckpointList(number=3, base="https://host/j/0003.2/", entries=(
    FileEntry(path="d", kind="directory", mode=0o700), FileEntry(path="d/l", kind="link", target="e"),
    *(FileEntry(path=name, mode=0o755 if name == "plain" else 0o644, digest=digest_bytes(name.encode(errors="replace")))
      for name in ODD)))


def test_what_is_written_is_read() -> None:
    assert read_list(write_list(MADE)) == MADE
    empty = CheckpointList(number=0, base="", entries=())
    assert read_list(write_list(empty)) == empty


def test_sha256sum_reads_it(tmp_path: Path) -> None:
    for name in ODD:
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(name.encode(errors="replace"))
    (tmp_path / "list").write_bytes(write_list(MADE))
    done = subprocess.run(["sha256sum", "--check", "list"], cwd=tmp_path, capture_output=True, check=False)
    assert done.stdout.count(b": OK") == len(ODD)
    assert b"_condor_checkpoint_MANIFEST.0003: FAILED open or read" in done.stdout  # its own, as HTCondor writes it


@pytest.mark.parametrize("place", range(0, len(write_list(MADE)), 7))
def test_a_list_that_was_changed_anywhere_is_none(place: int) -> None:
    data = bytearray(write_list(MADE))
    data[place] ^= 1
    with pytest.raises(BadCheckpoint):
        read_list(bytes(data))
    with pytest.raises(BadCheckpoint):
        read_list(bytes(data[:place]))


@pytest.mark.parametrize("body", [
    b"no line\n", b'# {"mode": 4095}\n' + b"0" * 64 + b" *a\n", b'# {"link": "a"}\n', b'# {"directory": 7}\n',
    b'# {"mode": true}\n'])
def test_a_list_that_says_nonsense_is_none(body: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        read_list(body + f"{digest_bytes(body)} *{list_name(1)}\n".encode())


def test_a_list_of_htcondors_is_read() -> None:
    """It has no comments, and its own name may have a folder before it."""
    body = b"0" * 64 + b" *./state\n"
    found = read_list(body + f"{digest_bytes(body)} *./_condor_checkpoint_MANIFEST.0012\n".encode())
    assert (found.number, found.entries[0].path) == (12, "./state")
    with pytest.raises(BadCheckpoint, match="no name of a list"):
        read_list(body + f"{digest_bytes(body)} *MANIFEST\n".encode())


def test_names() -> None:
    assert [number_of(name) for name in ("_condor_checkpoint_MANIFEST.0101", "_condor_checkpoint_MANIFEST.z",
                                         "_condor_checkpoint_MANIFEST.-1", "_condor_checkpoint_FAILURE.0001")] == [
        101, -1, -1, -1]
    assert number_of(list_name(12345, "OLD"), "OLD") == 12345
    assert file_of_line("0" * 64 + " *a b") == ("0" * 64, "a b")
    with pytest.raises(BadCheckpoint):
        file_of_line("a b")
