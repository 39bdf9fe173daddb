"""kill -9 of anything at any moment: every job completes, its result is recorded exactly once, nothing is left.

Each test names the process that dies and the moment.  The number of rounds is small here; ``make soak`` repeats them.
"""

from __future__ import annotations

import random
import signal
import socket
from collections import Counter
from pathlib import Path

import pytest

from tests.harness.proc_files import command_lines
from tests.pool_fixture import PersonalPool, open_to_jobs, until

WITNESS = """#!/bin/sh
# One line when the program begins, one when it ends: what really ran, whatever the queue believes.
echo "begin $1 $$" >> "$2/witness"
while [ ! -e "$2/go" ]; do sleep 0.1; done
echo "end $1 $$" >> "$2/witness"
echo "result $1"
"""


def submit_witnesses(pool: PersonalPool, here: Path, count: int) -> int:
    here.mkdir(exist_ok=True)
    open_to_jobs(here)
    program = here / "witness.sh"
    program.write_text(WITNESS)
    program.chmod(0o755)
    return pool.submit(f"""
        initialdir = {here}
        executable = witness.sh
        arguments = $(Process) {here}
        output = out.$(Process)
        log = job.log
        request_memory = 32MB
        queue {count}
    """)


def lines(here: Path, word: str) -> Counter[str]:
    path = here / "witness"
    text = path.read_text() if path.exists() else ""
    return Counter(line.split()[1] for line in text.splitlines() if line.startswith(word))


def programs(here: Path) -> set[int]:
    """The processes of the witnesses, by this machine's numbers: their own mean nothing outside."""
    return {pid for pid, line in command_lines() if str(here).encode() in line}


def until_begun(here: Path, count: int) -> None:
    until(lambda: len(lines(here, "begin")) >= count, f"{count} jobs running")


def assert_each_completed_once(pool: PersonalPool, here: Path, cluster: int, count: int) -> None:
    pool.wait(str(here / "job.log"))
    until(lambda: not pool.jobs(str(cluster)) or None, "the queue to be empty")
    ads = pool.history(str(cluster))
    assert sorted(ad["ProcId"] for ad in ads) == list(range(count)), "each job once in the history"
    assert {ad["JobStatus"] for ad in ads} == {4}
    assert [(here / f"out.{n}").read_text() for n in range(count)] == [f"result {n}\n" for n in range(count)]
    terminated = Counter(
        line.split("(")[1].split(")")[0] for line in (here / "job.log").read_text().splitlines()
        if line.startswith("005 (")
    )
    assert len(terminated) == count
    assert set(terminated.values()) == {1}, "each end is once in the user log"
    until(lambda: not pool.scratch() or None, "scratch directories freed")


@pytest.mark.parametrize("victim", ["schedd", "master", "negotiator", "collector"])
def test_running_jobs_survive_without_a_restart(own_pool: PersonalPool, victim: str) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    pid = own_pool.kill(victim)
    if victim == "master":
        own_pool.run("condor_personal", "start", "--dir", str(own_pool.dir))
    own_pool.until_restarted(victim, pid)
    (here / "go").touch()
    assert_each_completed_once(own_pool, here, cluster, 3)
    assert set(lines(here, "begin").values()) == {1}, "no job was started twice"


@pytest.mark.parametrize("victim", ["schedd", "shadow-host"])
def test_jobs_that_end_while_their_keeper_is_dead(own_pool: PersonalPool, victim: str) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    (here / "go").touch()
    pid = own_pool.kill(victim)
    own_pool.until_restarted(victim, pid)
    assert_each_completed_once(own_pool, here, cluster, 3)


def test_a_shadow_host_that_dies_is_replaced_and_the_jobs_run_on(own_pool: PersonalPool) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    hosts = [pid for pid, command in own_pool.processes().items() if "condor_actors.services shadow-host" in command]
    for pid in hosts:
        own_pool.tool("kill", "-9", str(pid))
    (here / "go").touch()
    assert_each_completed_once(own_pool, here, cluster, 3)
    assert set(lines(here, "begin").values()) == {1}, "no job was started twice"


def test_a_startd_that_dies_takes_its_claims_up_again(own_pool: PersonalPool) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    pid = own_pool.kill("startd")
    own_pool.until_restarted("startd", pid)
    (here / "go").touch()
    assert_each_completed_once(own_pool, here, cluster, 3)
    until(lambda: own_pool.run("condor_status", "-af", "State").split() == ["Unclaimed"] * 4, "all claims given back")


def test_a_startd_that_comes_back_elsewhere_is_found_again(own_pool: PersonalPool) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    port = own_pool.dir / "run" / "startd.port"
    before = port.read_text()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"{other.getsockname()[1]}\n"
        port.write_text(taken)
        pid = own_pool.kill("startd")
        own_pool.until_restarted("startd", pid)
        until(lambda: port.read_text() not in (before, taken), "another port")
    (here / "go").touch()
    assert_each_completed_once(own_pool, here, cluster, 3)
    until(lambda: own_pool.run("condor_status", "-af", "State").split() == ["Unclaimed"] * 4, "all claims given back")


def test_a_starter_host_that_dies_leaves_no_process_and_the_jobs_run_again(own_pool: PersonalPool) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    first = programs(here)
    assert len(first) >= 3
    own_pool.kill("starter-host")
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in first) or None, "the first programs gone")
    until(lambda: sum(lines(here, "begin").values()) >= 6, "each started again")
    (here / "go").touch()
    assert_each_completed_once(own_pool, here, cluster, 3)


def test_everything_dies_at_once(own_pool: PersonalPool) -> None:
    here = own_pool.work / "jobs"
    cluster = submit_witnesses(own_pool, here, 3)
    until_begun(here, 3)
    own_pool.power_off()
    (here / "go").touch()
    own_pool.run("condor_personal", "start", "--dir", str(own_pool.dir))
    assert_each_completed_once(own_pool, here, cluster, 3)


@pytest.mark.parametrize("seed", range(2))
def test_random_deaths_under_load(own_pool: PersonalPool, seed: int) -> None:
    """Short jobs flow while daemon after daemon dies; each job is recorded once and only its last result counts."""
    choice = random.Random(seed)
    here = own_pool.work / "flow"
    here.mkdir()
    open_to_jobs(here)
    cluster = own_pool.submit(f"""
        initialdir = {here}
        executable = /bin/sh
        transfer_executable = false
        arguments = "-c 'sleep 0.2; echo result $(Process)'"
        output = out.$(Process)
        log = job.log
        request_memory = 32MB
        queue 60
    """)
    for _ in range(5):
        done = len(own_pool.history(str(cluster), "-attributes", "ProcId"))
        victim = choice.choice(["schedd", "startd", "shadow-host", "starter-host", "negotiator", "collector"])
        pid = own_pool.daemons().get(victim)
        if pid is not None:
            own_pool.tool("kill", f"-{int(signal.SIGKILL)}", str(pid))
        if done < 55:
            until(lambda least=done: len(own_pool.tool("condor_history", str(cluster), "-af", "ProcId").stdout.split())
                  > least, f"progress after the death of {victim}")
    assert_each_completed_once(own_pool, here, cluster, 60)
