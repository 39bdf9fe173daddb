"""Every attribute of a job: who may set it at submission, who may edit it, who reports it, who may see it.

Theory: a job's ad is written by four hands, its owner's, the administrator's, the schedd's and that of the shadow that
runs it, and read by everybody who may ask.  One table says for each attribute what each of them may do; the schedd asks
it at a submission, an edit, a report and a question, by whatever client they come.  An attribute that is not in the
table is its owner's: he sets and edits it, everybody sees it, and no shadow reports it.

============ =======================================================================================================
column       word
============ =======================================================================================================
set          ``owner``; ``charge``: the owner, where he may charge whom it names; ``schedd``: it alone
edit         ``owner``; ``charge``; ``administrator``: super users of the queue; ``nobody``
report       ``shadow``: the run reports it; ``-``
see          ``all``; ``owner``: he and super users (PRIVATE_JOB_ATTRS says which these are); ``nobody``
============ =======================================================================================================
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError
from condor_actors.cores.chirp_protocol import is_attribute_name
from condor_actors.cores.submit_commands import BY_ATTRIBUTE

if TYPE_CHECKING:
    from condor_actors.cores.schedd.queued_job import Cluster, Job

__all__ = ["ATTRIBUTES", "PRIVATE", "Attribute", "Hand", "JobSight", "attribute", "may_be_set_by_run", "reported",
           "set_by_run"]

REPORT_BYTES = 64 * 1024
"""The most that a shadow's report may say of a job."""


class Hand(str, enum.Enum):
    """Who sets, edits or sees something."""

    ALL = "all"
    OWNER = "owner"
    CHARGE = "charge"
    ADMINISTRATOR = "administrator"
    SCHEDD = "schedd"
    NOBODY = "nobody"


@attrs.frozen
class Attribute:
    """One row of the table.

    Attributes:
        name: in its usual spelling; with a ``*`` at its end: all that begin so; at its beginning: all that end so.
        set_by, edited_by, seen_by: who may do that.
        is_reported: whether a shadow reports it.
    """

    name: str
    set_by: Hand = Hand.OWNER
    edited_by: Hand = Hand.OWNER
    is_reported: bool = False
    seen_by: Hand = Hand.ALL


_TABLE = """
# whose and which job it is
schedd nobody        -      all    ClusterId ProcId Owner User OsUser MyType TargetType QDate GlobalJobId
schedd nobody        -      all    TotalSubmitProcs x509UserProxySubject AuthTokenSubject AuthTokenIssuer AuthTokenId
schedd nobody        -      all    AuthTokenGroups AuthTokenScopes JobMaterializeNextProcId JobMaterializeNextRow
schedd nobody        -      all    JobMaterializePaused JobMaterializePauseReason JobMaterializeDigestFile
schedd nobody        -      all    JobMaterializeItemCount JobSetId
owner  nobody        -      all    JobSetName

# how it is
owner  nobody        -      all    JobStatus JobUniverse MinHosts MaxHosts ParallelShutdownPolicy
owner  administrator -      all    HoldReason HoldReasonCode HoldReasonSubCode
schedd nobody        -      all    NumShadowStarts LastJobStatus EnteredCurrentStatus
schedd administrator -      all    ReleaseReason RemoveReason VacateReason LastVacateTime NumVacates LastHoldReason
schedd administrator -      all    LastHoldReasonCode LastHoldReasonSubCode LastRejMatchReason LastRejMatchTime
schedd administrator -      all    LastMatchTime NumJobMatches NumFailedStarts NumShadowExceptions NumSystemHolds
schedd administrator -      all    NumLostRuns NumHolds NumHoldsByReason JobRunCount JobStartDate JobCurrentStartDate
schedd administrator -      all    JobLastStartDate LastJobLeaseRenewal CompletionDate NumJobCompletions
schedd administrator -      all    StageInStart StageInFinish StageOutStart StageOutFinish EpochWriteDate
schedd administrator -      all    CurrentHosts RemoteHost LastRemoteHost StartdAddr RemoteSlotID PublicClaimId
schedd administrator -      all    ShadowBday CpusProvisioned MemoryProvisioned DiskProvisioned GPUsProvisioned
schedd administrator -      all    Assigned* MachineAttr*
schedd administrator -      all    RemoteWallClockTime LastRemoteWallClockTime CumulativeSlotTime CommittedTime
schedd administrator -      all    CommittedSlotTime CumulativeRemoteUserCpu CumulativeRemoteSysCpu TotalSuspensions
schedd administrator -      all    LastSuspensionTime CumulativeSuspensionTime CommittedSuspensionTime
schedd administrator -      all    PreviousCkptGeneration
schedd nobody        -      all    GangClaims GangOutcome GangReason GangHoldCode GangHoldSubCode GangEnded* GangSizes
schedd nobody        -      all    RemoteHosts Scheduler

# what a run tells of itself
schedd administrator shadow all    NumJobStarts JobCurrentStartExecutingDate JobCurrentFinishTransferOutputDate
schedd administrator shadow all    NumCkpts NumCkpts_RAW NumRestarts LastCkptTime LastCkptDigest LastCkptSeconds
schedd administrator shadow all    LastCkptProblem LastCkptProblemTime CkptCpuLevel CkptArch CkptOpSys CkptSize
schedd administrator shadow all    CkptStoredSize CkptThreads CkptProcesses CheckpointNumber
schedd administrator shadow all    CkptBytesSent VacatedWithCheckpoint TerminationPending JobCoreDumped JobPid
schedd administrator shadow all    LastCkptGeneration ExitBySignal ExitStatus ExitCode ExitSignal
schedd administrator shadow all    DataflowJobSkipped GridJobId GridJobStatus GridResourceUnavailableTime
schedd administrator shadow all    RemoteUserCpu RemoteSysCpu LocalUserCpu LocalSysCpu CumulativeLocalUserCpu
schedd administrator shadow all    CumulativeLocalSysCpu Leverage CpusUsage BytesSent BytesRecvd RunBytesSent
schedd administrator shadow all    TransferInStarted TransferInFinished TransferOutStarted TransferOutFinished
schedd administrator shadow all    RunBytesRecvd NumRemoteSysCalls RemoteSysCalls FileReadCount
schedd administrator shadow all    FileWriteCount FileSeekCount FileOpenCount FileReadBytes FileWriteBytes
schedd administrator shadow all    LibraryCacheHits LibraryCacheBytes
owner  owner         shadow all    ImageSize DiskUsage MemoryUsage ResidentSetSize ContainerImageDigest
schedd administrator shadow all    *_HostPort

# where it serves, in its image
owner  owner         -      all    *_ContainerPort

# whom it is charged to
charge charge        -      all    AccountingGroup AcctGroup AcctGroupUser

# what is between the owner and his program
owner  owner         -      owner  Environment Env Arguments Args

# what nobody is told
schedd nobody        -      nobody GangGroup*
schedd nobody        -      nobody ClaimId ClaimIds Capability ClaimSecret TransferKey TransferSocket _condor_priv*
"""


