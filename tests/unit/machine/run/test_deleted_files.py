"""Files that processes have deleted and keep open."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from condor_actors.machine.run.deleted_files import deleted_kib
from condor_actors.machine.run.sandbox import Sandbox

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
