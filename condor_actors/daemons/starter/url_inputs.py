"""The input files of a run that come from URLs: one process after the other, as the job's account.

Theory: :mod:`condor_actors.machine.run.url_fetch` is the program.  It belongs to the run like the job's own processes:
in its control group, with its mark, killed with them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from condor_actors.cores.starter import job_run as jr
from condor_actors.machine.run import url_fetch
from condor_actors.machine.run.launch import Ended, LaunchPlan
from condor_actors.machine.run.process_tree import MARK
from condor_actors.machine.run.url_fetch import REASON_BYTES, FetchOrder
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import shown_url

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["UrlInputs"]

MEMORY_BYTES = 2 << 30
OPEN_FILES = 64
PIPE_BYTES = 32 * 1024
"""An order is never longer, so that it is in the pipe before its reader is there."""


class UrlInputs:
    """Fetches them.

    Args:
        starter: whose run it is; it has its sandbox.
        entries: those of the manifest that have a URL.
        done: called when all are there; what fails is told to the starter's core.
    """

    def __init__(self, starter: Starter, entries: Sequence[FileEntry], done: Callable[[], None]) -> None:
        self._starter = starter
        self._left = list(entries)
        self._done = done

    def go_on(self) -> None:
        """Fetch the next one."""
        if not self._left:
            self._done()
            return
        entry = self._left.pop(0)
        sandbox = self._starter.sandbox
        if sandbox is None or self._starter.core.state is not jr.StarterState.PREPARING:
            return  # the run is over
        target = -1
        try:
            target = sandbox.make_file(entry.path, entry.mode)
            self._start(entry, target)
        except OSError as error:
            self._failed(f"{entry.path} cannot be fetched: {error}")
        finally:
            if target >= 0:
                os.close(target)

    def _failed(self, reason: str) -> None:
        self._starter.decide(jr.PrepareFailed(f"Transfer input files failure: {reason}", HoldCode.TRANSFER_INPUT_ERROR))

    def _start(self, entry: FileEntry, target: int) -> None:
        starter = self._starter
        edges, claim, shown = starter.edges, starter.claim, shown_url(entry.url)
        order = FetchOrder(
            url=entry.url, account=starter.account, most_bytes=self._room_bytes(target),
            most_s=edges.settings.run.fetch_s, authorities=edges.settings.run.authorities).encode()
        if len(order) > PIPE_BYTES:
            raise OSError(f"{shown}: the URL is too long")
        reading, asking = os.pipe2(os.O_CLOEXEC)
        telling, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        processes = starter.processes = starter.held.processes = edges.processes_for(claim, starter.run_id)
        over = starter.context.as_turn(self._over)

        def ended(how: Ended) -> None:
            processes.leader_ended()
            said = _said(telling)
            signalled = f"{shown}: the transfer ended by signal {how.exit_signal}" if how.exit_signal >= 0 else ""
            over("" if how.exit_code == 0 else signalled or said or f"{shown}: it ended with status {how.exit_code}")

        def failed(reason: str) -> None:
            processes.leader_ended()
            os.close(telling)
            over(f"{shown}: {reason}")

        try:
            os.write(asking, order)
            launched = edges.launcher.launch(LaunchPlan(
                program=sys.executable, arguments=("-I", "-m", url_fetch.__name__), directory="/",
                environment={MARK: f"{edges.root.path}:{starter.run_id}"}, stdin=reading, stdout=target,
                stderr=writing, account=None if os.geteuid() == 0 else starter.account,
                cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
                limits={"core": "0", "nofile": str(OPEN_FILES), "as": str(MEMORY_BYTES),
                        "fsize": str(self._room_bytes(target))}), lambda: None, failed, ended)
            processes.leader(launched.pid)
        except BaseException:
            os.close(telling)
            raise
        finally:
            for descriptor in (reading, asking, writing):
                os.close(descriptor)

    def _room_bytes(self, target: int) -> int:
        """What the run asked for, where that is enforced, and never more than the disk has."""
        disk = os.fstatvfs(target)
        free = disk.f_bavail * disk.f_frsize
        settings, claim = self._starter.edges.settings, self._starter.claim
        return min(free, claim.disk_kib * 1024) if settings.enforce_disk else free

    def _over(self, reason: str) -> None:
        if reason:
            self._failed(reason)
        else:
            self.go_on()


def _said(descriptor: int) -> str:
    """The sentence that the process has left."""
    try:
        data = os.read(descriptor, REASON_BYTES)
    except BlockingIOError:
        return ""
    finally:
        os.close(descriptor)
    return "".join(letter if letter.isprintable() else " " for letter in data.decode(errors="replace")).strip()
