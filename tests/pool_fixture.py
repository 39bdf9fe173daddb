"""Real pools for tests: separate processes, real TLS, real SQLite, driven by the ``condor_*`` tools."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from condor_actors.messages.codes import JobStatus
from tests.harness.proc_files import command_lines, proc_file
from tests.harness.processor_time import TIME, of_processes
from tests.harness.queue_looks import ads_of

BIN = Path(sys.prefix) / "bin"
DEADLINE_S = 90.0
LIVING: set[PersonalPool] = set()
"""Pools that were started and not stopped."""
UNMEASURED = "RUNBENCHMARKS = False\n"
"""Of machines in tests that do not say otherwise: to measure one takes a quarter of what its pool takes to start."""


class ToolFailed(AssertionError):
    """A tool exited with another status than expected; the text has all it printed."""


def until(condition: Callable[[], Any], what: str | Callable[[], str], deadline_s: float = DEADLINE_S) -> Any:
    """The first true value of ``condition``, looked at again and again; for what no event tells of.

    What it waits for is said in words, or by a function that says how far it has come.  An expensive look (a tool)
    is taken the less often: what is waited for needs the processor too.
    """
    end = time.monotonic() + deadline_s
    while True:
        began = time.monotonic()
        value = condition()
        took = time.monotonic() - began
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {deadline_s:g} s: {what if isinstance(what, str) else what()}")
        time.sleep(min(max(0.05, 2 * took), 1.0))


def open_to_jobs(folder: Path) -> None:
    """Let jobs write into ``folder``: what root submits runs as nobody."""
    folder.chmod(0o777)


@contextmanager
def fresh_folder() -> Iterator[Path]:
    """A folder that every user can enter; pytest's own are private, and it makes them so again whenever it starts."""
    with tempfile.TemporaryDirectory(prefix="condor-test-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


@contextmanager
def small_file_system(size: str) -> Iterator[Path]:
    """A folder that is a file system of its own with room for ``size`` (as in ``12m``); the test is skipped without."""
    with fresh_folder() as folder:
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0755", "none", str(folder)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"this machine does not let us mount a small file system: {done.stderr.strip()}")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", str(folder)], check=True)