def _rows(text: str) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        set_by, edited_by, report, seen_by, *names = line.split()
        for name in names:
            found[name.lower()] = Attribute(name, Hand(set_by), Hand(edited_by), report == "shadow", Hand(seen_by))
    return found


ATTRIBUTES = _rows(_TABLE)
"""The table, by the name in small letters."""

PRIVATE = frozenset(key for key, row in ATTRIBUTES.items() if row.seen_by is Hand.OWNER)
"""What the owner and super users alone see, unless the administrator says otherwise."""

_PREFIXES = tuple((key[:-1], row) for key, row in ATTRIBUTES.items() if key.endswith("*"))
_ENDINGS = tuple((key[1:], row) for key, row in ATTRIBUTES.items() if key.startswith("*"))
_ANY = Attribute("*")
_REPORTED = frozenset(key for key, row in ATTRIBUTES.items() if row.is_reported)
_REPORTED_ENDINGS = tuple(key for key, row in _ENDINGS if row.is_reported)
_NEVER = frozenset(key for key, row in ATTRIBUTES.items() if row.seen_by is Hand.NOBODY)
_NEVER_BEGIN = tuple(key[:-1] for key in _NEVER if key.endswith("*"))


def attribute(name: str) -> Attribute:
    """The row of an attribute, in any spelling; that of an unknown one says that it is its owner's."""
    key = name.lower()
    row = ATTRIBUTES.get(key)
    if row is not None:
        return row
    return next((row for prefix, row in _PREFIXES if key.startswith(prefix)),
                next((row for ending, row in _ENDINGS if key.endswith(ending)), _ANY))


_SAID = frozenset({
    "agentrequirements", "checkpointsig", "cluster", "completion", "condorplatform", "condorversion", "diskusage_raw",
    "executablesize", "filesystemdomain", "interactivejob", "jobsubmitmethod", "keptfiles", "limitdirectoryaccess",
    "lognotes", "niceuser", "node", "nodecount", "nodes", "otherjobremoverequirements", "proc", "structurednotes",
    "terminatedandrequeued", "totaljobruntime", "usernotes",
})
_SAID_BEGIN = (
    "auto", "aws", "container", "cron", "dag", "deferral", "docker", "ec2", "gang", "gpus", "job_", "last", "machine",
    "max", "next", "num", "onexit", "output", "periodic", "remote", "request", "retry", "submit", "system",
    "transfer", "want",
)
"""What a job's ad says of how it is run, beside what the table and the submit commands name."""


def may_be_set_by_run(name: str) -> bool:
    """Whether a job may set an attribute of its own while it runs (chirp): only one that means nothing to the pool.

    The machine that runs it speaks for it, so what says how, where, with which files and for whom it runs is not its
    to change, even where its owner may.
    """
    key = name.lower()
    return (is_attribute_name(name) and attribute(name) is _ANY and key not in BY_ATTRIBUTE and key not in _SAID
            and not key.startswith(_SAID_BEGIN))


