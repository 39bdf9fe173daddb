"""The input files of a run that come from URLs: one process after the other, as the job's account.

Theory: :mod:`condor_actors.machine.run.url_fetch` is the program.  It belongs to the run like the job's own processes:
in its control group, with its mark, killed with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.disk_bound import floor_kib
from condor_actors.daemons.starter.own_program import ProgramEnd, run_own_program, sentence
from condor_actors.machine.run import url_fetch
from condor_actors.machine.run.url_fetch import FetchOrder
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.manifest import FileEntry
from condor_actors.messages.references.urls import shown_url

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["MEMORY_BYTES", "OPEN_FILES", "UrlInputs", "why_failed"]

MEMORY_BYTES = 2 << 30
OPEN_FILES = 64


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
        edges, shown = starter.edges, shown_url(entry.url)
        order = FetchOrder(
            url=entry.url, account=starter.account, most_bytes=self._room_bytes(target),
            most_s=edges.settings.run.fetch_s, authorities=edges.settings.run.authorities).encode()
        run_own_program(starter, url_fetch.__name__, order, (), lambda end: self._over(why_failed(end, shown)),
                        stdout=target, limits={"nofile": str(OPEN_FILES), "as": str(MEMORY_BYTES),
                                               "fsize": str(self._room_bytes(target))})

    def _room_bytes(self, target: int) -> int:
        """What the run may use, and never more than the disk has to give."""
        disk = os.fstatvfs(target)
        bound = self._starter.claim.disk
        floor = floor_kib(bound.leaves_kib, disk.f_blocks * disk.f_frsize >> 10)
        free = max(0, disk.f_bavail * disk.f_frsize - (floor << 10))
        return min(free, bound.limit_kib << 10) if bound.limit_kib else free

    def _over(self, reason: str) -> None:
        if reason:
            self._failed(reason)
        else:
            self.go_on()


def why_failed(end: ProgramEnd, shown: str) -> str:
    """What went wrong with a URL; empty: nothing.  ``shown``: the URL for people."""
    if end.status == 0:
        return ""
    return sentence(end.said) or f"{shown}: {end.reason or f'it ended with status {end.status}'}"
