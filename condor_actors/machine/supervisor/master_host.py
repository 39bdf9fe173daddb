"""What a master does to its machine: processes, mail, the installed version, reports to the process that started it.

`Host` is what the master asks for; `RealHost` does it. The word (``READY=1``, ``STATUS=…``) goes to ``NOTIFY_SOCKET``,
as systemd's services and ``condor_personal`` expect it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final, Protocol

from condor_actors.config import Config
from condor_actors.machine.supervisor import fork_server
from condor_actors.machine.supervisor.process_marks import KeptProcess, started_at_s
from condor_actors.machine.supervisor.surviving_processes import Ended, KeptProcesses
from condor_actors.own_files import read_own

__all__ = ["Host", "RealHost", "last_lines", "notify"]

DISTRIBUTION: Final = "condor-actors"
PRIVATE: Final = ("NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC")
"""Environment that is meant for the master alone."""

EndedCall = Callable[[str, int, int | None, int | None], None]
"""(name, pid, exit status, signal)"""

ReadConfig = Callable[[str, str | None, Mapping[str, str]], Config]


class Host(Protocol):
    """What the master needs of its machine."""

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], errors: Path) -> int:
        """Start a daemon's process; its id. Raises OSError."""

    def configuration(self, kind: str, local_name: str | None, environment: Mapping[str, str]) -> Config:
        """What a daemon that starts now would read.

        Raises:
            ConfigError: it would refuse that and end.
        """

    def adopt(self, kinds: Mapping[str, str]) -> tuple[tuple[str, int, float], ...]:
        """Daemons that an earlier master left: name, id, start."""

    def on_end(self, call: EndedCall) -> None:
        """Who is told of each end."""

    def signal(self, name: str, number: int) -> None:
        """Send a signal."""

    def notify(self, text: str) -> None:
        """Tell the process that started the master."""

    def installed_version(self) -> str:
        """What identifies the software on the disk now."""

    def finish(self, how: str, renew: bool) -> None:
        """End this process; with ``renew``, become a fresh one of the same id."""


class RealHost:
    """The machine itself.

    Args:
        processes: keeps them.
        read: the configuration of a daemon (service name, local name, environment), looked over.
    """

    def __init__(self, processes: KeptProcesses, read: ReadConfig) -> None:
        self._processes = processes
        self._read = read
        self._call: EndedCall | None = None
        self._loaded = self._version()
        self.renew = False

    def on_end(self, call: EndedCall) -> None:
        """Tell ``call`` of each process that ends."""
        self._call = call

    def start(self, name: str, arguments: Sequence[str], environment: Mapping[str, str], errors: Path) -> int:
        """Start ``python -m condor_actors.services`` with these arguments.

        Raises:
            OSError: the machine cannot.
        """
        command = [sys.executable, "-P", "-m", "condor_actors.services", *arguments]
        whole = {key: value for key, value in os.environ.items() if key not in PRIVATE}
        whole.update(environment)
        errors.parent.mkdir(parents=True, exist_ok=True)
        if fork_server.server() is not None and self._version() != self._loaded:
            fork_server.end()  # what it has loaded is not what is installed
        return self._processes.start(name, command, whole, errors=errors, ended=self._ended).pid

    def configuration(self, kind: str, local_name: str | None, environment: Mapping[str, str]) -> Config:
        """Read the files again, as that daemon would.

        Raises:
            ConfigError: a value cannot be used.
        """
        return self._read(kind, local_name, {**os.environ, **environment})

    def adopt(self, kinds: Mapping[str, str]) -> tuple[tuple[str, int, float], ...]:
        """Take up the daemons that are alive; ``kinds`` says what kind of daemon each name is."""

        def is_ours(name: str, command: list[str]) -> bool:
            if "condor_actors.services" not in command:
                return False
            at = command.index("condor_actors.services") + 1
            return command[at : at + 1] == [kinds.get(name, name.lower())]

        found = self._processes.adopt(self._ended, is_ours=is_ours)
        return tuple((process.name, process.pid, started_at_s(process)) for process in found)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to a daemon."""
        self._processes.signal(name, number)

    def notify(self, text: str) -> None:
        """Tell systemd, or condor_personal."""
        notify(text, os.environ)

    def _version(self) -> str:
        """The same; empty in the middle of an installation."""
        try:
            return self.installed_version()
        except (metadata.PackageNotFoundError, OSError):
            return ""

    def installed_version(self) -> str:
        """Version and date of the installed package, as they are on the disk now."""
        distribution = metadata.distribution(DISTRIBUTION)
        records = [file for file in distribution.files or () if file.name == "RECORD"]
        files = [Path(str(distribution.locate_file(file))) for file in records]
        dates = [str(file.stat().st_mtime_ns) for file in files if file.exists()]
        return " ".join([distribution.version, *dates])

    def finish(self, how: str, renew: bool) -> None:
        """End this process as a signal from outside would."""
        self.renew = renew
        os.kill(os.getpid(), signal.SIGQUIT if how == "fast" else signal.SIGTERM)

    def _ended(self, process: KeptProcess, how: Ended) -> None:
        if self._call is not None:
            self._call(process.name, process.pid, how.code, how.signal)


def notify(text: str, environ: Mapping[str, str]) -> None:
    """Send a line to NOTIFY_SOCKET; nothing when there is none or nobody hears."""
    path = environ.get("NOTIFY_SOCKET", "")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.setblocking(False)
        try:
            channel.sendto(text.encode(), address)
        except OSError:
            return


def last_lines(path: Path, count: int, *, most_bytes: int = 65536) -> list[str]:
    """The last lines of a file; none when it cannot be read."""
    try:
        content = read_own(path, last=most_bytes)
    except OSError:
        return []
    return content.decode(errors="replace").splitlines()[-count:] if count else []
