"""Jobs of the standard universe in a real pool: files at home, checkpoints, machines that come and go."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.machine.native_programs import runtime_is_there
from tests.pool_fixture import PersonalPool, fresh_folder, until

PYTHON = "/usr/bin/python3"
pytestmark = [
    pytest.mark.skipif(not runtime_is_there(), reason="the runtime is not built"),
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs a Python that every user can read"),
]

LONG = """
import os, sys, time
steps, pauses = int(sys.argv[1]), [int(word) for word in sys.argv[2:]]
log = open("log", "a")
total = 0
for step in range(steps):
    for i in range(60000):
        total += i * step % 7
    print(step, total, flush=True)
    log.write(f"{step}\\n"); log.flush()
    with open("state.new", "w") as state:
        state.write(str(total))
    os.rename("state.new", "state")
    while step in pauses and not os.path.exists(f"go-on-{step}"):
        time.sleep(0.05)
print("done", total, sys.stdin.read().strip())
"""
"""Prints, appends, rewrites and renames; waits after some steps until the test has done what it is about."""


def expected(steps: int, words: str = "hello") -> str:
    """What LONG prints."""
    total = 0
    lines = []
    for step in range(steps):
        total += sum(i * step % 7 for i in range(60000))
        lines.append(f"{step} {total}")
    return "\n".join([*lines, f"done {total} {words}", ""])


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    """One pool for all."""
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=2)
        yield made
        made.stop()


class Job:
    """One job with a folder of its own."""

    def __init__(self, pool: PersonalPool, name: str, arguments: str, program: str = LONG, **commands: str) -> None:
        self.pool = pool
        self.folder = pool.work / name
        self.folder.mkdir()
        self.folder.chmod(0o777)
        (self.folder / "program.py").write_text(program)
        (self.folder / "in").write_text("hello\n")
        lines = {
            "universe": "standard", "executable": PYTHON, "arguments": f"program.py {arguments}", "initialdir": name,
            "input": "in", "output": "out", "error": "err", "log": "job.log", **commands,
        }  # fmt: skip
        self.id = f"{pool.submit(chr(10).join(f'{k} = {v}' for k, v in lines.items()) + chr(10) + 'queue' + chr(10))}.0"

    def text(self, name: str) -> str:
        """The content of a file of the job's."""
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    def until_lines(self, count: int) -> None:
        """Until it has printed so much."""
        until(lambda: len(self.text("out").splitlines()) >= count, f"{count} lines of output of {self.id}")

    def go_on(self, step: int) -> None:
        """Let it do the steps after this one."""
        (self.folder / f"go-on-{step}").touch()

    def until_logged(self, words: str, count: int = 1) -> None:
        """Until its log says so."""
        until(lambda: self.text("job.log").count(words) >= count, f"{count} times {words!r} in the log of {self.id}")

    def checkpoint(self) -> None:
        """Have a checkpoint taken."""
        count = self.text("job.log").count("003 (")
        self.pool.run("condor_checkpoint", "job", self.id)
        self.until_logged("003 (", count + 1)

    def wait(self) -> None:
        """Until it has ended."""
        self.pool.wait(str(self.folder / "job.log"))

    def check(self, steps: int) -> None:
        """It has printed and written what it would have without us."""
        assert self.text("err") == ""
        assert self.text("out") == expected(steps)
        assert self.text("log") == "".join(f"{step}\n" for step in range(steps))
        assert self.text("state") == self.text("out").split()[-2]
        assert "001 (" in self.text("job.log")
        assert self.text("job.log").count("005 (") == 1
        until(lambda: not self.pool.scratch(), "no scratch directory left")
        until(lambda: not (self.pool.dir / "spool" / "checkpoints" / self.id).exists(), "no checkpoint left")


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


def test_helpers_of_a_shell_script(pool: PersonalPool) -> None:
    script = "for i in 3 1 2; do echo $i; done | sort | tr '\\n' ' '; echo $?\n"
    job = Job(pool, "helpers", "", script, executable="/bin/sh")
    job.wait()
    assert job.text("out") == "1 2 3 0\n"


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
