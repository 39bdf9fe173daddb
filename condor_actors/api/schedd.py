"""`Schedd`: the queue of a machine, asked and changed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import attrs

from condor_actors.api.description import Item, Submit, Value
from condor_actors.api.errors import NotSupported, as_condor_errors
from condor_actors.api.job_names import Ids, Jobs, constraint_text, jobs_meant
from condor_actors.api.settings import config
from condor_actors.classads import ClassAd, Expr
from condor_actors.messages.queue import ActionResult, ActOnJobs, EditJobs, JobAction, QueryJobs
from condor_actors.submit import Cluster
from condor_actors.tools.lib import contact
from condor_actors.tools.lib.submission import Submission

IDS_AT_ONCE = 10_000
"""Ids that one question has room for."""


@attrs.frozen(kw_only=True)
class Submitted:
    """Jobs that are in the queue, on disk.

    Attributes:
        cluster: their cluster; of several, the first.
        first_proc: 0.
        count: how many jobs.
        ad: the cluster ad: what all jobs have in common.
        clusters: numbers and sizes, where the description made several.
    """

    cluster: int
    first_proc: int
    count: int
    ad: ClassAd
    clusters: tuple[tuple[int, int], ...]
    texts: tuple[Cluster, ...] = attrs.field(repr=False, eq=False)

    @property
    def jobs(self) -> list[tuple[int, int]]:
        """(cluster, proc) of every job."""
        return [(cluster, proc) for cluster, count in self.clusters for proc in range(count)]

    def __int__(self) -> int:
        return self.cluster


@attrs.frozen(kw_only=True)
class Changed:
    """What became of an action.

    Attributes:
        count: how many jobs were changed.
        results: of each id that was named; with a constraint none is.
    """

    count: int
    results: Mapping[tuple[int, int], ActionResult]

    def __bool__(self) -> bool:
        return self.count > 0


class Schedd:
    """The schedd of this machine, or another one's.

    Args:
        name: its name, or its host's.
        pool: the central manager to ask for it.
        address: ``<host:port>``, where it is known.
    """

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self._config = config()
        self.name = name
        self.pool = pool
        self.address = address

    def __repr__(self) -> str:
        return f"Schedd({self.name!r}, pool={self.pool!r}, address={self.address!r})"

    def _line(self) -> contact.Schedd:
        return contact.schedd(self._config, name=self.name, pool=self.pool, address=self.address)

    # -- submission

    def submit(self, description: Submit | str | Mapping[str, Value], *, count: int | None = None,
               items: Iterable[Item] | None = None, spool: bool = False) -> Submitted:
        """Queue the jobs of a description: all of a cluster or none, and on disk when this returns.

        Args:
            description: a `Submit`, or what makes one.
            count: jobs for each item (without items: jobs), in place of what the queue statement says.
            items: in place of the queue statement's: a mapping of variables, a sequence of values for the statement's
                variables, or a line of text for each.
            spool: hold the jobs until `spool` has sent their input files.

        Raises:
            SubmitError: the description cannot become jobs; nothing was queued.
            Refused: the schedd will not have them.
            CondorError: it does not answer; the text says what was queued.
        """
        if not isinstance(description, Submit):
            description = Submit(description)
        with as_condor_errors(), self._line() as there:
            submission = Submission(there, self._line, spool=spool)
            described = description.read(submission.reserve, count=count, items=items, spool=spool)
            for sentence in described.warnings:
                warnings.warn(sentence, stacklevel=2)
            clusters = described.clusters
            if not clusters:
                raise ValueError("the queue statement makes no jobs")
            submission.send(clusters)
        return Submitted(
            cluster=clusters[0].cluster_id, first_proc=0, count=sum(len(each.procs) for each in clusters),
            ad=ClassAd.from_bytes(clusters[0].ad), texts=tuple(clusters),
            clusters=tuple((each.cluster_id, len(each.procs)) for each in clusters),
        )  # fmt: skip

    def spool(self, submitted: Submitted) -> None:
        """Send the input files of jobs that were submitted with ``spool``; then they may run.

        Raises:
            CondorError: a file cannot be read, or the schedd refuses it.
        """
        from condor_actors.tools.lib.spooling import spool_inputs

        with as_condor_errors(), self._line() as there:
            for cluster in submitted.texts:
                spool_inputs(there, cluster.cluster_id, cluster.ad, cluster.procs)

    def retrieve(self, jobs: Jobs) -> int:
        """Fetch the output files of spooled jobs, each to its job's initial folder.

        Returns:
            how many jobs there were.

        Raises:
            CondorError: the schedd refuses, or sends what does not belong there.
            OSError: a file cannot be written.
        """
        from condor_actors.tools.lib.retrieval import fetch_jobs

        ids, constraint = jobs_meant(jobs)
        with as_condor_errors(), self._line() as there:
            return fetch_jobs(there, [QueryJobs(ids=part, constraint=constraint) for part in _parts(ids)])

    def submit_jobset(self, *_: object) -> None:
        """Refused: files of job sets are for people.

        Raises:
            NotSupported: always.
        """
        raise NotSupported("files of job sets are read by htcondor jobset submit; from a program, submit descriptions "
                           "with jobset = NAME")

    # -- questions

    def query(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *,
              jobs: Jobs | None = None, owner: str = "", limit: int = 0) -> list[ClassAd]:
        """The ads of jobs in the queue.

        Args:
            constraint: over job ads; None: all.
            projection: the attributes wanted; empty: all.
            jobs: only these.
            owner: only this user's.
            limit: at most so many; 0: no limit.

        Raises:
            ClassAdSyntaxError: the constraint is none.
            CondorError: the schedd cannot be asked.
        """
        return list(self._ads("queue", constraint, projection, jobs, limit, owner=owner))

    def history(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *,
                jobs: Jobs | None = None, limit: int = 0, since: str | Expr = "") -> list[ClassAd]:
        """The ads of jobs that have left the queue, the newest first.

        Args:
            since: stop at this job (``12.3``), or where this expression is true.
            constraint, projection, jobs, limit: as for `query`.
        """
        return list(self._ads("history", constraint, projection, jobs, limit, since=str(since)))

    def epochs(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *,
               jobs: Jobs | None = None, limit: int = 0, since: str | Expr = "") -> list[ClassAd]:
        """The ads that jobs had when runs of them ended, the newest first (JOB_EPOCH_HISTORY).

        Args:
            constraint, projection, jobs, limit, since: as for `history`.
        """
        return list(self._ads("epochs", constraint, projection, jobs, limit, since=str(since)))

    def transfers(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *,
                  jobs: Jobs | None = None, limit: int = 0, since: str | Expr = "") -> list[ClassAd]:
        """How files travelled for runs that have ended, the newest first: an ad for each way and run (TransferClass
        INPUT, OUTPUT or CHECKPOINT, TransferStartTime, TransferEndTime, TransferTotalBytes, TransferSuccess …).

        Args:
            constraint, projection, jobs, limit, since: as for `history`.
        """
        return list(self._ads("transfers", constraint, projection, jobs, limit, since=str(since)))

    def daemon_history(self, constraint: str | Expr | None = None, projection: Sequence[str] = (), *,
                       limit: int = 0, since: str | Expr = "") -> list[ClassAd]:
        """The schedd's own ads, recorded from time to time (SCHEDD_DAEMON_HISTORY), the newest first.

        Args:
            constraint, projection, limit, since: as for `history`.
        """
        return list(self._ads("daemon", constraint, projection, None, limit, since=str(since)))

    def autoclusters(self, constraint: str | Expr | None = None) -> list[ClassAd]:
        """What jobs that no slot can tell apart want, and how many they are (AutoClusterId, JobCount, JobIds)."""
        return list(self._ads("autoclusters", constraint, (), None, 0))

    def job_sets(self, constraint: str | Expr | None = None, *, owner: str = "") -> list[ClassAd]:
        """The sets that have jobs in the queue: JobSetId, JobSetName, Owner, and how many jobs are how (NumIdle …)."""
        return list(self._ads("jobsets", constraint, (), None, 0, owner=owner))

    def _ads(self, source: str, constraint: str | Expr | None, projection: Sequence[str], jobs: Jobs | None,
             limit: int, *, owner: str = "", since: str = "") -> Iterator[ClassAd]:
        ids, named = jobs_meant(jobs) if jobs is not None else ((), "")
        terms = [text for text in (constraint_text(constraint), named) if text]
        asked = terms[0] if len(terms) == 1 else " && ".join(f"({term})" for term in terms)
        found = 0
        with as_condor_errors(), self._line() as there:
            for part in _parts(ids):
                cursor = ""
                while True:
                    page = there.ask(QueryJobs(
                        source=source, ids=part, owner=owner, constraint=asked, projection=tuple(projection),
                        limit=limit - found if limit else 0, since=since, cursor=cursor))  # fmt: skip
                    for text in page.ads:
                        yield ClassAd.from_bytes(text)
                        found += 1
                        if found == limit:
                            return
                    cursor = page.cursor
                    if not cursor:
                        break

    # -- changes

    def act(self, action: JobAction | str, jobs: Jobs, reason: str = "", *, subcode: int = 0) -> Changed:
        """Do something to jobs; on disk when this returns.

        Args:
            action: ``remove``, ``hold``, ``release``, ``suspend``, ``continue``, ``vacate``, ``vacate-fast``,
                ``checkpoint`` or ``remove-forced``.
            jobs: which.
            reason: for people; it stands in the job's ad and log.
            subcode: HoldReasonSubCode.

        Raises:
            ValueError: no such action, or no jobs named.
            CondorError: the schedd cannot be asked.
        """
        ids, constraint = jobs_meant(jobs)
        action = JobAction(action)
        results: dict[tuple[int, int], ActionResult] = {}
        count = 0
        with as_condor_errors(), self._line() as there:
            for part in _parts(ids):
                answer = there.ask(ActOnJobs(action=action, ids=part, constraint=constraint, reason=reason,
                                             subcode=subcode))  # fmt: skip
                results.update({(cluster, proc): result for cluster, proc, result in answer.results})
                count += answer.count
        return Changed(count=count, results=results)

    def remove(self, jobs: Jobs, reason: str = "") -> Changed:
        """Remove jobs from the queue."""
        return self.act(JobAction.REMOVE, jobs, reason)

    def hold(self, jobs: Jobs, reason: str = "") -> Changed:
        """Hold jobs: they do not run until they are released."""
        return self.act(JobAction.HOLD, jobs, reason)

    def release(self, jobs: Jobs, reason: str = "") -> Changed:
        """Release held jobs."""
        return self.act(JobAction.RELEASE, jobs, reason)

    def edit(self, jobs: Jobs, changes: Mapping[str, object], /) -> int:
        """Set attributes of jobs, all in one transaction.

        Args:
            jobs: which.
            changes: names and their new values; text is a string, an expression is an `Expr` (`as_expr`,
                `parse_expression`).

        Returns:
            how many jobs were changed.

        Raises:
            CondorError: the schedd refuses; nothing was changed.
        """
        ids, constraint = jobs_meant(jobs)
        if len(ids) > IDS_AT_ONCE:
            raise ValueError(f"{len(ids)} jobs are more than the {IDS_AT_ONCE} that can be named; use an expression")
        with as_condor_errors(), self._line() as there:
            answer = there.ask(EditJobs(attributes=ClassAd(changes).to_bytes(), ids=ids, constraint=constraint))
        return int(answer.count)

    def reschedule(self) -> None:
        """Ask for machines now; a changed queue is told of without it."""
        from condor_actors.messages.negotiate import RequestCycle

        with as_condor_errors(), self._line() as there:
            there.ask(RequestCycle())

    def transaction(self) -> Transaction:
        """Collect submissions and edits, and send them together at the end of a ``with`` block.

        Nothing is sent when the block raises.  Descriptions are read in the block, so a mistake in one shows there and
        nothing of any is queued.  Each cluster is one transaction of the schedd, and so is each edit; where the schedd
        refuses one, those before it stand, and the error says which.
        """
        return Transaction(self)


class Transaction:
    """Changes that wait for the end of a ``with`` block; made by `Schedd.transaction`.

    Attributes:
        submitted: what was queued, in order, after the block.
    """

    def __init__(self, schedd: Schedd) -> None:
        self._schedd = schedd
        self._waiting: list[Callable[[], object]] = []
        self.submitted: list[Submitted] = []

    def submit(self, description: Submit, *, count: int | None = None, items: Iterable[Item] | None = None) -> None:
        """Queue the jobs of a description at the end; it is read now.

        Raises:
            SubmitError: it cannot become jobs.
        """
        rows = None if items is None else list(items)
        numbers = iter(range(1, 1_000_000))
        description.read(lambda: next(numbers), count=count, items=rows)
        kept = description.copy()
        self._waiting.append(lambda: self.submitted.append(self._schedd.submit(kept, count=count, items=rows)))

    def edit(self, jobs: Jobs, changes: Mapping[str, object], /) -> None:
        """Set attributes of jobs at the end; see `Schedd.edit`."""
        ClassAd(changes)
        jobs_meant(jobs)
        kept = dict(changes)
        self._waiting.append(lambda: self._schedd.edit(jobs, kept))

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        waiting, self._waiting = self._waiting, []
        if kind is None:
            for change in waiting:
                change()


def _parts(ids: Ids) -> list[Ids]:
    return [ids[first:first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE)] or [()]
