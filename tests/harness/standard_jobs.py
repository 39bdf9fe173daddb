"""Jobs of the standard universe for tests: a program that uses its files in every way, and what it should have done."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from condor_actors.machine.native.programs import runtime_is_there
from tests.pool_fixture import Host, open_to_jobs, until

__all__ = ["LONG", "NEED_RUNTIME", "PYTHON", "Job", "expected"]

PYTHON = "/usr/bin/python3"
NEED_RUNTIME = [
    pytest.mark.skipif(not runtime_is_there(), reason="the runtime is not built"),
    pytest.mark.skipif(not Path(PYTHON).exists(), reason="needs a Python that every user can read"),
]

LONG = """
import os, sys, time
steps, pauses = int(sys.argv[1]), [int(word) for word in sys.argv[2:]]
log = open("log", "a")
witness = os.open("witness", os.O_WRONLY) if os.path.exists("witness") else -1
total = step = 0
while step < steps and not (step and os.path.exists("enough")):
    began = time.process_time()
    for i in range(60000):
        total += i * step % 7
    print(step, total, flush=True)
    log.write(f"{step}\\n"); log.flush()
    with open("state.new", "w") as state:
        state.write(str(total))
    os.rename("state.new", "state")
    if witness >= 0:
        os.write(witness, f"{step} {time.process_time() - began}\\n".encode())
    while step in pauses and not os.path.exists(f"go-on-{step}"):
        time.sleep(0.05)
    step += 1
print("done", total, sys.stdin.read().strip())
"""
"""Prints, appends, rewrites and renames, for so many steps or, after the first, until there is a file ``enough``; waits
after some steps until the test has done what it is about, and tells each step, with the processor time that it took, to
a FIFO ``witness``, if there is one: no roll-back takes back what it said there."""


def expected(steps: int, words: str = "hello") -> str:
    """What LONG prints when it does so many steps."""
    done_in = [sum(i * rest % 7 for i in range(60000)) for rest in range(7)]  # what a step adds depends on no more
    total = 0
    lines = []
    for step in range(steps):
        total += done_in[step % 7]
        lines.append(f"{step} {total}")
    return "\n".join([*lines, f"done {total} {words}", ""])


class Job:
    """One job with a folder of its own."""

    def __init__(self, pool: Host, name: str, arguments: str, program: str = LONG, **commands: str) -> None:
        self.pool = pool
        self.folder = pool.work / name
        self.folder.mkdir(exist_ok=True)
        open_to_jobs(self.folder)
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

    @property
    def checkpoints(self) -> Path:
        """Where its checkpoints lie at home."""
        owner = pwd.getpwuid(os.getuid()).pw_name
        return self.pool.dir / "spool" / "owners" / owner / "checkpoints" / self.id

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
        until(lambda: not self.checkpoints.exists(), "no checkpoint left")
