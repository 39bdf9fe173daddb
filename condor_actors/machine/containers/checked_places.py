"""Folders and files outside of EXECUTE that a run was allowed, kept open as they were when they were looked at.

Theory: a path that the job names is resolved once, with the rights of the job's account, and the look is at what was
opened.  The descriptor stays open until the run ends, so that nothing else can come to be what it is: the launcher
opens the same path without following a link, and goes on only if it finds the same (native/launcher/sources.c); what is
read of it here is read through the descriptor.
"""

from __future__ import annotations

import os

from condor_actors.machine.run.users import Account, open_as

__all__ = ["BY_NAME", "CheckedPlaces"]

BY_NAME = -1
"""In the place of a descriptor: no link is to be on the way, and that is all that counts."""


class CheckedPlaces:
    """What one run keeps open."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}
        self._is_closed = False

    def open(self, account: Account, path: str, flags: int) -> tuple[str, int]:
        """Open a path as an account, and keep it (blocks); its real path, and the descriptor.

        Raises:
            OSError: it cannot be opened, or the run is over.
        """
        descriptor = open_as(account, path, flags)
        try:
            real = os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            os.close(descriptor)
            raise
        self._keep(real, descriptor)
        return real, descriptor

    def open_folder(self, account: Account, path: str) -> str:
        """The real path of a folder, which is kept open where the account can list it (blocks)."""
        try:
            return self.open(account, path, os.O_RDONLY | os.O_DIRECTORY)[0]
        except OSError:  # it may be enough that it can be entered: the launcher does so, or says why not
            real = os.path.realpath(path)
            self._keep(real, BY_NAME)
            return real

    def look_at(self, path: str) -> None:
        """Keep a folder of the run's own open, whose path is real (blocks).

        Raises:
            OSError: it cannot be opened, or there is a link in its place.
        """
        self._keep(path, os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC))

    def _keep(self, real: str, descriptor: int) -> None:
        self._let_go(self._open.pop(real, BY_NAME))
        self._open[real] = descriptor
        if self._is_closed:  # the run has ended while a worker was here
            self.close()

    @staticmethod
    def _let_go(descriptor: int) -> None:
        if descriptor != BY_NAME:
            os.close(descriptor)

    def take(self, real: str) -> int:
        """The descriptor of what is kept, which is the caller's from now on.

        Raises:
            KeyError: it is not kept.
        """
        return self._open.pop(real)

    def seen(self, path: str) -> str:
        """Where this process finds what it has looked at under a real path; any other path is as it is."""
        descriptor = self._open.get(path, BY_NAME)
        return path if descriptor == BY_NAME else f"/proc/self/fd/{descriptor}"

    def all(self) -> dict[str, int]:
        """The real paths, and the descriptors."""
        return dict(self._open)

    def close(self) -> None:
        """The run is over."""
        self._is_closed = True
        while self._open:
            self._let_go(self._open.popitem()[1])
