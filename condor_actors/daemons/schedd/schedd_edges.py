"""What the schedd touches besides the network."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta

import attrs

from condor_actors.actors import World
from condor_actors.actors.workers import InWorker, at_once
from condor_actors.cores.trace_spans import TellSpan
from condor_actors.daemons.schedd.columns_maker import ColumnsMaker
from condor_actors.daemons.schedd.history import HistoryQuestions
from condor_actors.daemons.schedd.job_accounts import JobAccounts
from condor_actors.daemons.schedd.records import Records
from condor_actors.daemons.schedd.shadow_processes import HostProcesses
from condor_actors.daemons.schedd.spool import Spool
from condor_actors.store.queue_store import QueueStore

__all__ = ["Mint", "ScheddEdges", "make_mint"]

Mint = Callable[[str], bytes]
"""Makes the credential (PEM) of the shadow host of an owner; empty when the pool has no certificates."""


@attrs.frozen(kw_only=True)
class ScheddEdges:
    """What the schedd touches besides the network.

    Attributes:
        store: the database.
        processes: shadow hosts.
        mint: credentials.
        spool: spooled files.
        history: answers questions about the history.
        reidentify: a node's process has become the user of this name and uid (``PostOffice.reidentify``).
        uid: as whom this process runs.
        accounts: what a process that has dropped root orders of its helper; None: it has none.
        records: the event log of all jobs, histories as text.
        raw_clock: the wall clock as it is set, by which certificates are judged; None: nobody sets it.
        in_worker: runs what starts processes and asks for users.
        columns: has columns of the history made; None: there are none.
        tell_span: takes the spans of jobs' traces; None: there are none.
    """

    store: QueueStore
    processes: HostProcesses
    mint: Mint
    spool: Spool
    history: HistoryQuestions
    reidentify: Callable[[str, str, int], None] = lambda node, name, uid: None
    uid: int = attrs.field(factory=os.getuid)
    accounts: JobAccounts | None = None
    records: Records = attrs.field(factory=Records)
    raw_clock: Callable[[], float] | None = None
    in_worker: InWorker = at_once
    columns: ColumnsMaker | None = None
    tell_span: TellSpan | None = None


def make_mint(world: World, machine: str, life_s: float) -> Mint:
    """Credentials lent by this machine's certificate for ``life_s`` seconds; none where the pool has none."""

    def mint(owner: str) -> bytes:
        tls = getattr(world.post, "tls", None)
        if tls is None:
            return b""
        from condor_actors.wire.certificates.authority import lend_proxy
        from condor_actors.wire.certificates.trust import names_of

        names = names_of(tls.credentials.certificates()[0])
        host = machine if machine in names else names[0]
        return lend_proxy(tls.credentials, f"shadow:{owner}@{host}", timedelta(seconds=life_s)).bundle()

    return mint
