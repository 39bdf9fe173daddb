"""Processes of shadow hosts: started in sessions of their own, told from later ones with the same pid.

Theory: a shadow host must outlive the schedd that started it, so it is no child to be waited for: it has its own
session, its own log, and the schedd knows it by (pid, birth), birth being the kernel's start time of the process.  A
schedd that has dropped root orders its helper to start a host as the owner's account; such a host writes its log to the
file that it is given, since it can make none beside those of the pool's.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from twisted.logger import Logger

from condor_actors import accounts
from condor_actors.daemons.schedd.job_accounts import JobAccounts, User, user_ids
from condor_actors.machine.privilege.helper import send_signal
from condor_actors.machine.supervisor import fork_server

__all__ = ["HOST_ID_VARIABLE", "HOST_PROGRAM", "HOST_WORDS", "HostProcesses", "RealHostProcesses", "own_account"]

LOGS_OF_THE_GONE = 50
HOST_PROGRAM = "shadow-host"
HOST_WORDS = ("-m", "condor_actors.services", HOST_PROGRAM, "--schedd-socket")
HOST_ID_VARIABLE = "_CONDOR_SHADOW_HOST_ID"
"""What the schedd calls a host; in the environment, which other users cannot read."""


def own_account() -> str:
    """The name of the account of this process; its number, when it has none."""
    found = accounts.numbered(os.getuid())
    return found.name if found is not None else str(os.getuid())


class HostProcesses(Protocol):
    """The edge through which the schedd starts and looks after shadow hosts."""

    def start(self, host_id: str, owner: str) -> int:
        """Start one, which is to be that owner's (empty: nobody's yet); returns its pid.

        Raises:
            OSError: it cannot be started.
        """

    def birth(self, pid: int) -> str:
        """The start time of a process, empty when there is none."""

    def kill(self, pid: int, birth: str) -> None:
        """Kill it, if it is still the same."""

    def find_user(self, name: str) -> User | None:
        """The user whose account a host has in the end; None when this machine has none.

        Raises:
            NotYet: the user database has not said so far.
        """


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
        accounts: what is ordered of the helper; None: there is none, and hosts begin with this process's rights.
    """

    def __init__(self, run: Path, log: Path, accounts: JobAccounts | None = None) -> None:
        self._run = run
        self._log_folder = log
        self._accounts = accounts
        self._started: set[int] = set()
        self._starting = threading.Lock()
        self.log = Logger("condor.schedd")

    def start(self, host_id: str, owner: str) -> int:
        """As the protocol says; on any thread."""
        with self._starting:  # one new log at a time
            return self._start(host_id, owner)

    def _start(self, host_id: str, owner: str) -> int:
        self._reap()
        forget_old_logs(self._log_folder)
        if self._accounts is not None:
            return self._order(self._accounts, host_id, owner)
        command = [sys.executable, *HOST_WORDS, str(self._run / "schedd.sock")]
        try:
            errors = open(self._log_folder / "ShadowHostErrors", "ab")  # noqa: SIM115 - the child keeps it
        except OSError:
            errors = open(os.devnull, "ab")  # noqa: SIM115
        with errors:
            pid = fork_server.start(command, {**os.environ, HOST_ID_VARIABLE: host_id}, errors.fileno())
        self._started.add(pid)
        return pid

    def _order(self, accounts: JobAccounts, host_id: str, owner: str) -> int:
        user = accounts.find(owner)
        if user is None:
            raise OSError(errno.ESRCH, f"there is no user {owner!r} on this machine")
        fresh = self._log_folder / "ShadowHostLog.new"
        try:
            fresh.unlink(missing_ok=True)
            output = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError:  # a full disk stops no job
            output = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            pid = accounts.helper.program(HOST_PROGRAM, output, uid=user.uid, variables={HOST_ID_VARIABLE: host_id})
        finally:
            os.close(output)
        with suppress(OSError):
            fresh.rename(self._log_folder / f"ShadowHostLog.{pid}")
        self._started.add(pid)
        return pid

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
                send_signal(pid, signal.SIGKILL)
            except OSError as error:
                self.log.warn("cannot kill shadow host {pid}: {error}", pid=pid, error=error)
        self._reap()

    def find_user(self, name: str) -> User | None:
        """As the protocol says."""
        return self._accounts.find(name) if self._accounts is not None else user_ids(name)

    def _reap(self) -> None:
        """Take note of hosts that have ended."""
        for pid in tuple(self._started):
            with suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    continue
            self._started.discard(pid)
