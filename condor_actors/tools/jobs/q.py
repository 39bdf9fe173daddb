"""condor_q: what is in the queue.

**Source**: the manual, condor_q.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice

from condor_actors.classads import ClassAd
from condor_actors.messages.job_codes import JobStatus, Universe
from condor_actors.tools.lib.command import run
from condor_actors.tools.lib.contact import Schedd, load, schedd
from condor_actors.tools.lib.queue_question import FLAGS, Question, understand
from condor_actors.tools.printing import ad_output

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.config import Config
    from condor_actors.tools.printing.queue_views import Column
    from condor_actors.tools.printing.tables import PrintTable


def main() -> int:
    """Entry of ``condor_q``."""
    return run(FLAGS, "condor_q", lambda given: _answer(understand(given)),
               topics={"universe": _universes, "state": _states})


def _universes() -> str:
    return "Job universes:\n" + "\n".join(f"    {universe.value:2}  {universe.name.lower()}" for universe in Universe)


def _states() -> str:
    return "Job states (JobStatus):\n" + "\n".join(
        f"    {status.value}  {status.name.lower().replace('_', ' ')}" for status in JobStatus)


def _answer(question: Question) -> int:
    config = load("TOOL")
    if question.job_file:
        return Answer(question, config, None, ad_output.ads_of_file(question.job_file, "job ads file")).give()
    if question.log_file:
        return Answer(question, config, None, ad_output.ads_of_log(question.log_file)).give()
    if question.is_global:
        return _everywhere(question, config)
    with schedd(config, name=question.name, pool=question.pool, address=question.address) as there:
        return Answer(question, config, there).give()


def _everywhere(question: Question, config: Config) -> int:
    from condor_actors.tools.lib.contact import all_schedds

    for ad in all_schedds(config, pool=question.pool):
        with schedd(config, name=ad.get_str("Name"), address=ad.get_str("MyAddress")) as there:
            Answer(question, config, there).give()
    return 0


class Answer:
    """One schedd's answer to a question."""

    def __init__(
        self, question: Question, config: Config, there: Schedd | None, ads: list[ClassAd] | None = None
    ) -> None:
        self.question = question
        self.config = config
        self.there = there
        self._held = ads
        self.me = _user()
        self._now_s = int(time.time())  # jobs of a schedd have it as ServerTime, for expressions about their age
        self.owner = self._only_owner()
        self.constraint = self._constraint()

    def give(self) -> int:
        """Print it; the exit status."""
        question = self.question
        if question.is_totals:
            return self._totals_only()
        if question.form in ("long", "json"):
            return ad_output.write(self._whole_rows())
        if question.form == "analyze":
            from condor_actors.tools.analysis.job_analysis import analyze

            return ad_output.write(analyze(self))
        if question.form == "table" or (not question.form and question.is_no_jobs):
            return self._custom_table()
        names = question.names()
        rows = None if names is None else question.rows(self.ads(names if question.form == "xml" else _plain(names)))
        return self._table() if rows is None else ad_output.write(rows)

    # -- asking

    def ads(self, projection: Sequence[str] = ()) -> Iterator[ClassAd]:
        """The jobs asked for."""
        if not self.question.is_unmatchable:
            return self._jobs(projection)
        from condor_actors.tools.analysis.job_analysis import unmatchable

        return islice(unmatchable(self, self._jobs()), self.question.limit or None)

    def _jobs(self, projection: Sequence[str] = ()) -> Iterator[ClassAd]:
        """The same, whether a machine would take them or not."""
        if self._held is not None or self.there is None:
            yield from self._filtered(self._held or [])
            return
        for text in self._texts(projection):
            ad = ClassAd.from_bytes(text)
            if self._source() == "queue":
                ad["ServerTime"] = self._now_s
            yield ad

    def _texts(self, projection: Sequence[str] = ()) -> Iterator[bytes]:
        """The same, as they come."""
        from condor_actors.messages.queue import QueryJobs

        assert self.there is not None

        question = self.question

        def from_cursor(cursor: str) -> QueryJobs:
            return QueryJobs(
                source=self._source(), ids=tuple(question.ids), owner=self.owner, constraint=self.constraint,
                projection=tuple(projection), limit=self._limit(), cursor=cursor)

        for page in self.there.ask_on(from_cursor(""), lambda page: from_cursor(page.cursor) if page.cursor else None):
            yield from page.ads

    def _limit(self) -> int:
        """How many jobs the query gives; 0: all, as it does where those that a machine would take are left out."""
        return 0 if self.question.is_unmatchable else self.question.limit

    def _source(self) -> str:
        if self.question.is_autoclusters:
            return "autoclusters"
        if self.question.is_sets:
            return "jobsets"
        return "factories" if self.question.is_factories else "queue"

    def _filtered(self, ads: list[ClassAd]) -> Iterator[ClassAd]:
        fitting = ad_output.fitting((ad for ad in ads if ad_output.is_named(ad, self.question.ids)), self.constraint)
        for count, ad in enumerate(fitting, 1):
            yield ad
            if count == self._limit():
                return

    def _only_owner(self) -> str:
        """Whose jobs alone are asked for; empty: anyone's."""
        question = self.question
        if len(question.users) == 1 and not question.ids:
            return question.users[0]
        if question.is_all or question.ids or question.users or self._held is not None:
            return ""
        only_mine = self.config.boolean("CONDOR_Q_ONLY_MY_JOBS")
        super_users = self.config.list_of("QUEUE_SUPER_USERS")
        return self.me if only_mine and self.me not in super_users else ""

    def _constraint(self) -> str:
        from condor_actors.classads import quote

        whose = ""
        users = self.question.users
        if users and not self.owner:
            whose = " || ".join(f"Owner == {quote(user)} || User == {quote(user)}" for user in users)
        view_wants = {
            "run": " || ".join(f"JobStatus == {status}" for status in (
                JobStatus.RUNNING, JobStatus.TRANSFERRING_OUTPUT, JobStatus.SUSPENDED)),
            "hold": f"JobStatus == {JobStatus.HELD}", "hold-codes": f"JobStatus == {JobStatus.HELD}",
            "idle": f"JobStatus == {JobStatus.IDLE}",
            "unsaved": f"JobUniverse == {Universe.STANDARD} && JobStatus == {JobStatus.RUNNING} && "
                       "LastCkptProblemTime >= 0",
        }.get(self.question.view, "")
        grid = f"JobUniverse == {Universe.GRID}" if self.question.is_of_grid else ""
        return self.question.conjunction(whose, view_wants, grid)

    # -- printing

    def _whole_rows(self) -> Iterator[str]:
        from condor_actors.tools.printing import formats

        attributes = self.question.attributes
        if self._held is None and not self.question.is_unmatchable:
            time_of = b"" if self._source() != "queue" else b"\nServerTime = %d" % self._now_s
            texts: Iterator[bytes] = (text + time_of for text in self._texts(attributes))
            if self.question.form == "long":
                return formats.long_rows_of_texts(texts, attributes)
            return formats.json_rows_of_texts(texts, attributes)
        ads = self.ads(attributes)
        if self.question.form == "long":
            return formats.long_rows(ads, attributes)
        return formats.json_rows(ads, attributes)

    def _totals(self, owner: str = "") -> Any:
        from condor_actors.messages.queue import QueryTotals

        assert self.there is not None
        return self.there.ask(QueryTotals(owner=owner))

    def _batches(self) -> tuple[Any, list[ClassAd]]:
        """The totals, and the lines of the batch view, which come page by page."""
        from condor_actors.messages.queue import QueryTotals
        from condor_actors.tools.printing.queue_views import joined_batches

        assert self.there is not None
        parts: list[ClassAd] = []
        cursor = ""
        while True:
            totals = self.there.ask(QueryTotals(owner=self.owner, batches=True, cursor=cursor))
            parts += [ClassAd.from_bytes(ad) for ad in totals.batches]
            cursor = totals.cursor
            if not cursor:
                return totals, joined_batches(parts)

    def _totals_only(self) -> int:
        from condor_actors.tools.printing import queue_views

        totals = self._totals(self.me) if self.there is not None else None
        if totals is None or self.question.ids or self.constraint or self.question.is_unmatchable:
            query = queue_views.count_by_status(self.ads(("JobStatus",)))
        elif self.owner in ("", self.me):
            query = dict(totals.mine if self.owner else totals.everybody)
        else:
            query = dict(self._totals(self.owner).mine)
        everybody = dict(totals.everybody) if totals is not None else query
        mine = dict(totals.mine) if totals is not None else {}
        shown_name = self.me if self.owner == self.me else ""
        if self.question.form in ad_output.WHOLE:
            summary = queue_views.summary_ad(query, everybody, shown_name, mine)
            return ad_output.write(self.question.rows([summary]) or ())
        below = queue_views.totals(query, everybody, (shown_name, mine) if shown_name else None)
        return ad_output.write([self.header(), below.lstrip("\n")])

    def _custom_table(self) -> int:
        from condor_actors.tools.printing import queue_views

        table = self._format_of_table()
        self.question.is_autoclusters |= table.is_of_autoclusters
        ads = list(self.ads())
        rows = [self.header() if table.has_title else "", *ad_output.understood(lambda: list(table.rows(ads)))]
        if table.has_summary and self.there is not None and self._source() == "queue":
            everybody = dict(self._totals(self.me).everybody)
            rows.append(queue_views.totals(queue_views.count_by_status(ads), everybody, None))
        return ad_output.write(rows)

    def _format_of_table(self) -> PrintTable:
        from condor_actors.tools.printing.queue_views import AUTOCLUSTERS, FACTORIES, JOB_SETS
        from condor_actors.tools.printing.tables import PrintTable

        if self.question.table_file:
            return ad_output.understood(lambda: PrintTable.read(self.question.table_file))
        if self.question.is_sets:
            return PrintTable.parse(JOB_SETS)
        return PrintTable.parse(FACTORIES if self.question.is_factories else AUTOCLUSTERS)

    def header(self) -> str:
        from condor_actors.tools.printing import queue_views

        if self.there is None:
            log, ads = self.question.log_file, self.question.job_file
            return f"\n\n-- {f'Userlog: {log}' if log else f'Jobads: {ads}'}\n"
        return queue_views.header(self.there.name, self.there.address, time.time())

    def _is_batch(self) -> bool:
        if self.question.is_batch is not None or self.question.is_unmatchable:
            return bool(self.question.is_batch)
        return self.config.boolean("CONDOR_Q_DASH_BATCH_IS_DEFAULT") and not self.question.view

    def _table(self) -> int:
        from condor_actors.tools.printing import queue_views

        question = self.question
        plain = not (question.ids or self.constraint or question.limit) and self.there is not None
        if self._is_batch() and plain:
            totals, lines = self._batches()
            query, body = dict(totals.mine), queue_views.batch_table(lines)
        else:
            view = "batch" if self._is_batch() else question.view or ("grid" if question.is_of_grid else "default")
            more, names = _appended(question.appended)
            of_dags = ("DAGManJobId", "DAGNodeName") if question.is_dag else ()
            ads = list(self.ads((*queue_views.attributes_of(view), *of_dags, *names)))
            ads = queue_views.by_workflow(ads) if question.is_dag else ads
            query = queue_views.count_by_status(ads)
            if view == "batch":
                body = queue_views.batch_table(queue_views.batches_of(ads))
            elif view == "hold-codes":
                body = _hold_codes(ads)
            else:
                body = queue_views.job_table(ads, view, time.time(), question.is_wide,
                                             is_cumulative=question.is_cumulative, more=more)
                body = body.replace("OWNER         ", "OWNER/NODENAME", 1) if question.is_dag else body
            totals = self._totals(self.me) if self.there is not None else None
        rows = [self.header(), body]
        if question.view == "hold":
            rows.append(self._unsaved())
        if question.view not in ("run", "idle", "hold-codes"):
            everybody = dict(totals.everybody) if totals is not None else query
            mine = (self.me, dict(totals.mine)) if totals is not None and self.owner == self.me else None
            rows.append(queue_views.totals(query, everybody, mine))
        return ad_output.write(rows)


    def _unsaved(self) -> str:
        """Below the held jobs: those that run, and could not be checkpointed when that was last tried."""
        from copy import copy

        from condor_actors.tools.lib.checkpoint_outcome import PROBLEM_NAMES, standing_problem
        from condor_actors.tools.printing import queue_views

        others = copy(self.question)
        others.view = "unsaved"
        answer = Answer(others, self.config, self.there, self._held)
        names = (*queue_views.attributes_of("unsaved"), *PROBLEM_NAMES)
        stuck = [ad for ad in answer.ads(names) if standing_problem(ad)]
        if not stuck:
            return ""
        return "\nRunning jobs that could not be checkpointed when that was last tried:\n" + queue_views.job_table(
            stuck, "unsaved", time.time(), self.question.is_wide)


