"""Run: one execution of one job, between its shadow and its starter.

A run is named ``<cluster>.<proc>#<number>`` (number: the job's NumShadowStarts when it began), so that nothing said
about an earlier run can be taken for this one.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
from attrs.validators import in_, matches_re, max_len

from condor_actors.messages.codec import FileName, message
from condor_actors.messages.manifest import FileEntry

PATH_BYTES = 8192
MOST_PAUSES = 64
"""Of a run that its starter remembers for another shadow."""
MOST_SIGNED = 50
"""Outputs that one question is about."""
PERIODIC = "periodic"
"""The reason of a :class:`CheckpointRun` that the machine's or the job's policy wants."""
RUN_ID = r"[0-9]{1,10}[.][0-9]{1,10}#[0-9]{1,18}(?:[.][0-9]{1,10})?(?:@[!-~]{1,400})?"
"""What a run may be called: it is in logs, in environments, and in the names of actors."""
GANG_NAME_BYTES = 200
GANG_DATA_BYTES = 128 * 1024
"""Of one value, and of one message."""
GANG_NAMES = 64
"""Channels that one receiver listens on."""
GANG_KEPT, GANG_KEPT_BYTES = 1000, 256 * 1024
"""Values of one member, with their keys, as `gang_value_bytes` counts them."""
GANG_TAKEN = 256
"""Messages received last that a member remembers."""
NOT_JOINED = -1000
"""The answer to who has not joined: join, and ask again."""
GANG_CALLS = ("join", "put", "get", "wait", "send", "recv", "took", "cancel")


def gang_value_bytes(name: str, data: bytes) -> int:
    """What a value with its key counts for."""
    return len(name.encode("utf-8", "surrogateescape")) + len(data)


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
    """Schedd to shadow host, shadow to starter: take a checkpoint of a standard-universe job now.

    Attributes:
        run_id: which run.
        reason: why; a :data:`PERIODIC` one waits until the program has computed for as long as its last one took.
    """

    KIND: ClassVar[str] = "condor.run.CheckpointRun"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    reason: str = ""


@message
@attrs.frozen(kw_only=True)
class ActivateClaim:
    """Shadow to starter host: run this job on the claim whose secret I show.  Answer: :class:`Activated` or Refused.

    Attributes:
        claim_id, secret: the claim; run_id: the run, ``12.0#3@schedd``, of a gang's member ``12.0#3.2@schedd``.
        job_ad: the job as the starter needs it (Cmd, Args, Env, Request*, KillSig …).
        inputs: manifest of the sandbox; the executable is in it when it is transferred.
        inputs_digest: SHA-256 of a manifest too large for a message: it is itself a blob, with all small contents
            inline, and ``inputs`` has only those of its files that travel as blobs.
        transfer_node, transfer_key: where and with which key the starter fetches blobs (empty node: over this link's
            peer, dialled back by the shadow).
        reply_to: actor at the shadow's node for this run's events.
        checkpoint_ticket: the schedd's word on how old a checkpoint the run may go on from.
    """

    KIND: ClassVar[str] = "condor.run.ActivateClaim"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    claim_id: str
    secret: str
    run_id: str = attrs.field(validator=matches_re(RUN_ID))
    job_ad: bytes
    inputs: tuple[FileEntry, ...] = ()
    inputs_digest: str = ""
    transfer_key: str = ""
    lease_s: float = 2400.0
    checkpoint_ticket: bytes = b""


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
    """Starter to shadow: the program is executing.

    ``image_digest``: of the image of a registry that it runs in, ``sha256:…``; ``ports``: the machine's ports that lead
    to the services of its image, by their names.
    """

    KIND: ClassVar[str] = "condor.run.RunBegan"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    when_s: float
    pid: int
    scratch_dir: FileName
    image_digest: str = ""
    ports: tuple[tuple[str, int], ...] = ()


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

    ``state``: empty, ``suspended`` or ``continued`` when that happened at ``since_s`` (0: now); ``image_digest`` and
    ``ports``: as in :class:`RunBegan`, which may not have been heard.
    """

    KIND: ClassVar[str] = "condor.run.RunProgress"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    usage: Usage
    state: str = ""
    streams: tuple[tuple[FileName, int, bytes], ...] = ()
    """(file path, offset, bytes) to be written at home."""
    image_digest: str = ""
    since_s: float = 0.0
    ports: tuple[tuple[str, int], ...] = ()


