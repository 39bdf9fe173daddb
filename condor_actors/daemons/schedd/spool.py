"""Spooled files: input that condor_submit -spool sends, output that condor_transfer_data fetches.

Theory: a job that was spooled has a folder ``$(SPOOL)/<cluster>/<proc>`` which is its initial directory.  Paths in
messages are relative and may not lead out of it; what is opened is opened below the folder without following links.
When the schedd runs as root, the folder is the job owner's and nobody else enters it, and all that is done in it is
done with the owner's rights: what else he may have put there, a link or a hard link to another's file, is as far from
him as it was.

What a run leaves is kept by its owner's shadow host, in folders that no other user sees into::

    $(SPOOL)/owners/<owner>/evicted/<job>       what an evicted run saved
    $(SPOOL)/owners/<owner>/checkpoints/<job>   see ``machine/standard/checkpoint_folder.py``
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path
from typing import Any

from condor_actors.cores.schedd.job_queue import Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.daemons.schedd.shadow_processes import user_ids
from condor_actors.machine.run.tree_removal import remove_tree
from condor_actors.machine.run.users import Account, NoAccount, acting_as, named_account
from condor_actors.messages.envelope import Done, Identity, Refused
from condor_actors.messages.spool import ListSpool, ReadSpool, SpoolBytes, SpoolChunk, SpoolListing
from condor_actors.store.database import has_room
from condor_actors.transfer.manifest import BadManifest, check_path

__all__ = ["SPOOL_MESSAGES", "Spool"]

SPOOL_READS = (ListSpool, ReadSpool)
SPOOL_MESSAGES = (SpoolChunk, *SPOOL_READS)
OWNERS = "owners"
KEPT = ("evicted", "checkpoints")
MAX_READ_BYTES = 400_000


def _account_of(owner: str) -> Account:
    """With whose rights the files of an owner's jobs are opened.

    Raises:
        OSError: there is no such user here.
    """
    try:
        return named_account(owner)
    except NoAccount as error:
        raise OSError(errno.ESRCH, str(error), owner) from None


class Spool:
    """Takes spooled input and serves spooled output.

    Args:
        root: ``$(SPOOL)``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder_of(self, owner: str) -> Path:
        """Where the shadow hosts of a user of this machine keep what runs leave."""
        return self.root / OWNERS / owner

    def make_folder_of(self, owner: str) -> None:
        """Make it.  It is not the owner's, what is in it is: nobody can put other folders into the places of those.

        Raises:
            OSError: it cannot be made.
        """
        user = user_ids(owner)
        for name in KEPT:
            folder = self.folder_of(owner) / name
            folder.mkdir(parents=True, exist_ok=True)
            if os.getuid() == 0 and user is not None:
                folder.chmod(0o700 if user.uid else 0o711)  # root's jobs are nobody's
                os.chown(folder, user.uid, user.gid)

    def has_room(self) -> None:
        """Write something, and remove it.

        Raises:
            OSError: the folder takes nothing.
        """
        has_room(self.root)

    def folder(self, cluster: int, proc: int) -> Path:
        """The folder of a job."""
        return self.root / str(cluster) / str(proc)

    def answer(self, context: ScheddContext, message: Any, identity: Identity) -> Any:
        """Carry out one of :data:`SPOOL_MESSAGES`; returns the answer."""
        job = context.queue.job(message.cluster_id, message.proc_id)
        if job is None:
            return Refused(code="not-found", text=f"Job {message.cluster_id}.{message.proc_id} not found")
        if not context.may_touch(identity, job.cluster.owner):
            return Refused(code="denied", text=f"Job {job.name} belongs to {job.cluster.owner}")
        try:
            with contextlib.ExitStack() as afterwards:
                folder = self._open_folder(job)
                afterwards.callback(os.close, folder)
                afterwards.enter_context(acting_as(_account_of(job.cluster.owner)))
                if isinstance(message, SpoolChunk):
                    return self._write(folder, message)
                if isinstance(message, ReadSpool):
                    return self._read(folder, message)
                return self._list(job, folder)
        except BadManifest as error:
            return Refused(code="invalid", text=str(error))
        except OSError as error:
            return Refused(code="invalid", text=f"spool of job {job.name}: {error.strerror}: {error.filename}")

    @staticmethod
    def _open(folder: int, path: str, flags: int, mode: int = 0o600) -> int:
        """A descriptor of a plain file below a job's folder; no link is followed, no pipe waited for."""
        parts = check_path(path).split("/")
        directory = os.dup(folder)
        try:
            for part in parts[:-1]:
                if flags & os.O_CREAT:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=directory)
                below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
                os.close(directory)
                directory = below
            found = os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_NONBLOCK, mode, dir_fd=directory)
        finally:
            os.close(directory)
        facts = os.fstat(found)
        if not stat.S_ISREG(facts.st_mode) or facts.st_nlink != 1:  # the folder is the user's
            os.close(found)
            raise OSError(errno.EPERM, "not a plain file with one name", path)
        return found

    def prepare(self, context: ScheddContext, cluster_id: int) -> str:
        """Every job of a cluster gets its folder, also one without input; returns why not, else an empty text."""
        cluster = context.queue.clusters.get(cluster_id)
        try:
            for job in cluster.jobs.values() if cluster is not None else ():
                os.close(self._open_folder(job))
        except OSError as error:
            return f"the spool of cluster {cluster_id} cannot be made: {error.strerror}: {error.filename}"
        return ""

    def _open_folder(self, job: Job) -> int:
        folder = self.folder(job.cluster.number, job.proc)
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(0o700)
            user = user_ids(job.cluster.owner)
            if os.getuid() == 0 and user is not None:
                os.chmod(folder, 0o700 if user.uid else 0o711)  # root's jobs are nobody's
                os.chown(folder, user.uid, user.gid)
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)

    def _write(self, folder: int, message: SpoolChunk) -> Any:
        descriptor = self._open(folder, message.path, os.O_WRONLY | os.O_CREAT, message.mode & 0o777 | 0o600)
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

    def _read(self, folder: int, message: ReadSpool) -> Any:
        descriptor = self._open(folder, message.path, os.O_RDONLY)
        try:
            return SpoolBytes(data=os.pread(descriptor, min(message.max_bytes, MAX_READ_BYTES), message.offset))
        finally:
            os.close(descriptor)

    def _list(self, job: Job, folder: int) -> SpoolListing:
        files = []
        for here, folders, names, directory in os.fwalk(".", dir_fd=folder):
            folders.sort()
            for name in sorted(names):
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                    files.append((os.path.normpath(os.path.join(here, name)), status.st_size, status.st_mode & 0o777))
        iwd = job.ad.get_str("SUBMIT_Iwd") or job.ad.get_str("Iwd")
        return SpoolListing(iwd=iwd, files=tuple(files))

    def forget(self, cluster: int, proc: int) -> None:
        """The job has left the queue: its files go."""
        with contextlib.suppress(FileNotFoundError):
            for owner in (self.root / OWNERS).iterdir():
                for name in KEPT:
                    remove_tree(str(owner / name / f"{cluster}.{proc}"))
        remove_tree(str(self.folder(cluster, proc)))
        try:
            (self.root / str(cluster)).rmdir()
        except OSError:
            pass
