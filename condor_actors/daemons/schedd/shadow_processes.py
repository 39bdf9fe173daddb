"""Processes of shadow hosts: started in sessions of their own, told from later ones with the same pid.

Theory: a shadow host must outlive the schedd that started it, so it is no child to be waited for: it has its own
session, its own log, and the schedd knows it by (pid, birth), birth being the kernel's start time of the process.
"""

from __future__ import annotations

import os
import pwd
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import attrs
from twisted.logger import Logger

__all__ = ["HostProcesses", "RealHostProcesses", "User", "own_account", "user_ids"]


LOGS_OF_THE_GONE = 50
HOST_ID_VARIABLE = "_CONDOR_SHADOW_HOST_ID"
"""What the schedd calls a host; in the environment, which other users cannot read."""


@attrs.frozen
class User:
    """A user of this machine."""

    name: str
    uid: int
    gid: int


def user_ids(name: str) -> User | None:
    """The user of that name; None when this machine has none."""
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return User(name, entry.pw_uid, entry.pw_gid)


def own_account() -> str:
    """The name of the account of this process; its number, when it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


class HostProcesses(Protocol):
    """The edge through which the schedd starts and looks after shadow hosts."""

    def start(self, host_id: str) -> int:
        """Start one; returns its pid.

        Raises:
            OSError: it cannot be started.
        """

    def birth(self, pid: int) -> str:
        """The start time of a process, empty when there is none."""

    def kill(self, pid: int, birth: str) -> None:
        """Kill it, if it is still the same."""

    def find_user(self, name: str) -> User | None:
        """The user a host is to become; None when this machine has none."""


def forget_old_logs(folder: Path, kept: int = LOGS_OF_THE_GONE) -> None:
    """Remove the logs of hosts that are gone, but for those written last; each host has logs of its own, by its pid."""
    old: list[tuple[float, Path]] = []
    for path in folder.glob("ShadowHostLog.*"):
        pid = path.name.split(".")[1]
        if not (pid.isdecimal() and os.path.exists(f"/proc/{pid}")):
            with suppress(OSError):
                old.append((path.stat().st_mtime, path))
    for _, path in sorted(old)[: max(0, len(old) - kept)]:
        with suppress(OSError):
            path.unlink()


class RealHostProcesses:
    """The real one.

    Args:
        run: the folder of the schedd's socket.
        log: where a host's first words go, before it has a log.
    """

    def __init__(self, run: Path, log: Path) -> None:
        self._run = run
        self._log_folder = log
        self._children: dict[int, subprocess.Popen[bytes]] = {}
        self.log = Logger("condor.schedd")

    def start(self, host_id: str) -> int:
        """As the protocol says."""
        self._reap()
        forget_old_logs(self._log_folder)
        command = [sys.executable, "-m", "condor_actors.services", "shadow-host", "--schedd-socket",
                   str(self._run / "schedd.sock")]
        try:
            errors = open(self._log_folder / "ShadowHostErrors", "ab")  # noqa: SIM115 - the child keeps it
        except OSError:
            errors = open(os.devnull, "ab")  # noqa: SIM115
        with errors:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=errors, stderr=errors,
                                     start_new_session=True, close_fds=True, cwd="/",
                                     env={**os.environ, HOST_ID_VARIABLE: host_id})
        self._children[child.pid] = child
        return child.pid

    def birth(self, pid: int) -> str:
        """As the protocol says."""
        self._reap()
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return ""
        fields = text.rpartition(")")[2].split()
        return "" if fields[0] in ("Z", "X") else fields[19]

    def kill(self, pid: int, birth: str) -> None:
        """As the protocol says."""
        if birth and self.birth(pid) == birth:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError as error:
                self.log.warn("cannot kill shadow host {pid}: {error}", pid=pid, error=error)
        self._reap()

    def find_user(self, name: str) -> User | None:
        """As the protocol says."""
        return user_ids(name)

    def _reap(self) -> None:
        """Take note of hosts that have ended."""
        for pid, child in list(self._children.items()):
            if child.poll() is not None:
                del self._children[pid]
