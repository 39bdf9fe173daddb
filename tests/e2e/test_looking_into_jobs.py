"""A user looks into running jobs, stops and moves them, and fetches spooled results."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.daemons.starter.interactive.shells import MOST_SHELLS
from condor_actors.messages.interactive import ConnectToJob, ShellData
from condor_actors.tools.lib import running_programs
from condor_actors.tools.lib.contact import QUEUE, load, schedd
from condor_actors.wire.blocking import RequestRefused
from tests.harness.terminal import Terminal
from tests.pool_fixture import BIN, PersonalPool, until

COUNTING = """#!/bin/sh
echo begun
echo trouble >&2
while [ ! -e stop ]; do sleep 0.1; done
echo ended
"""


def counting_job(pool: PersonalPool, name: str) -> tuple[int, Path]:
    here = pool.work / name
    here.mkdir()
    program = here / "count.sh"
    program.write_text(COUNTING)
    program.chmod(0o755)
    cluster = pool.submit(
        f"executable = {program}\ninitialdir = {here}\nshould_transfer_files = YES\noutput = out\nerror = err\n"
        "log = job.log\nqueue\n"
    )
    until(lambda: "begun" in pool.tool("condor_tail", f"{cluster}.0").stdout, "output of the running job")
    return cluster, here


def test_an_interactive_job_does_not_end_beside_its_user(pool: PersonalPool) -> None:
    """Its program is a sleep, which ends when its user has gone, or by itself when no user comes."""
    description = pool.work / "beside.sub"
    description.write_text("executable = /bin/sleep\narguments = 2\nlog = beside.log\nqueue\n")
    command = pool.command("condor_submit", "-interactive", str(description))
    with Terminal(command, cwd=pool.work, environment=pool.environment) as terminal:
        terminal.until(lambda text: text.endswith(("$", "#")))
        terminal.type("cut -d ' ' -f 3 /proc/$_CONDOR_JOB_PIDS/stat\n")
        terminal.until(lambda text: "\nT\n" in text)
        terminal.type("sleep 3; echo still $((40 + 2))\n")
        terminal.until("still 42")
        terminal.type("exit\n")
        assert terminal.end() == 0
    pool.wait("beside.log")
    alone = pool.submit("executable = /bin/sleep\narguments = 0\nlog = alone.log\n+InteractiveJob = true\nqueue\n")
    pool.wait("alone.log")
    assert pool.run("condor_history", str(alone), "-limit", "1", "-af", "ExitCode") == "0\n"


def test_tail_and_shell(pool: PersonalPool) -> None:
    cluster, here = counting_job(pool, "looking")
    assert pool.run("condor_tail", "-maxbytes", "3", str(cluster)) == "un\n"
    assert pool.run("condor_tail", "-no-stdout", "-stderr", str(cluster)) == "trouble\n"
    shell = pool.tool("condor_ssh_to_job", f"{cluster}.0", "echo", "$_CONDOR_SLOT;", "ls;", "exit", "3", stdin="")
    assert shell.returncode == 3, shell.stderr
    assert "slot" in shell.stdout
    assert "condor_exec.exe" in shell.stdout
    pool.tool("condor_ssh_to_job", f"{cluster}.0", "touch stop", stdin="")  # the job may end before its visitor has
    pool.wait(str(here / "job.log"))
    assert (here / "out").read_text() == "begun\nended\n"


def test_the_terminal_is_the_shells_own_and_its_last_words_arrive(pool: PersonalPool) -> None:
    cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                          "log = words.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 2)
    for number in range(5):
        done = pool.tool("condor_ssh_to_job", f"{cluster}.0", f": </dev/tty && echo word {number}; exit {number}")
        assert (done.stdout, done.returncode) == (f"word {number}\n", number)
    pool.run("condor_rm", str(cluster))


def test_shells_without_end_or_measure(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted, their terminals have a size that there is, and the job goes on."""
    cluster = pool.submit("executable = /bin/sleep\narguments = 1000\ntransfer_executable = false\n"
                          "log = measure.log\nqueue\n")
    job = f"{cluster}.0"
    until(lambda: pool.tool("condor_ssh_to_job", job, "echo in").stdout == "in\n", "the job to take a shell")
    for name, value in pool.environment.items():
        monkeypatch.setenv(name, value)

    def shell(number: int, *command: str, rows: int = 24) -> ConnectToJob:
        return ConnectToJob(cluster_id=cluster, proc_id=0, shell_id=f"shell {number}", command=command, rows=rows)

    with schedd(load()) as there:
        there.ask(shell(0, "/bin/cat", rows=1 << 40))
        there.client.tell(QUEUE, ShellData(shell_id="shell 0", rows=1 << 40, columns=-(1 << 40)))
        with pytest.raises(RequestRefused, match="NUL"):
            there.ask(shell(1, "/bin/echo", "a\0b"))
        for number in range(1, MOST_SHELLS):
            there.ask(shell(number, "/bin/cat"))
        with pytest.raises(RequestRefused, match=f"{MOST_SHELLS} shells"):
            there.ask(shell(MOST_SHELLS, "/bin/cat"))
    until(lambda: pool.tool("condor_ssh_to_job", job, "echo in").stdout == "in\n", "its shells to go")
    assert (pool.work / "measure.log").read_text().count("\n001 (") == 1
    pool.run("condor_rm", job)