def _appended(options: list[tuple[str, tuple[str, ...]]]) -> tuple[list[Column], set[str]]:
    """The columns of ``-aaf``, and the attributes that they need."""
    if not options:
        return [], set()
    from condor_actors.tools.printing.formats import AutoFormat
    from condor_actors.tools.printing.queue_views import Column

    columns, names = [], set()
    for letters, words in options:
        for word in words:
            one = AutoFormat.of(letters, (word,))
            names |= one.projection()
            columns.append(Column(word, lambda ad, _, one=one: one.texts(ad)[0], 0))  # type: ignore[misc]
    return columns, names


def _hold_codes(ads: list[ClassAd]) -> str:
    """One line for each pair of hold code and subcode."""
    from condor_actors.tools.printing.queue_views import day

    groups: dict[tuple[int, int], list[ClassAd]] = {}
    for ad in ads:
        groups.setdefault((ad.get_int("HoldReasonCode"), ad.get_int("HoldReasonSubCode")), []).append(ad)
    lines = ["OWNER          CODE/SUB    COUNT OLDEST_JOB_ID  HELD_SINCE HOLD_REASON"]
    for (code, subcode), members in sorted(groups.items()):
        first = members[0]
        job = f"{first.get_int('ClusterId')}.{first.get_int('ProcId')}"
        lines.append(
            f"{first.get_str('Owner'):<14} {code:>4}/{subcode:<3} {len(members):>8} {job:<13} "
            f"{day(first.evaluate('EnteredCurrentStatus'))} {first.get_str('HoldReason')}"
        )
    return "\n".join(lines) + "\n"


def _plain(names: Sequence[str]) -> tuple[str, ...]:
    """A projection only where each name is its own value: an attribute may be an expression of others."""
    plain = {"clusterid", "procid", "jobstatus", "owner", "qdate", "cmd", "args", "arguments", "iwd", "jobprio",
             "globaljobid", "jobbatchname", "servertime", "true", "false", "userlog", "in", "out", "err"}  # fmt: skip
    return tuple(names) if names and all(name.lower() in plain for name in names) else ()


def _user() -> str:
    from condor_actors import accounts

    return accounts.own_name()


if __name__ == "__main__":
    sys.exit(main())
