"""One run that is handed to another batch system, as its grid manager sees it: submitted there exactly once.

Theory: a run has one name in the batch system, and a folder with a claim in it (a link that only one can make), so of
two jobs of one name a single one begins, and none once the grid manager has made the claim itself.  With Slurm both
sides see the folder, and the script that runs there makes the claim, and writes down how the program ended.  With
another schedd the grid manager makes it, before it lets the job there go.  So nothing is lost with a grid manager that
is killed: the next one looks for the name and into the folder before it submits anything, and a submission of which
nobody knows whether it arrived does no harm when it is repeated.

============= ==============================================================================================
state         leaves it by
============= ==============================================================================================
looking       found → queued; ended → bringing; not there → preparing or submitting
preparing     files in the folder → submitting; unreadable → ended (hold)
submitting    taken → queued; refused, files unreadable → ended (hold); no answer → looking, after some → ended (hold)
queued        the program began → running; ended → bringing; gone → looking, ended
running       ended → bringing; gone → ended
bringing      outputs home → ended; not writable → ended (hold); no answer → again
cancelling    nothing left in the batch system → ended
ended         –
============= ==============================================================================================

What every event does in every state is in :mod:`condor_actors.cores.shadow.grid_run_table`.
"""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.grid_events import GridKind, GridSettings, GridState, Look, Prepare
from condor_actors.cores.shadow.grid_run_table import TABLE
from condor_actors.cores.shadow.shadow_events import Log, Report
from condor_actors.cores.state_table import InvariantBroken, event_key
from condor_actors.effects import CancelTimer, Effect, Note, SetTimer, job_note
from condor_actors.messages.codes import JobEventType
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import RunEnded, RunUpdated, StartRun

__all__ = ["GridRun"]

LATELY_S = 3600.0
"""A submission that the queue has known for longer is in the user log."""
BEFORE_S = 60
"""How long before the schedd notes that a run began the batch system may have begun with it."""