def test_who_shows_the_program(pool: PersonalPool, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, here = counting_job(pool, "who")
    line = until(lambda: next((each for each in pool.run("condor_who").splitlines() if f" {cluster}.0 " in each), ""),
                 "the job in condor_who")
    assert re.search(r" \d+ +\S*(count\.sh|/bin/sh)$", line), line
    # A process may end between two looks at it.
    with monkeypatch.context() as gone:
        gone.setattr(running_programs, "command_line", lambda pid: [])
        assert running_programs._first_processes((b"/nowhere",)) == {}
        assert running_programs._program_of(1) == ""
    # Who cannot see the process is told by the queue.
    monkeypatch.setattr(running_programs, "all_processes", list)
    for name, value in pool.environment.items():
        monkeypatch.setenv(name, value)
    schedd = pool.run("condor_q", str(cluster), "-af", "GlobalJobId").partition("#")[0]
    ad = ClassAd({"JobId": f"{cluster}.0", "RemoteScheddName": schedd})
    running_programs.add_programs(load(), [ad])
    assert ad.get_str("JobProgram").endswith("/count.sh")
    (here / "stop").touch()
    pool.run("condor_rm", f"{cluster}.0")


def test_suspended_continued_vacated(pool: PersonalPool) -> None:
    cluster, here = counting_job(pool, "moving")
    job = f"{cluster}.0"
    assert pool.run("condor_suspend", job) == f"Job {job} suspended\n"
    pool.until_status(job, 7)
    assert pool.run("condor_continue", job) == f"Job {job} continued\n"
    pool.until_status(job, 2)
    assert pool.run("condor_vacate_job", job) == f"Job {job} vacated\n"
    until(lambda: (here / "job.log").read_text().count("\n001 (") >= 2, "the job executing a second time")
    assert re.search(r"^004 \(", (here / "job.log").read_text(), re.MULTILINE)
    pool.run("condor_rm", job)
    pool.until_status(job, 0)


def test_nothing_to_look_into(pool: PersonalPool) -> None:
    cluster = pool.submit("executable=/bin/true\ntransfer_executable=false\nrequirements=false\nqueue\n")
    for tool in ("condor_tail", "condor_ssh_to_job"):
        done = pool.tool(tool, f"{cluster}.0", stdin="")
        assert done.returncode == 1
        assert "not running" in done.stderr
    pool.run("condor_rm", str(cluster))


def test_spooled_jobs_need_their_files_no_more(pool: PersonalPool) -> None:
    here = pool.work / "spooled"
    (here / "data" / "deep").mkdir(parents=True)
    (here / "data" / "deep" / "a").write_text("deep\n")
    (here / "numbers").write_text("3\n1\n2\n")
    program = here / "work.sh"
    program.write_text("#!/bin/sh\nsort numbers; cat data/deep/a; cat numbers > copy\n")
    program.chmod(0o755)
    description = here / "job.sub"
    description.write_text(
        "executable = work.sh\ntransfer_input_files = numbers, data\noutput = results/out\nerror = err\n"
        "leave_in_queue = JobStatus == 4\nqueue\n"
    )
    done = pool.tool("condor_submit", "-spool", "job.sub", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    cluster = int(done.stdout.rsplit("cluster ", 1)[1].strip().rstrip("."))
    (here / "numbers").write_text("newer\n")
    program.unlink()
    pool.until_status(f"{cluster}.0", 4)
    pool.run("condor_transfer_data", str(cluster), cwd=here)
    assert (here / "results" / "out").read_text() == "1\n2\n3\ndeep\n"
    assert (here / "copy").read_text() == "3\n1\n2\n"
    assert (here / "numbers").read_text() == "newer\n"
    pool.run("condor_rm", str(cluster))


def test_a_schedd_that_dies_while_jobs_are_submitted_does_not_double_or_lose_them(own_pool: PersonalPool) -> None:
    description = (
        "executable=/bin/true\ntransfer_executable=false\nrequirements=false\narguments=$(Process)\nqueue 30000\n"
    )
    (own_pool.work / "many.sub").write_text(description)
    pid = own_pool.daemons()["schedd"]
    tool = subprocess.Popen(
        [str(BIN / "condor_submit"), "-terse", "many.sub"], cwd=own_pool.work, env=own_pool.environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    own_pool.kill("schedd")
    out, err = tool.communicate(timeout=120)
    own_pool.until_restarted("schedd", pid)
    until(lambda: own_pool.tool("condor_q", "-all", "-totals").returncode == 0, "the schedd answering")
    queued = own_pool.run("condor_q", "-all", "-af", "ProcId").count("\n")
    if tool.returncode == 0:
        assert out.strip().endswith(".29999"), out
        assert queued == 30000
    else:
        assert err
        assert queued == 0
    own_pool.tool("condor_rm", "-all")
