"""A run in Slurm: its commands are run, and the folder of the run is read and written."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.python.failure import Failure

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow.slurm_jobs import SLURM, batch_name, submission_words, what_it_is
from condor_actors.cores.starter.run_spec import BadJob
from condor_actors.daemons.shadow.grid import grid_folder
from condor_actors.daemons.shadow.grid.grid_manager import GridEdges
from condor_actors.daemons.shadow.grid.grid_resource import file_trouble, grid_spec, log_trouble
from condor_actors.machine.grid.slurm import CommandFailed
from condor_actors.messages.codes import HoldCode

__all__ = ["SlurmRun"]


class SlurmRun:
    """See :class:`~condor_actors.daemons.shadow.grid.grid_resource.GridResource`.

    Args:
        run_id: of the run; job: the job's ad.
        edges: of the grid manager.
        now_s: the clock.
    """

    kind = SLURM

    def __init__(self, run_id: str, job: ClassAd, edges: GridEdges, now_s: Callable[[], float]) -> None:
        self._job = job
        self._edges = edges
        self._now_s = now_s
        self._name = batch_name(run_id, job)
        self._folder = os.path.join(edges.folder, self._name)

    # ---- files

    def prepare(self) -> Deferred[Any]:
        """Make the folder: inputs and script."""
        logs, job, folder = self._edges.logs, self._job, self._folder
        try:
            spec = grid_spec(job)
        except BadJob as error:
            return succeed(gr.FilesFailed(str(error), HoldCode.FAILED_TO_CREATE_PROCESS))

        def work() -> gr.FilesFailed | gr.Prepared:
            problem = log_trouble(logs, job, HoldCode.UNABLE_TO_INIT_USER_LOG)
            if problem is None:
                grid_folder.prepare(folder, job, spec)
            return problem or gr.Prepared()

        return self._edges.in_thread(work).addErrback(file_trouble, HoldCode.TRANSFER_INPUT_ERROR)

    def bring(self, status: int) -> Deferred[Any]:
        """Copy the outputs to their places."""
        work = self._edges.in_thread(grid_folder.bring_home, self._folder, self._job, grid_spec(self._job), status)
        return work.addCallbacks(lambda _: gr.Brought(), file_trouble, errbackArgs=(HoldCode.TRANSFER_OUTPUT_ERROR,))

    def withdraw(self) -> Deferred[Any]:
        """Make the claim, so that no job of the run's name begins."""
        return self._edges.in_thread(grid_folder.withdraw, self._folder).addCallbacks(
            gr.Withdrawn, lambda _: gr.Withdrawn("unknown"))

    def clean_up(self) -> Deferred[bool]:
        """Remove the folder."""
        return self._edges.in_thread(grid_folder.remove, self._folder).addBoth(lambda _: True)

    # ---- the batch system

    def submit(self) -> Deferred[Any]:
        """Run sbatch, and keep the number that it answers."""
        try:
            words = submission_words(self._job, self._name, self._folder)
        except ValueError as error:
            return succeed(gr.SubmitFailed(str(error), transient=False))

        def keep(batch_id: str) -> Deferred[gr.Submitted]:
            taken = gr.Submitted(batch_id, float(int(self._now_s())))
            kept = self._edges.in_thread(grid_folder.record_batch_id, self._folder, batch_id, taken.when_s)
            return kept.addBoth(lambda _: taken)

        def refused(failure: Failure) -> gr.SubmitFailed:
            failure.trap(CommandFailed)
            return gr.SubmitFailed(str(failure.value), transient=getattr(failure.value, "transient", True))

        return self._edges.batch.submit(words).addCallback(keep).addErrback(refused)

    def look(self, batch_id: str) -> Deferred[Any]:
        """Ask squeue, and read the folder after it: what is over there has been written by then."""
        asked: Deferred[Any] = self._edges.batch.look()
        asked.addCallback(lambda found: found.get(self._name, ()))
        if batch_id:
            asked.addCallback(self._account, batch_id)
        return asked.addBoth(self._read)

    def _account(self, found: tuple[gr.BatchJob, ...], batch_id: str) -> Any:
        """Where squeue has forgotten a job, the accounting may know it."""
        if found:
            return found
        return self._edges.batch.account(batch_id).addCallback(lambda job: (job,) if job is not None else ())

    def _read(self, found: Any) -> Deferred[Any]:
        reading = self._edges.in_thread(grid_folder.record_of, self._folder)

        def both(record: gr.FolderRecord | Failure) -> Any:
            known = gr.FolderRecord() if isinstance(record, Failure) else record
            if isinstance(found, Failure):
                return gr.Unavailable(str(found.value), known)
            if isinstance(record, Failure):
                return gr.Unavailable(f"{self._folder}: {record.value}")
            return gr.Looked(found, known)

        return reading.addBoth(both)

    def cancel(self) -> Deferred[Any]:
        """Make the claim, then have Slurm end what there is."""
        batch, name = self._edges.batch, self._name
        work = self._edges.in_thread(grid_folder.withdraw, self._folder)
        work.addBoth(lambda _: batch.cancel(name)).addCallback(lambda _: batch.look())
        return work.addCallbacks(
            lambda jobs: gr.Cancelled(all(what_it_is(each.state) is gr.Fits.OVER for each in jobs.get(name, ()))),
            lambda failure: gr.Unavailable(str(failure.value)))
