"""Slurm, by its own commands: run off the reactor, each with a deadline, and one squeue for everybody who asks.

Theory: a command is a process whose output is read as it comes; one that does not end in time is killed, and nobody
knows then whether it has done what it was to do.  Questions that come while squeue runs wait for the next one, since
the answer of this one may be older than what they are about.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
from twisted.internet.defer import Deferred, DeferredSemaphore
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from condor_actors.cores.shadow.grid_events import BatchJob
from condor_actors.cores.shadow.slurm_jobs import QUEUE_FORMAT, is_transient, parse_accounting, parse_queue
from condor_actors.machine.grid.shared_question import SharedQuestion
from condor_actors.numerals import numeral

__all__ = ["CommandFailed", "Slurm", "SlurmPlace"]

MOST_BYTES = 64 << 20
SAID_BYTES = 2000


class CommandFailed(Exception):
    """A command of Slurm's was not done, or nobody knows; its text is what it said.

    Attributes:
        transient: whether it may be tried again.
    """

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient


@attrs.frozen(kw_only=True)
class SlurmPlace:
    """Where Slurm is.

    Attributes:
        commands: the folder of its commands; empty: they are found as shells find them.
        conf: its configuration; empty: its own default.
        deadline_s: of each command.
        at_once: submissions at a time.
    """

    commands: str
    conf: str
    deadline_s: float
    at_once: int


class Slurm:
    """The commands of Slurm.

    Args:
        reactor: starts processes.
        place: where Slurm is.
        environment: of the commands.
        uid: whose jobs these are.
    """

    def __init__(self, reactor: Any, place: SlurmPlace, environment: Mapping[str, str], uid: int) -> None:
        self._reactor = reactor
        self._place = place
        self._uid = uid
        self._environment = {name: value for name, value in environment.items() if name != "CONDOR_CONFIG"}
        if place.conf:
            self._environment["SLURM_CONF"] = place.conf
        self._submissions = DeferredSemaphore(max(1, place.at_once))
        self._question = SharedQuestion(reactor, self._ask)

    def submit(self, words: Sequence[str]) -> Deferred[str]:
        """Run sbatch; the number of the job there.  Fails with :class:`CommandFailed`."""
        done: Deferred[str] = self._submissions.run(self._run, "sbatch", *words)
        return done.addCallback(_number)

    def cancel(self, name: str) -> Deferred[Any]:
        """Have all jobs of a name ended.  Fails with :class:`CommandFailed`."""
        return self._run("scancel", "--quiet", f"--user={self._uid}", f"--name={name}")

    def look(self) -> Deferred[dict[str, tuple[BatchJob, ...]]]:
        """All jobs of ours that Slurm knows, by name.  Fails with :class:`CommandFailed`."""
        return self._question.ask()

    def _ask(self) -> Deferred[dict[str, tuple[BatchJob, ...]]]:
        asked = self._run("squeue", "--noheader", "--states=all", f"--user={self._uid}", f"--format={QUEUE_FORMAT}")
        return asked.addCallback(parse_queue)

    def account(self, batch_id: str) -> Deferred[BatchJob | None]:
        """What the accounting remembers of a job; None: nothing, or there is none."""
        asked = self._run("sacct", "--allocations", "--noheader", "--parsable2", "--format=State", f"--jobs={batch_id}")
        return asked.addCallbacks(lambda text: parse_accounting(batch_id, text), lambda _: None)

    def _run(self, command: str, *words: str) -> Deferred[str]:
        found: Deferred[str] = Deferred()
        path = os.path.join(self._place.commands, command) if self._place.commands else shutil.which(
            command, path=self._environment.get("PATH"))
        if path is None or not os.access(path, os.X_OK):
            where = self._place.commands or "PATH"
            found.errback(CommandFailed(f"{command} is not in {where} (SLURM_BINPATH names the folder of Slurm's "
                                        "commands)", transient=True))
            return found
        running = _Running(command, found, self._reactor, self._place.deadline_s)
        try:
            self._reactor.spawnProcess(running, path, [command, *words], env=self._environment, path="/")
        except OSError as error:
            found.errback(CommandFailed(f"{path}: {error.strerror}", transient=True))
        return found


def _number(text: str) -> str:
    """The job's number of ``12;cluster``."""
    number = text.strip().partition("\n")[0].partition(";")[0]
    if numeral(number) is None:
        raise CommandFailed(f"sbatch has answered {text[:200]!r}, which is no number (no answer)", transient=True)
    return number


class _Running(ProcessProtocol):
    """One command."""

    def __init__(self, command: str, found: Deferred[str], reactor: Any, deadline_s: float) -> None:
        self._command = command
        self._found = found
        self._out: list[bytes] = []
        self._size = 0
        self._said = b""
        self._late = False
        self._deadline_s = deadline_s
        self._call = reactor.callLater(deadline_s, self._is_late)

    def connectionMade(self) -> None:  # noqa: N802 - Twisted's name
        transport: Any = self.transport
        transport.closeStdin()

    def outReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._size += len(data)
        if self._size > MOST_BYTES:
            self._kill()
        else:
            self._out.append(data)

    def errReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        self._said = (self._said + data)[-SAID_BYTES:]

    def _is_late(self) -> None:
        self._late = True
        self._kill()

    def _kill(self) -> None:
        """End it, and wait for nobody who may still have its pipes."""
        transport: Any = self.transport
        with contextlib.suppress(ProcessExitedAlready):
            transport.signalProcess(signal.SIGKILL)
        transport.loseConnection()

    def processEnded(self, reason: Failure) -> None:  # noqa: N802 - Twisted's name
        if self._call.active():
            self._call.cancel()
        said = " ".join(self._said.decode(errors="replace").split())
        value: Any = reason.value
        if self._late:
            self._found.errback(CommandFailed(f"{self._command}: no answer within {self._deadline_s:g} s",
                                              transient=True))
        elif self._size > MOST_BYTES:
            self._found.errback(CommandFailed(f"{self._command} said more than {MOST_BYTES} bytes", transient=True))
        elif value.exitCode == 0:
            self._found.callback(b"".join(self._out).decode(errors="replace"))
        else:
            how = f"exit status {value.exitCode}" if value.exitCode is not None else f"signal {value.signal}"
            text = said or f"{self._command} ended with {how} and said nothing"
            self._found.errback(CommandFailed(text, transient=value.exitCode is None or not said or is_transient(said)))
