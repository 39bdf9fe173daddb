"""What a job has written so far, while it still runs: pieces on demand (condor_tail), and streamed home as it grows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from condor_actors.cores.run_spec import NULL, RunSpec
from condor_actors.machine.sandbox import Sandbox
from condor_actors.machine.users import Account, acting_as
from condor_actors.messages.envelope import Refused
from condor_actors.messages.run import ReadRunFile, RunFileBytes

__all__ = ["StreamedFiles", "read_run_file"]

PIECE_BYTES = 128 * 1024
MOST_BYTES = 256 * 1024
"""Of one answer."""


class StreamedFiles:
    """The standard files of a job that are to be seen at home while it runs.

    Args:
        spec: the job.
        home_name: what its ``Out`` and ``Err`` are called at home.
    """

    def __init__(self, spec: RunSpec, home_name: Callable[[str], str]) -> None:
        self._at: dict[str, tuple[str, int]] = {}
        if spec.transfers and spec.stream_stdout and spec.stdout != NULL:
            self._at[spec.stdout] = (home_name("Out"), 0)
        if spec.transfers and spec.stream_stderr and spec.stderr not in (NULL, spec.stdout):
            self._at[spec.stderr] = (home_name("Err"), 0)

    @property
    def paths(self) -> tuple[str, ...]:
        """Their paths in the sandbox."""
        return tuple(self._at)

    def grown(self, sandbox: Sandbox, *, everything: bool) -> Iterator[tuple[str, int, bytes]]:
        """What was written since the last time: (name at home, offset, data); of each file one piece, or everything."""
        for path, (name, offset) in tuple(self._at.items()):
            while True:
                try:
                    _, data, _ = sandbox.read(path, offset, PIECE_BYTES)
                except (OSError, ValueError):
                    break
                if not data:
                    break
                yield name, offset, data
                offset += len(data)
                self._at[path] = (name, offset)
                if not everything:
                    break


def read_run_file(message: ReadRunFile, spec: RunSpec, sandbox: Sandbox | None,
                  account: Account) -> RunFileBytes | Refused:
    """A piece of a file of a running job, read with its account's rights."""
    if sandbox is None:
        return Refused(code="not-found", text="the job has no scratch directory yet")
    path = message.path
    if not spec.transfers and path in ("_condor_stdout", "_condor_stderr"):
        path = spec.stdout if path.endswith("out") else spec.stderr
    try:
        if spec.transfers:
            start, data, size = sandbox.read(path, message.offset, min(message.max_bytes, MOST_BYTES))
        else:
            start, data, size = _read_shared(os.path.join(spec.iwd, path), message, account)
    except ValueError as error:
        return Refused(code="denied", text=str(error))
    except OSError as error:
        return Refused(code="not-found", text=f"{path}: {error.strerror}")
    return RunFileBytes(offset=start, data=data, size_bytes=size)


def _read_shared(path: str, message: ReadRunFile, account: Account) -> tuple[int, bytes, int]:
    """Of a job that runs in its submitter's directory."""
    with acting_as(account):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            size = os.fstat(descriptor).st_size
            start = max(0, size - message.max_bytes) if message.offset < 0 else message.offset
            return start, os.pread(descriptor, min(message.max_bytes, MOST_BYTES), start), size
        finally:
            os.close(descriptor)
