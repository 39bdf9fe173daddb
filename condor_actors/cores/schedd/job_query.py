"""Answers about jobs: pages of ads, totals, batches.

Theory: an ad is sent as its cluster's text followed by the job's own; with a projection the cluster's part is rendered
once per question.  A page ends at a number of bytes, and the cursor names the last job looked at, so a question over a
changing queue neither repeats nor misses a job that stays.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, is_true, parse_expression
from condor_actors.classads.evaluation.budget import TURN_STEPS, Meter
from condor_actors.cores.schedd.autoclusters import Autoclusters
from condor_actors.cores.schedd.change_journal import CHANGES_A_PAGE, Position
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.job_queue import JobQueue
from condor_actors.cores.schedd.queued_job import Cluster, Job
from condor_actors.messages.codec import PAGE_BYTES
from condor_actors.messages.codes import Universe
from condor_actors.messages.pages import AdPage
from condor_actors.messages.queue import JobsPage, QueryJobs, QueryTotals, Totals
from condor_actors.messages.watch import Changes, QueryChanges

__all__ = ["JobPage", "autoclusters_page", "batches", "changes", "page", "totals"]

PAGE_JOBS = 5_000
CLUSTERS_A_PAGE = 5_000
BATCH_BYTES = 250
"""What a line of the batch view takes, but for its names."""
SCAN_JOBS = 2_000
"""Jobs looked at for one page when few match a constraint; then the page ends early, so that others get their turn."""
COUNT_STEPS = 10 * TURN_STEPS
"""What a constraint may take of the whole queue when jobs are counted, which is done in one turn."""
class JobPage:
    """A page that is being filled.

    Args:
        question: with its limit, and the cursor of the page before.
        most_jobs: it may hold.
        constraint: the condition that a job must meet.

    Raises:
        ValueError: the cursor is none.
    """

    def __init__(self, question: QueryJobs, most_jobs: int, constraint: Expr | None) -> None:
        given, _, self.after = question.cursor.partition("/")
        self._limit, self._most_jobs = question.limit, most_jobs
        self._count = int(given or 0)
        self._page = AdPage()
        self._looked = 0
        self._meter = Meter("the constraint", constraint)

    def add(self, text: bytes) -> bool:
        """Add an ad; False: it belongs to the next page."""
        has_room = self._page.add(text)
        self._count += has_room
        return has_room

    def is_enough(self) -> bool:
        """Whether the limit of the question is reached."""
        return bool(self._limit) and self._count >= self._limit

    def looked(self) -> bool:
        """One more job was looked at; whether the page ends here."""
        self._looked += 1
        return (self._page.is_full or len(self._page.ads) >= self._most_jobs or self._looked >= SCAN_JOBS
                or self._meter.is_spent())

    def until(self, last: object) -> JobsPage:
        """It as a message; the next one goes on after ``last``."""
        return JobsPage(ads=tuple(self._page.ads), cursor=f"{self._count}/{last}")

    def end(self) -> JobsPage:
        """It as a message, the last one of the answer."""
        return JobsPage(ads=tuple(self._page.ads))


def page(queue: JobQueue, question: QueryJobs, sight: JobSight, now_s: float) -> JobsPage:
    """The next page of the queue, as far as the asker sees it.

    Raises:
        ClassAdSyntaxError: the constraint is none.
        ValueError: the cursor is none, or the constraint takes more than it may.
    """
    constraint = parse_expression(question.constraint) if question.constraint else None
    names = tuple(name.lower() for name in question.projection)
    found = JobPage(question, PAGE_JOBS, constraint)
    last = found.after
    for job in _from(queue, question, found.after):
        if _wanted(job, question.owner, constraint, sight, now_s):
            if not found.add(sight.text(job) if not names else _projected(job, sight.names(job, names))):
                return found.until(last)
            if found.is_enough():
                break
        last = job.name
        if found.looked():
            return found.until(last)
    return found.end()


def _from(queue: JobQueue, question: QueryJobs, after: str) -> Iterator[Job]:
    """The jobs asked for, in order, after the job ``after``."""
    start = (-1, -1)
    if after:
        last_cluster, _, last_proc = after.partition(".")
        start = (int(last_cluster), int(last_proc))
    wanted: dict[int, set[int] | None] = {}
    for cluster_id, proc_id in question.ids:
        known = wanted.get(cluster_id, set())
        wanted[cluster_id] = None if proc_id < 0 or known is None else known | {proc_id}
    numbers = sorted(wanted.keys() & queue.clusters.keys()) if question.ids else sorted(queue.clusters)
    for index in range(bisect_left(numbers, start[0]), len(numbers)):
        number = numbers[index]
        procs = wanted.get(number)
        for job in queue.clusters[number].jobs_after(start[1] if number == start[0] else -1):
            if procs is None or job.proc in procs:
                yield job


def _wanted(job: Job, owner: str, constraint: Expr | None, sight: JobSight, now_s: float) -> bool:
    if owner and owner not in (job.cluster.owner, job.cluster.user):
        return False
    return constraint is None or is_true(constraint.evaluate(sight.ad(job), None, now_s))


def _projected(job: Job, names: tuple[str, ...]) -> bytes:
    """The attributes asked for: the cluster's part from memory, the job's own rendered."""
    cluster = job.cluster
    key = ("projection", names)
    shared: bytes | None = cluster.memo.get(key)
    if shared is None:
        if len(cluster.memo) > 40:
            for old in [each for each in cluster.memo if isinstance(each, tuple) and each[0] == "projection"]:
                del cluster.memo[old]
        shared = cluster.memo[key] = cluster.ad.project(names).to_bytes()
    own = job.ad.own
    mine = [name for name in names if name in own]
    if not mine:
        return shared
    if mine == ["procid"]:
        return shared + b"ProcId = %d\n" % job.proc
    view = ClassAd()
    view.spellings = job.ad.spellings
    view.own = {name: own[name] for name in mine}
    return shared + view.to_bytes()


def autoclusters_page(
    queue: JobQueue, autoclusters: Autoclusters, question: QueryJobs, sight: JobSight, now_s: float
) -> JobsPage:  # fmt: skip
    """The next page of the autoclusters that have jobs asked for; a job that never waited is in none.

    Raises:
        ClassAdSyntaxError: the constraint is none.
        ValueError: the cursor is none, or the constraint takes more than it may.
    """
    constraint = parse_expression(question.constraint) if question.constraint else None
    members: dict[int, list[Job]] = {}
    for job in _from(queue, question, ""):
        if job.autocluster > int(question.cursor or 0) and _wanted(job, question.owner, None, sight, now_s):
            members.setdefault(job.autocluster, []).append(job)
    page = AdPage()
    last = question.cursor
    meter = Meter("the constraint", constraint)
    for number in sorted(members):
        autocluster = autoclusters.by_number.get(number)
        if autocluster is None:
            continue
        jobs = members[number]
        first = sight.ad(jobs[0])
        ad = first.project([name for name, _ in autocluster.signature[2:] if first.find(name) is not None])
        names = [job.name for job in jobs]
        ad["AutoClusterId"], ad["JobCount"] = number, len(jobs)
        ad["JobIds"] = " ".join(names) if len(names) < 3 else f"{names[0]} ... {names[-1]}"
        if constraint is None or is_true(constraint.evaluate(ad, None, now_s)):
            if not page.add((ad.project(question.projection) if question.projection else ad).to_bytes()):
                return JobsPage(ads=tuple(page.ads), cursor=last)
        if question.limit and len(page.ads) >= question.limit:
            break
        last = str(number)
        if page.is_full or meter.is_spent():
            return JobsPage(ads=tuple(page.ads), cursor=last)
    return JobsPage(ads=tuple(page.ads))


def totals(queue: JobQueue, question: QueryTotals, sight: JobSight, now_s: float) -> Totals:
    """Counts, and the batches when asked for.

    Raises:
        ClassAdSyntaxError: the constraint is none.
        ValueError: the constraint takes more than it may.
    """
    if question.constraint:
        expression = parse_expression(question.constraint)
        mine, everybody = [0] * 8, [0] * 8
        meter = Meter("the constraint", expression, COUNT_STEPS)
        for job in queue.jobs():
            meter.refuse_when_spent()
            if is_true(expression.evaluate(sight.ad(job), None, now_s)):
                everybody[job.status] += 1
                mine[job.status] += not question.owner or job.cluster.owner == question.owner
    else:
        everybody = queue.everybody
        mine = queue.counts(question.owner) if question.owner else everybody
    lines: tuple[bytes, ...] = ()
    cursor = ""
    if question.batches and not question.constraint:
        lines, cursor = batches(queue, question.owner, int(question.cursor or 0))
    return Totals(mine=tuple(enumerate(mine))[1:], everybody=tuple(enumerate(everybody))[1:], batches=lines,
                  cursor=cursor)


def batches(queue: JobQueue, owner: str, after: int = 0) -> tuple[tuple[bytes, ...], str]:
    """The lines of the batch view: jobs of one owner with one batch name, else of one cluster.

    What is done of a workflow, and how much there is, are its nodes: its own job says so.

    Args:
        queue: the jobs.
        owner: of the jobs; empty: everybody's.
        after: the last cluster of the page before.

    Returns:
        The lines of a page of clusters, and the cursor of the next; empty: there is none.
    """
    groups: dict[tuple[str, str], list[Cluster]] = {}
    numbers = sorted(queue.clusters)
    begin = bisect_right(numbers, after)
    size, cursor = 0, ""
    for index in range(begin, len(numbers)):
        if size >= PAGE_BYTES or index - begin >= CLUSTERS_A_PAGE:
            cursor = str(numbers[index - 1])
            break
        cluster = queue.clusters[numbers[index]]
        if not owner or owner in (cluster.owner, cluster.user):
            name = cluster.ad.get_str("JobBatchName") or f"\0{cluster.number}"
            groups.setdefault((cluster.owner, name), []).append(cluster)
            size += len(name) + len(cluster.owner) + BATCH_BYTES
    found = []
    for (user, name), clusters in groups.items():
        workflows = [cluster for cluster in clusters if _nodes(cluster) is not None]
        jobs = [cluster for cluster in clusters if cluster not in workflows] if workflows else clusters
        own = [cluster for cluster in jobs if cluster.ad.get_int("DAGManJobId") not in queue.clusters]
        counts = [sum(column) for column in zip(*(cluster.counts for cluster in jobs), strict=True)] or [0] * 8
        done = sum(cluster.made - sum(cluster.counts) + cluster.counts[4] for cluster in own)
        total = sum(cluster.total for cluster in own)
        for cluster in workflows:
            if cluster.ad.get_int("DAGManJobId") not in queue.clusters:
                nodes = _nodes(cluster) or (0, 0)
                done, total = done + nodes[0], total + nodes[1]
        ad = ClassAd({
            "Owner": user, "ClusterId": clusters[0].number, "QDate": clusters[0].ad.get_int("QDate"),
            "Done": done, "Run": counts[2] + counts[6] + counts[7], "Idle": counts[1],
            "Hold": counts[5], "Suspended": counts[7], "Removed": counts[3], "Total": total,
            "JobIds": _ids(jobs or workflows),
        })
        if not name.startswith("\0"):
            ad["JobBatchName"] = name
        found.append(ad.to_bytes())
    return tuple(found), cursor


def changes(queue: JobQueue, question: QueryChanges, sight: JobSight, now_s: float) -> Changes:
    """What has changed since a follower's token (:mod:`condor_actors.cores.schedd.change_journal`)."""
    journal = queue.changes
    position = Position.of(question.since)
    if position is None or not journal.is_known(position):
        position = Position(journal.life, journal.number)
        return _all_jobs(queue, question, sight, position, begins=True)
    if position.after:
        return _all_jobs(queue, question, sight, position, begins=False)
    names = (*(name.lower() for name in question.projection), "clusterid", "procid")
    page = AdPage()
    gone: list[tuple[int, int]] = []
    number = position.number
    for (cluster_id, proc), changed in journal.since(position.number):
        cluster = queue.clusters.get(cluster_id)
        job = cluster.jobs.get(proc) if cluster is not None else None
        jobs = [job] if job is not None else []
        if cluster is None or (proc >= 0 and job is None):
            gone.append((cluster_id, proc))
        elif proc < 0:
            jobs = list(cluster.jobs.values())
            if len(jobs) > CHANGES_A_PAGE:  # all of it anew costs no more
                return _all_jobs(queue, question, sight, Position(journal.life, journal.number), begins=True)
        if page.ads and len(page.ads) + len(jobs) > CHANGES_A_PAGE:
            return Changes(token=str(Position(journal.life, number)), ads=tuple(page.ads), gone=tuple(gone), more=True)
        for each in jobs:
            has_room = page.add(_projected(each, sight.names(each, names)))
            if len(jobs) > 1 and (page.is_full or not has_room):
                return _all_jobs(queue, question, sight, Position(journal.life, journal.number), begins=True)
            if not has_room:
                return Changes(token=str(Position(journal.life, number)), ads=tuple(page.ads), gone=tuple(gone),
                               more=True)
        number = changed
        if page.is_full or len(gone) >= CHANGES_A_PAGE:
            return Changes(token=str(Position(journal.life, number)), ads=tuple(page.ads), gone=tuple(gone), more=True)
    return Changes(token=str(Position(journal.life, journal.number)), ads=tuple(page.ads), gone=tuple(gone))


