"""Whether this machine can run a job in an image: by running a program in one."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time

from condor_actors.machine.containers.root_folder import make_layers
from condor_actors.machine.native.programs import NativeProgramMissing, launcher_path

__all__ = ["containers_work"]

PROBE_S = 20
AGAIN_S = 3600.0
PLACES = ("/proc", "/sys", "/dev")
_found: list[tuple[float, bool]] = []


def containers_work() -> bool:
    """Run the launcher itself, which needs no library, as the program of an image; known for an hour (blocks)."""
    now_s = time.monotonic()
    if not _found or now_s - _found[-1][0] > AGAIN_S:
        _found[:] = [(now_s, _runs())]
    return _found[-1][1]


def _runs() -> bool:
    try:
        launcher = launcher_path()
    except NativeProgramMissing:
        return False
    with tempfile.TemporaryDirectory(prefix="condor-probe-") as folder:
        image, layers = os.path.join(folder, "image"), os.path.join(folder, "layers")
        os.mkdir(image)
        shutil.copy(launcher, os.path.join(image, "program"))
        make_layers(layers, image, PLACES, ())
        try:
            done = subprocess.run(
                [launcher, "--isolate", "user,mount,pid,ipc,uts", "--layers", layers, "--image", image, "--",
                 "/program", "--", "/there-is-no-such-program"],
                stdin=subprocess.DEVNULL, capture_output=True, timeout=PROBE_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        work = os.path.join(layers, "work", "work")
        if os.path.isdir(work):
            os.chmod(work, 0o700)
        return done.stderr.startswith(b"exec ") and b"/there-is-no-such-program" in done.stderr
