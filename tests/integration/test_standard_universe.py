"""Jobs of the standard universe in a real pool: files at home, checkpoints, machines that come and go."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.harness.standard_jobs import LONG, NEED_RUNTIME, PYTHON, Job
from tests.pool_fixture import PersonalPool, fresh_folder, until

pytestmark = NEED_RUNTIME


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """One pool for all."""
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        yield made
        made.stop()


def test_a_job_runs_with_its_files_at_home(pool: PersonalPool) -> None:
    job = Job(pool, "whole", "5")
    job.wait()
    job.check(5)
    ad = pool.history(job.id)[0]
    assert ad["ExitCode"] == 0
    assert ad["NumRemoteSysCalls"] > 100
    assert ad["RemoteSysCalls"]["openat"] > 5
    assert ad["FileReadBytes"] > 1_000_000
    assert ad["LocalSysCpu"] > 0
    assert ad["NumCkpts"] == 0


def test_a_status_a_signal_and_a_program_that_is_not_there(pool: PersonalPool) -> None:
    seven = Job(pool, "seven", "", "import sys; sys.exit(7)")
    killed = Job(pool, "killed", "", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)")
    missing = Job(pool, "missing", "", executable="/no/such/program", skip_filechecks="true")
    seven.wait()
    killed.wait()
    assert pool.history(seven.id)[0]["ExitCode"] == 7
    assert pool.history(killed.id)[0]["ExitSignal"] == signal.SIGTERM
    pool.until_status(missing.id, 5)
    assert "No such file" in pool.jobs(missing.id)[0]["HoldReason"]
    pool.run("condor_rm", missing.id)


def test_runs_leave_no_descriptor_open_in_any_daemon(pool: PersonalPool) -> None:
    def opened() -> dict[str, int]:
        return {name: len(os.listdir(f"/proc/{pid}/fd")) for name, pid in pool.daemons().items()}

    def run(count: int) -> None:
        for _ in range(count):
            job = Job(pool, "again", "", "print(1)")
            job.wait()

    run(2)
    before = opened()
    run(6)
    most = {name: count + 4 for name, count in before.items()}  # connections of tools come and go
    until(lambda: all(count <= most.get(name, count) for name, count in opened().items()),
          lambda: f"before {before}, now {opened()}", 15.0)


def test_helpers_of_a_shell_script(pool: PersonalPool) -> None:
    script = "for i in 3 1 2; do echo $i; done | sort | tr '\\n' ' '; echo $?\n"
    job = Job(pool, "helpers", "", script, executable="/bin/sh")
    job.wait()
    assert job.text("out") == "1 2 3 0\n"


def test_a_helper_has_a_connection_of_its_own(pool: PersonalPool) -> None:
    script = "echo one; sh -c 'echo two; while ! test -e go-on-0; do sleep 0.1; done'; echo three\n"
    job = Job(pool, "straight", "", script, executable="/bin/sh")
    job.until_lines(2)
    connected = 0
    for pid, command in pool.processes().items():
        if "starter-host" in command:
            for process in psutil.Process(pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                    connected += bool(process.net_connections("tcp"))
    if os.getuid() == 0:  # others may not see what processes of a job have open, their own jobs' neither
        assert connected >= 2  # the shell and its helper
    job.go_on(0)
    job.wait()
    assert job.text("out") == "one\ntwo\nthree\n"


def test_the_binary_of_the_machines_architecture(pool: PersonalPool) -> None:
    programs = pool.work / "binaries"
    programs.mkdir()
    for arch in ("X86_64", "AARCH64"):
        (programs / f"sim.{arch}").write_text(f"#!/bin/sh\necho {arch}\n")
        (programs / f"sim.{arch}").chmod(0o755)
    job = Job(pool, "binary", "", executable=f"{programs}/sim.$$(Arch)",
              requirements='Arch == "X86_64" || Arch == "AARCH64"')
    job.wait()
    assert job.text("out") == "X86_64\n"


def test_the_output_of_a_running_job_can_be_looked_at(pool: PersonalPool) -> None:
    job = Job(pool, "tailed", "4 3")
    job.until_lines(4)
    assert pool.run("condor_tail", job.id).splitlines()[-1].startswith("3 ")
    assert "LEVERAGE" in pool.run("condor_q", "-io", "-all")
    job.go_on(3)
    job.wait()
    job.check(4)


def test_an_evicted_job_goes_on_where_it_was(pool: PersonalPool) -> None:
    job = Job(pool, "moved", "20 4 9 14")
    for round_, step in enumerate((4, 9, 14), 1):
        job.until_lines(step + 1)
        if round_ == 2:
            job.checkpoint()
        pool.run("condor_vacate_job", job.id)
        job.until_logged("004 (", round_)
        job.go_on(step)
    job.wait()
    job.check(20)
    assert job.text("job.log").count("(1) Job was checkpointed.") == 3
    assert job.text("job.log").count("001 (") == 4
    ad = pool.history(job.id)[0]
    assert ad["NumCkpts"] == 4
    assert ad["NumRestarts"] == 3
    assert ad["CkptCpuLevel"] >= 1


BIG = """
import os, random, sys, time
memory = bytearray(random.Random(7).randbytes(1 << 20) * 80)
for step in range(int(sys.argv[1])):
    for place in range(step, len(memory), 999_983):
        memory[place] = memory[place] * 5 + step & 255
    print(step, sum(memory[:: 4093]), flush=True)
    while not os.path.exists(f"go-on-{step}"):
        time.sleep(0.05)
