"""Looking at a job while it runs (condor_tail, condor_ssh_to_job): tool, schedd, shadow and starter."""

from __future__ import annotations

from typing import ClassVar

from condor_actors import records
from condor_actors.messages.codec import FileName, message


@message
@records.frozen(kw_only=True)
class TailJob:
    """condor_tail: bytes of a running job's file.  Answer: :class:`RunFileBytes`."""

    KIND: ClassVar[str] = "condor.interactive.TailJob"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int
    path: FileName
    offset: int = -1
    max_bytes: int = 65536


@message
@records.frozen(kw_only=True)
class ConnectToJob:
    """condor_ssh_to_job: open a shell beside the job.  Answer: Done; then :class:`ShellData` both ways."""

    KIND: ClassVar[str] = "condor.interactive.ConnectToJob"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int
    shell_id: str
    command: tuple[FileName, ...] = ()
    terminal: str = "dumb"
    rows: int = 24
    columns: int = 80


@message
@records.frozen(kw_only=True)
class ReadRunFile:
    """Shadow to starter (for condor_tail): bytes of a sandbox file.  Answer: :class:`RunFileBytes`.

    ``path`` may be ``_condor_stdout`` / ``_condor_stderr``; ``offset`` -1: the last ``max_bytes``.
    """

    KIND: ClassVar[str] = "condor.interactive.ReadRunFile"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    path: FileName
    offset: int = -1
    max_bytes: int = 65536


@message
@records.frozen(kw_only=True)
class RunFileBytes:
    """Answer to :class:`ReadRunFile`."""

    KIND: ClassVar[str] = "condor.interactive.RunFileBytes"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    offset: int
    data: bytes
    size_bytes: int


@message
@records.frozen(kw_only=True)
class OpenShell:
    """condor_ssh_to_job, schedd → shadow → starter: start a shell (or a command) beside the job, on a pty.

    Its bytes travel as :class:`ShellData` both ways under ``shell_id``.
    """

    KIND: ClassVar[str] = "condor.interactive.OpenShell"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    shell_id: str
    command: tuple[FileName, ...] = ()
    terminal: str = "dumb"
    rows: int = 24
    columns: int = 80


@message
@records.frozen(kw_only=True)
class ShellData:
    """Bytes typed into or printed by a shell; ``exit_code`` >= 0: it has ended; ``rows`` > 0: the window's new size."""

    KIND: ClassVar[str] = "condor.interactive.ShellData"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    shell_id: str
    data: bytes = b""
    exit_code: int = -1
    rows: int = 0
    columns: int = 0

    @property
    def is_last(self) -> bool:
        """Whether nothing comes after it."""
        return self.exit_code >= 0


@message
@records.frozen(kw_only=True)
class ConnectToPort:
    """condor_ssh_to_job -L: open a connection to a port at which the job listens.

    Answer: Done; then :class:`PortData` both ways.

    Attributes:
        shell_id: the connection's name, which the tool made up.
        port: a TCP port of the job's machine.
    """

    KIND: ClassVar[str] = "condor.interactive.ConnectToPort"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "WRITE"

    cluster_id: int
    proc_id: int
    shell_id: str
    port: int


@message
@records.frozen(kw_only=True)
class OpenPort:
    """Schedd → shadow → starter: as :class:`ConnectToPort`, for a run."""

    KIND: ClassVar[str] = "condor.interactive.OpenPort"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    shell_id: str
    port: int


@message
@records.frozen(kw_only=True)
class PortData:
    """Bytes of a connection to a job's port.

    Attributes:
        shell_id: the connection's name.
        data: the next bytes.
        taken: so many bytes of the other side's have been passed on since this was last said; each side sends at most
            :data:`PORT_WINDOW_BYTES` that are not.
        has_ended: no more bytes come from this side.
        is_closed: the connection is over.
        reason: why, where it failed.
    """

    KIND: ClassVar[str] = "condor.interactive.PortData"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    shell_id: str
    data: bytes = b""
    taken: int = 0
    has_ended: bool = False
    is_closed: bool = False
    reason: str = ""

    @property
    def is_last(self) -> bool:
        """Whether nothing comes after it."""
        return self.is_closed


PORT_WINDOW_BYTES = 256 * 1024
"""Of a connection to a job's port, on their way in one direction."""
