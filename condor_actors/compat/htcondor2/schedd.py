"""``Schedd``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from condor_actors.api import daemons
from condor_actors.api.job_names import Jobs
from condor_actors.api.schedd import Schedd as Queue
from condor_actors.classads import Expr, parse_expression
from condor_actors.classads.forms.long_form import old_to_new
from condor_actors.compat.classad2 import ClassAd, ClassAdException, ExprTree, own_expression, wrapped
from condor_actors.compat.errors import HTCondorException, NotSupported, as_theirs
from condor_actors.compat.htcondor2.daemons import Collector
from condor_actors.compat.htcondor2.enums import DaemonType, JobAction, QueryOpt, TransactionFlag
from condor_actors.compat.htcondor2.submit import Submit, SubmitResult, description_of
from condor_actors.messages.queue import ActionResult
from condor_actors.messages.queue import JobAction as Action

DefaultItemData: Any = object()
ACTIONS = {
    JobAction.Hold: Action.HOLD, JobAction.Release: Action.RELEASE, JobAction.Remove: Action.REMOVE,
    JobAction.RemoveX: Action.REMOVE_FORCED, JobAction.Vacate: Action.VACATE,
    JobAction.VacateFast: Action.VACATE_FAST, JobAction.Suspend: Action.SUSPEND, JobAction.Continue: Action.CONTINUE,
}  # fmt: skip
TOTALS = {
    "TotalError": ActionResult.ERROR, "TotalSuccess": ActionResult.SUCCESS, "TotalNotFound": ActionResult.NOT_FOUND,
    "TotalBadStatus": ActionResult.BAD_STATUS, "TotalAlreadyDone": ActionResult.ALREADY_DONE,
    "TotalPermissionDenied": ActionResult.PERMISSION_DENIED,
}  # fmt: skip
NO_USERS = "the schedd keeps no records of users and projects; ALLOW_WRITE and DENY_WRITE say who may submit"
NO_EXPORT = "jobs are not exported; condor_q -long and a backup of SPOOL hold what there is"
NO_OCU = "machines are not kept for users this way; condor_reserve does it"
Constraint = str | ExprTree


def _jobs(spec: list[str] | str | ExprTree | int) -> Jobs:
    """The jobs that are meant.

    Raises:
        TypeError, ValueError: none can be.
    """
    if isinstance(spec, list):
        if not all(isinstance(each, str) for each in spec):
            raise TypeError("All elements of the job_spec list must be strings.")
        if not all(re.fullmatch(r"\d+(\.\d+)?", each) for each in spec):
            raise ValueError("All elements of the job_spec list must be strings of the form clusterID[.procID]")
        return list(spec)
    if isinstance(spec, ExprTree):
        return own_expression(spec)
    if isinstance(spec, str):
        if not re.fullmatch(r"\d+(\.\d+)?", spec):
            try:
                ExprTree(spec)
            except ClassAdException:
                raise ValueError(
                    "The job_spec string must be a clusterID[.procID] or the string form of an ExprTree.") from None
        return spec
    if isinstance(spec, int) and not isinstance(spec, bool):
        return spec
    raise TypeError("The job_spec must be list of strings, a string, an int, or an ExprTree.")


def _kept(ads: Iterator[ClassAd], callback: Callable[[ClassAd], Any] | None) -> list[Any]:
    if callback is None:
        return list(ads)
    return [value for value in map(callback, ads) if value is not None]


class Schedd:
    """A client of a schedd."""

    def __init__(self, location: ClassAd | None = None) -> None:
        if location is None:
            location = Collector().locate(DaemonType.Schedd)
        if not isinstance(location, ClassAd):
            raise TypeError("location must be a ClassAd")
        self._addr = str(location["MyAddress"])
        self._queue = Queue(address="" if daemons.is_local("schedd", self._addr) else self._addr)

    def query(self, constraint: Constraint = "True", projection: list[str] = [],  # noqa: B006 - as the original's
              callback: Callable[[ClassAd], Any] | None = None, limit: int = -1,
              opts: QueryOpt = QueryOpt.Default) -> list[Any]:
        """The ads of jobs in the queue."""
        refused = QueryOpt(opts) & (QueryOpt.GroupBy | QueryOpt.SummaryOnly | QueryOpt.IncludeClusterAd)
        if refused:
            raise NotSupported(f"{refused!r}: jobs are answered one by one, with their clusters' attributes")
        with as_theirs():
            if QueryOpt.AutoCluster & opts:
                found = self._queue.autoclusters(str(constraint))
            else:
                mine = daemons.own_name() if QueryOpt.DefaultMyJobsOnly & opts else ""
                found = self._queue.query(str(constraint), projection, limit=max(limit, 0), owner=mine)
                if QueryOpt.IncludeJobsetAds & opts:
                    found = [*self._queue.job_sets(str(constraint), owner=mine), *found][:limit if limit > 0 else None]
        return _kept((wrapped(ad) for ad in found), callback)

    def history(self, constraint: Constraint | None = None, projection: list[str] = [],  # noqa: B006
                match: int = -1, since: int | str | ExprTree | None = None) -> list[ClassAd]:
        """The ads of jobs that have left the queue, the newest first."""
        return self._past(self._queue.history, constraint, projection, match, since)

    @staticmethod
    def _past(source: Callable[..., list[Any]], constraint: Constraint | None, projection: list[str], match: int,
              since: int | str | ExprTree | None) -> list[ClassAd]:
        if isinstance(since, int):
            since = f"ClusterId == {since}"
        elif since is not None and not isinstance(since, (str, ExprTree)):
            raise TypeError("since must be an int, string, or ExprTree")
        with as_theirs():
            return [wrapped(ad) for ad in source(
                "" if constraint is None else str(constraint), projection, limit=max(match, 0),
                since="" if since is None else str(since))]  # fmt: skip

    def jobEpochHistory(self, constraint: Constraint | None = None, projection: list[str] = [],  # noqa: B006
                        match: int = -1, since: int | str | ExprTree | None = None, **kwargs: Any) -> list[ClassAd]:
        """The ads that jobs had when runs of them ended, the newest first; with ``ad_type`` INPUT, OUTPUT, CHECKPOINT
        (or more of them, with commas) how their files travelled."""
        kinds = {word.strip().upper() for word in str(kwargs.get("ad_type") or "EPOCH").split(",")}
        if kinds == {"EPOCH"}:
            return self._past(self._queue.epochs, constraint, projection, match, since)
        wanted = " || ".join(f'TransferClass == "{kind}"' for kind in sorted(kinds) if kind.isalpha())
        also = f"({wanted or 'false'})" + ("" if constraint is None else f" && ({constraint})")
        return self._past(self._queue.transfers, also, projection, match, since)

    def daemonHistory(self, constraint: Constraint | None = None, projection: list[str] = [],  # noqa: B006
                      match: int = -1, since: ExprTree | None = None) -> list[ClassAd]:
        """The schedd's own ads, as they were recorded from time to time, the newest first."""
        return self._past(self._queue.daemon_history, constraint, projection, match, since)

    def act(self, action: JobAction, job_spec: list[str] | str | ExprTree | int,
            reason: str | tuple[str, int] | None = None) -> ClassAd:
        """Do something to jobs; how many it was done to, and to how many not."""
        if not isinstance(action, JobAction):
            raise TypeError("action must be a JobAction")
        subcode = 0
        if isinstance(reason, tuple):
            reason, subcode = reason[0], int(reason[1])
        jobs = _jobs(job_spec)
        with as_theirs():
            changed = self._queue.act(ACTIONS[action], jobs, reason or "Python-initiated action", subcode=subcode)
        results = list(changed.results.values())
        answer = ClassAd()
        for name, result in TOTALS.items():
            answer[name] = results.count(result)
        answer["TotalSuccess"] = changed.count
        answer["TotalJobAds"] = len(results)
        answer["TotalChangedAds"] = int(changed.count > 0)
        return answer

    def edit(self, job_spec: list[str] | str | ExprTree | int, attr: str, value: Constraint,
             flags: TransactionFlag = TransactionFlag.Default) -> int:
        """Set an attribute of jobs to an expression, given as text; how many were changed."""
        if not isinstance(flags, TransactionFlag):
            raise TypeError("flags must be a TransactionFlag")
        jobs = _jobs(job_spec)
        with as_theirs():
            node: Expr = own_expression(value) if isinstance(value, ExprTree) else parse_expression(
                old_to_new(str(value)))
            return self._queue.edit(jobs, {attr: node})

    def submit(self, description: Submit, count: int = 0, spool: bool = False, itemdata: Any = DefaultItemData,
               queue: str | None = None) -> SubmitResult:
        """Queue the jobs of a description."""
        if not isinstance(description, Submit):
            raise TypeError("description must be an htcondor2.Submit object")
        if queue is not None and (itemdata is not DefaultItemData or count != 0):
            raise ValueError("queue and count/itemdata are mutually exclusive")
        told = description_of(description)
        if queue is not None:
            told = told.copy()
            told.queue = queue
        items = None if itemdata is DefaultItemData or itemdata is None else list(itemdata)
        with as_theirs():
            try:
                done = self._queue.submit(told, count=count or None, items=items, spool=spool)
            except ValueError as error:
                raise HTCondorException(str(error)) from error
        return SubmitResult(done.cluster, done.first_proc, done.count, wrapped(done.ad), done)

    def spool(self, result: SubmitResult) -> None:
        """Send the input files of jobs that were submitted with ``spool``."""
        if result.submitted is None:
            raise ValueError("these jobs were not submitted here")
        with as_theirs():
            self._queue.spool(result.submitted)

    def retrieve(self, job_spec: list[str] | str | ExprTree | int) -> None:
        """Fetch the output files of spooled jobs."""
        with as_theirs():
            self._queue.retrieve(_jobs(job_spec))

    def reschedule(self) -> None:
        """Ask for machines now."""
        with as_theirs():
            self._queue.reschedule()

    # -- refused, each with its reason

    def refreshGSIProxy(self, cluster: int, proc: int, proxy_filename: str, lifetime: int = -1) -> int:
        """Refused: a job's proxy is not replaced while it runs; submit it with a longer one."""
        raise NotSupported("a job's proxy is not replaced while it runs; submit it with a longer one")

    def get_claims(self, constraint: Constraint | None = None, projection: list[str] = []) -> list[ClassAd]:  # noqa: B006
        """Refused: claims are the schedd's own; Collector.query(AdType.Slot) has the slots that are claimed."""
        raise NotSupported("claims are the schedd's own; Collector.query(AdType.Slot) has the slots that are claimed")

    def queryUserAds(self, constraint: Constraint = "", projection: list[str] = [], callback:  # noqa: B006
                     Callable[[ClassAd], Any] | None = None, limit: int = -1) -> list[Any]:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def queryProjectAds(self, constraint: Constraint = "", projection: list[str] = [], callback:  # noqa: B006
                        Callable[[ClassAd], Any] | None = None, limit: int = -1) -> list[Any]:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def addUserRec(self, user_spec: list[Any] | str) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def enableUserRec(self, user_spec: list[str] | Constraint) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def disableUserRec(self, user_spec: list[str] | Constraint, reason: str | None = None) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def removeUserRec(self, user_spec: list[str] | Constraint, reason: str | None = None) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def updateUserRec(self, user_attributes: list[ClassAd]) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def addProjectRec(self, project_spec: list[Any] | str) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def enableProjectRec(self, project_spec: list[str] | Constraint) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def disableProjectRec(self, project_spec: list[str] | Constraint, reason: str | None = None) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def removeProjectRec(self, user_spec: list[str] | Constraint, reason: str | None = None) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def updateProjectRec(self, project_attributes: list[ClassAd]) -> ClassAd:
        """Refused: there are no records of users and projects."""
        raise NotSupported(NO_USERS)

    def export_jobs(self, job_spec: list[str] | str | ExprTree | int, export_dir: str, new_spool_dir: str) -> ClassAd:
        """Refused: jobs are not exported."""
        raise NotSupported(NO_EXPORT)

    def import_exported_job_results(self, import_dir: str) -> ClassAd:
        """Refused: jobs are not exported."""
        raise NotSupported(NO_EXPORT)

    def unexport_jobs(self, job_spec: list[str] | str | ExprTree | int) -> ClassAd:
        """Refused: jobs are not exported."""
        raise NotSupported(NO_EXPORT)

    def create_ocu(self, request: ClassAd) -> ClassAd:
        """Refused: condor_reserve keeps machines."""
        raise NotSupported(NO_OCU)

    def remove_ocu(self, request: ClassAd) -> ClassAd:
        """Refused: condor_reserve keeps machines."""
        raise NotSupported(NO_OCU)

    def query_ocu(self, request: ClassAd) -> ClassAd:
        """Refused: condor_reserve keeps machines."""
        raise NotSupported(NO_OCU)

