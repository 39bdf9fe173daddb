"""Files that processes have deleted and keep open."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from condor_actors.machine.run import disk_use
from condor_actors.machine.run.disk_use import deleted_kib, tree_kib
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.tree_removal import remove_tree

ME = os.geteuid()


def hold(stack: ExitStack, path: Path, kib: int) -> int:
    """A file that is open and has no name."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
    stack.callback(os.close, descriptor)
    os.write(descriptor, b"x" * (kib << 10))
    path.unlink()
    return descriptor


def test_each_file_counts_once_and_only_while_it_is_open(tmp_path: Path) -> None:
    with ExitStack() as stack:
        descriptor = hold(stack, tmp_path / "large", 512)
        stack.callback(os.close, os.dup(descriptor))
        hold(stack, tmp_path / "small", 64)
        assert 576 <= deleted_kib([os.getpid(), os.getpid()], str(tmp_path), ME) < 640
    assert deleted_kib([os.getpid()], str(tmp_path), ME) == 0


def test_a_file_that_never_had_a_name_counts(tmp_path: Path) -> None:
    try:
        descriptor = os.open(tmp_path, os.O_RDWR | os.O_TMPFILE)
    except OSError as error:
        pytest.skip(f"this file system has no files without names: {error}")
    try:
        os.write(descriptor, b"x" * (256 << 10))
        assert 256 <= deleted_kib([os.getpid()], str(tmp_path), ME) < 320
    finally:
        os.close(descriptor)


def test_what_is_not_the_jobs_disk_does_not_count(tmp_path: Path) -> None:
    """Files with a name, others' files, memory, and files of another file system."""
    with ExitStack() as stack:
        named = os.open(tmp_path / "named (deleted)", os.O_RDWR | os.O_CREAT)
        stack.callback(os.close, named)
        os.write(named, b"x" * (256 << 10))
        memory = os.memfd_create("memory")
        stack.callback(os.close, memory)
        os.write(memory, b"x" * (256 << 10))
        hold(stack, tmp_path / "large", 256)
        assert deleted_kib([os.getpid()], str(tmp_path), ME + 1) == 0
        assert deleted_kib([os.getpid()], "/proc", ME) == 0
        assert 256 <= deleted_kib([os.getpid()], str(tmp_path), ME) < 320


def test_processes_that_are_gone_are_left_out(tmp_path: Path) -> None:
    with ExitStack() as stack:
        hold(stack, tmp_path / "large", 256)
        assert deleted_kib([1 << 30, os.getpid()], str(tmp_path), ME) >= 256
        assert deleted_kib([], str(tmp_path), ME) == 0
        assert deleted_kib([os.getpid()], str(tmp_path / "missing"), ME) == 0


def test_a_scratch_directory_is_measured_with_them(tmp_path: Path) -> None:
    sandbox = Sandbox(str(tmp_path), None)
    with ExitStack() as stack:
        hold(stack, tmp_path / "large", 512)
        assert sandbox.size_kib() < 512 <= sandbox.size_kib([os.getpid()])


def test_a_file_with_many_names_counts_once_and_one_with_holes_by_its_blocks(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(b"x" * (512 << 10))
    for number in range(20):
        os.link(tmp_path / "large", tmp_path / "folder" / f"name{number}")
    with (tmp_path / "holes").open("wb") as stream:
        stream.truncate(1 << 40)
    found_kib, closed = tree_kib(str(tmp_path))
    assert 512 <= found_kib < 576
    assert closed == 0


def test_empty_files_count_too(tmp_path: Path) -> None:
    for number in range(500):
        (tmp_path / str(number)).touch()
    assert tree_kib(str(tmp_path))[0] >= 500


def test_no_depth_is_too_much_and_no_descriptor_stays(tmp_path: Path) -> None:
    """Deeper than a path may be long, and than a process may have files open; files on the way up are found as well."""
    before, here = os.listdir("/proc/self/fd"), os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for _ in range(1500):
            os.mkdir("next", dir_fd=here)
            os.mkdir("after", dir_fd=here)
            below = os.open("next", os.O_RDONLY | os.O_DIRECTORY, dir_fd=here)
            os.close(here)
            here = below
        large = os.open("large", os.O_WRONLY | os.O_CREAT, dir_fd=here)
        os.write(large, b"x" * (2048 << 10))
        os.close(large)
    finally:
        os.close(here)
    try:
        assert tree_kib(str(tmp_path))[0] >= 2048 + 3000
        assert len(os.listdir("/proc/self/fd")) == len(before)
    finally:
        remove_tree(str(tmp_path / "next"))


def test_a_folder_that_is_moved_ends_no_walk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the way back its ".." is another one than the walk came from."""
    monkeypatch.setattr(disk_use, "MOST_HELD", 1)
    inner = tmp_path / "a" / "b" / "c" / "d"
    inner.mkdir(parents=True)
    (tmp_path / "large").write_bytes(b"x" * (512 << 10))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "large").write_bytes(b"x" * (512 << 10))
    opening = os.open

    def moves(path: str, flags: int, *arguments: int, dir_fd: int | None = None) -> int:
        if path == "d":
            (tmp_path / "a" / "b" / "c").rename(tmp_path / "c")
        return opening(path, flags, *arguments, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", moves)
    assert tree_kib(str(tmp_path))[0] >= 1024


@pytest.mark.skipif(ME == 0, reason="root reads all folders")
def test_folders_that_are_closed_are_told(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o300)
    assert tree_kib(str(tmp_path))[1] == 1
