"""Every sensor of this machine's owner that the startd itself reads.

Theory: events and readings.  A sensor that can tell at once calls ``touched``; all of them are read as well whenever
the startd looks (POLLING_INTERVAL), and what cannot be read is told as that.  X displays are kbdd's, which has their
rights. Terminals of the pool's own jobs (and of shells beside them) are not the owner's.  When someone was last here
is kept as the date of a file, so a startd that is started again knows it.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import psutil

from condor_actors import accounts
from condor_actors.machine.sensors.input_devices import InputDevices
from condor_actors.machine.sensors.readings import IdleNow, processes_below
from condor_actors.machine.sensors.terminals import TerminalWatch

if TYPE_CHECKING:
    from condor_actors.machine.sensors.logind import Logind

__all__ = ["HostSensors", "own_terminals"]

SENSORS = ("terminals", "input", "logind", "utmp")
PTS_MAJOR = range(136, 144)
OWNED_S = 60.0
"""How long it counts whose a terminal was found to be."""


@attrs.frozen
class _Owned:
    """Whether a terminal (the jobs' process, its inode, the date of that) is the jobs', and until when that counts."""

    terminal: tuple[int, int, int]
    until_s: float
    by_jobs: bool


def own_terminals(root: int) -> frozenset[str]:
    """The pseudo terminals that processes below ``root`` have as theirs: ``tty:pts/4`` …"""
    found = set()
    for words in processes_below(root).values():
        number = int(words[4])
        if os.major(number) in PTS_MAJOR:
            found.add(f"tty:pts/{os.minor(number) + 256 * (os.major(number) - PTS_MAJOR.start)}")
    return frozenset(found)


class HostSensors:
    """Reads every sensor of the owner's presence on this machine.

    Args:
        wanted: which of :data:`SENSORS` to use (OWNER_SENSORS).
        memory: the file whose date is that of the last input; None: it is not kept.
        dev: where devices are; bus: the machine's D-Bus.
    """

    def __init__(self, wanted: Collection[str] = SENSORS, *, memory: Path | None = None, dev: str = "/dev",
                 bus: str | None = None) -> None:
        self._wanted = frozenset(wanted)
        self._memory = memory
        self._dev = dev
        self._told: Callable[[IdleNow], None] = lambda word: None
        self._jobs_below: Callable[[], int] = lambda: 0
        self._last_s: dict[str, float] = {}
        self._owned: dict[str, _Owned] = {}
        self._before_s = self._remembered()
        self._terminals: TerminalWatch | None = None
        self._input: InputDevices | None = None
        self.logind: Logind | None = None
        self._no_logind = ""
        if "logind" in self._wanted:
            try:
                from condor_actors.machine.sensors.logind import Logind
            except ImportError as error:
                self._no_logind = f"the D-Bus library is not installed ({error})"
            else:
                self.logind = Logind(self._touched, bus)

    def _remembered(self) -> float | None:
        if self._memory is None:
            return None
        try:
            seen_s = self._memory.stat().st_mtime
        except OSError:
            return None
        return seen_s if psutil.boot_time() < seen_s <= time.time() else None

    def start(self, reactor: Any, told: Callable[[IdleNow], None], jobs_below: Callable[[], int]) -> None:
        """Tell ``told`` of input as it happens; ``jobs_below`` gives the process below which the pool's jobs run."""
        self._told, self._jobs_below = told, jobs_below
        if "terminals" in self._wanted:
            with contextlib.suppress(OSError):
                self._terminals = TerminalWatch(self._touched, self._dev)
                self._terminals.start(reactor)
        if "input" in self._wanted:
            self._input = InputDevices(self._touched, f"{self._dev}/input")
            self._input.start(reactor)
        if self.logind is not None:
            self.logind.start(reactor)

    def _touched(self, source: str) -> None:
        """Someone is there."""
        if source.startswith("tty:") and self._is_ours(source):
            return
        self._last_s[source] = time.time()
        self.remember()
        self._told(IdleNow(source, 0.0))

    def _is_ours(self, source: str) -> bool:
        """Whether a terminal is that of a job of the pool, or of a shell beside one.

        To find out takes a look at all processes of jobs, so what was found counts for a while, as long as it is the
        same terminal: one that is made anew has another date.
        """
        jobs = self._jobs_below()
        if not jobs:
            return False
        try:
            status = os.stat(f"{self._dev}/{source.partition(':')[2]}")
        except OSError:
            return False
        terminal, now_s = (jobs, status.st_ino, status.st_ctime_ns), time.monotonic()
        known = self._owned.get(source)
        if known is None or known.terminal != terminal or now_s >= known.until_s:
            known = self._owned[source] = _Owned(terminal, now_s + OWNED_S, source in own_terminals(jobs))
        return known.by_jobs

    def remember(self, age_s: float = 0.0) -> None:
        """Someone was here ``age_s`` seconds ago: the date of the file."""
        if self._memory is None:
            return
        when_s = time.time() - age_s
        with contextlib.suppress(OSError):
            if not self._memory.exists():
                self._memory.touch(mode=0o644)
            elif self._memory.stat().st_mtime >= when_s:
                return
            os.utime(self._memory, (when_s, when_s))

    def idle(self, polled: Collection[IdleNow]) -> tuple[IdleNow, ...]:
        """All readings now; ``polled`` are those of :class:`~condor_actors.machine.sensors.readings.HostReadings`."""
        now_s = time.time()
        for each in (self._terminals, self._input, self.logind):
            if each is not None:
                each.refresh()
        jobs = self._jobs_below()
        ours = own_terminals(jobs) if jobs else frozenset()
        logins = self._logins() if "utmp" in self._wanted else {}
        found = [self._dated(each, logins, now_s) for each in polled if each.source not in ours]
        found += [IdleNow(source, now_s - last_s) for source, last_s in self._last_s.items()
                  if source.startswith(("input:", "login:"))]
        spoken = {each.source for each in found}
        if self._input is not None:
            found += [each for each in self._input.unknown() if each.source not in spoken]
        if self.logind is not None:
            found += self.logind.readings(now_s)
            if not self.logind.is_there:
                found.append(IdleNow("logind:", None, self.logind.problem or "no word yet"))
        elif self._no_logind:
            found.append(IdleNow("logind:", None, self._no_logind))
        if self._before_s is not None:
            found.append(IdleNow("seen:", now_s - self._before_s))
        if any(each.idle_s is not None for each in found if each.source != "boot"):
            found = [each for each in found if each.source != "boot"]
        return tuple(found)

    def _dated(self, polled: IdleNow, logins: dict[str, str], now_s: float) -> IdleNow:
        """The later of a terminal's access time and the event seen there; sessions from elsewhere under their name."""
        idle_s = polled.idle_s
        last_s = self._last_s.get(polled.source)
        if last_s is not None and idle_s is not None:
            idle_s = min(idle_s, max(0.0, now_s - last_s))
        host = logins.get(polled.source.partition(":")[2])
        if host is None:
            return IdleNow(polled.source, idle_s, polled.text)
        return IdleNow(f"ssh:{polled.source.partition(':')[2]}", idle_s, f"a session from {host}")

    @staticmethod
    def _logins() -> dict[str, str]:
        """Terminals of sessions from elsewhere, by utmp: ``pts/3`` to the host."""
        return {user.terminal: user.host for user in psutil.users()
                if user.terminal and user.host and not user.host.startswith((":", "tmux", "mosh"))}

    def screen_locked(self) -> bool | None:
        """Whether the screen is locked; None: nobody knows."""
        return self.logind.screen_locked() if self.logind is not None else None

    def console_users(self) -> frozenset[int]:
        """Who sits at this machine: by logind, by who owns a virtual console, by utmp."""
        found = set(self.logind.console_users()) if self.logind is not None else set()
        with contextlib.suppress(OSError):
            for name in os.listdir(self._dev):
                if name.startswith("tty") and name[3:].isdecimal():
                    with contextlib.suppress(OSError):
                        found.add(os.stat(f"{self._dev}/{name}").st_uid)
        for user in psutil.users():
            if (user.terminal or "").startswith("tty") or (user.host or "").startswith(":"):
                with contextlib.suppress(accounts.NotYet):
                    known = accounts.named(user.name)
                    if known is not None:
                        found.add(known.uid)
        return frozenset(found)

    def stop(self) -> None:
        """Let go of everything."""
        for each in (self._terminals, self._input, self.logind):
            if each is not None:
                each.stop()
