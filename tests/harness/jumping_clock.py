"""A wall clock that tests set, for the processes that they start: see ``jumping_clock.c``."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

__all__ = ["JumpingClock"]

SOURCE = Path(__file__).with_name("jumping_clock.c")


class JumpingClock:
    """The wall clock of every process that has :attr:`environment`.

    Args:
        folder: for its files; every account can read what is in it.

    Attributes:
        environment: variables that give a process this clock, and what it starts.
    """

    def __init__(self, folder: Path) -> None:
        library = folder / "jumping_clock.so"
        self._offset = folder / "offset"
        self._offset.write_bytes(struct.pack("q", 0))
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"], check=True)
        self.environment = {"LD_PRELOAD": str(library), "JUMPING_CLOCK": str(self._offset)}

    def jump(self, seconds: int) -> None:
        """Set the clock of all of them to so many seconds beside the real one."""
        with self._offset.open("r+b") as file:
            os.pwrite(file.fileno(), struct.pack("q", seconds), 0)
