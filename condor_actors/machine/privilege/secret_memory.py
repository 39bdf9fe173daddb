"""A daemon's memory holds keys, tokens and the secrets of claims: it is written into no core dump.

Theory: a process that is not dumpable leaves no core, whatever takes cores on the machine, and nobody but root looks
into it through ``/proc``.  One that is not root stays dumpable, since daemons of a pool of one's own find each other by
their environments; it has a limit of cores instead.  Neither is handed on: what is executed begins dumpable, and jobs
get a limit of their own.

Until a program that begins as a user has said so, it is guarded by capabilities that the user's other processes lack:
the helper lends them to it (``native/root/rights.c``), and it gives them up here.
"""

from __future__ import annotations

import ctypes
import os
import resource

__all__ = ["give_up_rights", "keep_out_of_dumps", "keep_private"]

PR_SET_DUMPABLE = 4
CAPABILITIES_VERSION = 0x2008_0522


def keep_out_of_dumps() -> None:
    """Leave no core of this process."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    if os.geteuid() == 0:
        keep_private()


def keep_private() -> None:
    """Let nobody look into this process or trace it, the others of its account neither."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_up_rights() -> None:
    """Have no capability from now on, nor hand one on.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.capset((ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "the capabilities cannot be given up")
