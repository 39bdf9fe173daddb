"""Jobs on the stations of a pool of cores: shadow, starter and program in one.

Placing a job takes ``placement_s``, then it works until its demand is done, is frozen, saved (``checkpoint_s``) and
moved as the startd and the schedd order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from condor_actors.messages.claim import ClaimActivity
from condor_actors.messages.shadow_host import RunEnded, RunUpdated, StartRun
from condor_actors.simulation.report import events
from condor_actors.simulation.world.clock import SimulatedCall

if TYPE_CHECKING:
    from condor_actors.simulation.cores.homes import Home
    from condor_actors.simulation.cores.pool import CorePool

__all__ = ["SimulatedRun", "Work"]

EXITED = b"ExitCode = 0\nExitBySignal = false\n"


@attrs.define(eq=False)
class Work:
    """How much of a job is done; ``saved_s`` of it would survive; ``saves``: whether it keeps its work when evicted."""

    demand_s: float
    saves: bool
    saved_s: float = 0.0


class SimulatedRun:
    """One run of a job on a station; see the module.

    Attributes:
        done_s: work done when it last began or stood still; since_s: since when it runs; None: it stands still.
    """

    def __init__(self, pool: CorePool, home: Home, order: StartRun, host: str) -> None:
        self.pool = pool
        self.home = home
        self.host = host
        self.run_id = order.run_id
        self.claim_id = order.claim_id
        self.job = (home.user, order.run_id.partition("#")[0])
        self.work = home.work[self.job]
        self.done_s = self.work.saved_s
        self.since_s: float | None = None
        self.leaving = ""
        self._call: SimulatedCall | None = None
        self._save: SimulatedCall | None = None
        self.station = pool.stations_by_node[order.starter_node]
        self.station.runs[self.claim_id] = self
        home.runs[self.run_id] = self
        pool.observe(events.Placed(pool.clock.now_s, self.job, self.station.number))
        self._call = pool.clock.callLater(pool.settings.placement_s, self._begin)

    def _begin(self) -> None:
        self.pool.observe(events.Began(self.pool.clock.now_s, self.job, self.station.number))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="busy", job_id=self.run_id))
        self._go_on()

    def _go_on(self) -> None:
        clock, settings = self.pool.clock, self.pool.settings
        self.since_s = clock.now_s
        self._call = clock.callLater(max(0.0, self.work.demand_s - self.done_s), self._finish)
        if settings.save_every_s:
            self._save = clock.callLater(settings.save_every_s, self._save_now)

    def _stand(self) -> None:
        """Stop working."""
        for call in (self._call, self._save):
            if call is not None and call.active():
                call.cancel()
        self._call = self._save = None
        if self.since_s is not None:
            self.done_s += self.pool.clock.now_s - self.since_s
            self.since_s = None

    def _save_now(self) -> None:
        self._stand()
        self.work.saved_s = self.done_s
        self.pool.observe(events.Saved(self.pool.clock.now_s, self.job))
        self._call = self.pool.clock.callLater(self.pool.settings.checkpoint_s, self._go_on)

    def _finish(self) -> None:
        self._stand()
        self._forget()
        del self.home.work[self.job]
        self.pool.observe(events.Completed(self.pool.clock.now_s, self.job))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="idle", job_id=self.run_id))
        self.home.host_says(self.host, RunEnded(run_id=self.run_id, outcome="exited", attributes=EXITED,
                                                claim_usable=self.pool.settings.keeps_claims))

    def _forget(self) -> None:
        self.station.runs.pop(self.claim_id, None)
        self.home.runs.pop(self.run_id, None)

    # ---- orders of the startd

    def freeze(self) -> None:
        """SuspendClaim."""
        if self.since_s is not None:
            self._stand()
            self.pool.observe(events.Suspended(self.pool.clock.now_s, self.job))
            self.home.host_says(self.host, RunUpdated(run_id=self.run_id, attributes=b"", event="suspended"))

    def thaw(self) -> None:
        """ContinueClaim."""
        if self.since_s is None and self._call is None and not self.leaving:
            self.pool.observe(events.Resumed(self.pool.clock.now_s, self.job))
            self.home.host_says(self.host, RunUpdated(run_id=self.run_id, attributes=b"", event="continued"))
            self._go_on()

    def leave(self, vacate_s: float, reason: str) -> None:
        """CloseClaim, or the schedd's StopRun: save what can be saved in time and go."""
        settings = self.pool.settings
        saves = self.work.saves and vacate_s >= settings.checkpoint_s
        if self.leaving:
            if saves:
                return
            self._stand()
        running = self.since_s is not None
        placed = running or self.done_s > self.work.saved_s
        self._stand()
        if running:
            self.pool.observe(events.Suspended(self.pool.clock.now_s, self.job))
        self.leaving = "priority" if reason.startswith("preempted by") else "owner"
        delay_s = settings.checkpoint_s if saves and placed else 0.0
        self._call = self.pool.clock.callLater(delay_s, self._gone, saves and placed, reason)

    def _gone(self, saved: bool, reason: str) -> None:
        lost_s = 0.0 if saved else self.done_s - self.work.saved_s
        if saved:
            self.work.saved_s = self.done_s
        self._forget()
        self.pool.observe(events.Left(self.pool.clock.now_s, self.job, self.leaving, saved, lost_s))
        self.home.host_says(self.host, RunEnded(run_id=self.run_id, outcome="evicted", attributes=b"", reason=reason,
                                                claim_usable=False))
        self.station.starter_says(ClaimActivity(claim_id=self.claim_id, activity="closed", job_id=self.run_id))
