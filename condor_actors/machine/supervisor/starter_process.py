"""The starter host as a process: started so that it outlives the startd, found again, and watched.

Theory: the starter host is the parent of all jobs, so it must survive its startd.  It gets a session of its own and
nothing of the startd's but its log; ``$(RUN)/starter-host.address`` says which process it is.  Its end is noticed by a
pidfd, which also works for a process that a former startd has started.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from condor_actors.machine.run.process_watch import ProcessWatch
from condor_actors.machine.run.scheduling_starvation import ProcessorWait

__all__ = ["StarterHosts", "StarterProcess"]

HASTY_S = 3.0


class StarterHosts(Protocol):
    """What a startd needs: start a starter host, find a living one, hear of its end."""

    def living(self) -> int:
        """The pid of a starter host that runs already, or is about to; 0: none."""

    def start(self) -> int:
        """Start one; returns its pid."""

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have ``ended(pid)`` called when that process is gone; only the latest pid is watched."""

    def stop(self, pid: int, fast: bool) -> None:
        """Ask it to end."""

    def kill(self, pid: int) -> None:
        """End it at once."""

    def lacks_processor(self, pid: int) -> bool:
        """Whether it wanted the processor most of the time since this was last asked (or since it is watched), and did
        not get it."""


class StarterProcess:
    """The real one.

    Args:
        run: the folder of sockets.
        log: where it writes before its own log is open.
        reactor: Twisted's.
        environment: of the new process.
    """

    def __init__(self, run: Path, log: Path, reactor: Any, environment: Mapping[str, str] | None = None) -> None:
        self._run = run
        self._log = log
        self._reactor = reactor
        self._environment = dict(os.environ if environment is None else environment)
        self._watched: ProcessWatch | None = None
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self._started_s = -HASTY_S
        self._gave_port = False
        self._wait = ProcessorWait()

    def living(self) -> int:
        """The pid in the address file, when that process is a starter host of this folder; else a child of ours that
        has not come so far as to write its own."""
        pid = self._listening()
        return pid or next((pid for pid, child in self._children.items() if child.poll() is None), 0)

    def _listening(self) -> int:
        try:
            words = (self._run / "starter-host.address").read_text().split()
            pid = int(words[-1])
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return 0
        socket = str(self._run / "startd.sock").encode()
        return pid if b"starter-host" in command and socket in command else 0

    def start(self) -> int:
        """Start ``python -m condor_actors.services starter-host``.

        It is given the port of the one before, so that shadows that look for lost runs learn at once that they are
        gone; should that one fail at once, the port may be another's by now, and the next one takes any.
        """
        environment = dict(self._environment)
        port = self._former_port()
        hasty = self._gave_port and time.monotonic() - self._started_s < HASTY_S
        self._gave_port = bool(port) and not hasty
        if self._gave_port:
            environment["_CONDOR_STARTER_HOST_PORT"] = port
        self._started_s = time.monotonic()
        command = [sys.executable, "-m", "condor_actors.services", "starter-host", "--startd-socket",
                   str(self._run / "startd.sock")]
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open(self._log, "ab") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     start_new_session=True, env=environment, cwd="/")
        self._children[child.pid] = child
        return child.pid

    def _former_port(self) -> str:
        try:
            node = (self._run / "starter-host.address").read_text().split()[0]
        except (OSError, IndexError):
            return ""
        port = node.strip("<>").rpartition(":")[2]
        return port if port.isdecimal() else ""

    def watch(self, pid: int, ended: Callable[[int], None]) -> None:
        """Have ``ended(pid)`` called when that process is gone."""
        if self._watched is not None:
            if self._watched.pid == pid:
                return
            self._watched.stop()
        self._wait.since_last(pid)

        def gone() -> None:
            child = self._children.pop(pid, None)
            if child is not None:
                child.wait()
            self._watched = None
            ended(pid)

        self._watched = ProcessWatch(pid, self._reactor, gone)

    def stop(self, pid: int, fast: bool) -> None:
        """TERM, or QUIT when it has to be fast."""
        try:
            os.kill(pid, 3 if fast else 15)
        except ProcessLookupError:
            pass

    def kill(self, pid: int) -> None:
        """KILL; the jobs' launchers go with it."""
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass

    def lacks_processor(self, pid: int) -> bool:
        """Whether it waited for the processor most of the time since this was last asked."""
        return self._wait.since_last(pid)

    def close(self) -> None:
        """Watch nothing any more; the process goes on."""
        if self._watched is not None:
            self._watched.stop()
            self._watched = None
