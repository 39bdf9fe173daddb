"""The jobs of an executor's workers: submitted, followed in their log, removed.

Theory: the log says what becomes of each job, and nothing is asked of the schedd but to queue and to remove.  A job
whose worker never came has failed; after `MOST_FAILURES` of these in a row the executor is broken, for the next
one would fail too, and its tasks would wait forever.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import cloudpickle

from condor_actors import accounts
from condor_actors.api.errors import CondorError
from condor_actors.api.event_log import JobEvent, JobEventLog
from condor_actors.api.schedd import Schedd
from condor_actors.api.settings import param
from condor_actors.master_worker import worker
from condor_actors.master_worker.credentials import write_private
from condor_actors.messages.codes import JobEventType

PROGRAM, SECRET, LOG = "worker.zip", "worker.pem", "log"
MOST_FAILURES = 3
LAST_BYTES, MOST_TOLD = 64 << 10, 1000
"""Of what a worker wrote as its error: read, and told."""
BATCH = "master-worker"
RESERVED = frozenset({"executable", "arguments", "universe", "log", "error", "transfer_executable",
                      "should_transfer_files", "when_to_transfer_output", "queue"})
"""Commands that are the crew's own."""

Job = tuple[int, int]
_ENDS = {JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED}


def _submitter() -> tuple[int, int] | None:
    """Whose the files have to be: root's jobs have nobody's rights, at home as well."""
    if os.geteuid() != 0:
        return None
    found = accounts.named(str(param["NOBODY_USER"]))
    return (found.uid, found.gid) if found is not None else None


class Crew:
    """Jobs whose workers come, work and go.

    Args:
        schedd: where they are queued.
        python: the interpreter on their machines.
        commands: further commands for their description.

    Attributes:
        jobs: those in the queue.
        seen: those whose worker came.
        broken: why no more are submitted; empty: they are.
    """

    def __init__(self, schedd: Schedd, python: str, commands: Mapping[str, object]) -> None:
        wrong = sorted(RESERVED & {name.lower() for name in commands})
        if wrong:
            raise ValueError(f"submit: {', '.join(wrong)} cannot be set, for workers need their own; python= is the "
                             "interpreter")
        self._schedd = schedd
        self._python = python
        self._commands = {name.lower(): str(value) for name, value in commands.items()}
        self.jobs: set[Job] = set()
        self.seen: set[Job] = set()
        self.broken = ""
        self._removed: set[Job] = set()
        self._failures = 0
        self._folder = Path(tempfile.mkdtemp(prefix=f"{BATCH}-"))
        self._description: dict[str, str | int | bool] = {}

    def prepare(self, address: tuple[str, int], secret: bytes) -> None:
        """Write what the workers get.

        Raises:
            OSError: it cannot be written.
        """
        owner = _submitter()
        with zipfile.ZipFile(self._folder / PROGRAM, "w", zipfile.ZIP_DEFLATED) as made:
            made.write(worker.__file__, "__main__.py")
            home = Path(cloudpickle.__file__).parent
            for source in sorted(home.glob("*.py")):
                made.write(source, f"cloudpickle/{source.name}")
        write_private(str(self._folder / SECRET), secret, owner)
        write_private(str(self._folder / LOG), b"", owner)
        os.chmod(self._folder / PROGRAM, 0o644)
        if owner is not None:
            os.chown(self._folder, *owner)
        inputs = [str(self._folder / PROGRAM), str(self._folder / SECRET)]
        if more := self._commands.pop("transfer_input_files", ""):
            inputs.append(more)
        host, port = address
        self._description = {
            "batch_name": BATCH, **self._commands, "executable": self._python, "transfer_executable": False,
            "arguments": f"{PROGRAM} {host} {port} $(Cluster).$(Process) {SECRET}", "should_transfer_files": "YES",
            "when_to_transfer_output": "ON_EXIT", "transfer_output_files": "",
            "transfer_input_files": ", ".join(inputs), "log": str(self._folder / LOG),
            "error": str(self._folder / "error.$(Cluster).$(Process)"),
        }  # fmt: skip

    async def submit(self, count: int) -> None:
        """Queue so many workers; what the schedd refuses breaks the executor."""
        try:
            submitted = await asyncio.to_thread(self._schedd.submit, self._description, count=count)
        except (CondorError, ValueError, OSError) as error:
            self._failed(f"no worker can be queued: {error}")
            return
        self.jobs |= set(submitted.jobs)

    async def remove(self, jobs: set[Job], why: str) -> None:
        """Remove jobs from the queue."""
        self._removed |= jobs
        try:
            await asyncio.to_thread(self._schedd.remove, sorted(jobs), why)
        except CondorError:
            self._removed -= jobs  # the next look at the sizes tries again

    def came(self, job: Job) -> None:
        """A worker is linked."""
        self._failures = 0
        self.seen.add(job)

    async def follow(self) -> None:
        """Read the log as it grows, forever."""
        with JobEventLog(self._folder / LOG) as log:
            async for event in log:
                await self._heard(event)

    async def _heard(self, event: JobEvent) -> None:
        job = (event.cluster, event.proc)
        if event.type == JobEventType.JOB_HELD and job not in self._removed:
            self._failed(str(event.ad.get_str("HoldReason")) or "its job was held")
            await self.remove({job}, "its worker could not run")
        elif event.type in _ENDS:
            if job not in self.seen and job not in self._removed:
                self._failed(self._error_of(job) or f"its job ended: {event.text.splitlines()[0]}")
            self.jobs.discard(job)
            self.seen.discard(job)
            self._removed.discard(job)

    def _error_of(self, job: Job) -> str:
        """The last line that a worker wrote, on a machine that may have written anything."""
        try:
            with (self._folder / f"error.{job[0]}.{job[1]}").open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
                lines = file.read(LAST_BYTES).decode(errors="replace").splitlines()
        except OSError:
            return ""
        return "".join(each if each.isprintable() else " " for each in lines[-1])[:MOST_TOLD] if lines else ""

    def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failures >= MOST_FAILURES and not self.broken:
            self.broken = (f"{MOST_FAILURES} workers in a row did not come; the last one: {why} (python= says which "
                           "interpreter they run, submit= the rest of their description)")

    def abandon(self) -> None:
        """The program ends without having shut the executor down: remove the jobs, and wait for none."""
        with contextlib.suppress(CondorError):
            if self.jobs:
                self._schedd.remove(sorted(self.jobs), "its program has ended")
        self.close()

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

