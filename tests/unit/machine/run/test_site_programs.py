"""Programs of the site as real processes: their output, their environment, their end."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import pytest_twisted
from twisted.internet import reactor as the_reactor
from twisted.internet.defer import Deferred

from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.machine.run import process_tree
from condor_actors.machine.run.process_tree import marked
from condor_actors.machine.run.site_programs import PosixSitePrograms
from tests.pool_fixture import until

reactor: Any = the_reactor
DEADLINE_S = 120.0
SHELL = SiteProgram(name="shell", executable="/bin/sh", environment=(("PATH", "/usr/bin:/bin"), ("SAID", "hello")))


class Watched:
    """What one run has said."""

    def __init__(self) -> None:
        self.data = b""
        self.wanted: list[tuple[bytes, Deferred[None]]] = []
        self.over: Deferred[tuple[int, str, str]] = Deferred()
        self.over.addTimeout(DEADLINE_S, reactor)

    def wrote(self, data: bytes) -> None:
        self.data += data
        for text, told in self.wanted[:]:
            if text in self.data and not told.called:
                told.callback(None)

    def until(self, text: bytes) -> Deferred[None]:
        told: Deferred[None] = Deferred()
        told.addTimeout(DEADLINE_S, reactor)
        self.wanted.append((text, told))
        self.wrote(b"")
        return told

    def ended(self, status: int, problem: str, said: str) -> None:
        self.over.callback((status, problem, said))


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[PosixSitePrograms]:
    made = PosixSitePrograms(reactor, str(tmp_path), lambda: None)
    yield made
    made.close()


def begin(programs: PosixSitePrograms, script: str, run: int = 1, **more: Any) -> Watched:
    watched = Watched()
    programs.start(attrs.evolve(SHELL, arguments=("-c", script), **more), run, watched.wrote, watched.ended)
    return watched


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest_twisted.ensureDeferred
async def test_output_environment_folder_and_end(programs: PosixSitePrograms, tmp_path: Path) -> None:
    watched = begin(programs, "echo $SAID; pwd; env | cut -d= -f1 | sort | tr '\\n' ' '; "
                    "ls /proc/self/fd | tr '\\n' ' '; echo sorry >&2; exit 3", directory=str(tmp_path))
    found = await watched.over
    assert found == (3, "", "sorry")
    first, second, third = watched.data.decode().splitlines()
    assert (first, second) == ("hello", str(tmp_path))
    names, descriptors = third.split(" 0 ", 1)
    assert set(names.split()) <= {"PATH", "SAID", "PWD", "OLDPWD", "SHLVL", "_", "_CONDOR_RUN_MARK"}
    assert set(descriptors.split()) <= {"1", "2", "3"}, "nothing of the daemon's is open"


@pytest_twisted.ensureDeferred
async def test_one_that_cannot_be_run_says_why(programs: PosixSitePrograms, tmp_path: Path) -> None:
    for more, said in (({"executable": str(tmp_path / "none")}, "No such file"),
                       ({"directory": str(tmp_path / "none")}, "cannot be its working directory")):
        watched = begin(programs, "", **more)
        status, problem, _ = await watched.over
        assert status == 0
        assert said in problem


@pytest_twisted.ensureDeferred
async def test_no_account_is_said_and_nothing_is_run(tmp_path: Path) -> None:
    def nobody() -> None:
        raise LookupError("there is no account")

    programs = PosixSitePrograms(reactor, str(tmp_path), nobody)
    found = await begin(programs, f"touch {tmp_path}/ran").over
    assert found == (0, "there is no account", "")
    assert not (tmp_path / "ran").exists()


@pytest_twisted.ensureDeferred
async def test_a_flood_is_read_to_its_end(programs: PosixSitePrograms) -> None:
    watched = begin(programs, "i=0; while [ $i -lt 20000 ]; do echo A = $i; i=$((i+1)); done")
    found = await watched.over
    assert found == (0, "", "")
    assert watched.data.splitlines()[-1] == b"A = 19999"


@pytest_twisted.ensureDeferred
async def test_what_it_leaves_running_ends_when_it_has_ended(programs: PosixSitePrograms, tmp_path: Path) -> None:
    """Or each run would leave one more, and none would end with the daemon."""
    watched = begin(programs, f"(setsid sh -c 'echo $$ > {tmp_path}/left; exec sleep 1000' &) ; "
                    f"until test -s {tmp_path}/left; do sleep 0.05; done")
    assert await watched.over == (0, "", "")
    another = begin(programs, "echo ready; while :; do sleep 1; done")
    await another.until(b"ready")
    pid = int((tmp_path / "left").read_text())
    await gone([pid])
    assert another.data == b"ready\n", "the next run under the same number is left alone"
    programs.stop(1, fast=True)
    await another.over


@pytest_twisted.ensureDeferred
async def test_all_its_processes_end_with_it_those_too_that_have_left_its_group(
        programs: PosixSitePrograms, tmp_path: Path) -> None:
    watched = begin(programs, f"trap '' TERM; sleep 1000 & echo $! > {tmp_path}/a; "
                    f"setsid sh -c 'echo $$ > {tmp_path}/b; exec sleep 1000' & "
                    f"(setsid sh -c 'echo $$ > {tmp_path}/c; exec sleep 1000' &) ; "
                    f"until test -s {tmp_path}/a -a -s {tmp_path}/b -a -s {tmp_path}/c; do sleep 0.05; done; "
                    "echo ready; while :; do sleep 1; done")
    await watched.until(b"ready")
    pids = [int((tmp_path / name).read_text()) for name in "abc"]
    assert all(lives(pid) for pid in pids)
    programs.stop(1, fast=True)
    status, _, _ = await watched.over
    assert status == -signal.SIGKILL
    await gone(pids)


def gone(pids: list[int]) -> Deferred[None]:
    """Fires when none of them lives any more."""
    done: Deferred[None] = Deferred()
    end_s = time.monotonic() + DEADLINE_S

    def look() -> None:
        if not any(lives(pid) for pid in pids):
            done.callback(None)
        elif time.monotonic() > end_s:
            done.errback(AssertionError(f"{pids} still live"))
        else:
            reactor.callLater(0.05, look)

    look()
    return done


@pytest_twisted.ensureDeferred
async def test_what_it_leaves_in_its_group_ends_with_it_though_it_holds_the_pipe(
        programs: PosixSitePrograms, tmp_path: Path) -> None:
    watched = begin(programs, f"sleep 1000 & echo $! > {tmp_path}/a; echo A = 1")
    found = await watched.over
    assert (found, watched.data) == ((0, "", ""), b"A = 1\n")
    await gone([int((tmp_path / "a").read_text())])


@pytest_twisted.ensureDeferred
async def test_it_may_end_by_itself_when_it_is_asked_and_hear_of_a_reconfig(programs: PosixSitePrograms) -> None:
    watched = begin(programs, "trap 'echo again' HUP; trap 'echo bye; exit 0' TERM; echo ready; "
                    "while :; do sleep 0.1; done")
    await watched.until(b"ready")
    programs.hang_up(1)
    await watched.until(b"again")
    programs.stop(1, fast=False)
    found = await watched.over
    assert found[0] == 0
    assert b"bye" in watched.data


DAEMON = """
import sys
from twisted.internet import reactor
from condor_actors.cores.site_programs.programs import SiteProgram
from condor_actors.machine.run.site_programs import PosixSitePrograms
programs = PosixSitePrograms(reactor, sys.argv[1], lambda: None)
script = f"setsid sh -c 'echo $$ > {sys.argv[2]}/far; exec sleep 1000' & echo $$ > {sys.argv[2]}/near; wait"
program = SiteProgram(name="p", executable="/bin/sh", arguments=("-c", script),
                      environment=(("PATH", "/usr/bin:/bin"),))
