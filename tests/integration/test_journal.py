"""A pool whose logs go to a real journal, which is stopped, killed and started again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

JOURNALD = "/lib/systemd/systemd-journald"
JOB = "executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = yes\nlog = job.log\nqueue {count}\n"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path(JOURNALD).exists() or shutil.which("journalctl") is None,
    reason="needs root and systemd-journald")


class Journal:
    """A journal with a /run of its own.

    Attributes:
        keeper: a process that keeps its mount namespace.
    """

    def __init__(self) -> None:
        self.keeper = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", "mount -t tmpfs none /run && mkdir -p /run/systemd/journal /run/log/journal "
             "&& echo ready && exec sleep infinity"], stdout=subprocess.PIPE, text=True)
        assert self.keeper.stdout is not None
        with self.keeper.stdout as said:
            assert said.readline() == "ready\n"
        self.daemon = self._started()

    def inside(self, *words: str) -> list[str]:
        """A command line that runs words there."""
        return ["nsenter", f"--mount=/proc/{self.keeper.pid}/ns/mnt", *words]

    def _started(self) -> subprocess.Popen[bytes]:
        made = subprocess.Popen(self.inside(JOURNALD))
        until(lambda: self._said("ls", "/run/systemd/journal/socket"), "the journal to listen")
        return made

    def _said(self, *words: str) -> str:
        return subprocess.run(self.inside(*words), capture_output=True, text=True, check=False).stdout

    def restart(self) -> None:
        """Kill it, and start another one."""
        self.daemon.kill()
        self.daemon.wait()
        subprocess.run(self.inside("rm", "-f", "/run/systemd/journal/socket"), check=True)
        self.daemon = self._started()

    def lines(self, *matches: str) -> list[dict[str, Any]]:
        """What it has."""
        said = self._said("journalctl", "-D", "/run/log/journal", "-o", "json", "--no-pager", *matches)
        return [json.loads(line) for line in said.splitlines()]

    def stop(self) -> None:
        """End all of it."""
        self.daemon.kill()
        self.daemon.wait()
        self.keeper.kill()
        self.keeper.wait()


class JournalledPool(PersonalPool):
    """A pool that lives where a journal does."""

    def __init__(self, folder: Path, journal: Journal) -> None:
        self.journal = journal
        super().__init__(folder, slots=1, config="LOG_TO_JOURNAL = True\n")

    def command(self, *words: str) -> list[str]:
        """There."""
        return self.journal.inside("sh", "-c", 'cd "$0" && exec "$@"', str(self.work), *super().command(*words))


@contextmanager
def a_journal() -> Iterator[Journal]:
    made = Journal()
    try:
        yield made
    finally:
        made.stop()


def test_a_jobs_story_is_found_by_its_number_and_a_dead_journal_costs_nothing() -> None:
    with a_journal() as journal, fresh_folder() as folder:
        pool = JournalledPool(folder, journal)
        try:
            cluster = pool.submit(JOB.format(count=1))
            pool.wait()
            until(lambda: {line["SYSLOG_IDENTIFIER"] for line in journal.lines(f"CONDOR_JOB={cluster}.0")} >= {
                "condor-schedd", "condor-shadow-host", "condor-starter-host"},
                lambda: f"lines of three daemons: {journal.lines()[-20:]}")
            texts = [line["MESSAGE"] for line in journal.lines(f"CONDOR_JOB={cluster}.0")]
            assert all(text.startswith(f"{cluster}.0: ") for text in texts)
            assert any("submitted" in text for text in texts)

            journal.daemon.send_signal(signal.SIGSTOP)
            many = pool.submit(JOB.format(count=20))
            until(lambda: not pool.jobs(str(many)), "all twenty to end")
            assert journal.daemon.poll() is None
            journal.restart()
            last = pool.submit(JOB.format(count=1))
            until(lambda: journal.lines(f"CONDOR_JOB={last}.0", "CONDOR_DAEMON=schedd"), "lines in the new journal")
        finally:
            pool.stop()
