"""Processes followed, frozen and killed, by a control group of each version and by parentage."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import launcher_path
from condor_actors.machine.run.cgroups import ROOT, Cgroups, JobCgroup
from condor_actors.machine.run.process_tree import is_stopped
from condor_actors.machine.run.run_processes import RunProcesses
from tests.pool_fixture import until


def hierarchies() -> list[Path]:
    return [root for root in (ROOT, ROOT / "unified") if (root / "cgroup.controllers").exists() or
            (root / "freezer" / "cgroup.procs").exists()]


@pytest.fixture(params=hierarchies() or [None], ids=str)
def group(request: pytest.FixtureRequest) -> Iterator[JobCgroup]:
    groups = Cgroups.find(f"condor-test-{uuid.uuid4().hex[:8]}", request.param) if request.param is not None else None
    if groups is None:
        pytest.skip("no control groups may be used here")
    made = groups.group("slot1")
    yield made
    made.kill()
    made.remove()
    groups.leave()


def start(group: JobCgroup, code: str) -> tuple[int, int]:
    """A shell in the group; its pid, and the end of a pipe that its whole tree holds open."""
    reading, writing = os.pipe()
    words = [launcher_path()]
    for directory in group.directories:
        words += ["--cgroup", directory]
    pid = os.posix_spawn(words[0], [*words, "--", "/bin/sh", "-c", code], {"PATH": "/usr/bin:/bin"},
                         file_actions=[(os.POSIX_SPAWN_DUP2, writing, 1)])
    os.close(writing)
    return pid, reading


def read_all(reading: int, deadline_s: float = 30.0) -> bytes:
    data = b""
    while True:
        ready, _, _ = select.select([reading], [], [], deadline_s)
        assert ready, "nothing in time"
        piece = os.read(reading, 65536)
        if not piece:
            os.close(reading)
            return data
        data += piece


def test_killing_reaches_what_has_left_its_session(group: JobCgroup) -> None:
    pid, reading = start(group, "{ setsid sleep 1000 & setsid env -i sleep 1000 & echo ready; exec sleep 1000; }")
    assert os.read(reading, 100)
    assert len(group.pids()) == 3
    assert group.kill() > 0
    os.waitpid(pid, 0)
    read_all(reading)


def test_freezing_stands_still(group: JobCgroup) -> None:
    pid, reading = start(group, "while true; do echo x; done")
    assert os.read(reading, 10)
    group.freeze()
    os.set_blocking(reading, False)
    while True:
        try:
            os.read(reading, 1 << 16)
        except BlockingIOError:
            break
    ready, _, _ = select.select([reading], [], [], 0.2)
    assert not ready, "a frozen process writes nothing"
    group.thaw()
    assert select.select([reading], [], [], 30.0)[0]
    group.kill()
    os.waitpid(pid, 0)
    os.set_blocking(reading, True)
    read_all(reading)


PARENTAGE = """
import os, signal, subprocess, sys, time
from condor_actors.machine.run import process_tree
from condor_actors.machine.run.run_processes import RunProcesses
process_tree.become_subreaper()
leaders = []
run = RunProcesses(None, "x:1", lambda: leaders)
child = subprocess.Popen(["/bin/sh", "-c", "setsid sleep 1000 & setsid env -i /bin/sleep 1000 & "
                          "(setsid sh -c 'sleep 1000 & exit' &); echo up; read line"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                         env={"_CONDOR_RUN_MARK": "x:1", "PATH": "/usr/bin:/bin"})
leaders.append(child.pid)
run.leader(child.pid)
child.stdout.readline()
child.stdin.close()
child.wait()
leaders.clear()
run.leader_ended()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
end = time.monotonic() + 50
while time.monotonic() < end:
    if run.kill() == 0 and not process_tree.children_of(os.getpid()):
        print("clean")
        break
    signal.sigtimedwait([signal.SIGCHLD], 0.2)  # what was killed needs the processor to die
else:
    print([open(f"/proc/{pid}/cmdline").read() for pid in process_tree.children_of(os.getpid())])
"""


def test_parentage_finds_every_orphan() -> None:
    done = subprocess.run([sys.executable, "-c", PARENTAGE], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() == "clean", done


@pytest.mark.parametrize("twice", [False, True])
def test_what_stood_still_before_a_run_was_frozen_stands_still_afterwards(twice: bool) -> None:
    """Without a control group: by signals, which a program may have had from its user before."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 600 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as leader:
        assert leader.stdout is not None
        below = int(leader.stdout.readline())
        processes = RunProcesses(None, "no-such-mark", list)
        processes.leader(leader.pid)
        os.kill(below, signal.SIGSTOP)
        until(lambda: is_stopped(below), "a process that stands still")
        for _ in range(1 + twice):
            processes.freeze()
        until(lambda: is_stopped(leader.pid), "the run to stand still")
        processes.thaw()
        until(lambda: not is_stopped(leader.pid), "the run to go on")
        assert is_stopped(below)
        processes.kill()
        leader.wait()
