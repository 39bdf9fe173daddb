"""Processes of a job that see each other only, where nobody is root.

Theory: in a pool of an ordinary user a job has the rights of its starter host, and could end it.  Where the kernel
lets users make namespaces, it gets one of users (in which it is itself, and nobody else is anybody), one of processes
and one of mounts for a /proc of its own: it has no name for any process but its own, and none of them outlives it.
"""

from __future__ import annotations

import subprocess

from condor_actors.machine.native.programs import NativeProgramMissing, launcher_path

__all__ = ["OWN_PIDS", "own_pids_allowed"]

OWN_PIDS = ("user", "pid", "mount")
PROBE_S = 20


def own_pids_allowed() -> bool:
    """Whether the kernel lets this process, which is not root, give a job these namespaces."""
    try:
        command = [launcher_path(), "--isolate", ",".join(OWN_PIDS), "--", "/bin/true"]
    except NativeProgramMissing:
        return False
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S,
                          check=False).returncode == 0
