"""What is said of a daemon that cannot start, and whether its master should try again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from condor_actors.config import Config
from condor_actors.store.database import StoreError

__all__ = ["TRY_AGAIN", "cannot_start"]

TRY_AGAIN, GIVE_UP = 1, 44
"""Exit statuses: what is wrong may pass; the configuration has to be changed before another try."""
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
FOLDERS = ("LOG", "SPOOL", "RUN", "LOCAL_DIR", "EXECUTE")
LEAST_BYTES = 4096


def cannot_start(error: Exception, config: Config | None = None) -> tuple[int, str]:
    """The exit status of a daemon that met an error at its start, and what to say.

    Args:
        config: its configuration; None: where its files are is not known.
    """
    if isinstance(error, StoreError):
        return TRY_AGAIN, str(error)
    if not (isinstance(error, OSError) and error.errno in NO_ROOM):
        return GIVE_UP, str(error)
    full = [f"{name} = {path}" for name in FOLDERS if config is not None
            for path in [config.path(name)] if _is_full(path)]
    where = ", ".join(full) or error.filename or "one of its files cannot be written"
    return TRY_AGAIN, f"no space is left: {where}; make room there, or name another place in the configuration"


def _is_full(path: Path) -> bool:
    try:
        found = os.statvfs(path)
    except OSError:
        return False
    return found.f_bavail * found.f_frsize < LEAST_BYTES
