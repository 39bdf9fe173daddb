"""What condor_dagman does where its folder has no room: it waits, and then begins again from its journal.

Theory: a run that ended for want of room would be a workflow lost, and one that were begun anew at once would be begun
a hundred times until there is room.  What the journal could not take has not happened; what dagman.out could not take
is for people, and stops nothing.
"""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Sequence

from condor_actors.durable import append_whole, naming
from condor_actors.tools.dag.dag_files import open_own
from condor_actors.tools.lib.command import ToolError

__all__ = ["append_lines", "is_no_room", "locked", "sayer", "wait_for_room"]

NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})
NEEDED_BYTES = 1 << 14
FIRST_LOOK_S, LONGEST_LOOK_S = 0.5, 10.0


def is_no_room(error: OSError) -> bool:
    """Whether it is for want of room that something could not be written."""
    return error.errno in NO_ROOM


def append_lines(path: str, lines: Sequence[str]) -> None:
    """Add lines to a file, all of them or none.

    Raises:
        OSError: they could not be added; names the file.
    """
    if lines:
        text = "".join(f"{line}\n" for line in lines)
        with naming(path), open(open_own(path, os.O_WRONLY | os.O_APPEND), "ab", buffering=0) as file:
            append_whole(file.fileno(), text.encode(errors="surrogateescape"), sync=False)


def sayer(out: str) -> Callable[..., None]:
    """A function that adds texts to dagman.out, each with the time; those for which there is no room are not said."""
    from condor_actors.tools.dag.run_files import stamped

    def say(*texts: str) -> None:
        try:
            append_lines(out, [stamped(text, time.time()) for text in texts])
        except OSError as error:
            if not is_no_room(error):
                raise

    return say


def locked(path: str) -> int:
    """The lock of the DAG, held until the process ends.

    Raises:
        ToolError: another process runs the DAG.
    """
    try:
        descriptor = open_own(path, os.O_RDWR)
    except OSError as error:
        raise ToolError(f"ERROR: cannot lock {path}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        who = os.read(descriptor, 100).decode(errors="replace").strip()
        raise ToolError(f"ERROR: another condor_dagman runs this DAG already ({path}: {who})") from None
    os.truncate(descriptor, 0)
    try:
        os.write(descriptor, f"pid {os.getpid()}\n".encode())
    except OSError as error:
        if not is_no_room(error):
            raise
    return descriptor


def wait_for_room(folder: str, is_over: Callable[[], object]) -> None:
    """Wait until something can be written in a folder, or nobody wants to know any more."""
    wait_s = FIRST_LOOK_S
    while not is_over():
        try:
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(NEEDED_BYTES))
                file.flush()
                os.fsync(file.fileno())
            return
        except OSError as error:
            if not is_no_room(error):
                return
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, LONGEST_LOOK_S)
