"""Starts a program without copying this process, also as the first process of a pid namespace (native/spawn)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

__all__ = ["spawn"]


def spawn(words: Sequence[str], variables: Mapping[str, str], standard: tuple[int, int, int],
          kept: Sequence[int] = (), *, own_pids: bool = False) -> int:
    """Start ``words[0]``, with every signal blocked; it is a child of this process.

    Args:
        words: the program's path and its arguments.
        variables: its whole environment.
        standard: what become its standard input, output and error.
        kept: descriptors that it gets under their own numbers, beside those that are inherited anyway.
        own_pids: it is the first process of a pid namespace of its own; only root can do that.

    Returns:
        Its pid.

    Raises:
        OSError: it could not be started.
    """
    from condor_actors.machine.native import _native

    data = os.fsencode("\0".join([*words, *[f"{name}={value}" for name, value in variables.items()], ""]))
    pid: int = _native.lib.spawn_program(data, len(data), len(words), len(variables), standard, tuple(kept), len(kept),
                                         own_pids)
    if pid < 0:
        raise OSError(-pid, os.strerror(-pid), words[0])
    return pid
