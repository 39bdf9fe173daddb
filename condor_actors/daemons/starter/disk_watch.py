"""Watches the disk below EXECUTE for all runs of a starter host.

Theory: when is decided by :class:`~condor_actors.cores.starter.disk_pace.DiskPace`; here the room is looked at and the
files are looked through, beside the reactor and one run at a time.  A run is told what it uses, to stand still, and to
make room.  Many short runs share the looks at the room: these are no closer together than one needs.  Where nothing
bounds runs, the room is looked at once as each begins: one that fails later on a full disk, and has not taken more than
its own, fails through others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import attrs
from twisted.python.failure import Failure

from condor_actors.cores.starter.disk_bound import DiskBound, floor_kib
from condor_actors.cores.starter.disk_pace import LOOK_S, DiskLook, DiskPace
from condor_actors.machine.run.sandbox import Sandbox

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter_edges import StarterEdges

__all__ = ["DiskWatch"]


@attrs.frozen
class _Run:
    sandbox: Sandbox
    pids: Callable[[], Collection[int]]
    used: Callable[[int], Any]
    stands: Callable[[bool], Any]
    makes_room: Callable[[int, int], Any]
    leaves_kib: int


class DiskWatch:
    """The watch of one process.

    Args:
        edges: whose runs they are.
    """

    def __init__(self, edges: StarterEdges) -> None:
        self._edges = edges
        self._pace = DiskPace()
        self._runs: dict[str, _Run] = {}
        self._unlimited: dict[str, bool] = {}
        self._call: Any = None
        self._asking = False
        self._looked_s = -math.inf

    def begin(self, run_id: str, bound: DiskBound, sandbox: Sandbox, *, pids: Callable[[], Collection[int]],
              used: Callable[[int], Any], stands: Callable[[bool], Any],
              makes_room: Callable[[int, int], Any]) -> None:
        """Watch a run whose program begins.

        Args:
            run_id, bound, sandbox: the run, what it may use, and where.
            pids: gives its processes, which may keep files open that no folder shows.
            used: is told how many KiB it uses.
            stands: is told whether it is to stand still.
            makes_room: is told that it has to end, how many KiB it uses, and how many have to be free.
        """
        self._runs[run_id] = _Run(sandbox, pids, used, stands, makes_room, bound.leaves_kib)
        self._pace.begin(run_id, bound.limit_kib, self._now_s(), own_kib=bound.own_kib, strict=bound.strict)
        if self._call is None or bound.strict:
            self._look_in(0.0 if bound.strict else max(0.0, self._looked_s + LOOK_S - self._now_s()))

    def begin_unlimited(self, run_id: str, own_kib: int) -> None:
        """A program begins that may use any room: look whether there is what it was promised."""
        self._unlimited[run_id] = False
        self._edges.in_thread(self._edges.host.disk_room, self._edges.root.path).addBoth(
            self._room_at_first, run_id, own_kib)

    def _room_at_first(self, room: Any, run_id: str, own_kib: int) -> None:
        if isinstance(room, Failure):
            room.trap(OSError)
        elif run_id in self._unlimited:
            self._unlimited[run_id] = room[0] >= own_kib

    def end(self, run_id: str) -> None:
        """The run is over."""
        if self._unlimited.pop(run_id, None) is not None:
            return
        self._runs.pop(run_id, None)
        self._pace.end(run_id)
        if self._pace.idle and self._call is not None:
            self._call.cancel()
            self._call = None

    def had_room(self, run_id: str) -> bool:
        """Whether there has been room for all that is the run's own, while it ran or, without a limit, as it began."""
        return self._unlimited.get(run_id, False) or self._pace.had_room(run_id)

    def _now_s(self) -> float:
        now_s: float = self._edges.reactor.seconds()
        return now_s

    def _look_in(self, delay_s: float) -> None:
        if self._call is not None:
            self._call.cancel()
        self._call = self._edges.reactor.callLater(delay_s, self._look)

    def _look(self) -> None:
        self._call = None
        if self._asking:  # a file system that does not answer is asked once
            self._look_in(LOOK_S)
            return
        self._asking, self._looked_s = True, self._now_s()
        self._edges.in_thread(self._edges.host.disk_room, self._edges.root.path).addBoth(self._room)

    def _room(self, room: Any) -> None:
        self._asking = False
        if self._pace.idle:
            return
        if isinstance(room, Failure):
            room.trap(OSError)
            self._look_in(LOOK_S)
            return
        free_kib, total_kib = room
        floor = floor_kib(max(run.leaves_kib for run in self._runs.values()), total_kib)
        look = self._pace.look(free_kib, total_kib, self._now_s(), floor_kib=floor)
        self._tell(look, floor)
        if self._call is None:
            self._look_in(look.again_s)
        run = self._runs.get(look.run_id)
        if run is not None:
            began_s = self._now_s()
            self._edges.in_thread(run.sandbox.size_kib, run.pids()).addBoth(
                self._looked, look.run_id, free_kib, began_s)

    def _tell(self, look: DiskLook, floor: int) -> None:
        for run_id in look.stand:
            self._edges.log.info("run {run} stands still until it is known whether it has filled the disk", run=run_id)
            self._runs[run_id].stands(True)
        for run_id in look.go_on:
            self._runs[run_id].stands(False)
        if look.makes_room:
            self._runs[look.makes_room].makes_room(look.used_kib, floor)

    def _looked(self, used_kib: Any, run_id: str, free_kib: int, began_s: float) -> None:
        """A run's files were looked through; the next one's may be waiting."""
        now_s = self._now_s()
        failed = isinstance(used_kib, Failure)
        self._pace.looked(run_id, None if failed else used_kib, now_s - began_s, free_kib, now_s)
        run = self._runs.get(run_id)
        if failed:
            self._edges.log.warn("the files of run {run} cannot be looked through: {why}", run=run_id,
                                 why=used_kib.value)
        elif run is not None:
            run.used(used_kib)
        if not self._pace.idle:
            self._look_in(0.05)