def set_by_run(text: bytes, shut: frozenset[str]) -> tuple[ClassAd, str]:
    """What a job sets of itself, and what is wrong with that; empty: nothing.

    Args:
        text: of an ad; shut: what the administrator keeps to the schedd or super users, in small letters.
    """
    if len(text) > REPORT_BYTES:
        return ClassAd(), f"a job sets attributes of {len(text)} bytes; {REPORT_BYTES} are the most"
    try:
        ad = ClassAd.from_bytes(text)
    except ClassAdSyntaxError as error:
        return ClassAd(), f"what a job sets is no ad: {error}"
    denied = sorted(name for name in ad if name.lower() in shut or not may_be_set_by_run(name))
    return ad, f"a job does not set {', '.join(denied)[:500]} while it runs" if denied else ""


def reported(text: bytes) -> tuple[ClassAd, tuple[str, ...]]:
    """What of a shadow's report counts, and the names of the rest.

    Raises:
        ClassAdSyntaxError: it is no ad.
    """
    if len(text) > REPORT_BYTES:
        return ClassAd(), (f"{len(text)} bytes",)
    ad = ClassAd.from_bytes(text)
    foreign = tuple([ad.spelling(key) for key in ad.own
                     if key not in _REPORTED and not key.endswith(_REPORTED_ENDINGS)])
    for name in foreign:
        del ad[name]
    return ad, foreign


def _hidden(names: Iterable[str], private: frozenset[str]) -> frozenset[str]:
    """Of attributes, in small letters, those that a stranger does not see."""
    return frozenset([name for name in names if name in private or name in _NEVER or name.startswith(_NEVER_BEGIN)])


class JobSight:
    """What one asker sees of the jobs of a queue.

    Args:
        private: what only owners and super users see, in small letters.
        is_near: whether the asker may act on the jobs of an owner, and so sees everything of them.
    """

    def __init__(self, private: frozenset[str], is_near: Callable[[str], bool]) -> None:
        self._private = private
        self._is_near = is_near
        self._near: dict[str, bool] = {}

    def sees_all_of(self, owner: str) -> bool:
        """Whether nothing of this owner's jobs is hidden."""
        known = self._near.get(owner)
        if known is None:
            known = self._near[owner] = self._is_near(owner)
        return known

    def ad(self, job: Job) -> ClassAd:
        """The job's ad, without what the asker does not see: to evaluate in, and to take attributes from."""
        if self.sees_all_of(job.cluster.owner):
            return job.ad
        shared = self._cluster(job.cluster)
        hidden = _hidden(job.ad.own, self._private)
        if not hidden and shared is job.cluster.ad:
            return job.ad
        view = ClassAd()
        view.own = {key: value for key, value in job.ad.own.items() if key not in hidden}
        view.spellings = job.ad.spellings
        view.parent = shared
        return view

    def text(self, job: Job) -> bytes:
        """The job's ad as it crosses the wire, without what the asker does not see."""
        if self.sees_all_of(job.cluster.owner):
            return job.text
        shared = self._cluster(job.cluster)
        hidden = _hidden(job.ad.own, self._private)
        if not hidden and shared is job.cluster.ad:
            return job.text
        return self._cluster_text(job.cluster, shared) + _without(job.ad, hidden).to_bytes()

    def names(self, job: Job, names: tuple[str, ...]) -> tuple[str, ...]:
        """Of the attributes asked for, in small letters, those that the asker sees."""
        if self.sees_all_of(job.cluster.owner):
            return names
        hidden = _hidden(names, self._private)
        return tuple(name for name in names if name not in hidden) if hidden else names

    def whole(self, ad: ClassAd, owner: str) -> ClassAd:
        """An ad of a job in one piece, as the history has it, without what the asker does not see."""
        hidden = frozenset() if self.sees_all_of(owner) else _hidden(ad.own, self._private)
        return _without(ad, hidden) if hidden else ad

    def hides_any(self, names: Iterable[str]) -> bool:
        """Whether one of these attributes, in small letters, is hidden where the asker does not see all."""
        return bool(_hidden(names, self._private))

    def cluster(self, cluster: Cluster) -> ClassAd:
        """What the asker sees of what all jobs of a cluster have."""
        return cluster.ad if self.sees_all_of(cluster.owner) else self._cluster(cluster)

    def _cluster(self, cluster: Cluster) -> ClassAd:
        key = ("seen", self._private)
        ad: ClassAd | None = cluster.memo.get(key)
        if ad is None:
            hidden = _hidden(cluster.ad.own, self._private)
            ad = cluster.memo[key] = _without(cluster.ad, hidden) if hidden else cluster.ad
        return ad

    def _cluster_text(self, cluster: Cluster, shared: ClassAd) -> bytes:
        if shared is cluster.ad:
            return cluster.text
        key = ("seen text", self._private)
        text: bytes | None = cluster.memo.get(key)
        if text is None:
            text = cluster.memo[key] = shared.to_bytes()
        return text


def _without(ad: ClassAd, hidden: frozenset[str]) -> ClassAd:
    view = ClassAd()
    view.own = {key: value for key, value in ad.own.items() if key not in hidden}
    view.spellings = ad.spellings
    return view