class Host:
    """A machine of a pool as a user who sits there sees it: its tools.

    Attributes:
        dir: where the pool's folders (``spool``, ``execute``, ``log`` …) are.
        work: where the tools are run and jobs write.
        environment: of the tools.
        is_ours: whether the user who runs the tests asks as those who sit there do.
    """

    is_ours = False

    def __init__(self, directory: Path, work: Path) -> None:
        self.dir = directory
        self.work = work
        self.work.mkdir(parents=True, exist_ok=True)
        open_to_jobs(self.work)
        clean = {name: value for name, value in os.environ.items() if "CONDOR" not in name.upper()}
        self.environment: dict[str, str] = {**clean, "PATH": f"{BIN}:{clean.get('PATH', '')}",
                                            "_CONDOR_USER_CERTIFICATE": str(directory / "user.pem")}

    def command(self, *words: str) -> list[str]:
        """The command line that runs ``words`` there."""
        return [str(BIN / words[0]) if (BIN / words[0]).exists() else words[0], *words[1:]]

    def tool(self, *command: str, stdin: str | None = None, cwd: Path | None = None,
             environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run a tool; whatever it exits with.  What it borrows to be known elsewhere stays with the pool."""
        return subprocess.run(
            self.command(*command), cwd=cwd or self.work, env={**self.environment, **(environment or {})},
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True, text=True, timeout=180, check=False,
        )

    def run(self, *command: str, stdin: str | None = None, cwd: Path | None = None, expect: int = 0) -> str:
        """Run a tool that must exit with ``expect``; its standard output."""
        done = self.tool(*command, stdin=stdin, cwd=cwd)
        if done.returncode != expect:
            said = f"{done.stdout}\n{done.stderr}\n{self.logs()}"
            raise ToolFailed(f"{' '.join(command)}: exit {done.returncode}\n{said}")
        return done.stdout

    def submit(self, description: str, *arguments: str) -> int:
        """Submit a description; the cluster."""
        text = self.run("condor_submit", *arguments, stdin=description)
        return int(text.rsplit("cluster ", 1)[1].strip().rstrip("."))

    def wait(self, log: str = "job.log", deadline_s: float = DEADLINE_S, *arguments: str) -> None:
        """Until every job of the user log has ended (``condor_wait`` watches the file)."""
        self.run("condor_wait", "-wait", str(int(deadline_s)), *arguments, log)

    def jobs(self, *arguments: str) -> list[dict[str, Any]]:
        """Ads of the queue."""
        return self._ask_schedd("condor_q", "-all", "-json", *arguments)

    def touch_beside(self, job: str, name: str) -> None:
        """Make a file beside a job that ends when it is there: the shell that makes it may be killed with the job."""
        ends = (0, 128 + signal.SIGKILL)
        until(lambda: self.tool("condor_ssh_to_job", job, "touch", name, stdin="").returncode in ends,
              "a shell in the job")

    def history(self, *arguments: str) -> list[dict[str, Any]]:
        """Ads of the history."""
        return self._ask_schedd("condor_history", "-json", *arguments)

    def _ask_schedd(self, *command: str) -> list[dict[str, Any]]:
        """Ads, as soon as the schedd answers: a test may just have killed it.

        They are the schedd's own answer where the tool would be run by who runs the tests, and nothing but asked.
        """
        source, plain = ("queue", command[3:]) if command[0] == "condor_q" else ("history", command[2:])
        found = ads_of(self.dir / "run", source, plain) if self.is_ours else None
        if found is not None:
            return found
        done = self.tool(*command)
        if done.returncode != 0:
            done = until(lambda: done if (done := self.tool(*command)).returncode == 0 else None,
                         f"an answer to {' '.join(command)}: {done.stderr}")
        ads: list[dict[str, Any]] = json.loads(done.stdout) if done.stdout.strip() else []
        return ads

    def status_of(self, job: str) -> int:
        """JobStatus of a job in the queue, 0 when it is not there."""
        found = self.jobs(job, "-attributes", "JobStatus")
        return int(found[0]["JobStatus"]) if found else 0

    def until_status(self, job: str, *status: int, deadline_s: float = DEADLINE_S) -> None:
        """Until the job has one of these states (0: left the queue).

        A job is in state 2 from its match on; here that counts when its program runs.
        """
        until(lambda: self._reached(job) in status or None, f"job {job} in state {status}", deadline_s)

    def _reached(self, job: str) -> int:
        """JobStatus; -1 of one that is said to run and whose program has not begun."""
        found = self.jobs(job, "-attributes", "JobStatus,JobCurrentStartDate,JobCurrentStartExecutingDate")
        if not found:
            return 0
        ad = found[0]
        waits = ad.get("JobCurrentStartExecutingDate", 0) < ad.get("JobCurrentStartDate", 1)
        return -1 if ad["JobStatus"] == JobStatus.RUNNING and waits else int(ad["JobStatus"])

    def logs(self, lines: int = 12) -> str:
        """The ends of the daemons' logs, for failures."""
        out = []
        for path in sorted((self.dir / "log").glob("*Log*")) if (self.dir / "log").is_dir() else []:
            tail = path.read_text(errors="replace").splitlines()[-lines:]
            out.append(f"--- {path.name}\n" + "\n".join(tail))
        return "\n".join(out)

    def scratch(self) -> list[str]:
        """Scratch directories of runs that exist now."""
        return [path.name for path in (self.dir / "execute").glob("dir_*")]


class PersonalPool(Host):
    """A personal pool in ``folder``, with a page where asked for; ``stop()`` also checks that nothing is left."""

    is_ours = True

    def __init__(self, folder: Path, *, slots: int = 4, config: str = "", web: bool = False) -> None:
        super().__init__(folder / "p", folder / "work")
        self.folder = folder
        arguments = ["start", "--dir", str(self.dir), "--slots", str(slots)]
        daemons = f"MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD{' WEB' if web else ''}"
        extra = folder / "extra.config"
        extra.write_text(f"DAEMON_LIST = {daemons}\n{UNMEASURED}{config}")
        arguments += ["--config", str(extra)]
        LIVING.add(self)
        try:
            self.run("condor_personal", *arguments)
            for line in self.run("condor_personal", "env", "--dir", str(self.dir)).splitlines():
                name, _, value = line.removeprefix("export ").partition("=")
                self.environment[name.strip()] = shlex.split(value.rstrip(";"))[0]
        except BaseException:  # nobody gets hold of the pool, so nobody stops it
            self.end_forgotten()
            raise

    def daemons(self) -> dict[str, int]:
        """Name and process id of the living daemons of this pool, hosts included."""
        found = {}
        for pid, command in self.processes().items():
            words = command.split(" ")
            for marker in ("condor_actors.services",):
                if marker in words:
                    found.setdefault(words[words.index(marker) + 1], pid)
        return found

    def processes(self) -> dict[int, str]:
        """Every process whose command line or environment names this pool's folder."""
        found = {}
        for pid, command in command_lines():
            if command and pid != os.getpid() and os.fsencode(f"{self.dir}") in command + proc_file(pid, "environ"):
                found[pid] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        return found

    def kill(self, daemon: str, number: int = signal.SIGKILL) -> int:
        """Signal a daemon (``schedd``, ``shadow-host`` …); its process id."""
        pid = until(lambda: self.daemons().get(daemon), f"a living {daemon}")
        os.kill(pid, number)
        return int(pid)

    def power_off(self) -> None:
        """Kill every process of the pool, jobs as well, so that none of them sees another one die."""
        stopped: set[int] = set()
        while new := self.processes().keys() - stopped:
            for pid in new:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped |= new
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def end_forgotten(self) -> None:
        """Of one that nobody stops any more: kill it."""
        LIVING.discard(self)
        self.power_off()
        until(lambda: not self.processes(), "the end of what was killed")

    def until_restarted(self, daemon: str, old_pid: int, deadline_s: float = DEADLINE_S) -> None:
        """Until the daemon runs as another process."""
        until(lambda: self.daemons().get(daemon) not in (None, old_pid), f"{daemon} started again", deadline_s)

    def stop(self) -> None:
        """Stop the pool; nothing of it may live on."""
        TIME.add(of_processes(self.processes()))
        self.run("condor_personal", "stop", "--dir", str(self.dir))
        LIVING.discard(self)
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        assert not left, f"left behind: {left}"


def read(paths: Sequence[Path]) -> list[str]:
    """The texts of files."""
    return [path.read_text() for path in paths]