reactor.callWhenRunning(programs.start, program, 1, lambda data: None, lambda *how: None)
reactor.run()
"""


@pytest_twisted.ensureDeferred
async def test_a_daemon_that_is_killed_takes_its_program_along_and_the_next_one_ends_the_rest(tmp_path: Path) -> None:
    daemon = subprocess.Popen([sys.executable, "-c", DAEMON, str(tmp_path), str(tmp_path)])
    try:
        def begun() -> Any:
            return all((tmp_path / name).exists() and (tmp_path / name).read_text().strip() for name in ("near", "far"))

        until(begun, "both processes run", DEADLINE_S)
        near, far = (int((tmp_path / name).read_text()) for name in ("near", "far"))
    finally:
        daemon.kill()
        daemon.wait()
    await gone([near])
    assert lives(far), "it has left the group and the tree, so only the mark finds it"
    assert far in marked(f"site:{tmp_path}:")
    programs = PosixSitePrograms(reactor, str(tmp_path), lambda: None)
    watched = begin(programs, "echo here; sleep 1000")
    await watched.until(b"here")
    await gone([far])
    assert not watched.over.called, "its own program was left alone"
    programs.stop(1, fast=True)
    await watched.over


@pytest_twisted.ensureDeferred
async def test_the_first_program_is_no_stranger_although_it_shows_no_mark_for_a_moment(
        programs: PosixSitePrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while it executes: whatever was seen of it before is all that there is to see."""
    seen: set[int] = set()
    read = process_tree.mark_of

    def once(pid: int) -> str:
        if pid in seen:
            return ""
        seen.add(pid)
        return read(pid)

    looked = Deferred[None]()
    find = process_tree.marked

    def found(prefix: str, **more: str) -> list[int]:
        pids = find(prefix, **more)
        the_reactor.callFromThread(looked.callback, None)  # type: ignore[attr-defined]
        return pids

    monkeypatch.setattr(process_tree, "mark_of", once)
    monkeypatch.setattr("condor_actors.machine.run.site_programs.mark_of", once, raising=False)
    monkeypatch.setattr("condor_actors.machine.run.site_programs.marked", found)
    watched = begin(programs, "sleep 0.3; exit 7")
    await looked
    assert (await watched.over)[0] == 7