@message
@attrs.frozen(kw_only=True)
class RunExited:
    """Starter to shadow: the program is gone with its whole tree; repeated until :class:`OutputsReceived`.

    Attributes:
        exit_code, exit_signal: one of them; both -1 when the program could not be started or was evicted before.
        cause: ``exited`` ``evicted`` ``killed`` (StopRun) ``start-failed`` ``transfer-failed`` ``limit`` ``hold``,
            ``checkpoint-damaged`` (what came from the job's checkpoint destination is not what was sent there; its
            number is in ``hold_subcode``),
            ``failed`` (the starter itself).
        outputs: manifest of what goes home per transfer_output_files and when_to_transfer_output.
        began_s: when its program began, as in :class:`RunBegan`; 0: it has not.
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
    began_s: float = 0.0


@message
@attrs.frozen(kw_only=True)
class RunCheckpointed:
    """Starter to shadow: the program has saved its work and ended with its checkpoint_exit_code; keep these files and
    say :class:`CheckpointKept`, then it is started again.  Repeated after a reattachment; ``number`` counts them, and
    ``when_s`` is when it ended (0: now).  ``serial`` above 0: the files are at the job's checkpoint destination
    already, as the one of that number; what remains to be kept is the list of them.  ``before``: how many the job had
    when the run began."""

    KIND: ClassVar[str] = "condor.run.RunCheckpointed"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    number: int
    usage: Usage
    files: tuple[FileEntry, ...] = ()
    files_digest: str = ""
    when_s: float = 0.0
    serial: int = 0
    before: int = 0


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
    """Starter to shadow: it lives (or has ended and its RunExited follows), and what a shadow may not have heard.

    Attributes:
        pid: of its program; 0: none has begun.
        began_s, scratch_dir: as in :class:`RunBegan`; 0: it has not begun.
        has_inputs: whether files were transferred before.
        pauses: the last times at which it stood still (True) or went on: (when, seconds since 1970; which; processes).
    """

    KIND: ClassVar[str] = "condor.run.Reattached"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    pid: int
    ended: bool = False
    began_s: float = 0.0
    scratch_dir: FileName = ""
    has_inputs: bool = False
    pauses: tuple[tuple[float, bool, int], ...] = attrs.field(default=(), validator=max_len(MOST_PAUSES))


@message
@attrs.frozen(kw_only=True)
class SignUploads:
    """Starter to shadow: URLs for these outputs, as the job's ad has them, with which they can be sent now.

    Answer: :class:`UploadsSigned`.

    Attributes:
        paths: in the sandbox.
        checkpoint: 0: they are outputs; else they are of the job's checkpoint of that number.
    """

    KIND: ClassVar[str] = "condor.run.SignUploads"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    checkpoint: int = 0
    paths: tuple[FileName, ...] = attrs.field(validator=max_len(MOST_SIGNED))


@message
@attrs.frozen(kw_only=True)
class UploadsSigned:
    """Shadow to starter: where the outputs are to be sent.

    Attributes:
        urls: one for each path; problem: why there are none.
    """

    KIND: ClassVar[str] = "condor.run.UploadsSigned"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    urls: tuple[str, ...] = attrs.field(default=(), validator=max_len(MOST_SIGNED))
    problem: str = ""


@message
@attrs.frozen(kw_only=True)
class ChirpCall:
    """Starter to shadow: do this for the job.  Answer: :class:`ChirpResult`; Refused ``busy``: not now.

    Attributes:
        verb: ``open`` ``read`` … as :mod:`condor_actors.cores.starter.chirp_session` has them.
        path, other: of what; a file is named besides its handle, so that another shadow can open it again.
        numbers: handle, offset, length, mode …, as the verb has it.
        data: to be written; text of an event; attributes as the text of an ad.
    """

    KIND: ClassVar[str] = "condor.run.ChirpCall"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    verb: str = attrs.field(validator=max_len(32))
    path: FileName = attrs.field(default="", validator=max_len(PATH_BYTES))
    other: FileName = attrs.field(default="", validator=max_len(PATH_BYTES))
    numbers: tuple[int, ...] = attrs.field(default=(), validator=max_len(4))
    data: bytes = b""


@message
@attrs.frozen(kw_only=True)
class ChirpResult:
    """Shadow to starter: what came of it: ``value`` below 0 is one of chirp's errors."""

    KIND: ClassVar[str] = "condor.run.ChirpResult"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    value: int
    data: bytes = b""


@message
@attrs.frozen(kw_only=True)
class GangCall:
    """Starter to shadow: what a member wants of its gang.  Answer: :class:`GangResult`; Refused ``busy``: not now.

    Which member speaks, and of which gang, the shadow knows by itself.

    Attributes:
        verb: one of GANG_CALLS.
        number: of this wish, among those of the member; it is asked again with the same number.
        names: a key, or channels.
        data: a value, or a message.
        kept: of ``join``: the values that the member has put.
        taken: of ``join``: (member, number) of the messages that it received last.
    """

    KIND: ClassVar[str] = "condor.gang.GangCall"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    verb: str = attrs.field(validator=in_(GANG_CALLS))
    number: int = 0
    names: tuple[str, ...] = attrs.field(default=(), validator=max_len(GANG_NAMES))
    data: bytes = attrs.field(default=b"", validator=max_len(GANG_DATA_BYTES))
    kept: tuple[tuple[str, bytes], ...] = attrs.field(default=(), validator=max_len(GANG_KEPT))
    taken: tuple[tuple[int, int], ...] = attrs.field(default=(), validator=max_len(GANG_TAKEN))


@message
@attrs.frozen(kw_only=True)
class GangResult:
    """Shadow to starter: what came of it.

    Attributes:
        value: 0, one of chirp's errors, or NOT_JOINED.
        name: the channel of a message that was received; member, number: whose it is, and which.
        data: the value, or the message.
    """

    KIND: ClassVar[str] = "condor.gang.GangResult"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    value: int
    name: str = ""
    member: int = 0
    number: int = 0
    data: bytes = b""
