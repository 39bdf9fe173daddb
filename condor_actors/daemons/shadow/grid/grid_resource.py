"""What the grid manager does with one run in a batch system: the work behind each effect of its table."""

from __future__ import annotations

from typing import Any, Protocol

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from condor_actors.actors.workers import NoAnswer
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.starter.run_spec import BadJob, RunSpec, read_spec
from condor_actors.daemons.shadow.file_trouble import FileTrouble
from condor_actors.userlog.writer import UserLogs

__all__ = ["GridResource", "file_trouble", "grid_spec", "log_trouble"]


class GridResource(Protocol):
    """One run there.  Each method begins some work that may be done twice; it fires with an event and does not fail."""

    @property
    def kind(self) -> gr.GridKind:
        """What differs between batch systems."""

    def look(self, batch_id: str) -> Deferred[gr.Looked | gr.Unavailable]:
        """How is it?"""

    def prepare(self) -> Deferred[gr.Prepared | gr.FilesFailed]:
        """Make ready what it needs."""

    def submit(self) -> Deferred[gr.Submitted | gr.SubmitFailed | gr.FilesFailed]:
        """Have it there."""

    def cancel(self) -> Deferred[gr.Cancelled | gr.Unavailable]:
        """Have nothing of it there; no submission is under way."""

    def withdraw(self) -> Deferred[gr.Withdrawn]:
        """Let nothing of it begin."""

    def bring(self, status: int) -> Deferred[gr.Brought | gr.FilesFailed | gr.Unavailable]:
        """Bring the outputs of a program home that exited with ``status``; -1: by a signal."""

    def clean_up(self) -> Deferred[bool]:
        """Nothing of it is needed any more; False: it cannot all be removed now, and is to be tried again."""


def grid_spec(job: ClassAd) -> RunSpec:
    """The job, all of whose files travel unless it says otherwise.

    Raises:
        BadJob: it cannot be handed on.
    """
    spec = read_spec(job)
    if spec.container is not None:
        raise BadJob("a job in another batch system has no image (container_image)")
    return spec


def log_trouble(logs: UserLogs, job: ClassAd, code: int) -> gr.FilesFailed | None:
    """In a worker: why the job's event log cannot be written; None: it can."""
    problem = logs.problem(job)
    return gr.FilesFailed(problem, code) if problem else None


def file_trouble(failure: Failure, code: int) -> gr.FilesFailed:
    """What went wrong with a file of the user's, as an event; anything else is raised again."""
    error: Any = failure.value
    if isinstance(error, NoAnswer):
        return gr.FilesFailed(f"{error.filename}: {error.strerror}", code, error.errno or 0)
    failure.trap(FileTrouble)
    return gr.FilesFailed(str(error), code, error.subcode)
