"""All processes of a job where there is no control group: by parentage, session and a mark in the environment.

Theory: the starter host is a child subreaper, so a job's process whose parent dies becomes the starter host's own child
and is found there; nothing can leave its tree upwards.  Which run an orphan belongs to is told by what it inherits:
the session (unless it made its own), else the mark ``_CONDOR_RUN_MARK`` in its environment (unless it was wiped), else
its having been seen below the run before, else its age: it cannot be of a run that began later.

Source: prctl(2) PR_SET_CHILD_SUBREAPER; proc(5) task/TID/children.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
from collections.abc import Iterable

from condor_actors.machine.privilege.helper import process_helper, send_signal

__all__ = ["MARK", "become_subreaper", "children_of", "descendants", "is_alive", "is_stopped", "kill_all",
           "mark_of", "marked", "orphans_of", "own_number", "parent_of", "session_of", "signal_all", "start_ticks"]

MARK = "_CONDOR_RUN_MARK"
PR_SET_CHILD_SUBREAPER = 36


def become_subreaper() -> None:
    """Have orphans of this process's tree re-parented to it.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_CHILD_SUBREAPER): {os.strerror(number)}")


def children_of(pid: int) -> list[int]:
    """Direct children of a process."""
    found: list[int] = []
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return found
    for task in tasks:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as stream:
            found += [int(word) for word in stream.read().split()]
    return found


def descendants(roots: Iterable[int]) -> list[int]:
    """The roots and everything below them."""
    found: dict[int, None] = {}
    waiting = list(roots)
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found[pid] = None
            waiting += children_of(pid)
    return list(found)


def session_of(pid: int) -> int:
    """The session of a process; 0 when it is gone."""
    try:
        return os.getsid(pid)
    except OSError:
        return 0


def mark_of(pid: int) -> str:
    """The run that a process's environment names; empty: none, or it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            data = stream.read()
    except OSError:
        return ""
    start = f"{MARK}=".encode()
    found = next((item for item in data.split(b"\0") if item.startswith(start)), start)
    return found[len(start):].decode(errors="replace")


def start_ticks(pid: int) -> int:
    """When a process began, in clock ticks after boot; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return int(stream.read().rpartition(b")")[2].split()[19])
    except (OSError, IndexError):
        return 0


def _facts(pid: int) -> list[bytes]:
    """The words of a process's ``stat`` behind its name; empty: it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            return stream.read().rpartition(b")")[2].split()
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """Whether a process is there and is no zombie."""
    return _facts(pid)[:1] not in ([], [b"Z"])


def is_stopped(pid: int) -> bool:
    """Whether a process stands still by a signal (SIGSTOP)."""
    return _facts(pid)[:1] == [b"T"]


def parent_of(pid: int) -> int:
    """The process above; 0 when there is none, or the process is gone."""
    facts = _facts(pid)
    return int(facts[1]) if len(facts) > 1 else 0


def own_number(pid: int) -> int:
    """The number of a process in its own pid namespace.

    Raises:
        OSError: it is gone.
    """
    with open(f"/proc/{pid}/status", "rb") as stream:
        said = next((line for line in stream if line.startswith(b"NSpid:")), b"")
    return int(said.split()[-1]) if len(said.split()) > 1 else pid


def orphans_of(session: int, mark: str, known: Iterable[int], leaders: Iterable[int], *, over: bool) -> list[int]:
    """Children of this process that belong to a run though its first process is not above them any more.

    Args:
        session: the run's session (the pid of its first process).
        mark: the value of its mark.
        known: pids seen below the run before.
        leaders: first processes of all living runs, which are nobody's orphans.
        over: the run's first process has ended; then a child that tells nothing of where it comes from is taken for
            the run's own, unless a living run is old enough to have begun it.
    """
    seen, runs = set(known), set(leaders)
    helper = process_helper()
    if helper is not None:
        runs.add(helper.pid)
    found = []
    for pid in children_of(os.getpid()):
        if pid in runs:
            continue
        if pid in seen or session_of(pid) == session:
            found.append(pid)
            continue
        theirs = mark_of(pid)
        if theirs == mark:
            found.append(pid)
        elif not theirs and over and session_of(pid) not in runs:
            born = start_ticks(pid)
            if not any(start_ticks(leader) <= born for leader in runs):
                found.append(pid)
    return found


def marked(prefix: str, *, but: str = "") -> list[int]:
    """Every process of this machine whose mark begins with ``prefix``; walks all of /proc: for starts only.

    Args:
        prefix: how their marks begin.
        but: marks that begin so do not count.  A process is asked once: while it executes a program it shows no mark.
    """
    found = []
    for name in os.listdir("/proc"):
        mark = mark_of(int(name)) if name.isdecimal() else ""
        if mark.startswith(prefix) and not (but and mark.startswith(but)):
            found.append(int(name))
    return found


def signal_all(pids: Iterable[int], number: int) -> int:
    """Send a signal to each; returns how many were there."""
    count = 0
    for pid in pids:
        try:
            send_signal(pid, number)
        except ProcessLookupError:
            continue
        except PermissionError:
            continue
        count += 1
    return count


def kill_all(pids: Iterable[int]) -> int:
    """SIGKILL to each."""
    return signal_all(pids, signal.SIGKILL)
