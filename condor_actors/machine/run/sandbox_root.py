"""The directory below which all sandboxes of a machine are made: EXECUTE, or one that stands in for it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable
from pathlib import Path

from condor_actors.machine.privilege.pool_account import PoolAccount
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account
from condor_actors.own_files import open_guarded

__all__ = ["PREFIX", "SandboxRoot", "places_of_sandboxes"]

PREFIX = "dir_"


def places_of_sandboxes(execute: str) -> tuple[str, str]:
    """Where the sandboxes of EXECUTE are, and where they go when a job's account cannot get there."""
    path = os.path.realpath(execute)
    name = hashlib.sha256(path.encode()).hexdigest()[:12]
    return path, os.path.join(os.path.realpath(tempfile.gettempdir()), f"condor_execute_{name}")


class SandboxRoot:
    """The directory of all sandboxes.

    Args:
        execute: EXECUTE.
        account: someone who must be able to get into a sandbox below it; None: this process only.
        own: the pool's account, which it is made for; ``execute`` is a real path then, and no link is followed.

    Attributes:
        path: where sandboxes are: ``execute``, or, when ``account`` cannot get there, a directory that it can reach.
        notice: says so in that case.
    """

    def __init__(self, execute: str, account: Account | None = None, own: PoolAccount | None = None) -> None:
        self.path = execute if own is not None else places_of_sandboxes(execute)[0]
        self.notice = ""
        self._count = 0
        os.makedirs(self.path, mode=0o755, exist_ok=True)
        if account is not None and account.uid != 0 and os.geteuid() == 0:
            blocked = self._blocked(account)
            if blocked:
                elsewhere = places_of_sandboxes(execute)[1]
                self.notice = (f"{account.name} cannot get into {self.path} (no search permission on {blocked}); "
                               f"sandboxes go to {elsewhere}")
                os.makedirs(elsewhere, mode=0o755, exist_ok=True)
                self.path = elsewhere
            self._open_to_all(own)

    def _open_to_all(self, own: PoolAccount | None) -> None:
        """Let everybody enter it, and give it to the pool's account."""
        folder = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC) if own is None else open_guarded(
            Path(self.path))
        try:
            facts = os.fstat(folder)
            pools = (0,) if own is None else (0, own.uid)
            if not stat.S_ISDIR(facts.st_mode) or ((self.notice or own is not None) and facts.st_uid not in pools):
                raise PermissionError(f"{self.path} is not the pool's own directory")
            os.fchmod(folder, 0o755)
            if own is not None:
                os.fchown(folder, own.uid, own.gid)
        finally:
            os.close(folder)

    def _blocked(self, account: Account) -> str:
        for folder in reversed(Path(self.path).parents):
            facts = folder.stat()
            bit = 0o100 if facts.st_uid == account.uid else 0o010 if facts.st_gid in (
                account.gid, *account.groups) else 0o001
            if not facts.st_mode & bit:
                return str(folder)
        return ""

    def create(self, account: Account | None) -> Sandbox:
        """A fresh one, owned by ``account``.

        Raises:
            OSError: no space, no rights.
        """
        self._count += 1
        path = f"{self.path}/{PREFIX}{os.getpid()}_{self._count}"
        os.mkdir(path, 0o700)
        if account is not None and os.geteuid() == 0:
            os.chown(path, account.uid, account.gid)
        return Sandbox(path, account)

    def leave(self) -> None:
        """Remove the directory that stands in for EXECUTE, when nothing is in it."""
        if self.notice:
            with contextlib.suppress(OSError):
                os.rmdir(self.path)

    def leftovers(self, keep: Iterable[str] = ()) -> tuple[str, ...]:
        """Sandboxes that no living run uses."""
        kept = set(keep)
        with os.scandir(self.path) as found:
            return tuple(entry.path for entry in found
                         if entry.name.startswith(PREFIX) and entry.path not in kept
                         and entry.is_dir(follow_symlinks=False))
