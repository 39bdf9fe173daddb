"""What a starter host needs of its machine, as one edge: sandboxes, blobs, processes, accounts.

Theory: the starter decides nothing about the host, it asks.  :class:`RunHost` is the real machine; the simulation has
one of its own, with sandboxes and processes that exist only there.
"""

from __future__ import annotations

import os
import resource
import stat
from collections.abc import Callable, Collection
from functools import cached_property
from pathlib import Path

from condor_actors.machine.run import process_tree
from condor_actors.machine.run.cgroups import JobCgroup
from condor_actors.machine.run.confinement import allowed_isolation, confinement_here, open_files_limit, tasks_of
from condor_actors.machine.run.run_processes import RunProcesses
from condor_actors.machine.run.sandbox import remove_leftover
from condor_actors.machine.run.sandbox_root import SandboxRoot
from condor_actors.machine.run.users import Account, NoAccount, account_of_uid, may_change_user, named_account
from condor_actors.machine.standard.library_cache import LibraryCache
from condor_actors.transfer.blob_store import BlobStore

__all__ = ["RunHost"]


class RunHost:
    """The machine that this process runs on.

    Args:
        root: the directory of all sandboxes, where root has made it before it was dropped.

    Attributes:
        pid: of this process.
    """

    def __init__(self, root: SandboxRoot | None = None) -> None:
        self.pid = os.getpid()
        self._root = root

    @property
    def own_account(self) -> Account:
        """As whom this process runs."""
        return account_of_uid(os.geteuid())

    @cached_property
    def null(self) -> int:
        """A descriptor of ``/dev/null``."""
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)

    def may_change_user(self) -> bool:
        """Whether jobs can run as another user."""
        return may_change_user()

    def account(self, name: str) -> Account | None:
        """The account of that name; None: this machine has none."""
        try:
            return named_account(name)
        except NoAccount:
            return None

    def sandboxes(self, execute: str, account: Account | None) -> SandboxRoot:
        """The directory of all sandboxes.

        Raises:
            OSError: it cannot be made.
        """
        return self._root or SandboxRoot(execute, account)

    def disk_room(self, path: str) -> tuple[int, int]:
        """How many KiB users may still write to the file system of ``path``, and its size; blocks.

        Where it has room for a smaller part of its files than of its KiB, that part counts.

        Raises:
            OSError: it does not say.
        """
        facts = os.statvfs(path)
        free_kib, total_kib = facts.f_bavail * facts.f_frsize >> 10, facts.f_blocks * facts.f_frsize >> 10
        return min(free_kib, total_kib * facts.f_favail // facts.f_files) if facts.f_files else free_kib, total_kib

    def blobs(self, folder: Path, quota_bytes: int, floor_bytes: int) -> BlobStore:
        """The content that runs have fetched.

        Args:
            folder: where.
            quota_bytes: how much it may take.
            floor_bytes: how much stays free on its disk, at most a twentieth of it.

        Raises:
            OSError: the folder cannot be made.
        """
        os.makedirs(folder, exist_ok=True)
        disk = os.statvfs(folder)
        store = BlobStore(folder, quota_bytes, floor_bytes=min(floor_bytes, disk.f_blocks * disk.f_frsize // 20))
        os.chmod(store.directory, stat.S_IRWXU)
        return store

    def libraries(self, folder: Path, limit_bytes: int, floor_bytes: int) -> LibraryCache | None:
        """Contents of files that runs of the standard universe have read; see :class:`LibraryCache`."""
        return LibraryCache(folder, limit_bytes, floor_bytes)

    @cached_property
    def standard_isolation(self) -> tuple[str, ...]:
        """Namespaces that this process can give to jobs of the standard universe; empty: none."""
        return allowed_isolation(("pid", "mount", "net", "ipc", "uts"), ("user", "pid", "mount", "net", "ipc", "uts"),
                                 empty_root=True)

    @cached_property
    def mount_isolation(self) -> tuple[str, ...]:
        """Namespaces in which a job can have folders and shared memory of its own; empty: none."""
        return allowed_isolation(("mount", "ipc") if may_change_user() else ("user", "mount", "ipc"))

    def confinement(self, wanted: Collection[str]) -> tuple[str, ...]:
        """Those parts of the confinement of ordinary jobs that work here (:mod:`.confinement`)."""
        return confinement_here(wanted)

    def open_files_limit(self) -> str:
        """Of each job, as the launcher knows limits."""
        return open_files_limit()

    def process_limit(self, account: Account, processes: int) -> str:
        """So many processes more than the account has now, where no control group counts them."""
        return str(tasks_of(account.uid) + processes)

    def become_parent_of_orphans(self) -> None:
        """Have what jobs leave behind re-parented to this process."""
        process_tree.become_subreaper()

    def kill_marked(self, mark: str) -> None:
        """Kill the processes of former hosts: those whose mark begins with ``mark``."""
        process_tree.kill_all(pid for pid in process_tree.marked(mark) if pid != self.pid)

    def processes(self, cgroup: JobCgroup | None, mark: str, leaders: Callable[[], Collection[int]]) -> RunProcesses:
        """The processes of a run to be started."""
        return RunProcesses(cgroup, mark, leaders)

    def remove_tree(self, path: str) -> bool:
        """Remove a sandbox that nobody uses; returns whether it is gone."""
        return remove_leftover(path)

    def own_peak_kib(self) -> int:
        """The most memory this process has had: the kernel counts it as the first peak of every child it spawns."""
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
