"""Scripts of nodes: their command lines, and their processes."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from twisted.internet.error import ProcessDone, ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from condor_actors.dag.definitions import Node, Script
from condor_actors.dag.run_events import REMOVED
from condor_actors.dag.run_state import Attempt, NodeState, RunState
from condor_actors.durable import naming
from condor_actors.tools.dag.dag_files import open_own

__all__ = ["ScriptRunner", "words_of"]

MOST_OUTPUT = 1 << 20
CANNOT_START = 127


def words_of(script: Script, node: int, run: RunState, facts: Mapping[str, str], *, is_post: bool) -> list[str]:
    """The command line of a script: each word that is a macro stands for its value.

    Args:
        script: of which node.
        run: the nodes as they stand.
        facts: ``DAGID``, ``DAG_STATUS``.
        is_post: whether the jobs have ended, so that macros about them mean something.
    """
    values = {**_about_the_dag(node, run), **facts}
    if is_post:
        values |= _about_the_jobs(run.active.get(node) or Attempt())
    return [values.get(word[1:].upper(), word) if word.startswith("$") else word for word in script.words]


def _about_the_dag(node: int, run: RunState) -> dict[str, str]:
    counts = run.counts
    definition = run.dag.nodes[node]
    return {
        "NODE": definition.name, "JOB": definition.name, "RETRY": str(run.attempt_of(node)),
        "MAX_RETRIES": str(definition.retries), "NODE_COUNT": str(len(run.dag.nodes) - len(run.dag.services)),
        "QUEUED_COUNT": str(counts[NodeState.SUBMITTING] + counts[NodeState.QUEUED]),
        "DONE_COUNT": str(counts[NodeState.DONE]), "FAILED_COUNT": str(counts[NodeState.FAILED]),
        "FUTILE_COUNT": str(counts[NodeState.FUTILE]),
    }


def _about_the_jobs(attempt: Attempt) -> dict[str, str]:
    statuses = attempt.statuses
    shown = [statuses[proc] for proc in sorted(statuses) if statuses[proc] != REMOVED]
    counts = {status: shown.count(status) for status in sorted(set(shown))}
    last = attempt.jobs - 1
    return {
        "CLUSTERID": str(attempt.cluster or -1), "JOBID": f"{attempt.cluster}.{last}" if attempt.jobs else "-1.-1",
        "JOB_COUNT": str(attempt.jobs), "RETURN": str(attempt.status),
        "JOB_ABORT_COUNT": str(sum(status == REMOVED for status in statuses.values())),
        "SUCCESS": str(attempt.status == 0), "PRE_SCRIPT_RETURN": str(attempt.pre_status),
        "EXIT_CODES": ",".join(map(str, counts)),
        "EXIT_CODE_COUNTS": ",".join(f"{status}:{count}" for status, count in counts.items()),
        "EXIT_CODE_LIST": ",".join("" if statuses[proc] == REMOVED else str(statuses[proc])
                                   for proc in sorted(statuses)),
    }


class ScriptRunner:
    """The processes of scripts.

    Args:
        reactor: starts them.
        cwd: where the DAG runs.
        ended: called with node, kind and status of a script that has ended.
        failed: called with a sentence about one that could not be started, or whose output could not be kept.
    """

    def __init__(self, reactor: Any, cwd: str, ended: Callable[[int, str, int], None],
                 failed: Callable[[str], None]) -> None:
        self._reactor = reactor
        self._cwd = cwd
        self._ended = ended
        self._failed = failed
        self._running: set[_Running] = set()
        self._null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def run(self, number: int, node: Node, which: str, script: Script, words: Sequence[str], folder: str) -> None:
        """Start a script; its end is told."""
        program = _found(words[0], folder)
        running = _Running(self, number, node, which, script)
        self._running.add(running)
        try:
            self._reactor.spawnProcess(
                running, program, [words[0], *words[1:]], env=None, path=folder,
                childFDs={0: "w", 1: "r", 2: "r"} if script.debug_file else {0: self._null, 1: 1, 2: 2})
        except OSError as error:
            self._running.discard(running)
            self._failed(f"the {which.upper()} script of node {node.name} cannot be started: {error}")
            self._ended(number, which, CANNOT_START)

    def over(self, running: _Running, status: int) -> None:
        """A process has ended."""
        self._running.discard(running)
        script = running.script
        if script.debug_file:
            try:
                _keep(os.path.join(self._cwd, script.debug_file), running, status)
            except OSError as error:
                self._failed(f"{script.debug_file}: {error.strerror}")
        self._ended(running.number, running.which, status)

    def kill(self) -> None:
        """End all of them; what they come to means nothing any more."""
        for running in list(self._running):
            self._running.discard(running)
            running.is_wanted = False
            process: Any = running.transport
            with contextlib.suppress(ProcessExitedAlready):
                process.signalProcess(signal.SIGKILL)


def _found(program: str, folder: str) -> str:
    """The path of a script: in its folder, else where programs are looked for."""
    path = os.path.join(folder, program)
    return path if "/" in program or os.path.exists(path) else shutil.which(program) or path


def _keep(path: str, running: _Running, status: int) -> None:
    """Add what a script printed to its debug file, under a line that says whose it is."""
    when = time.strftime("%m/%d/%y %H:%M:%S")
    banner = (f"*** Node={running.node.name} Type={running.which.upper()} Status={status} Completed={when}\n"
              f"*** {' '.join(running.script.words)}\n")
    with naming(path), open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab") as file:
        file.write(banner.encode(errors="surrogateescape") + b"".join(running.output) + b"\n")


class _Running(ProcessProtocol):
    """A script that runs."""

    def __init__(self, runner: ScriptRunner, number: int, node: Node, which: str, script: Script) -> None:
        self._runner = runner
        self.number = number
        self.node = node
        self.which = which
        self.script = script
        self.output: list[bytes] = []
        self.is_wanted = True
        self._kept = 0

    def connectionMade(self) -> None:
        if self.script.debug_file:
            process: Any = self.transport
            process.closeStdin()

    def outReceived(self, data: bytes) -> None:
        self._take(data, "STDOUT")

    def errReceived(self, data: bytes) -> None:
        self._take(data, "STDERR")

    def _take(self, data: bytes, stream: str) -> None:
        if self.script.debug_type in (stream, "ALL") and self._kept < MOST_OUTPUT:
            self.output.append(data)
            self._kept += len(data)

    def processEnded(self, reason: Failure) -> None:
        if not self.is_wanted:
            return
        why: Any = reason.value
        status = 0 if reason.check(ProcessDone) else -why.signal if why.signal else why.exitCode
        self._runner.over(self, status)
