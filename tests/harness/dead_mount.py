"""A file system whose server never answers, as a network's may: what touches it waits until it is taken away."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

DETACH = 2


@contextmanager
def dead_mount(folder: Path) -> Iterator[Path]:
    """Below ``folder``, while it lasts; the test is skipped where this machine does not let us mount one."""
    library = ctypes.CDLL(None, use_errno=True)
    place = folder / "dead"
    place.mkdir()
    try:
        server = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        pytest.skip(f"this machine has no file systems in user space: {error.strerror}")
    options = f"fd={server},rootmode=40777,user_id=0,group_id=0,allow_other"
    try:
        if library.mount(b"dead", bytes(place), b"fuse", 0, options.encode()):
            pytest.skip(f"this machine does not let us mount a dead file system: {os.strerror(ctypes.get_errno())}")
        yield place
    finally:
        library.umount2(bytes(place), DETACH)
        os.close(server)
