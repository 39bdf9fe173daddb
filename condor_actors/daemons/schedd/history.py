"""Questions about jobs that have left the queue, answered by a worker thread on a read-only connection.

Theory: a scan of the history may take long and must not stop the queue, so it runs beside it, one question at a time,
on a snapshot that SQLite's WAL gives a reader for nothing.  The cursor is the number of the last entry looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread

from condor_actors.classads import ClassAd, Expr, is_true, parse_expression
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.cores.schedd.job_query import JobPage
from condor_actors.daemons.schedd.history_filter import NeededLines
from condor_actors.daemons.schedd.history_groups import groups_page, is_by_attributes
from condor_actors.daemons.schedd.history_totals import totals_page
from condor_actors.messages.queue import JobsPage, QueryJobs
from condor_actors.numerals import job_numbers, numeral
from condor_actors.store.history_columns import HistoryColumns
from condor_actors.store.queue_store import HistoryReader, HistoryRow, LongHistory

__all__ = ["HistoryQuestions", "history_page"]

PAGE_JOBS = 2_000

Defer = Callable[..., Deferred[JobsPage]]


class HistoryQuestions:
    """Answers questions about jobs that have left the queue, on a worker thread.

    Args:
        reader: opens the connection.
        defer: runs a function beside the reactor; tests run it at once.
        files: opens the records that are in files, by source.
        columns: of the history; None: there are none.
    """

    def __init__(self, reader: Callable[[], LongHistory], defer: Defer = deferToThread,
                 files: Mapping[str, Callable[[], HistoryReader]] | None = None,
                 columns: HistoryColumns | None = None) -> None:
        self._open = reader
        self._columns = columns
        self._files = files or {}
        self._defer = defer

    def answer(self, question: QueryJobs, sight: JobSight, most: int = 0) -> Deferred[JobsPage]:
        """Fires with the page as far as the asker sees it, or fails with a ``ValueError`` that says what is wrong with
        the question; it has at most so many records in all its pages (0: any number)."""
        if most and not 0 < question.limit <= most:
            question = attrs.evolve(question, limit=most)
        return self._defer(self._page, question, sight)

    def _page(self, question: QueryJobs, sight: JobSight) -> JobsPage:
        reader: HistoryReader
        if question.source == "totals" and is_by_attributes(question):
            reader = groups = self._open()
            try:
                return groups_page(groups, self._columns, question, sight)
            finally:
                reader.close()
        reader = self._files.get(question.source, self._open)()
        try:
            if question.source == "totals":
                return totals_page(reader.totals(), question)
            return history_page(reader, question, sight)
        finally:
            reader.close()

    def ad(self, job: str) -> ClassAd | None:
        """The ad of one job, looked up at once; None when the history does not have it."""
        numbers = job_numbers(job)
        if numbers is None:
            return None
        page = self._page(QueryJobs(source="history", ids=(numbers,), limit=1),
                          JobSight(frozenset(), lambda owner: True))
        return ClassAd.from_bytes(page.ads[0]) if page.ads else None

    def close(self) -> None:
        """Nothing is kept open."""


def history_page(reader: HistoryReader, question: QueryJobs, sight: JobSight) -> JobsPage:
    """The next page of the history, newest first, as far as the asker sees it.

    Raises:
        ValueError: the constraint, ``since`` or the cursor cannot be read.
    """
    constraint = parse_expression(question.constraint) if question.constraint else None
    since_id, since = _since(question.since)
    found = JobPage(question, PAGE_JOBS, constraint)
    needed = NeededLines((each for each in (constraint, since) if each is not None), question.projection)
    last = found.after
    has_to_be_read = constraint is not None or since is not None or bool(question.projection)
    for row in reader.rows(question.ids, question.owner.partition("@")[0], max(0, int(found.after or 0))):
        ad = None
        if has_to_be_read:
            ad = sight.whole(needed.ad(row.cluster_ad, row.ad), row.owner)
        if _is_end(row, ad, since_id, since):
            break
        if constraint is None or (ad is not None and is_true(constraint.evaluate(ad))):
            text = row.cluster_ad + row.ad
            if question.projection and ad is not None:
                text = ad.project(question.projection).to_bytes()
            elif not sight.sees_all_of(row.owner):
                text = sight.whole(ClassAd.from_bytes(text), row.owner).to_bytes()
            if not found.add(text):
                return found.until(last)
            if found.is_enough():
                break
        last = str(row.entry)
        if found.looked():
            return found.until(last)
    return found.end()


def _since(text: str) -> tuple[tuple[int, int] | None, Expr | None]:
    """``since``: a cluster, a job id, or an expression."""
    if not text:
        return None, None
    cluster, dot, proc = text.partition(".")
    first, second = numeral(cluster), numeral(proc) if dot else -1
    if first is not None and second is not None:
        return (first, second), None
    return None, parse_expression(text)


def _is_end(row: HistoryRow, ad: ClassAd | None, since_id: tuple[int, int] | None, since: Expr | None) -> bool:
    if since_id is not None:
        return row.cluster == since_id[0] and since_id[1] in (-1, row.proc)
    return since is not None and ad is not None and is_true(since.evaluate(ad))

