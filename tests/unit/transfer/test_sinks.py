"""Fetched files: whole, verified, and on the disk before anybody hears of them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from condor_actors.transfer.blob_store import BlobError
from condor_actors.transfer.manifest import digest_bytes
from condor_actors.transfer.sinks import FileSink

DATA = b"an output" * 1000
DIGEST = digest_bytes(DATA)


def test_a_file_takes_its_place_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"of an earlier run")
    sink = FileSink(str(target), DIGEST, len(DATA), 0o640)
    sink.write(DATA[:100])
    sink.restart()
    sink.write(DATA[:4000])
    assert target.read_bytes() == b"of an earlier run"
    sink.write(DATA[4000:])
    sink.commit()
    assert target.read_bytes() == DATA
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["out"]


def test_what_was_committed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """First the content, then the name: after a power cut a name never leads to half a file, nor is it missing."""
    done: list[str] = []
    sync, replace = os.fsync, os.replace

    def fsync(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        sync(descriptor)

    def rename(source: str, target: str) -> None:
        done.append("name")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    sink = FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    sink.write(DATA)
    sink.commit()
    assert done == ["content", "name", "folder"]


@pytest.mark.parametrize("data", [b"X" + DATA[1:], DATA[:-1]])
def test_what_was_not_announced_is_not_kept(tmp_path: Path, data: bytes) -> None:
    sink = FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    sink.write(data)
    with pytest.raises(BlobError, match="not what was announced"):
        sink.commit()
    assert os.listdir(tmp_path) == []


def test_no_more_is_written_than_was_announced(tmp_path: Path) -> None:
    sink = FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    with pytest.raises(BlobError, match="more than"):
        sink.write(DATA + b"!")
    sink.close()
    assert os.listdir(tmp_path) == []


def test_equal_files_of_several_jobs_to_one_place_do_not_meet(tmp_path: Path) -> None:
    sinks = [FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600) for _ in range(5)]
    for sink in sinks:
        sink.write(DATA[:5000])
    sinks.pop(0).close()
    for sink in sinks:
        sink.write(DATA[5000:])
        sink.commit()
        assert (tmp_path / "out").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["out"]


def test_what_an_interrupted_transfer_left_is_taken_over(tmp_path: Path) -> None:
    interrupted = FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    interrupted.write(DATA[:5000])
    assert interrupted._stream is not None
    interrupted._stream.close()  # as the end of its process does
    (left,) = os.listdir(tmp_path)
    sink = FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    assert os.listdir(tmp_path) == [left]
    sink.write(DATA)
    sink.commit()
    assert (tmp_path / "out").read_bytes() == DATA
    assert os.listdir(tmp_path) == ["out"]


def test_no_link_is_followed_and_no_pipe_waited_for(tmp_path: Path) -> None:
    """Who may write in the folder may prepare names there."""
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / f".out.{DIGEST[:12]}.0.part").symlink_to("precious")
    with pytest.raises(OSError, match="symbolic links"):
        FileSink(str(tmp_path / "out"), DIGEST, len(DATA), 0o600)
    assert (tmp_path / "precious").read_bytes() == b"precious"