class GridRun:
    """Decides what becomes of one run in another batch system, from the schedd's order to its end.

    Args:
        order: what the schedd said.
        job: the job's ad.
        settings: the administrator's.
        kind: what differs between batch systems.

    Attributes:
        state: see the module.
        ended: what was told of its end.
        attributes: what the run has made of the job's ad so far.
        batch_id: the job's number in the batch system; empty: none is known.
        began: whether its program is known to have begun.
        down: whether the batch system did not answer when it was last asked.
        failures: submissions in a row that failed; held_for: why it is held for that.
        missing: looks in a row at which the job was not there, or over, and had left no word.
        stopping: the wish to end it.
        out: what follows from the event being handled.
    """

    table = TABLE

    def __init__(self, order: StartRun, job: ClassAd, settings: GridSettings, kind: GridKind) -> None:
        self.order = order
        self.job = job
        self.settings = settings
        self.kind = kind
        self.state = GridState.LOOKING if order.reattach else GridState.PREPARING
        self.ended: RunEnded | None = None
        self.attributes = ClassAd()
        self.batch_id = ""
        self.began = self.down = False
        self.failures = self.missing = 0
        self.held_for = ""
        self.stopping: StopRun | None = None
        self.out: list[Effect] = []
        self.now_s = 0.0

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        self.now_s = now_s
        self.out.append(Look() if self.state is GridState.LOOKING else Prepare())
        return self.take()

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self.now_s = now_s
        step = self.table.get((self.state, event_key(event)))
        if step is None:
            self.out.append(Note(f"run {self.order.run_id}: {type(event).__name__} means nothing here", "debug"))
        else:
            step(self, event)
        return self.take()

    def take(self) -> tuple[Effect, ...]:
        """What is to be done and was not taken yet."""
        out, self.out = self.out, []
        return tuple(out)

    # ---- what the steps use

    @property
    def resource(self) -> str:
        """As in ``grid_resource``."""
        return self.job.get_str("GridResource")

    def note(self, kind: str, text: str, level: str = "info") -> None:
        """A line of the job's story."""
        self.out.append(job_note(self.order.run_id, kind, text, level))

    def look_again(self, delay_s: float | None = None) -> None:
        """Look after a while: all runs at the same moments, so that one question serves them."""
        if delay_s is None:
            every_s = self.settings.unavailable_s if self.down else self.settings.probe_s
            delay_s = every_s - self.now_s % every_s
        self.out.append(SetTimer("look", delay_s))

    def tell(self, event: str = "") -> None:
        """Report."""
        self.out.append(Report(RunUpdated(run_id=self.order.run_id, attributes=self.attributes.to_bytes(),
                                          event=event)))

    def log(self, event: int, when_s: float = 0.0, **facts: Any) -> None:
        """Write an event, unless a grid manager before this one has."""
        self.out.append(Log(event, {"GridResource": self.resource, **facts}, when_s, self.order.reattach))

    def log_once(self, event: int, when_s: float, **facts: Any) -> None:
        """The same for what a run has once: each grid manager has its own idea of the second."""
        since_s = float(max(self.job.get_int("JobCurrentStartDate") - BEFORE_S, self.job.get_int("QDate"), 1))
        self.out.append(Log(event, {"GridResource": self.resource, **facts}, when_s, self.order.reattach, since_s))

    def set_down(self, reason: str) -> None:
        """The batch system does not answer: said once."""
        if not self.down:
            self.down = True
            self.note("resource down", f"{self.resource} does not answer: {reason}", "warn")
            self.attributes["GridResourceUnavailableTime"] = int(self.now_s)
            self.log(JobEventType.GRID_RESOURCE_DOWN)
            self.tell()

    def set_up(self) -> None:
        """It answers again."""
        if self.down or self.job.get_int("GridResourceUnavailableTime"):
            self.job["GridResourceUnavailableTime"] = 0
            self.down = False
            self.attributes["GridResourceUnavailableTime"] = 0
            self.log(JobEventType.GRID_RESOURCE_UP)
            self.tell()

    def set_status(self, status: str) -> None:
        """What the batch system says of the job, in the words of HTCondor."""
        if self.attributes.get_str("GridJobStatus", self.job.get_str("GridJobStatus")) != status:
            self.attributes["GridJobStatus"] = status
            self.tell()

    def adopt(self, batch_id: str, when_s: float = 0.0) -> None:
        """This is the job in the batch system."""
        if self.batch_id == batch_id:
            return
        self.batch_id = batch_id
        self.failures = 0
        name = f"{self.resource} {batch_id}"
        known = self.job.get_str("GridJobId") == name
        self.attributes["GridJobId"] = name
        if not known:
            self.note("submitted", f"{self.resource} has it as {batch_id}")
        if not known or (self.order.reattach and max(0.0, self.now_s - LATELY_S) < when_s):
            self.log_once(JobEventType.GRID_SUBMIT, when_s, GridJobId=name)
        if not known:
            self.tell()

    def end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0) -> None:
        """The run is over."""
        self.state = GridState.ENDED
        self.out += [CancelTimer("look"), CancelTimer("cancel")]
        self.ended = RunEnded(run_id=self.order.run_id, outcome=outcome, attributes=self.attributes.to_bytes(),
                              reason=reason, hold_code=int(code), hold_subcode=int(subcode))
        self.out.append(Report(self.ended))

    def validate(self) -> None:
        """Check what holds between two events.

        Raises:
            InvariantBroken: it does not.
        """
        if (self.state is GridState.ENDED) != (self.ended is not None):
            raise InvariantBroken(f"the run {self.order.run_id} is {self.state.value}; its end: {self.ended}")
        if self.state in (GridState.QUEUED, GridState.RUNNING) and not self.batch_id:
            raise InvariantBroken(f"the run {self.order.run_id} is {self.state.value}, and has no number there")
        if self.out:
            raise InvariantBroken(f"the run {self.order.run_id} has effects left from an event")
