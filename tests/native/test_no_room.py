"""No room at home, by quota, limit or a full disk: a program learns the same away, at its file's close at the latest.

Quotas are a file system's own where one can be made (btrfs, by root); everywhere a filter stands in for them with which
the kernel refuses what has a certain size or mode (programs/refuse.c).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.native.test_conformance import AWAY, NATIVE, compiled_here, place, run

__all__ = ["place"]

LIMITED_BYTES = 300_000  # less than what the program writes at once
DISK_BYTES = 4 << 20
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")

Room = Callable[[str], Path]


def same_here_and_away(program: list[str], folders: tuple[Path, Path], under: tuple[str, ...] = ()) -> list[str]:
    """Run PROGRAM natively and away, both by the command UNDER; return what both have written."""
    native = run(NATIVE, program, folders[0], under)
    assert run(AWAY, program, folders[1], under) == native
    return native


def test_what_a_filter_refuses(place: Path) -> None:
    program, refuse = compiled_here("no_room", place), compiled_here("refuse", place)
    lines = same_here_and_away([program], (place / "work", place / "work"), (refuse,))
    assert len(lines) > 35
    assert all("EDQUOT" in line for line in lines[:-1])


@pytest.mark.skipif(shutil.which("prlimit") is None, reason="needs prlimit")
def test_what_is_cut_short_by_a_limit(place: Path) -> None:
    program = compiled_here("no_room", place)
    under = ("prlimit", f"--fsize={LIMITED_BYTES}")
    lines = same_here_and_away([program, "short"], (place / "work", place / "work"), under)
    assert [line.partition(": ")[2] for line in lines] == [f"EFBIG, {LIMITED_BYTES} bytes"] * 2


def done(*words: str) -> None:
    """Run a command that needs what this machine may not have."""
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"{words[0]}: {getattr(error, 'stderr', None) or error}")


@pytest.fixture
def disk(place: Path) -> Iterator[Path]:
    """Yield where a file system may be mounted."""
    if os.geteuid():
        pytest.skip("needs root to mount a small disk")
    mounted = place / "disk"
    mounted.mkdir()
    yield mounted
    subprocess.run(["umount", str(mounted)], check=False, capture_output=True)
    mounted.rmdir()


def quota_of_btrfs(disk: Path) -> Room:
    """Mount a disk; return what makes a folder of it with a quota of its own."""
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("needs btrfs-progs")
    content = disk.with_suffix(".content")
    with content.open("wb") as file:
        file.truncate(128 << 20)  # the least that this file system takes
    done("mkfs.btrfs", "-q", "-m", "single", "-d", "single", str(content))
    done("mount", "-o", "loop", str(content), str(disk))
    content.unlink()
    done("btrfs", "quota", "enable", str(disk))

    def room(name: str) -> Path:
        done("btrfs", "subvolume", "create", str(disk / name))
        done("btrfs", "qgroup", "limit", str(DISK_BYTES), str(disk / name))
        return disk / name / "work"

    return room


def full_tmpfs(disk: Path) -> Room:
    """Return what makes a small disk in memory."""

    def room(name: str) -> Path:
        del name
        done("mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "none", str(disk))
        return disk / "work"

    return room


@pytest.mark.parametrize(("made", "error"), [(quota_of_btrfs, "EDQUOT"), (full_tmpfs, "ENOSPC")])
def test_what_a_disk_refuses(made: Callable[[Path], Room], error: str, disk: Path, place: Path) -> None:
    program, room = compiled_here("no_room", place), made(disk)
    native = run(NATIVE, [program, "fill"], room("native"))
    if made is full_tmpfs:
        done("umount", str(disk))
    assert run(AWAY, [program, "fill"], room("away")) == native
    assert sum(error in line for line in native) > 25