def _all_jobs(queue: JobQueue, question: QueryChanges, sight: JobSight, position: Position, *,
              begins: bool) -> Changes:
    """A page of all jobs, after the job that the position names."""
    names = (*(name.lower() for name in question.projection), "clusterid", "procid")
    page, last = AdPage(), position.after
    whole = QueryJobs()
    for job in _from(queue, whole, position.after):
        has_room = page.add(_projected(job, sight.names(job, names)))
        last = job.name if has_room else last
        if not has_room or len(page.ads) >= CHANGES_A_PAGE or page.is_full:
            token = str(Position(position.life, position.number, last))
            return Changes(token=token, ads=tuple(page.ads), begins=begins, more=True)
    return Changes(token=str(Position(position.life, position.number)), ads=tuple(page.ads), begins=begins,
                   more=queue.changes.number != position.number)


def _nodes(cluster: Cluster) -> tuple[int, int] | None:
    """Of a workflow's own job: how many of its nodes are done, and how many there are; None: it is no such job."""
    if cluster.ad.get_int("JobUniverse") != Universe.SCHEDULER:
        return None
    for job in cluster.jobs.values():
        total = job.ad.get_int("DAG_NodesTotal", -1)
        if total >= 0:
            return job.ad.get_int("DAG_NodesDone"), total
    return None


def _ids(clusters: list[Cluster]) -> str:
    """``12.0`` for one job, ``12.0-9`` for the jobs of a cluster, ``12.0 ... 15.0`` for several clusters."""
    first, last = clusters[0], clusters[-1]
    low = min(first.jobs, default=0)
    high = max(last.jobs, default=0)
    if first is last:
        return f"{first.number}.{low}" if low == high else f"{first.number}.{low}-{high}"
    return f"{first.number}.{low} ... {last.number}.{high}"


def syntax_error(error: ClassAdSyntaxError, constraint: str) -> str:
    """What to tell someone whose constraint cannot be read."""
    return f"constraint {constraint!r}: {error}"
