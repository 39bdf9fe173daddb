"""A shell beside a running job, its bytes carried by the schedd: the terminal's side of condor_ssh_to_job."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

from condor_actors.messages.interactive import ConnectToJob, ShellData
from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.contact import QUEUE, Schedd
from condor_actors.wire.blocking import LinkLost, RequestRefused, TimedOut

CHUNK_BYTES = 65536
MORE_S = 0.01
"""How long to look for another message behind the one that woke us."""


class NotRunning(ToolError):
    """The job has no process to be beside, now."""


def run_shell(there: Schedd, job: tuple[int, int], command: Sequence[str]) -> int:
    """Open a shell (or run a command) and be its terminal until it ends.

    Args:
        command: words of a shell command, joined with blanks as ssh does; empty: a shell to type into.

    Returns:
        the exit status of the shell.

    Raises:
        NotRunning: the job does not run.
        ToolError: it is not ours, or not in the queue.
    """
    shell_id = uuid.uuid4().hex
    size = shutil.get_terminal_size()
    try:
        there.ask(
            ConnectToJob(
                cluster_id=job[0],
                proc_id=job[1],
                shell_id=shell_id,
                command=("/bin/sh", "-c", " ".join(command)) if command else (),
                terminal=os.environ.get("TERM", "dumb"), rows=size.lines, columns=size.columns,
            )
        )  # fmt: skip
    except RequestRefused as error:
        raise (NotRunning if error.code == "invalid" else ToolError)(str(error)) from None
    with _raw_terminal(), _window_changes() as resized:
        return _carry(there, shell_id, resized)


def _carry(there: Schedd, shell_id: str, resized: int) -> int:
    """Bytes both ways until the shell has ended."""
    client, keyboard = there.client, sys.stdin.fileno()
    sources: list[Any] = [client, keyboard, resized]
    status = _take(there, shell_id)
    while status is None:
        ready, _, _ = select.select(sources, [], [])
        if resized in ready:
            os.read(resized, 512)
            size = shutil.get_terminal_size()
            client.tell(QUEUE, ShellData(shell_id=shell_id, rows=size.lines, columns=size.columns))
        if keyboard in ready:
            data = os.read(keyboard, CHUNK_BYTES)
            if not data:
                sources.remove(keyboard)
                data = b"\x04"
            client.tell(QUEUE, ShellData(shell_id=shell_id, data=data))
        if client in ready:
            status = _take(there, shell_id)
    return status


def _take(there: Schedd, shell_id: str) -> int | None:
    """Show what has arrived; the exit status when the shell has ended."""
    while True:
        try:
            message = there.client.receive(MORE_S)
        except TimedOut:
            return None
        except LinkLost:
            raise ToolError("\r\nThe connection to the schedd was lost.") from None
        if not isinstance(message, ShellData) or message.shell_id != shell_id:
            continue
        sys.stdout.buffer.write(message.data)
        sys.stdout.buffer.flush()
        if message.exit_code >= 0:
            return message.exit_code


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Every key goes to the shell beyond; nothing changes when standard input is no terminal."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setraw(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextmanager
def _window_changes() -> Iterator[int]:
    """A descriptor that becomes readable when the terminal's size changes."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def changed(_number: int, _frame: FrameType | None) -> None:
        os.write(writing, b"w")

    before = signal.signal(signal.SIGWINCH, changed)
    try:
        yield reading
    finally:
        signal.signal(signal.SIGWINCH, before)
        os.close(reading)
        os.close(writing)
