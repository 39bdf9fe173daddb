"""Spooled files: input that condor_submit -spool sends, output that condor_transfer_data fetches.

Theory: a job that was spooled has a folder ``$(SPOOL)/<cluster>/<proc>`` which is its initial directory.  Paths in
messages are relative and may not lead out of it; what is opened is opened below the folder without following links.
In a pool for several users the folder is the job owner's and nobody else enters it, and all that is done in it is
done with the owner's rights (:mod:`~condor_actors.daemons.schedd.spool_folders`): what else he may have put there, a
link or a hard link to another's file, is as far from him as it was.

What a run leaves is kept by its owner's shadow host, in folders that no other user sees into::

    $(SPOOL)/owners/<owner>/evicted/<job>       what an evicted run saved
    $(SPOOL)/owners/<owner>/checkpoints/<job>   see ``machine/standard/checkpoint_folder.py``
    $(SPOOL)/owners/<owner>/lists/<job>         of checkpoints at a URL; goes when those are removed
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from condor_actors.actors.workers import InWorker, at_once
from condor_actors.cores.schedd.job_transitions import ForgetSpool
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.daemons.schedd.spool_folders import JobFolder, OwnFolders, SpoolFolders
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.spool import ListSpool, ReadSpool, SpoolBytes, SpoolChunk, SpoolListing
from condor_actors.store.database import has_room
from condor_actors.transfer.manifest import BadManifest

__all__ = ["SPOOL_MESSAGES", "Spool"]

SPOOL_READS = (ListSpool, ReadSpool)
SPOOL_MESSAGES = (SpoolChunk, *SPOOL_READS)
OWNERS = "owners"
KEPT = ("evicted", "checkpoints")
LISTS = "lists"
MAX_READ_BYTES = 400_000


class Spool:
    """Takes spooled input and serves spooled output.

    Args:
        root: ``$(SPOOL)``.
        folders: how folders in it are reached.
        in_worker: runs what touches users' files; ``removing`` what removes them, which may take long.
    """

    def __init__(self, root: Path, folders: SpoolFolders | None = None, in_worker: InWorker = at_once,
                 removing: InWorker = at_once) -> None:
        self.root = root
        self._folders = folders if folders is not None else OwnFolders()
        self._in_worker = in_worker
        self._removing = removing
        self._log = Logger("condor.schedd")

    def folder_of(self, owner: str) -> Path:
        """Where the shadow hosts of a user of this machine keep what runs leave."""
        return self.root / OWNERS / owner

    def make_folder_of(self, owner: str) -> None:
        """Make it, on a worker.  It is not the owner's, what is in it is: nobody can put other folders into the places
        of those.  Where it cannot be made, the log says so: jobs run all the same; what they leave cannot be kept."""
        self._in_worker(self._make_kept, owner).addErrback(
            lambda failure: self._log.error("no folder for what runs of {owner} leave: {error}", owner=owner,
                                            error=failure.value))

    def _make_kept(self, owner: str) -> None:
        for name in (*KEPT, LISTS):
            self._folders.make_kept(self.folder_of(owner) / name, owner)

    def has_room(self) -> None:
        """Write something, and remove it.

        Raises:
            OSError: the folder takes nothing.
        """
        has_room(self.root)

    def folder(self, cluster: int, proc: int) -> Path:
        """The folder of a job."""
        return self.root / str(cluster) / str(proc)

    def answer(self, context: ScheddContext, message: Any, identity: Identity) -> Deferred[Any]:
        """Carry out one of :data:`SPOOL_MESSAGES`; fires with the answer."""
        job = context.queue.job(message.cluster_id, message.proc_id)
        if job is None:
            return succeed(Refused(code="not-found", text=f"Job {message.cluster_id}.{message.proc_id} not found"))
        owner = job.cluster.owner
        if not context.may_touch(identity, owner):
            return succeed(Refused(code="denied", text=f"Job {job.name} belongs to {owner}"))
        iwd = job.ad.get_str("SUBMIT_Iwd") or job.ad.get_str("Iwd") if isinstance(message, ListSpool) else ""
        path = self.folder(job.cluster.number, job.proc)
        done: Deferred[Any] = self._in_worker(self._carry_out, path, owner, message, iwd)
        return done.addErrback(self._refused, job.name)

    @staticmethod
    def _refused(failure: Failure, job: str) -> Refused:
        """What went wrong with a job's folder, for who asked; what is no trouble of files is raised again."""
        failure.trap(BadManifest, OSError)
        error = failure.value
        if isinstance(error, OSError):
            return Refused(code="invalid", text=f"spool of job {job}: {error.strerror}: {error.filename}")
        return Refused(code="invalid", text=str(error))

    def _carry_out(self, path: Path, owner: str, message: Any, iwd: str) -> Any:
        folder = self._folders.open_job(path, owner)
        try:
            if isinstance(message, SpoolChunk):
                return self._write(folder, message)
            if isinstance(message, ReadSpool):
                return self._read(folder, message)
            return SpoolListing(iwd=iwd, files=tuple(folder.files()))
        finally:
            folder.close()

    def complete(self, context: ScheddContext, cluster_id: int, identity: Identity) -> Deferred[Any]:
        """The input of a cluster's jobs is here: every job has a folder, also one without input, and it is the owner's.
        Fires with None, or with why not."""
        cluster = context.queue.clusters.get(cluster_id)
        if cluster is None or not context.may_touch(identity, cluster.owner):
            return succeed(None)  # the core says so
        paths = [self.folder(cluster_id, job.proc) for job in cluster.jobs.values()
                 if job.ad.get_int("HoldReasonCode") == HoldCode.SPOOLING_INPUT]
        done: Deferred[Any] = self._in_worker(self._hand_over, paths, cluster.owner)
        return done.addErrback(self._refused, str(cluster_id))

    def take_up(self, context: ScheddContext) -> None:
        """Hand over what jobs have spooled whose folders are still the pool's: an earlier schedd was root."""
        by_owner: dict[str, list[Path]] = {}
        for job in context.queue.jobs():
            if job.ad.find("submit_iwd") is not None:
                by_owner.setdefault(job.cluster.owner, []).append(self.folder(job.cluster.number, job.proc))
        for owner, paths in by_owner.items():
            self._in_worker(self._hand_over, paths, owner).addErrback(
                lambda failure: self._log.warn("the spool: {error}", error=failure.value))

    def _hand_over(self, paths: list[Path], owner: str) -> None:
        for path in paths:
            self._folders.hand_over(path, owner)

    @staticmethod
    def _write(folder: JobFolder, message: SpoolChunk) -> Done:
        descriptor = folder.open(message.path, os.O_WRONLY | os.O_CREAT, message.mode & 0o777 | 0o600)
        try:
            if message.offset:
                os.lseek(descriptor, message.offset, os.SEEK_SET)
            else:
                os.ftruncate(descriptor, 0)
            view = memoryview(message.data)
            while view:
                view = view[os.write(descriptor, view):]
            os.fchmod(descriptor, message.mode & 0o777 | 0o600)
        finally:
            os.close(descriptor)
        return Done()

    @staticmethod
    def _read(folder: JobFolder, message: ReadSpool) -> SpoolBytes:
        descriptor = folder.open(message.path, os.O_RDONLY)
        try:
            return SpoolBytes(data=os.pread(descriptor, min(message.max_bytes, MAX_READ_BYTES), message.offset))
        finally:
            os.close(descriptor)

    def forget(self, gone: ForgetSpool) -> None:
        """The job has left the queue: its files go, soon."""
        self._removing(self._remove, gone).addErrback(self._left, gone)

    def _left(self, failure: Failure, gone: ForgetSpool) -> None:
        failure.trap(OSError)
        self._log.warn("files of job {cluster}.{proc} are left in the spool: {error}", cluster=gone.cluster,
                       proc=gone.proc, error=failure.value)

    def _remove(self, gone: ForgetSpool) -> None:
        for name in KEPT:
            with contextlib.suppress(OSError):
                self._folders.remove_kept(self.folder_of(gone.owner) / name, f"{gone.cluster}.{gone.proc}")
        self._folders.remove(self.folder(gone.cluster, gone.proc))
        with contextlib.suppress(OSError):
            (self.root / str(gone.cluster)).rmdir()
