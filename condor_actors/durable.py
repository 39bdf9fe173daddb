"""What it takes for a file that takes another's place to be there after a power cut.

Theory: a file is replaced by writing a new one beside it, syncing that, and renaming it.  The content is on the disk
then, the name is not: it belongs to the folder, which has to be synced as well before anybody is told.
"""

from __future__ import annotations

import errno
import os

__all__ = ["sync_folder"]

NOT_TO_BE_SYNCED = (errno.EACCES, errno.EINVAL, errno.EOPNOTSUPP)
"""A folder that may not be read, or whose file system knows no such sync: the kernel writes it in its own time."""


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk.

    Args:
        path: the folder; empty: the working directory.

    Raises:
        OSError: the disk fails.
    """
    try:
        descriptor = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in NOT_TO_BE_SYNCED:
            raise