"""


def test_a_big_program_is_saved_in_increments(pool: PersonalPool) -> None:
    job = Job(pool, "big", "5", BIG, request_memory="400MB")
    folder = job.checkpoints
    sent = []
    for step in range(2):
        job.until_lines(step + 1)
        job.checkpoint()
        sent.append(pool.jobs(job.id, "-attributes", "CkptBytesSent")[0]["CkptBytesSent"])
        job.go_on(step)
    assert (folder / "image.delta").exists()
    assert sent[1] - sent[0] < sent[0] / 2
    job.until_lines(3)
    pool.run("condor_vacate_job", job.id)  # the increment is its last act here
    job.until_logged("004 (")
    job.go_on(2)
    job.until_lines(4)
    assert (folder / "image.delta").exists(), "both stay as they were sealed"
    job.checkpoint()
    assert not (folder / "image.delta").exists(), "the first one after a restart is whole"
    job.checkpoint()
    delta = folder / "image.delta"
    os.truncate(delta, delta.stat().st_size // 2)
    pool.run("condor_vacate_job", "-fast", job.id)  # the one before it is the whole one alone
    job.until_logged("001 (", 3)
    job.go_on(3)
    job.until_lines(5)
    job.go_on(4)
    job.wait()
    expected = subprocess.run([PYTHON, "program.py", "5"], cwd=job.folder, capture_output=True, text=True, check=True)
    assert (job.text("out"), job.text("err")) == (expected.stdout, "")
    ad = pool.history(job.id)[0]
    assert (ad["NumCkpts"], ad["NumRestarts"]) == (5, 2)


# ---- the owner of a machine


OWNER = """
POLLING_INTERVAL = 0.5
UPDATE_INTERVAL = 5
CONSOLE_DEVICES = ..{device}
SLOTS_CONNECTED_TO_CONSOLE = 1
SLOTS_CONNECTED_TO_KEYBOARD = 0
NUM_SLOTS = 2
START = ConsoleIdle =?= undefined || ConsoleIdle > 3
IS_OWNER = ConsoleIdle < 3
WANT_SUSPEND = True
SUSPEND = ConsoleIdle < 2
CONTINUE = ConsoleIdle > 3
PREEMPT = (Activity == "Suspended") && (time() - EnteredCurrentActivity) >= 1
WANT_VACATE = True
KILL = False
MACHINEMAXVACATETIME = 60
PERIODIC_CHECKPOINT = (time() - LastPeriodicCheckpoint) >= 2
"""


def test_an_owner_who_returns_gets_the_machine_and_the_job_goes_on_elsewhere() -> None:
    with fresh_folder() as folder:
        console = folder / "console"
        console.touch()
        os.utime(console, (1, 1))
        pool = PersonalPool(folder, slots=2, config=OWNER.format(device=console))
        try:
            job = Job(pool, "owned", "14 4 9")
            job.until_lines(5)
            job.until_logged("003 (", 2)  # periodic ones
            first = pool.jobs(job.id)[0]["RemoteHost"]
            assert first.startswith("slot1@")
            for _ in range(600):
                os.utime(console)  # someone types
                if "010 (" in job.text("job.log") and "004 (" in job.text("job.log"):
                    break
                job.pool.tool("condor_q", "-totals")  # a moment
            job.until_logged("(1) Job was checkpointed.")
            job.go_on(4)
            job.until_lines(10)
            assert pool.jobs(job.id)[0]["RemoteHost"].startswith("slot2@")
            job.go_on(9)
            job.wait()
            job.check(14)
        finally:
            pool.stop()


def test_a_light_user_displaces_a_heavy_one_whose_work_is_kept() -> None:
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config="PRIORITY_POLICY = UP_DOWN\nUP_DOWN_INTERVAL = 1\n")
        try:
            job = Job(pool, "heavy", "12 6", accounting_group_user="heavy")
            job.until_lines(7)
            light = pool.submit("executable = /bin/true\nrequest_memory = 16MB\naccounting_group_user = light\n"
                                "log = light.log\nqueue\n")
            pool.wait("light.log")
            assert pool.history(str(light))[0]["ExitCode"] == 0
            job.until_logged("(1) Job was checkpointed.")
            job.go_on(6)
            job.wait()
            job.check(12)
            assert pool.history(job.id)[0]["NumRestarts"] == 1
        finally:
            pool.stop()


# ---- deaths


def test_a_machine_that_dies_costs_what_came_after_the_last_checkpoint(pool: PersonalPool) -> None:
    job = Job(pool, "deadhost", "16 5 10")
    job.until_lines(6)
    job.checkpoint()
    job.go_on(5)
    job.until_lines(11)  # five steps that no checkpoint knows, with all they did to the files
    pool.kill("starter-host")
    job.until_logged("001 (", 2)
    job.go_on(10)
    job.wait()
    job.check(16)
    assert job.text("job.log").count("001 (") == 2


def test_a_job_that_begins_anew_finds_its_files_as_they_were(pool: PersonalPool) -> None:
    job = Job(pool, "anew", "12 5 10")
    job.until_lines(6)
    pool.kill("starter-host")
    job.until_logged("001 (", 2)
    job.go_on(5)
    job.until_lines(11)
    job.checkpoint()
    image = job.checkpoints / "image"
    os.truncate(image, 1000)
    pool.run("condor_vacate_job", "-fast", job.id)  # and there is none before it
    job.until_logged("001 (", 3)
    job.go_on(10)
    job.wait()
    job.check(12)


def test_the_death_of_the_shadow_host_ends_the_run_and_not_the_job(pool: PersonalPool) -> None:
    job = Job(pool, "deadshadow", "16 5 10")
    job.until_lines(6)
    job.checkpoint()
    job.go_on(5)
    job.until_lines(11)
    shadow = next(pid for pid, command in pool.processes().items()
                  if "shadow-host" in command and Path(f"/proc/{pid}/task").exists()
                  and len(list(Path(f"/proc/{pid}/task").iterdir())) > 1)
    os.kill(shadow, signal.SIGKILL)
    job.until_logged("001 (", 2)
    job.go_on(10)
    job.wait()
    job.check(16)


def test_the_schedd_may_die_meanwhile(pool: PersonalPool) -> None:
    job = Job(pool, "deadschedd", "16 5 10")
    job.until_lines(6)
    old = pool.kill("schedd")
    job.go_on(5)
    job.until_lines(11)
    pool.until_restarted("schedd", old)
    pool.jobs(job.id)  # it answers
    until(lambda: (pool.tool("condor_suspend", job.id), "010 (" in job.text("job.log"))[1], "its shadow is heard again")
    pool.run("condor_continue", job.id)
    job.until_logged("011 (")
    job.checkpoint()
    job.go_on(10)
    job.wait()
    job.check(16)
    assert job.text("job.log").count("001 (") == 1


def test_the_executable_may_change_while_the_job_runs(pool: PersonalPool) -> None:
    job = Job(pool, "changed", "12 3 8")
    job.until_lines(4)
    job.checkpoint()
    (job.folder / "program.py").write_text("raise SystemExit('another program')")
    pool.run("condor_vacate_job", job.id)
    job.until_logged("004 (")
    job.go_on(3)
    job.go_on(8)
    job.wait()
    job.check(12)


def test_a_damaged_checkpoint_is_not_started_the_one_before_it_is(pool: PersonalPool) -> None:
    job = Job(pool, "damaged", "18 4 8 12")
    for step in (4, 8):
        job.until_lines(step + 1)
        job.checkpoint()
        job.go_on(step)
    job.until_lines(13)
    image = job.checkpoints / "image"
    os.truncate(image, image.stat().st_size // 2)
    pool.run("condor_vacate_job", "-fast", job.id)
    job.until_logged("001 (", 2)
    job.go_on(12)
    job.wait()
    job.check(18)


def test_a_held_job_goes_on_when_it_is_released(pool: PersonalPool) -> None:
    job = Job(pool, "held", "12 4")
    job.until_lines(5)
    pool.run("condor_hold", job.id)
    job.until_logged("003 (")
    until(lambda: not pool.scratch(), "the machine is free")
    job.go_on(4)
    pool.run("condor_release", job.id)
    job.wait()
    job.check(12)


def test_a_removed_job_leaves_nothing(pool: PersonalPool) -> None:
    job = Job(pool, "removed", "12 4")
    job.until_lines(5)
    job.checkpoint()
    pool.run("condor_rm", job.id)
    job.wait()
    until(lambda: not pool.scratch(), "no scratch directory left")
    until(lambda: not job.checkpoints.exists(), "no checkpoint left")
    until(lambda: not [each for each in pool.processes().values() if "/program" in each], "no process left")


# ---- a checkpoint server


def test_a_checkpoint_server_keeps_what_spool_need_not() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with fresh_folder() as folder:
        pool = PersonalPool(folder, slots=1, config=f"""
            DAEMON_LIST = MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD CKPT_SERVER
            CKPT_SERVER_HOST = 127.0.0.1:{port}
            CKPT_SERVER_PORT = {port}
        """)
        try:
            kept = pool.dir / "spool" / "ckpt_server"
            job = Job(pool, "kept", "14 4 9")
            here = job.checkpoints
            job.until_lines(5)
            job.checkpoint()
            until(lambda: list(kept.glob("u-*/j-*/image")), "the image at the server")
            pool.run("condor_hold", job.id)
            job.until_logged("012 (")
            until(lambda: not pool.scratch(), "the machine is free")
            until(lambda: not (here / "image").exists(), "no image at home")
            assert (here / "image.undo").exists()
            job.go_on(4)
            pool.run("condor_release", job.id)
            job.until_lines(10)
            job.go_on(9)
            job.wait()
            job.check(14)
            assert pool.history(job.id)[0]["NumRestarts"] == 1
            until(lambda: not list(kept.glob("u-*/j-*/image")), "nothing left at the server")
        finally:
            pool.stop()


def test_a_job_leaves_with_its_helpers(pool: PersonalPool) -> None:
    program = """
