"""condor_history: jobs that have left the queue, the newest first.

**Source**: the manual, condor_history.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.classads.text_form import old_to_new
from condor_actors.tools.contact import ToolError, load, refused, schedd
from condor_actors.tools.flags import MANY, Flag, Given, MissingValue, UnknownFlag, parse
from condor_actors.tools.job_ids import parse_id
from condor_actors.wire.blocking import WireError

if TYPE_CHECKING:
    from condor_actors.tools.contact import Schedd

FLAGS = (
    Flag("help"),
    Flag("long"),
    Flag("limit", 3, 1),
    Flag("local", 3),
    Flag("match", 1, 1, alias="limit"),
    Flag("json", 2, colon=True),
    Flag("xml", 1),
    Flag("wide", 1, colon=True),
    Flag("backwards", 1),
    Flag("forwards", 2),
    Flag("file", 2, 1),
    Flag("constraint", 1, 1),
    Flag("completedsince", 2, 1),
    Flag("since", 2, 1),
    Flag("scanlimit", 2, 1),
    Flag("autoformat", 5, MANY, colon=True, alias="af"),
    Flag("af", 2, MANY, colon=True),
    Flag("attributes", 2, 1),
    Flag("format", 1, 2),
    Flag("name", 1, 1),
    Flag("pool", 1, 1),
    Flag("print-format", 2, 1),
    Flag("epochs", 1, colon=True, alias="unsupported"),
    Flag("type", 1, 1, alias="unsupported"),
    Flag("startd", 4, alias="unsupported"),
    Flag("userlog", 1, 1, alias="unsupported"),
    Flag("stream-results", 2),
    Flag("dag", 3),
    Flag("debug", 1, colon=True),
    Flag("version", 4),
)


@attrs.define
class Question:
    """The command line, understood."""

    ids: list[tuple[int, int]] = attrs.Factory(list)
    owners: list[str] = attrs.Factory(list)
    constraints: list[str] = attrs.Factory(list)
    form: str = ""
    attributes: tuple[str, ...] = ()
    af: tuple[str, tuple[str, ...]] = ("", ())
    formats: list[tuple[str, str]] = attrs.Factory(list)
    limit: int = 0
    since: str = ""
    file: str = ""
    table_file: str = ""
    name: str = ""
    pool: str = ""
    is_wide: bool = False
    is_forwards: bool = False


def main() -> int:
    """Entry of ``condor_history``."""
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
        return _answer(_understand(given))
    except UnknownFlag as error:
        print(f"Error: Unknown argument {error.word}", file=sys.stderr)
    except MissingValue as error:
        print(f"Error: Argument {error.word} requires another parameter", file=sys.stderr)
    except WireError as error:
        print(refused(error), file=sys.stderr)
    except ToolError as error:
        print(error.text, file=sys.stderr)
        return error.status
    except BrokenPipeError:
        sys.stderr.close()
    return 1


def _understand(given: list[Given]) -> Question:
    question = Question()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            found = parse_id(value)
            if found is not None:
                question.ids.append(found)
            else:
                question.owners.append(value)
        elif item.name == "constraint":
            question.constraints.append(value)
        elif item.name in ("long", "json", "xml"):
            question.form = item.name
        elif item.name == "af":
            question.af, question.form = (item.qualifier, item.values), "af"
        elif item.name == "format":
            question.formats.append((item.values[0], item.values[1]))
            question.form = "format"
        elif item.name == "attributes":
            question.attributes += tuple(value.replace(",", " ").split())
        elif item.name == "limit":
            if not value.lstrip("-").isdigit():
                raise ToolError(f"Error: Argument {item.word} requires a number, not {value}")
            question.limit = max(int(value), 0)
        elif item.name in ("wide", "forwards"):
            setattr(question, f"is_{item.name}", True)
        elif item.name in ("since", "file", "name", "pool"):
            setattr(question, item.name, value)
        elif item.name == "completedsince":
            if not value.isdigit():
                raise ToolError(f"Error: '{value}' not valid parameter for -completedsince (seconds since 1970)")
            question.since = f"CompletionDate <= {value}"
        elif item.name == "print-format":
            question.table_file = value
        elif item.name == "unsupported":
            raise ToolError(f"Error: {item.word} is not supported")
    return question


def _answer(question: Question) -> int:
    from condor_actors.tools import print_formats as forms

    config = load("TOOL")
    if question.file:
        return _print(question, _from_file(question))
    with schedd(config, name=question.name, pool=question.pool) as there:
        if question.form == "af":
            try:
                projection: tuple[str, ...] = forms.AutoFormat.of(*question.af).projection()
            except forms.FormatError as error:
                raise ToolError(f"Error: {error}") from None
        else:
            projection = question.attributes
        ads = _asked(there, question, () if question.form == "af" and "r" not in question.af[0] else projection)
        return _print(question, iter(list(ads)[::-1]) if question.is_forwards else ads)


def _asked(there: Schedd, question: Question, projection: Sequence[str]) -> Iterator[ClassAd]:
    from condor_actors.messages.queue import QueryJobs

    cursor = ""
    while True:
        page = there.ask(
            QueryJobs(
                source="history", ids=tuple(question.ids), constraint=_constraint(question),
                projection=tuple(projection), limit=question.limit, since=question.since, cursor=cursor,
            )
        )  # fmt: skip
        for text in page.ads:
            yield ClassAd.from_bytes(text)
        cursor = page.cursor
        if not cursor:
            return


def _constraint(question: Question) -> str:
    from condor_actors.classads import ClassAdSyntaxError, parse_expression, quote

    parts = [old_to_new(text) for text in question.constraints]
    for text in parts:
        try:
            parse_expression(text)
        except ClassAdSyntaxError:
            raise ToolError(f"Error:  could not parse constraint {text}") from None
    if question.owners:
        parts.append(" || ".join(f"Owner == {quote(owner)}" for owner in question.owners))
    return parts[0] if len(parts) == 1 else " && ".join(f"({part})" for part in parts)


def _from_file(question: Question) -> Iterator[ClassAd]:
    """Ads of a history file, the last written first."""
    from condor_actors.classads import is_true, parse_expression
    from condor_actors.classads.text_form import iter_long

    try:
        with open(question.file, encoding="utf-8", errors="surrogateescape") as file:
            ads = list(iter_long(file))
    except OSError as error:
        raise ToolError(f"Error: Can't open {question.file}: {error.strerror}") from None
    wanted = parse_expression(_constraint(question)) if question.constraints or question.owners else None
    since = _since(question.since)
    count = 0
    for ad in ads if question.is_forwards else reversed(ads):
        job = (ad.get_int("ClusterId"), ad.get_int("ProcId"))
        if since is not None and since(ad):
            return
        if question.ids and job not in question.ids and (job[0], -1) not in question.ids:
            continue
        if wanted is None or is_true(wanted.evaluate(ad)):
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

    tree = parse_expression(old_to_new(text))
    return lambda ad: is_true(tree.evaluate(ad))


def _print(question: Question, ads: Iterator[ClassAd]) -> int:
    from condor_actors.tools import print_formats as forms

    try:
        if question.table_file:
            from condor_actors.tools.print_tables import PrintTable

            rows = PrintTable.read(question.table_file).rows(ads)
        elif question.form == "af":
            rows = forms.AutoFormat.of(*question.af).rows(ads)
        elif question.form == "format":
            chosen = [forms.Format.of(form, text) for form, text in question.formats]
            rows = ("".join(form.text(ad) for form in chosen) for ad in ads)
        elif question.form == "json":
            rows = forms.json_rows(ads, question.attributes, when_empty="[\n]\n")
        elif question.form == "xml":
            rows = forms.xml_rows(ads, question.attributes)
        elif question.form == "long":
            rows = forms.long_rows(ads, question.attributes)
        else:
            rows = _table(ads, question.is_wide)
        for row in rows:
            sys.stdout.write(row)
    except forms.FormatError as error:
        raise ToolError(f"Error: {error}") from None
    sys.stdout.flush()
    return 0


def _table(ads: Iterator[ClassAd], is_wide: bool) -> Iterator[str]:
    from condor_actors.tools.print_formats import elapsed
    from condor_actors.tools.queue_views import command, day, state

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
      -long  -json  -xml      whole ads  [-attributes A,B]
      -autoformat[:jlhVrTY,tng] <attr> ...   -format <fmt> <attr>   -print-format <file>
      -wide                   do not cut lines"""

if __name__ == "__main__":
    sys.exit(main())
