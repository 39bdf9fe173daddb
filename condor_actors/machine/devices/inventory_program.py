"""Runs the programs that name a machine's units (MACHINE_RESOURCE_INVENTORY_<NAME>)."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping

__all__ = ["take_inventories"]

LONGEST_S = 60
MOST_BYTES = 1 << 20
DISCOVERY = "condor_gpu_discovery"


def _words(command: str) -> list[str]:
    """The command's words; our own program is found beside the daemon where it is not at the place that is named."""
    words = shlex.split(command)
    if words and os.path.basename(words[0]) == DISCOVERY and shutil.which(words[0]) is None:
        return [sys.executable, "-m", "condor_actors.tools.pool.gpu_discovery", *words[1:]]
    return words


def take_inventories(commands: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What each command wrote, by resource, and for those that failed a sentence that says why (blocks)."""
    found, failed = {}, []
    for name, command in commands.items():
        try:
            words = _words(command)
            if not words:
                raise ValueError("it is empty")
            done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST_S, check=False)
            if done.returncode != 0:
                said = done.stderr.decode(errors="replace").strip().splitlines()
                raise ValueError(f"it ended with {done.returncode}{': ' + said[-1] if said else ''}")
            if len(done.stdout) > MOST_BYTES:
                raise ValueError(f"it wrote more than {MOST_BYTES} bytes")
            found[name] = done.stdout.decode()
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            failed.append(f"MACHINE_RESOURCE_INVENTORY_{name} = {command}: {error}")
    return found, tuple(failed)
