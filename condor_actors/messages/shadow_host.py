"""Between the schedd and the shadow hosts of its submitters, over the schedd's UNIX socket.

A run is named as :mod:`condor_actors.messages.run` says.
"""

from __future__ import annotations

from typing import ClassVar

import attrs
from attrs.validators import in_, max_len

from condor_actors.messages.codec import FileName, message

TRANSFER_KINDS = ("INPUT", "OUTPUT", "CHECKPOINT")
MOST_TRANSFERS = 100
"""Of one run that its end tells of."""
PROBLEM_CHARACTERS = 1024
REMOVE_CHECKPOINTS = -2
"""Not an event of a :class:`Notice`."""


@message
@attrs.frozen(kw_only=True)
class ShadowHostHello:
    """Shadow host to schedd on every (re)connect: whose host I am and which runs are alive in me.

    ``owner`` is empty for a spare host that nobody has been assigned to yet.
    """

    KIND: ClassVar[str] = "condor.shadow_host.ShadowHostHello"
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

    KIND: ClassVar[str] = "condor.shadow_host.BecomeOwner"
    VERSION: ClassVar[int] = 1

    owner: str
    uid: int
    gid: int
    credential: bytes
    spool_dir: FileName


@message
@attrs.frozen(kw_only=True)
class StartRun:
    """Schedd to shadow host: run this job on this claim.

    ``reattach`` True: the run is believed alive at the starter; take it up again instead of starting it.
    ``checkpoint_ticket``: to be shown to the starter.
    """

    KIND: ClassVar[str] = "condor.shadow_host.StartRun"
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
    checkpoint_ticket: bytes = b""


@message
@attrs.frozen(kw_only=True)
class RunUpdated:
    """Shadow host to schedd: new values of job attributes (ad text), and what happened if something did.

    ``event``: empty or ``executing suspended continued transferring-input transferring-output disconnected
    reconnected``.
    """

    KIND: ClassVar[str] = "condor.shadow_host.RunUpdated"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    attributes: bytes
    event: str = ""


@attrs.frozen(kw_only=True)
class Transfer:
    """Files that travelled for a run.

    Attributes:
        kind: of :data:`TRANSFER_KINDS`.
        began_s, ended_s: seconds since 1970.
        files, size_bytes: how many, and what they hold; those at URLs are not counted.
        problem: why they did not arrive, cut at :data:`PROBLEM_CHARACTERS`; empty: all did.
    """

    kind: str = attrs.field(validator=in_(TRANSFER_KINDS))
    began_s: float
    ended_s: float
    files: int = 0
    size_bytes: int = 0
    problem: str = attrs.field(default="", validator=max_len(PROBLEM_CHARACTERS))


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
        transfers: the last of its files' travels, as far as this shadow host has seen them.
    """

    KIND: ClassVar[str] = "condor.shadow_host.RunEnded"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    outcome: str
    attributes: bytes
    reason: str = ""
    hold_code: int = 0
    hold_subcode: int = 0
    claim_usable: bool = True
    transfers: tuple[Transfer, ...] = attrs.field(default=(), validator=max_len(MOST_TRANSFERS))


@attrs.frozen(kw_only=True)
class Notice:
    """An event that is due in a job's user log, and by mail if its owner asked for that.

    Attributes:
        notice_id: names it until it is confirmed.
        cluster, proc, last_proc: the job; ``last_proc`` >= 0: the same for all jobs up to that one.
        event: an HTCondor event number (0 submit, 5 terminated, 9 aborted, 12 held, 13 released …); -1: the end of the
            run ``notice_id`` is committed, let the starter at the node in ``ad`` free it; :data:`REMOVE_CHECKPOINTS`:
            the job has left the queue, have its checkpoints removed at their destination.
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

    KIND: ClassVar[str] = "condor.shadow_host.HostOrders"
    VERSION: ClassVar[int] = 1

    verdicts: tuple[tuple[str, str], ...] = ()
    notices: tuple[Notice, ...] = ()
    starts: tuple[StartRun, ...] = ()


@message
@attrs.frozen(kw_only=True)
class DismissHost:
    """Schedd to shadow host: its owner has had no runs for a while; it ends (and another is started when needed)."""

    KIND: ClassVar[str] = "condor.shadow_host.DismissHost"
    VERSION: ClassVar[int] = 1


@message
@attrs.frozen(kw_only=True)
class SayHello:
    """Schedd to shadow host, or startd to starter host: it has begun anew over a link that did not break, and knows
    nothing of the host."""

    KIND: ClassVar[str] = "condor.shadow_host.SayHello"
    VERSION: ClassVar[int] = 1


@message
@attrs.frozen(kw_only=True)
class NoticesWritten:
    """Shadow host to schedd: these notices are in the logs and synced (or their logs cannot be written).

    Attributes:
        waiting: their logs have no room: they are not to be forgotten, but nobody need wait for them.
    """

    KIND: ClassVar[str] = "condor.shadow_host.NoticesWritten"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    notice_ids: tuple[str, ...]
    waiting: bool = False


@message
@attrs.frozen(kw_only=True)
class SetJobAttributes:
    """Shadow host to schedd: its job has set these attributes of itself (ad text).  Answer: Done when they are
    committed; Refused ``denied``: one is not for a job to set."""

    KIND: ClassVar[str] = "condor.shadow_host.SetJobAttributes"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    run_id: str
    attributes: bytes
