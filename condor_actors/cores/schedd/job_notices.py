"""Events that are due in user logs: kept until a shadow host has written them.

Theory: the schedd decides that something happened to a job, the owner's shadow host writes it down.  So that neither
may die in between, a notice is a row of the store from the commit that made it true until it is confirmed; after a
crash it is sent again with ``maybe_written``, and the writer looks at the log's end first.  A job without a log and
without mail has no notices.  A hundred thousand of them leave in many turns, in their order; the start of a run takes
along what is due of its job, so that nothing is written of a job before what came first.  That one is confirmed is
stored along with something else, or a moment later: until then a crash means no more than that it is sent again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.job_information import information_of, structured_notes
from condor_actors.cores.schedd.entering.backlog import Backlog
from condor_actors.cores.schedd.queue_operations import DropNotices, DropRun, SaveNotice
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.effects import Effect, Persist
from condor_actors.messages.codes import FactoryMode, JobEventType
from condor_actors.messages.shadow_host import REMOVE_CHECKPOINTS, Notice, Transfer
from condor_actors.numerals import whole

__all__ = ["LOG_ATTRIBUTES", "JobNotices", "RecordEpoch", "RecordEvent"]

LOG_ATTRIBUTES = (
    "Owner", "UserLog", "UserLogUseXML", "DAGManNodesLog", "Iwd", "Cmd", "Args", "Arguments", "JobNotification",
    "NotifyUser", "EmailAttributes", "JobBatchName", "DAGNodeName", "SubmitEventNotes", "SubmitEventUserNotes",
    "ClusterId", "ProcId", "QDate", "JobDescription", "Universe", "JobUniverse", "JobAdInformationAttrs",
)
"""What every notice has."""

ENDING_ATTRIBUTES = (
    *LOG_ATTRIBUTES,
    "ExitCode", "ExitBySignal", "ExitSignal", "JobCoreDumped", "JobCoreFileName", "RemoteUserCpu", "RemoteSysCpu",
    "CumulativeRemoteUserCpu", "CumulativeRemoteSysCpu", "LocalUserCpu", "LocalSysCpu", "BytesSent", "BytesRecvd",
    "RunBytesSent", "RunBytesRecvd", "RunUserCpu", "RunSysCpu", "CpusUsage", "CpusProvisioned", "RequestCpus",
    "DiskUsage", "DiskUsage_RAW", "DiskProvisioned", "RequestDisk", "MemoryUsage", "MemoryProvisioned",
    "RequestMemory", "GPUsProvisioned", "RequestGPUs", "AssignedGPUs", "RemoteWallClockTime", "JobCurrentStartDate",
    "JobStartDate", "CompletionDate", "NumJobStarts", "LastRemoteHost", "RemoteHost", "ResidentSetSize", "ImageSize",
    "TerminationPending", "OnExitHoldReason", "HoldReason", "HoldReasonCode", "HoldReasonSubCode", "RemoveReason",
    "EvictReason", "VacatedWithCheckpoint", "CumulativeLocalUserCpu", "CumulativeLocalSysCpu",
)
"""What the notices about the end of a run have besides."""

EPOCH = "EPOCH"
MOST_TRAVELLED = 1 << 53
"""Files or bytes; what a shadow says of more is taken for this."""
CONFIRMED_S = 0.5
"""How long a notice that was confirmed stays in the store when nothing else is stored."""
FREE = -1
"""Not an event: a run that its starter may free.  The host that gets the verdict does it; a later one is told so."""

MOST_DUE, DUE_GAP_S = 2_000, 0.01
"""Notices of an owner, and lines of the log of all jobs, that leave in one turn; when the next ones do."""

_WITH_USAGE = frozenset({JobEventType.JOB_EVICTED, JobEventType.JOB_TERMINATED})


@attrs.frozen
class RecordEvent(Effect):
    """An event for the log of all jobs (EVENT_LOG), of the jobs ``proc`` to ``last`` of a cluster."""

    event: int
    cluster: int
    proc: int
    last: int
    when_s: float
    ad: bytes


@attrs.frozen
class RecordEpoch(Effect):
    """A run is over, its job's number ``instance`` (from 0): for JOB_EPOCH_HISTORY, with the ad of this moment; or its
    files have travelled, with what is known of that (``kind`` one of TRANSFER_KINDS)."""

    cluster: int
    proc: int
    instance: int
    owner: str
    when_s: float
    cluster_ad: bytes
    ad: bytes
    kind: str = EPOCH


class JobNotices:
    """The notices of all jobs."""

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self._open: dict[str, dict[str, SaveNotice]] = {}
        """By owner; those of a cluster that is not in the queue yet among them."""
        self._again: dict[str, Backlog[SaveNotice]] = {}
        self._due: dict[str, Backlog[SaveNotice]] = {}
        self._records: Backlog[RecordEvent] = Backlog()
        self._withheld: dict[int, tuple[str, deque[SaveNotice], deque[RecordEvent]]] = {}
        self._confirmed: list[str] = []
        self._waiting: set[str] = set()
        self._serial = 0

    def restore(self, rows: Iterable[SaveNotice]) -> None:
        """Take over what was due when the schedd died; it is sent again when the owner's host is there."""
        for row in sorted(rows, key=_age):
            self._store(row)

    def wanted(self, ad: ClassAd) -> bool:
        """Whether anyone wants to know what happens to the job."""
        return ad.find("userlog") is not None or ad.find("dagmannodeslog") is not None or ad.find(
            "jobnotification") not in (None, 0)

    def run_over(self, job: Job, run_id: str) -> None:
        """A run has ended: its row goes, and where runs are recorded, it is."""
        context, cluster = self._context, job.cluster
        context.persist(DropRun(run_id))
        if context.settings.records_epochs:
            instance = max(0, job.ad.get_int("NumShadowStarts") - 1)
            context.out.append(RecordEpoch(cluster.number, job.proc, instance, cluster.owner, context.now_s,
                                           cluster.text, job.own))

    def transferred(self, job: Job, host: str, transfers: Iterable[Transfer]) -> None:
        """Files of a run on ``host`` have travelled, as its shadow says: where runs are recorded, that is."""
        context, cluster, ad = self._context, job.cluster, job.ad
        if not context.settings.records_epochs:
            return
        instance = max(0, ad.get_int("NumShadowStarts") - 1)
        for each in transfers:
            record = ad.project(context.settings.transfer_attributes)
            record.update({
                "ClusterId": cluster.number, "ProcId": job.proc, "RunInstanceId": instance, "Owner": cluster.owner,
                "EpochAdType": each.kind, "TransferClass": each.kind, "TransferProtocol": "condor",
                "TransferStartTime": whole(each.began_s), "TransferEndTime": whole(each.ended_s),
                "TransferTotalBytes": min(max(each.size_bytes, 0), MOST_TRAVELLED),
                "TransferFileCount": min(max(each.files, 0), MOST_TRAVELLED),
                "TransferSuccess": not each.problem, "EpochWriteDate": int(context.now_s),
                "RemoteHost": host})
            if each.problem:
                record["TransferError"] = each.problem
            context.out.append(RecordEpoch(cluster.number, job.proc, instance, cluster.owner, context.now_s, b"",
                                           record.to_bytes(), each.kind))

    def due(self, job: Job, event: int, **facts: Any) -> str:
        """An event happened to a job; returns the notice's id, empty when nobody wants to know."""
        wanted = self.wanted(job.ad)
        if not wanted and not self._context.settings.records_events:
            return ""
        ad = job.ad.project(ENDING_ATTRIBUTES if event in _WITH_USAGE else LOG_ATTRIBUTES)
        ad.update(information_of(job.ad))
        notes = structured_notes(job.ad) if event == JobEventType.SUBMIT else None
        if notes is not None:
            ad["StructuredNotes"] = notes
        return self._add(job.cluster, job.proc, -1, event, ad, facts, wanted=wanted)

    def record(self, job: Job, event: int, when_s: float, **facts: Any) -> None:
        """An event that its shadow writes to the user's log, for the log of all jobs only."""
        if self._context.settings.records_events:
            ad = job.ad.project(LOG_ATTRIBUTES)
            ad.update(facts)
            self._records.add(RecordEvent(event, job.cluster.number, job.proc, -1, when_s, ad.to_bytes()))

    def submitted(self, cluster: Cluster, jobs: Iterable[Job], submit_host: str) -> list[str]:
        """New jobs of a cluster; jobs that differ in nothing a log shows share a notice."""
        return [notice_id for notice_id in self.submitting(cluster, jobs, submit_host) if notice_id]

    def submitting(self, cluster: Cluster, jobs: Iterable[Job], submit_host: str) -> Iterator[str]:
        """The same, a job at a time.

        Yields:
            the notices as they are made, and between them something empty for each job that has none of its own.
        """
        shared = cluster.ad.project(LOG_ATTRIBUTES)
        facts = {"SubmitHost": submit_host}
        keys = {name.lower() for name in LOG_ATTRIBUTES} - {"procid", "clusterid"}
        start = last = -1
        wanted = self.wanted(cluster.ad)
        alike = cluster.ad.find("jobadinformationattrs") is None and cluster.ad.find("submiteventnotesattrs") is None
        for job in chain(jobs, (None,)):
            plain = alike and job is not None and keys.isdisjoint(job.ad.own)
            if start >= 0 and (job is None or not plain or job.proc != last + 1):
                yield self._add(cluster, start, last, JobEventType.SUBMIT, shared, facts, wanted=wanted)
                start = -1
            if job is not None and plain and (wanted or self._context.settings.records_events):
                start = job.proc if start < 0 else start
                last = job.proc
            elif job is not None and not plain:
                yield self.due(job, JobEventType.SUBMIT, **facts)
                continue
            yield ""

    def _add(self, cluster: Cluster, proc: int, last: int, event: int, ad: ClassAd, facts: dict[str, Any], *,
             wanted: bool = True) -> str:
        context = self._context
        for name, value in facts.items():
            ad[name] = value
        text = ad.to_bytes()
        record = row = None
        if context.settings.records_events:
            record = RecordEvent(event, cluster.number, proc, last, context.now_s, text)
        if wanted:
            self._serial += 1
            notice_id = f"{cluster.number}.{proc}/{event}/{context.now_s:.3f}/{self._serial}"
            row = SaveNotice(notice_id, cluster.owner, cluster.number, proc, last, event, context.now_s, text)
            context.persist(row)
            self._store(row)
        _, rows, records = self._withheld.get(cluster.number) or ("", None, None)
        if record is not None:
            self._records.add(record) if records is None else records.append(record)
        if row is not None:
            self._is_due(row) if rows is None else rows.append(row)
        return row.notice_id if row is not None else ""

    def _store(self, row: SaveNotice) -> None:
        mine = self._open.get(row.owner)
        if mine is None:
            mine = self._open[row.owner] = {}
        mine[row.notice_id] = row

    def _is_due(self, row: SaveNotice) -> None:
        self._due.setdefault(row.owner, Backlog()).add(row)

    def withhold(self, cluster: Cluster) -> None:
        """Of a cluster that is not in the queue yet, nothing is due before :meth:`release`; it is stored though."""
        self._withheld[cluster.number] = (cluster.owner, deque(), deque())

    def release(self, number: int) -> None:
        """What was withheld of a cluster is due."""
        owner, rows, records = self._withheld.pop(number)
        self._records.join(records)
        if rows:
            self._due.setdefault(owner, Backlog()).join(rows)

    def of_cluster(self, cluster: Cluster, event: int, **facts: Any) -> str:
        """An event of a cluster that makes its jobs as they are needed; returns the notice's id, empty: none."""
        wanted = any(cluster.ad.find(name) is not None for name in ("userlog", "dagmannodeslog"))
        if not wanted and not self._context.settings.records_events:
            return ""
        return self._add(cluster, -1, -1, event, cluster.ad.project(LOG_ATTRIBUTES), facts, wanted=wanted)

    def cluster_removed(self, cluster: Cluster) -> None:
        """A cluster that made its jobs as they were needed has gone."""
        factory = cluster.factory
        if factory is not None:
            ends = {FactoryMode.INVALID: -1, FactoryMode.HELD: 2, FactoryMode.DONE: 1}
            self.of_cluster(cluster, JobEventType.CLUSTER_REMOVE, NextProcId=factory.next_proc,
                            NextRow=factory.next_proc, Completion=ends.get(factory.mode, 0))

    def free(self, run_id: str, job: Job, starter_node: str) -> None:
        """A run's end is being committed: the starter must be told to free it, by this host or the next."""
        row = SaveNotice(run_id, job.cluster.owner, job.cluster.number, job.proc, -1, FREE, self._context.now_s,
                         starter_node.encode())
        self._store(row)
        self._context.persist(row)

    def remove_checkpoints(self, job: Job) -> None:
        """A job has left the queue that has checkpoints at a URL: a host of its owner is to remove them there."""
        row = SaveNotice(f"{job.name}/checkpoints", job.cluster.owner, job.cluster.number, job.proc, -1,
                         REMOVE_CHECKPOINTS, self._context.now_s, job.ad.to_bytes())
        self._context.persist(row)
        self._store(row)
        self._is_due(row)

    def take_due(self) -> dict[str, list[Notice]]:
        """New notices per owner since the last call, and new lines of the log of all jobs: so many in one turn."""
        if self._records:
            self._context.out += self._records.take(MOST_DUE)
        due: dict[str, list[Notice]] = {}
        for backlogs, again in ((self._again, True), (self._due, False)):
            for owner, backlog in tuple(backlogs.items()):
                told = due.setdefault(owner, [])
                told += [_message(row, again) for row in backlog.take(MOST_DUE - len(told))]
                if not backlog:
                    del backlogs[owner]
        if self._records or self._due or self._again:
            self._context.timer(("notices",), DUE_GAP_S)
        return due

    def take_of(self, owner: str, jobs: Collection[Job]) -> list[Notice]:
        """What is due of an owner's jobs that are about to begin, or to go on: it leaves before its time."""
        if not jobs or not (owner in self._again or owner in self._due):
            return []
        clusters: dict[int, set[int]] = {}
        for job in jobs:
            clusters.setdefault(job.cluster.number, set()).add(job.proc)

        def concerned(row: SaveNotice) -> bool:
            procs = clusters.get(row.cluster)
            return procs is not None and (row.proc in procs or any(row.proc < proc <= row.last_proc for proc in procs))

        told = []
        for backlogs, again in ((self._again, True), (self._due, False)):
            backlog = backlogs.get(owner)
            if backlog is not None:
                told += [_message(row, again) for row in backlog.take_those(concerned)]
                if not backlog:
                    del backlogs[owner]
        return told

    @property
    def stored(self) -> set[str]:
        """The notices that have rows: open ones, and those that were just confirmed."""
        return set(self._confirmed).union(*self._open.values())

    def owners(self) -> set[str]:
        """Who has notices that nobody confirmed."""
        return set(self._open)

    def send_again(self, owner: str) -> None:
        """All that nobody confirmed is due once more, for a host of the owner that may have written some of it."""
        self._due.pop(owner, None)
        rows: Backlog[SaveNotice] = Backlog()
        rows.join(deque(row for row in self._open.get(owner, {}).values() if row.cluster not in self._withheld))
        self._again.pop(owner, None)
        if rows:
            self._again[owner] = rows

    def known(self, notice_ids: Iterable[str], owner: str) -> tuple[str, ...]:
        """Those of these notices that are open, and this owner's."""
        mine = self._open.get(owner, {})
        return tuple([each for each in dict.fromkeys(notice_ids) if each in mine])

    def written(self, notice_ids: Iterable[str], owner: str) -> tuple[str, ...]:
        """An owner's host confirms; returns those of its notices that were open."""
        mine = self._open.get(owner, {})
        known = self.known(notice_ids, owner)
        self._waiting.difference_update(known)
        for each in known:
            del mine[each]
        if known:
            if not mine:
                del self._open[owner]
            if not self._confirmed:
                self._context.timer(("confirmed",), CONFIRMED_S)
            self._confirmed += known
        return known

    def wait(self, notice_ids: tuple[str, ...], owner: str) -> tuple[str, ...]:
        """The logs of these, which are open, have no room: they stay, and nobody need wait for them."""
        self._waiting.update(notice_ids)
        return self.known(notice_ids, owner)

    @property
    def in_hand(self) -> bool:
        """Whether anything is due that does not wait for room."""
        return any(not self._waiting.issuperset(mine) for mine in self._open.values())

    def forget_confirmed(self) -> None:
        """What was confirmed goes from the store, with this turn's commit."""
        if self._confirmed:
            self._context.persist(DropNotices(tuple(self._confirmed)))
            self._confirmed.clear()

    def end_turn(self) -> None:
        """What was confirmed goes along with whatever this turn stores."""
        if self._confirmed and any(type(effect) is Persist for effect in self._context.out):
            self.forget_confirmed()


def _age(row: SaveNotice) -> tuple[float, int]:
    serial = row.notice_id.rpartition("/")[2]
    return row.when_s, int(serial) if serial.isdecimal() else 0


def _message(row: SaveNotice, again: bool) -> Notice:
    return Notice(notice_id=row.notice_id, cluster=row.cluster, proc=row.proc, last_proc=row.last_proc,
                  event=row.event, when_s=row.when_s, ad=row.ad, maybe_written=again)
