"""Files of secrets in a job's scratch directory: made before it begins, replaced while it runs, gone when it is over.

Theory: they lie in a folder of their own that the job alone can enter, each with mode 600.  While the job has its
scratch directory, new contents are written beside them, with the job's rights and over no link, and take the old ones'
place by renaming (`fresh_folder` says where from), so that a reader has the old one or the new one, whole.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping

from condor_actors.machine.privilege.helper import process_helper
from condor_actors.machine.run.sandbox import Sandbox, opened_folder
from condor_actors.machine.run.tree_removal import remove_tree

__all__ = ["FRESH", "leave_secrets", "remove_secrets", "write_fresh"]

TRIES = 3
"""What was being written as the job ended may come a moment later."""

FRESH = ".new"
"""The folder of those that are on their way."""
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def leave_secrets(sandbox: Sandbox, folder: str, files: Mapping[str, bytes]) -> None:
    """Make the folder with its files, before the scratch directory is lent to the job.  Blocks.

    Raises:
        OSError: there is something of the folder's name, or no room.
    """
    path = f"{sandbox.path}/{folder}"
    with sandbox.rights():
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            raise FileExistsError(errno.EEXIST, f"the job has brought something named {folder}, which is reserved for "
                                                "its tokens", path) from None
        os.mkdir(f"{path}/{FRESH}", 0o700)
        opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, data in files.items():
                _write(os.open(name, _NEW_FILE | os.O_EXCL, 0o600, dir_fd=opened), data)
        finally:
            os.close(opened)


def write_fresh(sandbox: Sandbox, folder: str, files: Mapping[str, bytes]) -> None:
    """Write new contents into the folder for those, while the job has its scratch directory.  Blocks.

    Raises:
        OSError: the job has put something in their way, or there is no room.
    """
    helper = process_helper() if sandbox.lent else None
    if helper is not None and sandbox.account is not None:
        with opened_folder(sandbox.path) as opened:
            for name, data in files.items():
                _write(helper.open(sandbox.account.uid, f"{folder}/{FRESH}/{name}", _NEW_FILE, folder=opened,
                                   mode=0o600, links=False), data)
        return
    with sandbox.rights():
        fresh = os.open(f"{sandbox.path}/{folder}/{FRESH}", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name, data in files.items():
                _write(os.open(name, _NEW_FILE, 0o600, dir_fd=fresh), data)
        finally:
            os.close(fresh)


def remove_secrets(sandbox: Sandbox, folder: str) -> None:
    """Remove the folder, once no process of the job is left and before anything is looked for to be sent home.  Blocks.

    Raises:
        OSError: it cannot be removed.
    """
    path = f"{sandbox.path}/{folder}"
    with sandbox.rights():
        gone = not os.path.lexists(path) or any(remove_tree(path) for _ in range(TRIES))
    if not gone:
        raise OSError(errno.ENOTEMPTY, "the job's tokens cannot be removed", path)


def _write(descriptor: int, data: bytes) -> None:
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "the job has put something else in the place of a file for a token")
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view):]
    finally:
        os.close(descriptor)
