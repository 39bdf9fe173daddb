"""Run: one execution of one job, between schedd, shadow host, shadow and starter.

A run is named ``<cluster>.<proc>#<number>`` (number: the job's NumShadowStarts when it began), so that nothing said
about an earlier run can be taken for this one.
"""

from __future__ import annotations

from typing import ClassVar

import attrs

from condor_actors.messages.codec import message

# --- schedd and shadow host (UNIX socket) --------------------------------------------------------------------------


@message
@attrs.frozen(kw_only=True)
class ShadowHostHello:
    """Shadow host to schedd on every (re)connect: whose host I am and which runs are alive in me.

    ``owner`` is empty for a spare host that nobody has been assigned to yet.
    """

    KIND: ClassVar[str] = "condor.run.ShadowHostHello"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    host_id: str
    owner: str
    pid: int
    runs: tuple[str, ...] = ()
    unsettled: tuple[str, ...] = ()
    """Runs that have ended here and whose RunEnded was not settled; it is sent again."""


@message
@attrs.frozen(kw_only=True)
class BecomeOwner:
    """Schedd to a spare shadow host: drop to this user now, for good.

    ``credential`` is the proxy certificate with its key and chain (PEM), ``spool_dir`` the owner's part of SPOOL.
    """

    KIND: ClassVar[str] = "condor.run.BecomeOwner"
    VERSION: ClassVar[int] = 1

    owner: str
    uid: int
    gid: int
    credential: bytes
    spool_dir: str


@message
@attrs.frozen(kw_only=True)
class StartRun:
    """Schedd to shadow host: run this job on this claim.

    ``reattach`` True: the run is believed alive at the starter; take it up again instead of starting it.
    """

    KIND: ClassVar[str] = "condor.run.StartRun"
    VERSION: ClassVar[int] = 1

    run_id: str
    job_ad: bytes
    claim_id: str
    secret: str
    starter_node: str
    slot_name: str
    slot_ad: bytes
    lease_s: float
    reattach: bool = False


@message
@attrs.frozen(kw_only=True)
class StopRun:
    """Schedd to shadow host, shadow to starter: end a run.

    ``how``: ``vacate`` (soft-kill signal, outputs per when_to_transfer_output), ``fast`` (kill), ``remove``, ``hold``.
    To a shadow also ``lost``: the claim is over, so wait for the starter's word only while in touch with it.
    """

    KIND: ClassVar[str] = "condor.run.StopRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    how: str
    reason: str = ""


@message
@attrs.frozen(kw_only=True)
class SuspendRun:
    """Schedd to shadow host, shadow to starter: freeze the job (condor_suspend)."""

    KIND: ClassVar[str] = "condor.run.SuspendRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@attrs.frozen(kw_only=True)
class ContinueRun:
    """Schedd to shadow host, shadow to starter: thaw it (condor_continue)."""

    KIND: ClassVar[str] = "condor.run.ContinueRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@attrs.frozen(kw_only=True)
class CheckpointRun:
    """Schedd to shadow host, shadow to starter: take a checkpoint of a standard-universe job now."""

    KIND: ClassVar[str] = "condor.run.CheckpointRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    reason: str = ""


@message
@attrs.frozen(kw_only=True)
class RunUpdated:
    """Shadow host to schedd: new values of job attributes (ad text), and what happened if something did.

    ``event``: empty or ``executing suspended continued transferring-input transferring-output disconnected
    reconnected``.
    """

    KIND: ClassVar[str] = "condor.run.RunUpdated"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    attributes: bytes
    event: str = ""


@message
@attrs.frozen(kw_only=True)
class RunEnded:
    """Shadow host to schedd: the run is over and its outputs are home; repeated until a :class:`HostOrders` has its
    verdict.

    Attributes:
        outcome: ``exited`` (the program ended by itself: see ExitCode / ExitSignal in ``attributes``), ``evicted``
            (requeue), ``failed`` (could not start: requeue after a while, ``reason`` says why), ``lost`` (out of reach
            for longer than its lease, or gone with its machine: requeue), ``hold`` (put on hold with ``hold_code``,
            ``hold_subcode``), ``removed``.
        attributes: job attributes to set (ad text), usage among them.
        claim_usable: False when the claim must not be used again.
    """

    KIND: ClassVar[str] = "condor.run.RunEnded"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    outcome: str
    attributes: bytes
    reason: str = ""
    hold_code: int = 0
    hold_subcode: int = 0
    claim_usable: bool = True


