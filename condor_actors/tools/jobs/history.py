"""condor_history: jobs that have left the queue, the newest first.

**Source**: the manual, condor_history.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.messages.codes import JobStatus
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.lib.flags import Flag, Given
from condor_actors.tools.lib.job_ids import parse_id
from condor_actors.tools.printing import ad_output

if TYPE_CHECKING:
    from condor_actors.tools.lib.contact import Schedd

FLAGS = (
    Flag("help"), Flag("local", 3), Flag("match", 1, 1, alias="limit"), Flag("wide", 1, colon=True),
    Flag("backwards", 1), Flag("forwards", 4), Flag("nobackwards", 3, alias="forwards"), Flag("file", 2, 1),
    Flag("jsonl", 5), *ad_output.flags(),
    Flag("completedsince", 2, 1), Flag("since", 2, 1), Flag("scanlimit", 2, 1), Flag("name", 1, 1), Flag("pool", 1, 1),
    Flag("epochs", 1, colon=True, alias="unsupported"), Flag("type", 1, 1, alias="unsupported"),
    Flag("startd", 3, alias="unsupported"), Flag("schedd", 3), Flag("userlog", 1, 1), Flag("stream-results", 2),
    Flag("dag", 3), Flag("debug", 1, colon=True), Flag("version", 4),
)  # fmt: skip


@attrs.define
class Question(ad_output.AdQuestion):
    """The command line, understood."""

    ids: list[tuple[int, int]] = attrs.Factory(list)
    owners: list[str] = attrs.Factory(list)
    since: str = ""
    file: str = ""
    userlog: str = ""
    name: str = ""
    pool: str = ""
    is_wide: bool = False
    is_forwards: bool = False


def main() -> int:
    """Entry of ``condor_history``."""
    return run(FLAGS, USAGE, lambda given: _answer(_understand(given)),
               words=Words(unknown="Error: Unknown argument {word}"))  # fmt: skip


def _understand(given: Sequence[Given]) -> Question:
    question = Question()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            found = parse_id(value)
            if found is not None:
                question.ids.append(found)
            else:
                question.owners.append(value)
        elif question.take(item):
            continue
        elif item.name in ("wide", "forwards"):
            setattr(question, f"is_{item.name}", True)
        elif item.name in ("since", "file", "userlog", "name", "pool"):
            setattr(question, item.name, value)
        elif item.name == "completedsince":
            if not value.isdigit():
                raise ToolError(f"Error: '{value}' not valid parameter for -completedsince (seconds since 1970)")
            question.since = f"CompletionDate <= {value}"
        elif item.name == "unsupported":
            raise ToolError(f"Error: {item.word} is not supported")
    return question


def _answer(question: Question) -> int:
    config = load("TOOL")
    if question.userlog:
        ended = [ad for ad in ad_output.ads_of_log(question.userlog) if ad.get_int("JobStatus") in (
            JobStatus.REMOVED, JobStatus.COMPLETED)]
        return _print(question, _chosen(question, ended))
    if question.file:
        return _print(question, _chosen(question, ad_output.ads_of_file(question.file)))
    with schedd(config, name=question.name, pool=question.pool) as there:
        is_evaluated = question.form == "row" and not question.row().is_raw  # it may need any other attribute
        ads = _asked(there, question, () if is_evaluated else question.names() or ())
        return _print(question, iter(list(ads)[::-1][: question.limit or None]) if question.is_forwards else ads)


def _asked(there: Schedd, question: Question, projection: Sequence[str]) -> Iterator[ClassAd]:
    from condor_actors.messages.queue import QueryJobs

    limit, cursor = 0 if question.is_forwards else question.limit, ""
    while True:
        page = there.ask(
            QueryJobs(
                source="history", ids=tuple(question.ids), constraint=_constraint(question),
                projection=tuple(projection), limit=limit, since=question.since, cursor=cursor,
            )
        )  # fmt: skip
        for text in page.ads:
            yield ClassAd.from_bytes(text)
        cursor = page.cursor
        if not cursor:
            return


def _constraint(question: Question) -> str:
    from condor_actors.classads import quote

    return question.conjunction(" || ".join(f"Owner == {quote(owner)}" for owner in question.owners))


def _chosen(question: Question, ads: Sequence[ClassAd]) -> Iterator[ClassAd]:
    """The ads that are asked for of those of a file, the last written first."""
    from condor_actors.classads import is_true, parse_expression

    constraint = _constraint(question)
    wanted = parse_expression(constraint) if constraint else None
    since = _since(question.since)
    count = 0
    for ad in ads if question.is_forwards else reversed(ads):
        if since is not None and since(ad):
            return
        if ad_output.is_named(ad, question.ids) and (wanted is None or is_true(wanted.evaluate(ad))):
            yield ad
            count += 1
            if question.limit and count >= question.limit:
                return


def _since(text: str) -> Any:
    """Where to stop: a job id or an expression."""
    if not text:
        return None
    found = parse_id(text)
    if found is not None:
        return lambda ad: ad.get_int("ClusterId") == found[0] and found[1] in (-1, ad.get_int("ProcId"))
    from condor_actors.classads import is_true, parse_expression

    tree = parse_expression(ad_output.checked(text))
    return lambda ad: is_true(tree.evaluate(ad))


def _print(question: Question, ads: Iterator[ClassAd]) -> int:
    if question.form == "table":
        from condor_actors.tools.printing.tables import PrintTable

        return ad_output.write(ad_output.understood(lambda: list(PrintTable.read(question.table_file).rows(ads))))
    rows = question.rows(ads, when_empty="[\n]\n")
    return ad_output.write(_table(ads, question.is_wide) if rows is None else rows)


def _table(ads: Iterator[ClassAd], is_wide: bool) -> Iterator[str]:
    from condor_actors.tools.printing.formats import elapsed
    from condor_actors.tools.printing.queue_views import command, day, state

    yield " ID          OWNER            SUBMITTED   RUN_TIME     ST   COMPLETED CMD\n"
    for ad in ads:
        job = f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}"
        run = elapsed(ad.get_float("RemoteWallClockTime"))
        line = (
            f"{job:>8}    {ad.get_str('Owner'):<14} {day(ad.evaluate('QDate'))} {run:>12} {state(ad):<2} "
            f"{day(ad.evaluate('CompletionDate'))} {command(ad)}"
        )
        yield (line if is_wide else line[:100]).rstrip() + "\n"


USAGE = """Usage: condor_history [source] [restriction-list] [options]

   where [source] is one of
      -file <file>            read job ads from this file
      -userlog <file>         read the jobs that have ended from this event log
      -name <name>            ask this schedd
      -pool <host>            ask this central manager for it

   and [restriction-list] is one or more of
      <cluster>  <cluster>.<proc>  <owner>  -constraint <expr>

   and [options] are
      -backwards              the newest first (default)
      -forwards               the oldest first
      -limit <n>              at most so many jobs
      -since <job>|<expr>     stop at this job, or when the expression is true
      -completedsince <time>  stop at jobs completed at or before this time
      -long -json -jsonl -xml whole ads  [-attributes A,B]
      -autoformat[:jlhVrTY,tng] <attr> ...   -format <fmt> <attr>   -print-format <file>
      -wide                   do not cut lines"""

if __name__ == "__main__":
    sys.exit(main())
