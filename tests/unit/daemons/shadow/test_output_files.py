"""Files of a job at home."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from condor_actors.daemons.shadow.input_files import manifest_file
from condor_actors.daemons.shadow.output_files import write_whole
from condor_actors.messages.codec import decode_parts
from condor_actors.messages.manifest import FileEntry
from condor_actors.transfer.manifest import digest_bytes


def test_a_large_manifest_lies_in_a_file_that_nobody_else_can_have_made(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    entries = (FileEntry(path="a", inline=b"x"),)
    path, digest, size = manifest_file(entries)
    again, same, _ = manifest_file(entries)
    assert again != path, "its name cannot be told beforehand"
    data = Path(path).read_bytes()
    assert (same, digest, size) == (digest, digest_bytes(data), len(data))
    assert decode_parts(FileEntry, data) == entries
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert len(list(tmp_path.iterdir())) == 2


def test_an_output_is_on_the_disk_before_anybody_hears_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    for name in ("fdatasync", "rename", "fsync"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *words, name=name, real=real: (done.append(name), real(*words)))
    write_whole(str(tmp_path / "out"), b"output")
    assert done == ["fdatasync", "rename", "fsync"], "the content, the name, the folder"
    assert (tmp_path / "out").read_bytes() == b"output"
