"""Whether this machine can run a job in an image: by running a program in one.

Theory: the program takes a moment, and on a machine in trouble a long one, so a startd has it run beside its reactor,
when it begins and each hour; what has changed is told.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from condor_actors.machine.containers.root_folder import make_layers
from condor_actors.machine.native.programs import NativeProgramMissing, launcher_path

__all__ = ["ContainerProbe", "containers_work"]

PROBE_S = 20
AGAIN_S = 3600.0
PLACES = ("/proc", "/sys", "/dev")
_found: list[tuple[float, bool]] = []
_looking = threading.Lock()


def containers_work() -> bool:
    """Run the launcher itself, which needs no library, as the program of an image; known for an hour (blocks)."""
    with _looking:
        now_s = time.monotonic()
        if not _found or now_s - _found[-1][0] >= AGAIN_S:
            _found[:] = [(now_s, _runs())]
        return _found[-1][1]


class ContainerProbe:
    """Looks now and each hour, beside the reactor.

    Args:
        reactor: Twisted's, for the hours.
        told: what was found, when it is something else than before; at first nothing is known to work.
        in_thread: runs a function where it does not hold the actors up.
        look: what blocks; works_here: whether the machine is this one, and no simulated one, which says nothing.
    """

    def __init__(self, reactor: Any, told: Callable[[bool], None],
                 in_thread: Callable[..., Deferred[Any]] = deferToThread,
                 look: Callable[[], bool] = containers_work, *, works_here: bool = True) -> None:
        self._reactor = reactor
        self._told = told
        self._in_thread = in_thread
        self._look = look
        self._works, self._stopped = False, not works_here
        self._next: Any = None

    def start(self) -> None:
        """Look; what comes of it is told later."""
        self._next = None
        if not self._stopped:
            self._in_thread(self._look).addCallbacks(self._looked, lambda _: self._looked(False))

    def _looked(self, works: bool) -> None:
        if self._stopped:
            return
        self._next = self._reactor.callLater(AGAIN_S, self.start)
        if works != self._works:
            self._works = works
            self._told(works)

    def stop(self) -> None:
        """Tell nothing more."""
        self._stopped = True
        if self._next is not None:
            self._next.cancel()
            self._next = None


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
