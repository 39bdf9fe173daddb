"""What a job has written so far, while it still runs: pieces on demand (condor_tail).

Theory: a scratch directory is on the machine's own disk and read at once.  Elsewhere the file may be on a file system
that does not answer, which its user may have mounted: that is read by a worker, and given up after a while.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from twisted.python.failure import Failure

from condor_actors.actors.workers import touching
from condor_actors.cores.starter.run_spec import RunSpec
from condor_actors.machine.run.sandbox import Sandbox
from condor_actors.machine.run.users import Account, open_as
from condor_actors.messages.envelope import Delivery, Refused
from condor_actors.messages.interactive import ReadRunFile, RunFileBytes
from condor_actors.transfer.beneath import needs_regular

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["answer_read", "read_run_file"]

MOST_BYTES = 256 * 1024
"""Of one answer."""


def answer_read(starter: Starter, delivery: Delivery) -> None:
    """Answer a question for a piece of a file, now or when a worker has it."""
    message: ReadRunFile = delivery.message
    context, sandbox = starter.context, starter.sandbox
    account = starter.account or starter.edges.host.own_account

    def answered(result: Any) -> None:
        if isinstance(result, Failure):
            result.trap(OSError)
            result = Refused(code="busy", text=f"{message.path}: {result.getErrorMessage()}")
        context.reply(delivery, result)

    if starter.spec.transfers:
        context.reply(delivery, read_run_file(message, starter.spec, sandbox, account))
    else:
        context.defer_to_turn(starter.edges.elsewhere(read_run_file, message, starter.spec, sandbox, account), answered)


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
    except (ValueError, OverflowError) as error:
        return Refused(code="denied", text=str(error))
    except OSError as error:
        return Refused(code="not-found", text=f"{path}: {error.strerror}")
    return RunFileBytes(offset=start, data=data, size_bytes=size)


def _read_shared(path: str, message: ReadRunFile, account: Account) -> tuple[int, bytes, int]:
    """Of a job that runs in its submitter's directory."""
    touching(path)
    descriptor = open_as(account, path, os.O_RDONLY)
    try:
        size = needs_regular(descriptor, path).st_size
        start = max(0, size - message.max_bytes) if message.offset < 0 else message.offset
        return start, os.pread(descriptor, min(message.max_bytes, MOST_BYTES), start), size
    finally:
        os.close(descriptor)