@attrs.frozen(kw_only=True)
class Notice:
    """An event that is due in a job's user log, and by mail if its owner asked for that.

    Attributes:
        notice_id: names it until it is confirmed.
        cluster, proc, last_proc: the job; ``last_proc`` >= 0: the same for all jobs up to that one.
        event: an HTCondor event number (0 submit, 5 terminated, 9 aborted, 12 held, 13 released …); -1: the end of the
            run ``notice_id`` is committed, let the starter at the node in ``ad`` free it.
        when_s: when it happened.
        ad: all the attributes its text needs, where the log is among them.
        maybe_written: it was sent before: look whether the log has it.
    """

    notice_id: str
    cluster: int
    proc: int
    last_proc: int = -1
    event: int
    when_s: float
    ad: bytes
    maybe_written: bool = False


@message
@attrs.frozen(kw_only=True)
class HostOrders:
    """Schedd to shadow host: all that a turn decided for its owner, in this order.

    Attributes:
        verdicts: pairs (run id, ``completed`` | ``requeued`` | ``held`` | ``removed`` | ``settled``): the end of these
            runs is committed; let the starter free them, and forget them.
        notices: write these events, and send the mails that belong to them.
        starts: begin these runs.
    """

    KIND: ClassVar[str] = "condor.run.HostOrders"
    VERSION: ClassVar[int] = 1

    verdicts: tuple[tuple[str, str], ...] = ()
    notices: tuple[Notice, ...] = ()
    starts: tuple[StartRun, ...] = ()


@message
@attrs.frozen(kw_only=True)
class DismissHost:
    """Schedd to shadow host: its owner has had no runs for a while; it ends (and another is started when needed)."""

    KIND: ClassVar[str] = "condor.run.DismissHost"
    VERSION: ClassVar[int] = 1


@message
@attrs.frozen(kw_only=True)
class SayHello:
    """Schedd to shadow host, or startd to starter host: it has begun anew over a link that did not break, and knows
    nothing of the host."""

    KIND: ClassVar[str] = "condor.run.SayHello"
    VERSION: ClassVar[int] = 1


@message
@attrs.frozen(kw_only=True)
class NoticesWritten:
    """Shadow host to schedd: these notices are in the logs and synced (or their logs cannot be written)."""

    KIND: ClassVar[str] = "condor.run.NoticesWritten"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    notice_ids: tuple[str, ...]


# --- shadow and starter (TLS) --------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class FileEntry:
    """One file, directory or link of a manifest.

    Attributes:
        path: relative, ``/``-separated, inside the sandbox (or the output directory); no ``..``.
        kind: ``file``, ``directory`` or ``link``.
        mode: permission bits.
        size_bytes, digest: of a file: length and SHA-256 (hex).
        inline: the content itself when small, else None: fetch it by digest over bulk.
        target: of a link.
        url: fetch it from here at the execute side instead (http, https).
    """

    path: str
    kind: str = "file"
    mode: int = 0o644
    size_bytes: int = 0
    digest: str = ""
    inline: bytes | None = None
    target: str = ""
    url: str = ""


@message
@attrs.frozen(kw_only=True)
class ActivateClaim:
    """Shadow to starter host: run this job on the claim whose secret I show.  Answer: :class:`Activated` or Refused.

    Attributes:
        claim_id, secret: the claim; run_id: the run.
        job_ad: the job as the starter needs it (Cmd, Args, Env, Request*, KillSig …).
        inputs: manifest of the sandbox; the executable is in it when it is transferred.
        inputs_digest: SHA-256 of a manifest too large for a message: it is itself a blob, with all small contents
            inline, and ``inputs`` has only those of its files that travel as blobs.
        transfer_node, transfer_key: where and with which key the starter fetches blobs (empty node: over this link's
            peer, dialled back by the shadow).
        reply_to: actor at the shadow's node for this run's events.
    """

    KIND: ClassVar[str] = "condor.run.ActivateClaim"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    claim_id: str
    secret: str
    run_id: str
    job_ad: bytes
    inputs: tuple[FileEntry, ...] = ()
    inputs_digest: str = ""
    transfer_key: str = ""
    lease_s: float = 2400.0


@message
@attrs.frozen(kw_only=True)
class Activated:
    """Starter to shadow: accepted; ``missing`` are the digests to be sent to the blob store over bulk first."""

    KIND: ClassVar[str] = "condor.run.Activated"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    missing: tuple[str, ...] = ()


@message
@attrs.frozen(kw_only=True)
class InputsSent:
    """Shadow to starter: every missing blob is in your store now; begin."""

    KIND: ClassVar[str] = "condor.run.InputsSent"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@attrs.frozen(kw_only=True)
class RunBegan:
    """Starter to shadow: the program is executing."""

    KIND: ClassVar[str] = "condor.run.RunBegan"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    when_s: float
    pid: int
    scratch_dir: str


@attrs.frozen(kw_only=True)
class Usage:
    """What a run has used so far."""

    user_cpu_s: float = 0.0
    system_cpu_s: float = 0.0
    wall_s: float = 0.0
    memory_kib: int = 0
    peak_memory_kib: int = 0
    disk_kib: int = 0
    processes: int = 0


