"""What a pool of several machines may not have left when all its jobs have ended."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.harness.mixed_jobs import Batch
from tests.harness.namespaces import Machine, Wire
from tests.harness.proc_files import command_lines, proc_file, process_ids
from tests.pool_fixture import Host

__all__ = ["left_over", "tracebacks", "wrong_history"]

SETTLED_WITHIN_S = 240.0
UNPACKED = ".images"
"""Where images are kept for the next job."""
TRACEBACK = "Traceback (most recent call last)"
IN_SPOOL = ("job_queue.sqlite", "startd_claims", "accountant.db", "tokens", "starter_blobs", "starter_libraries",
            "owners", "history", "collector", "epoch_history", "schedd_daemon_history")
"""What a pool without jobs has there."""


def wrong_history(host: Host, batches: Sequence[Batch]) -> list[str]:
    """Jobs that are not in the history exactly once, or with another end than theirs."""
    lines = host.run("condor_history", "-af", "ClusterId", "ProcId", "JobStatus", "ChaosBatch").splitlines()
    ends = Counter(tuple(line.split()[:2]) for line in lines)
    wrong = [f"job {'.'.join(job)} is in the history {count} times" for job, count in ends.items() if count > 1]
    for batch in batches:
        mine = [line.split() for line in lines if line.split()[3] == batch.name]
        wanted = batch.jobs + (batch.kind == "dag")
        if len(mine) != wanted:
            wrong.append(f"{batch.name}: {len(mine)} of {wanted} jobs in the history")
        statuses = Counter(words[2] for words in mine)
        if set(statuses) != {str(batch.of.status)}:
            wrong.append(f"{batch.name}: JobStatus in the history {dict(statuses)}")
    return wrong


def tracebacks(machines: Sequence[Machine]) -> list[str]:
    """The first traceback of each log that has one."""
    found = []
    for machine in machines:
        for path in sorted((machine.dir / "log").iterdir()):
            text = path.read_text(errors="replace") if path.is_file() else ""
            at = text.find(TRACEBACK)
            if at >= 0:
                found.append(f"{machine.name}/{path.name}: {text.count(TRACEBACK)} tracebacks; the first:\n"
                             f"{text[max(at - 400, 0):at + 2500]}")
    return found


def left_over(wire: Wire) -> list[str]:
    """What is left of jobs, when all have ended and it has had time to go."""
    wrong: list[str] = []

    def settled(what: str, look: Callable[[], list[str]]) -> None:
        end_s = time.monotonic() + SETTLED_WITHIN_S
        while (left := look()) and time.monotonic() < end_s:
            time.sleep(0.5)
        if left:
            wrong.append(f"left: {len(left)} {what}: {left[:10]}")

    settled("scratch directories", lambda: [f"{machine.name}/{name.name}" for machine in wire.machines
                                            for name in (machine.dir / "execute").glob("*")
                                            if name.name != UNPACKED])
    settled("files in SPOOL", lambda: [each for machine in wire.machines for each in _spooled(machine)])
    settled("processes of jobs", lambda: _processes(f"{wire.folder}", ("/execute/dir_", "program.")))
    settled("mounts", lambda: _mounts(f"{wire.folder}"))
    settled("control groups", lambda: _cgroups(wire.folder.name))
    settled("claims", lambda: [state for state in
                               wire.machines[0].run("condor_status", "-af", "Name", "State").splitlines()
                               if state.split()[1] not in ("Unclaimed", "Owner")])
    return wrong


def _spooled(machine: Machine) -> list[str]:
    """What is in SPOOL that jobs brought there; the store of blobs may keep whole ones."""
    spool = machine.dir / "spool"
    if not spool.is_dir():
        return []
    found = [path for path in spool.iterdir() if not path.name.startswith(IN_SPOOL)]
    found += list(spool.glob("starter_blobs/partial/*"))
    found += list(spool.glob("owners/*/*/*"))
    return [f"{machine.name}/{path.relative_to(machine.dir)}" for path in found]


def _processes(folder: str, marks: tuple[str, ...]) -> list[str]:
    found = []
    for pid, line in command_lines():
        command = line.replace(b"\0", b" ").decode(errors="replace")
        if folder in command and any(mark in command for mark in marks) and pid != os.getpid():
            found.append(f"{pid} {command}")
    return found


def _mounts(folder: str) -> list[str]:
    """Mounts below the folder, in any process's view of the files."""
    lines = (line for pid in process_ids()
             for line in proc_file(pid, "mountinfo").decode(errors="replace").splitlines())
    return sorted({line.split()[4] for line in lines if f" {folder}" in line})


def _cgroups(folder: str) -> list[str]:
    """Control groups of single jobs: those below their machine's own."""
    return [str(path) for path in Path("/sys/fs/cgroup").glob(f"**/condor/*{folder}*/*") if path.is_dir()]
