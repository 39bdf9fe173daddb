"""condor_q: what is in the queue.

**Source**: the manual, condor_q.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.classads import ClassAd
from condor_actors.classads.text_form import old_to_new
from condor_actors.tools.contact import Schedd, ToolError, load, refused, schedd
from condor_actors.tools.flags import Flag, MissingValue, UnknownFlag, parse
from condor_actors.tools.queue_question import FLAGS, USAGE, Question, understand
from condor_actors.wire.blocking import WireError

if TYPE_CHECKING:
    from condor_actors.config import Config


def main() -> int:
    """Entry of ``condor_q``."""
    try:
        given = parse(sys.argv[1:], FLAGS)
        names = {item.name for item in given}
        if "help" in names:
            print(USAGE)
            return 0
        if "version" in names:
            from condor_actors.tools.version import platform_line, version_line

            print(f"{version_line()}\n{platform_line()}")
            return 0
        return _answer(understand(given))
    except UnknownFlag as error:
        print(f"Error: unrecognized argument {error.word}\n{USAGE}", file=sys.stderr)
    except MissingValue as error:
        print(f"Error: Argument {error.word} requires {_needed(error.flag)}", file=sys.stderr)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def _needed(flag: Flag) -> str:
    return "format and attribute parameters" if flag.takes == 2 else "another parameter"


def _answer(question: Question) -> int:
    config = load("TOOL")
    try:
        if question.job_file:
            return _from_file(question, config)
        if question.is_global:
            return _everywhere(question, config)
        with schedd(config, name=question.name, pool=question.pool, address=question.address) as there:
            return Answer(question, config, there).give()
    except WireError as error:
        raise ToolError(refused(error)) from None


def _everywhere(question: Question, config: Config) -> int:
    from condor_actors.tools.contact import all_schedds

    for ad in all_schedds(config, pool=question.pool):
        with schedd(config, name=ad.get_str("Name"), address=ad.get_str("MyAddress")) as there:
            Answer(question, config, there).give()
    return 0


def _from_file(question: Question, config: Config) -> int:
    from condor_actors.classads.text_form import iter_long

    try:
        with open(question.job_file, encoding="utf-8", errors="surrogateescape") as file:
            ads = list(iter_long(file))
    except OSError as error:
        raise ToolError(f"Error: Can't open job ads file {question.job_file}: {error.strerror}") from None
    return Answer(question, config, None, ads).give()


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
        self.owner = self._only_owner()
        self.constraint = self._constraint()

    def give(self) -> int:
        """Print it; the exit status."""
        question = self.question
        if question.is_totals:
            return self._totals_only()
        if question.form in ("long", "json", "xml"):
            return _write(self._whole_rows())
        if question.form == "af":
            return self._autoformat()
        if question.form == "format":
            return self._formats()
        if question.table_file:
            return self._custom_table()
        if question.form == "analyze":
            from condor_actors.tools.analyze import analyze

            return _write(analyze(self))
        return self._table()

    # -- asking

    def ads(self, projection: Sequence[str] = ()) -> Iterator[ClassAd]:
        """The jobs asked for."""
        if self._held is not None or self.there is None:
            yield from self._filtered(self._held or [])
            return
        for text in self._texts(projection):
            yield ClassAd.from_bytes(text)

    def _texts(self, projection: Sequence[str] = ()) -> Iterator[bytes]:
        """The same, as they come."""
        from condor_actors.messages.queue import QueryJobs

        assert self.there is not None

        question, cursor = self.question, ""
        while True:
            page = self.there.ask(
                QueryJobs(
                    ids=tuple(question.ids), owner=self.owner, constraint=self.constraint,
                    projection=tuple(projection), limit=question.limit, cursor=cursor,
                )
            )  # fmt: skip
            yield from page.ads
            cursor = page.cursor
            if not cursor:
                return

    def _filtered(self, ads: list[ClassAd]) -> Iterator[ClassAd]:
        from condor_actors.classads import is_true, parse_expression

        wanted = parse_expression(self.constraint) if self.constraint else None
        ids = self.question.ids
        for ad in ads:
            job = (ad.get_int("ClusterId"), ad.get_int("ProcId"))
            if ids and job not in ids and (job[0], -1) not in ids:
                continue
            if wanted is None or is_true(wanted.evaluate(ad)):
                yield ad

    def _only_owner(self) -> str:
        """Whose jobs alone are asked for; empty: anybody's."""
        question = self.question
        if len(question.users) == 1 and not question.ids:
            return question.users[0]
        if question.is_all or question.ids or question.users or self._held is not None:
            return ""
        only_mine = (self.config.text("CONDOR_Q_ONLY_MY_JOBS") or "true").lower() in ("true", "yes", "1", "t")
        super_users = (self.config.text("QUEUE_SUPER_USERS") or "root, condor").replace(",", " ").split()
        return self.me if only_mine and self.me not in super_users else ""

    def _constraint(self) -> str:
        from condor_actors.classads import ClassAdSyntaxError, parse_expression, quote

        parts = [old_to_new(text) for text in self.question.constraints]
        for text in parts:
            try:
                parse_expression(text)
            except ClassAdSyntaxError:
                raise ToolError(f'\n-- Parse error in constraint expression "{text}"') from None
        users = self.question.users
        if users and not self.owner:
            parts.append(" || ".join(f"Owner == {quote(user)} || User == {quote(user)}" for user in users))
        view_wants = {"run": "JobStatus == 2 || JobStatus == 6 || JobStatus == 7", "hold": "JobStatus == 5",
                      "hold-codes": "JobStatus == 5", "idle": "JobStatus == 1"}.get(self.question.view)  # fmt: skip
        if view_wants is not None:
            parts.append(view_wants)
        return parts[0] if len(parts) == 1 else " && ".join(f"({part})" for part in parts)

    # -- printing

    def _whole_rows(self) -> Iterator[str]:
        from condor_actors.tools import print_formats

        attributes = self.question.attributes
        if self._held is None and self.question.form != "xml":
            texts = self._texts(attributes)
            if self.question.form == "long":
                return print_formats.long_rows_of_texts(texts, attributes)
            return print_formats.json_rows_of_texts(texts, attributes)
        ads = self.ads(attributes)
        if self.question.form == "long":
            return print_formats.long_rows(ads, attributes)
        if self.question.form == "json":
            return print_formats.json_rows(ads, attributes)
        return print_formats.xml_rows(ads, attributes)

    def _autoformat(self) -> int:
        from condor_actors.tools.print_formats import AutoFormat, FormatError

        try:
            form = AutoFormat.of(*self.question.af)
        except FormatError as error:
            raise ToolError(f"Error: {error}") from None
        return _write(form.rows(self.ads(self._needed(form.projection()))))

    def _formats(self) -> int:
        from condor_actors.tools.print_formats import Format, FormatError

        try:
            forms = [Format.of(form, text) for form, text in self.question.formats]
        except FormatError as error:
            raise ToolError(f"Error: {error}") from None
        names = tuple({name for form in forms for name in form.field.names()})
        return _write("".join(form.text(ad) for form in forms) for ad in self.ads(self._needed(names)))

    def _needed(self, names: Sequence[str]) -> tuple[str, ...]:
        """A projection only where each name is its own value: an attribute may be an expression of others."""
        plain = {"clusterid", "procid", "jobstatus", "owner", "qdate", "cmd", "args", "arguments", "iwd", "jobprio",
                 "globaljobid", "jobbatchname", "true", "false", "userlog", "in", "out", "err"}  # fmt: skip
        return tuple(names) if names and all(name.lower() in plain for name in names) else ()

    def _totals(self, owner: str = "", batches: bool = False) -> Any:
        from condor_actors.messages.queue import QueryTotals

        assert self.there is not None
        return self.there.ask(QueryTotals(owner=owner, batches=batches))

    def _totals_only(self) -> int:
        from condor_actors.tools import queue_views

        if self.there is None or self.question.ids or self.constraint:
            query = queue_views.count_by_status(self.ads(("JobStatus",)))
        else:
            query = dict(self._totals(self.owner).mine)
        totals = self._totals(self.me) if self.there is not None else None
        everybody = dict(totals.everybody) if totals is not None else query
        mine = dict(totals.mine) if totals is not None else {}
        shown_name = self.me if self.owner == self.me else ""
        if self.question.form in ("json", "long", "xml"):
            from condor_actors.tools import print_formats

            rows = {"json": print_formats.json_rows, "long": print_formats.long_rows, "xml": print_formats.xml_rows}
            ad = queue_views.summary_ad(query, everybody, shown_name, mine)
            return _write(rows[self.question.form]([ad], self.question.attributes))
        return _write(
            [
                self.header(),
                queue_views.totals(query, everybody, (shown_name, mine) if shown_name else None).lstrip("\n"),
            ]
        )

    def _custom_table(self) -> int:
        from condor_actors.tools import queue_views
        from condor_actors.tools.print_formats import FormatError
        from condor_actors.tools.print_tables import PrintTable

        try:
            table = PrintTable.read(self.question.table_file)
            ads = list(self.ads())
            rows = [self.header() if table.has_title else "", *table.rows(ads)]
        except FormatError as error:
            raise ToolError(f"Error: {error}") from None
        if table.has_summary and self.there is not None:
            everybody = dict(self._totals(self.me).everybody)
            rows.append(queue_views.totals(queue_views.count_by_status(ads), everybody, None))
        return _write(rows)

    def header(self) -> str:
        from condor_actors.tools import queue_views

        if self.there is None:
            return f"\n\n-- Jobads: {self.question.job_file}\n"
        return queue_views.header(self.there.name, self.there.address, time.time())

    def _is_batch(self) -> bool:
        if self.question.is_batch is not None:
            return self.question.is_batch
        default = (self.config.text("CONDOR_Q_DASH_BATCH_IS_DEFAULT") or "true").lower()
        return default in ("true", "yes", "1", "t") and not self.question.view

    def _table(self) -> int:
        from condor_actors.tools import queue_views

        question = self.question
        plain = not (question.ids or self.constraint or question.limit) and self.there is not None
        if self._is_batch() and plain:
            totals = self._totals(self.owner, batches=True)
            query, body = dict(totals.mine), queue_views.batch_table([ClassAd.from_bytes(ad) for ad in totals.batches])
        else:
            view = "batch" if self._is_batch() else question.view or "default"
            ads = list(self.ads(queue_views.attributes_of(view)))
            query = queue_views.count_by_status(ads)
            if view == "batch":
                body = queue_views.batch_table(queue_views.batches_of(ads))
            elif view == "hold-codes":
                body = _hold_codes(ads)
            else:
                body = queue_views.job_table(ads, view, time.time(), question.is_wide)
            totals = self._totals(self.me) if self.there is not None else None
        rows = [self.header(), body]
        if question.view not in ("run", "idle", "hold-codes"):
            everybody = dict(totals.everybody) if totals is not None else query
            mine = (self.me, dict(totals.mine)) if totals is not None and self.owner == self.me else None
            rows.append(queue_views.totals(query, everybody, mine))
        return _write(rows)


def _hold_codes(ads: list[ClassAd]) -> str:
    """One line for each pair of hold code and subcode."""
    from condor_actors.tools.queue_views import day

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


def _write(rows: Any) -> int:
    out = sys.stdout
    for row in rows:
        out.write(row)
    out.flush()
    return 0


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


if __name__ == "__main__":
    sys.exit(main())