import os, subprocess, sys, time
print("one", flush=True)
subprocess.run(["/bin/sh", "-c", "while ! test -e go-on-0; do sleep 0.1; done; echo two"])
print("three", flush=True)
while not os.path.exists("go-on-1"): time.sleep(0.05)
print("four")
"""
    job = Job(pool, "family", "", program)
    job.until_lines(1)
    pool.run("condor_vacate_job", job.id)
    job.until_logged("(1) Job was checkpointed.")
    until(lambda: pool.jobs(job.id)[0].get("CkptProcesses", 1) > 1, "a checkpoint of both processes")
    job.go_on(0)
    job.go_on(1)
    job.wait()
    assert job.text("out") == "one\ntwo\nthree\nfour\n"


def newest_process(pool: PersonalPool) -> psutil.Process:
    """The process of a job that was started last."""
    hosts = [pid for pid, command in pool.processes().items() if "starter-host" in command]
    found = [process for pid in hosts for process in psutil.Process(pid).children(recursive=True)]
    return max(found, key=lambda process: (process.create_time(), process.pid))


def test_a_job_that_cannot_be_checkpointed_now_says_so_everywhere(pool: PersonalPool) -> None:
    program = """
import os, subprocess, time
helper = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
helper.stdin.write(b"here\\n"); helper.stdin.flush(); helper.stdout.readline()
print("one", flush=True)
while not os.path.exists("go-on-0"): time.sleep(0.05)
helper.communicate()
print("two", flush=True)
while not os.path.exists("go-on-1"): time.sleep(0.05)
print("three")
"""
    job = Job(pool, "stuck", "", program)
    job.until_lines(1)
    helper = newest_process(pool)
    helper.suspend()  # by nobody of its family
    asked = pool.tool("condor_checkpoint", "job", job.id)
    assert asked.returncode == 1
    assert asked.stdout == ""
    assert asked.stderr.startswith(f"Job {job.id} could not be checkpointed now: ")
    problem = pool.jobs(job.id)[0]["LastCkptProblem"]
    assert problem in asked.stderr
    job.until_logged(f"Job cannot be checkpointed now: {problem}")
    assert problem in pool.run("condor_q", "-hold", "-wide", job.id).partition("Running jobs that could not be")[2]
    assert "could not be checkpointed at" in pool.run("condor_q", "-better-analyze", job.id)
    vacated = pool.tool("condor_vacate_job", job.id)
    assert vacated.stdout == f"Job {job.id} vacated\n"
    assert f"could not be checkpointed now: {problem}; it leaves as soon as it can be" in vacated.stderr
    job.go_on(0)
    helper.resume()
    job.until_logged("(1) Job was checkpointed.")
    pool.until_status(job.id, 2)
    job.until_lines(2)
    again = pool.tool("condor_checkpoint", "job", job.id)
    assert (again.returncode, again.stdout, again.stderr) == (0, f"Job {job.id} asked for a checkpoint\n", "")
    assert "Running jobs" not in pool.run("condor_q", "-hold", job.id)
    job.go_on(1)
    job.wait()


PRYING = """
try:
    seen = open("../beside").read()
except OSError as error:
    seen = error.strerror
open("seen", "a").write(seen)
"""


def test_of_home_a_job_uses_what_lies_below_its_root(pool: PersonalPool) -> None:
    (pool.work / "beside").write_text("not for it")
    (pool.work / "beside").chmod(0o666)
    job = Job(pool, "rooted", "12 5", program=PRYING + LONG + PRYING, job_root=".")
    job.until_lines(6)
    job.checkpoint()
    pool.run("condor_vacate_job", job.id)
    job.until_logged("001 (", 2)
    job.go_on(5)
    job.wait()
    job.check(12)
    assert job.text("seen") == 2 * "Permission denied"