@message
@attrs.frozen(kw_only=True)
class RunProgress:
    """Starter to shadow, now and then: usage, and streamed output since the last (stream_output, stream_error), which
    is asked, so that no more than one piece of each file is under way.  Answer: Done.

    ``state``: empty, ``suspended`` or ``continued`` when that just happened.
    """

    KIND: ClassVar[str] = "condor.run.RunProgress"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    usage: Usage
    state: str = ""
    streams: tuple[tuple[str, int, bytes], ...] = ()
    """(file path, offset, bytes) to be written at home."""


@message
@attrs.frozen(kw_only=True)
class RunExited:
    """Starter to shadow: the program is gone with its whole tree; repeated until :class:`OutputsReceived`.

    Attributes:
        exit_code, exit_signal: one of them; both -1 when the program could not be started or was evicted before.
        cause: ``exited`` ``evicted`` ``killed`` (StopRun) ``start-failed`` ``transfer-failed`` ``limit`` ``hold``,
            ``failed`` (the starter itself).
        outputs: manifest of what goes home per transfer_output_files and when_to_transfer_output.
    """

    KIND: ClassVar[str] = "condor.run.RunExited"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    cause: str
    usage: Usage
    when_s: float
    exit_code: int = -1
    exit_signal: int = -1
    core_dumped: bool = False
    reason: str = ""
    hold_code: int = 0
    hold_subcode: int = 0
    outputs: tuple[FileEntry, ...] = ()
    outputs_digest: str = ""
    claim_open: bool = True


@message
@attrs.frozen(kw_only=True)
class RunCheckpointed:
    """Starter to shadow: the program has saved its work and ended with its checkpoint_exit_code; keep these files and
    say :class:`CheckpointKept`, then it is started again.  Repeated after a reattachment; ``number`` counts them."""

    KIND: ClassVar[str] = "condor.run.RunCheckpointed"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    number: int
    usage: Usage
    files: tuple[FileEntry, ...] = ()
    files_digest: str = ""


@message
@attrs.frozen(kw_only=True)
class CheckpointKept:
    """Shadow to starter: checkpoint ``number`` is on the home disk; ``problem``: it is not, and the run has to end."""

    KIND: ClassVar[str] = "condor.run.CheckpointKept"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    number: int
    problem: str = ""


@message
@attrs.frozen(kw_only=True)
class OutputsReceived:
    """Shadow to starter: all outputs are home and synced; free the sandbox and the run."""

    KIND: ClassVar[str] = "condor.run.OutputsReceived"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str


@message
@attrs.frozen(kw_only=True)
class ReattachRun:
    """Shadow to starter host after a lost link or a new shadow host: is this run alive?  I am its shadow now.

    Answer: :class:`Reattached`, after which a pending RunExited is repeated; or Refused(code="not-found").
    """

    KIND: ClassVar[str] = "condor.run.ReattachRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    claim_id: str
    secret: str
    run_id: str
    transfer_key: str = ""


@message
@attrs.frozen(kw_only=True)
class Reattached:
    """Starter to shadow: it lives (or has ended and its RunExited follows)."""

    KIND: ClassVar[str] = "condor.run.Reattached"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    pid: int
    ended: bool = False


@message
@attrs.frozen(kw_only=True)
class ReadRunFile:
    """Shadow to starter (for condor_tail): bytes of a sandbox file.  Answer: :class:`RunFileBytes`.

    ``path`` may be ``_condor_stdout`` / ``_condor_stderr``; ``offset`` -1: the last ``max_bytes``.
    """

    KIND: ClassVar[str] = "condor.run.ReadRunFile"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    path: str
    offset: int = -1
    max_bytes: int = 65536


@message
@attrs.frozen(kw_only=True)
class RunFileBytes:
    """Answer to :class:`ReadRunFile`."""

    KIND: ClassVar[str] = "condor.run.RunFileBytes"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    offset: int
    data: bytes
    size_bytes: int


@message
@attrs.frozen(kw_only=True)
class OpenShell:
    """condor_ssh_to_job, schedd → shadow → starter: start a shell (or a command) beside the job, on a pty.

    Its bytes travel as :class:`ShellData` both ways under ``shell_id``.
    """

    KIND: ClassVar[str] = "condor.run.OpenShell"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    shell_id: str
    command: tuple[str, ...] = ()
    terminal: str = "dumb"
    rows: int = 24
    columns: int = 80


@message
@attrs.frozen(kw_only=True)
class ShellData:
    """Bytes typed into or printed by a shell; ``exit_code`` >= 0: it has ended; ``rows`` > 0: the window's new size."""

    KIND: ClassVar[str] = "condor.run.ShellData"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    shell_id: str
    data: bytes = b""
    exit_code: int = -1
    rows: int = 0
    columns: int = 0
