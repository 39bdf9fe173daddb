"""condor_history: jobs that have left the queue, the newest first.

**Source**: the manual, condor_history.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from condor_actors import records
from condor_actors.classads import ClassAd
from condor_actors.messages.job_codes import JobStatus
from condor_actors.patterns import late
from condor_actors.tools.lib.command import ToolError, Words, run
from condor_actors.tools.lib.contact import load, schedd
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.tools.lib.job_ids import parse_id, take_operand
from condor_actors.tools.printing import ad_output
from condor_actors.tools.printing.history_totals import Progress, added_up, totals_table

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

    from condor_actors.config import Config

OF_A_JOB = late(r"job\.runs\.(\d{1,10})\.(\d{1,10})\.ads")
NAME = late(r"[A-Za-z_][A-Za-z0-9_]*")
ROTATED = late(r"\.\d{8}T\d{6}")
TRANSFERS = {"I": "INPUT", "O": "OUTPUT", "C": "CHECKPOINT"}
EXTRACTED = 100_000
"""Ads that ``-extract`` copies unless ``-limit`` says otherwise."""
FLAGS = (
    Flag("help"), Flag("local", 3, idle="the history is read by the schedd that keeps it"),
    Flag("match", 1, 1, alias="limit"), Flag("wide", 1, colon=True),
    Flag("backwards", 1), Flag("forwards", 4), Flag("nobackwards", 3, alias="forwards"), Flag("file", 2, 1),
    Flag("jsonl", 5), *ad_output.flags(),
    Flag("completedsince", 2, 1), Flag("since", 2, 1), Flag("scanlimit", 2, 1), Flag("search", 3, 1),
    Flag("name", 1, 1), Flag("no-librarian", 4, idle="the history is its own index"), Flag("pool", 1, 1),
    Flag("epochs", 1, colon=True), Flag("extract", 2, 1), Flag("type", 2, 1),
    Flag("parquet", 3, 1), Flag("totals", 3, colon=True),
    Flag("transfer-history", 3, colon=True),
    Flag("daemon", 3),
    Flag("startd", 3), Flag("schedd", 3), Flag("directory", 3),
    Flag("userlog", 1, 1),
    Flag("stream-results", 2, idle="jobs are always printed as they arrive"),
    Flag("diagnostic", 4, idle=NO_DEBUG), Flag("debug", 1, colon=True, idle=NO_DEBUG), Flag("version", 4),
)  # fmt: skip


@records.define
class Question(ad_output.AdQuestion):
    """The command line, understood."""

    ids: list[tuple[int, int]] = records.Factory(list)
    owners: list[str] = records.Factory(list)
    since: str = ""
    file: str = ""
    userlog: str = ""
    name: str = ""
    pool: str = ""
    search: str = ""
    extract: str = ""
    parquet: str = ""
    scan_limit: int = 0
    width: int = 100
    is_forwards: bool = False
    is_of_folder: bool = False
    source: str = "history"
    by: tuple[str, ...] = ()


@records.frozen
class _Wanted:
    """A question to a daemon, and the attributes that are needed (empty: all)."""

    question: Question
    projection: tuple[str, ...] = ()


def main() -> int:
    """Entry of ``condor_history``."""
    return run(FLAGS, "condor_history", lambda given: _answer(_understand(given)),
               words=Words(unknown="Error: Unknown argument {word}"))  # fmt: skip


def _understand(given: Sequence[Given]) -> Question:
    question = Question()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name:
            take_operand(value, question.ids, question.owners)
        elif question.take(item):
            continue
        elif item.name in ("forwards", "backwards"):
            question.is_forwards = item.name == "forwards"
        elif item.name == "directory":
            question.is_of_folder = True
        elif item.name == "wide":
            question.width = _number(item.word, item.qualifier) if item.qualifier else sys.maxsize
        elif item.name in ("since", "file", "userlog", "name", "pool", "search", "extract", "parquet"):
            setattr(question, item.name, value)
        elif item.name == "scanlimit":
            question.scan_limit = _number(item.word, value)
        elif item.name == "completedsince":
            question.since = f"CompletionDate <= ({ad_output.checked(value)})"
        elif item.name == "epochs":
            if item.qualifier:
                raise ToolError("Error: -epochs:d removes nothing here: MAX_EPOCH_HISTORY_LOG and "
                                "MAX_EPOCH_HISTORY_ROTATIONS bound what is kept; use -epochs")
            question.source = "epochs"
        elif item.name == "transfer-history":
            question.source = "transfers"
            _take_kinds(question, item.qualifier)
        elif item.name in ("schedd", "startd", "daemon"):
            question.source = "history" if item.name == "schedd" else item.name
        elif item.name == "totals":
            question.source, question.by = "totals", _groups(item.qualifier)
        elif item.name == "type":
            _take_type(question, value)
    if question.extract:
        _check_extract(question, limited=any(item.name == "limit" for item in given))
    if question.parquet and (question.extract or question.form):
        raise ToolError("Error: -parquet writes a table of its own; leave out -extract, -long, -json, -jsonl, -xml, "
                        "-af, -format and -print-format (-attributes chooses the columns)")
    if question.source == "totals":
        _check_totals(question)
    return question


def _groups(words: str) -> tuple[str, ...]:
    """By what ``-totals:owner,ProjectName`` adds up; names that all totals have are spelled as these spell them."""
    from condor_actors.messages.queue import TOTALS_BY

    known = {name.lower(): name for name in TOTALS_BY}
    wanted = [known.get(word.lower(), word) for word in words.split(",") if word] or ["Owner"]
    for word in wanted:
        if not NAME.fullmatch(word):
            raise ToolError(f"Error: -totals:{words}: {word} is no attribute")
    return tuple({word.lower(): word for word in wanted}.values())


def _check_totals(question: Question) -> None:
    if question.ids or question.since or question.scan_limit or question.extract or question.parquet or (
            question.file or question.search or question.userlog or question.is_of_folder):
        raise ToolError("Error: -totals are of all jobs that an owner or -constraint chooses "
                        "(-constraint 'Day >= \"2026-11-01\"'); leave out jobs, -since, -completedsince, -scanlimit, "
                        "-extract, -parquet, -file, -search, -directory and -userlog")


def _take_type(question: Question, value: str) -> None:
    words = set(value.upper().replace(",", " ").split())
    if words and words <= set(TRANSFERS.values()) and question.source != "startd":
        question.source = "transfers"
        _choose(question, words)
        return
    known = {"EPOCH", "ALL"} if question.source == "epochs" else {"JOB", "ALL"}
    if words == {"EPOCH"}:
        question.source, known = "epochs", words
    if words - known:
        raise ToolError(f"Error: there are records of type {' or '.join(sorted(known - {'ALL'}))} here, none of "
                        f"{', '.join(sorted(words - known))}")


def _take_kinds(question: Question, letters: str) -> None:
    """``-transfer-history:io``: the ways that count."""
    wanted = {TRANSFERS.get(letter) for letter in letters.upper()}
    if None in wanted:
        raise ToolError(f"Error: -transfer-history:{letters} knows i (inputs), o (outputs) and c (checkpoints)")
    if wanted:
        _choose(question, {each for each in wanted if each is not None})


def _choose(question: Question, kinds: set[str]) -> None:
    if kinds != set(TRANSFERS.values()):
        question.constraints.append(" || ".join(f'TransferClass == "{kind}"' for kind in sorted(kinds)))


def _number(word: str, value: str) -> int:
    if not value.isdecimal():
        raise ToolError(f"Error: Argument {word} requires a number, not {value}")
    return int(value)


def _check_extract(question: Question, *, limited: bool) -> None:
    if question.name or question.pool:
        raise ToolError("Error: -extract cannot be combined with -name or -pool")
    if not (question.constraints or question.ids or question.owners):
        raise ToolError("Error: -extract needs a constraint, a job or an owner")
    if not limited:
        question.limit = EXTRACTED


def _answer(question: Question) -> int:
    config = load("TOOL")
    if question.userlog:
        ended = [ad for ad in ad_output.ads_of_log(question.userlog) if ad.get_int("JobStatus") in (
            JobStatus.REMOVED, JobStatus.COMPLETED)]
        return _print(question, _chosen(question, ended))
    if question.is_of_folder and question.source != "epochs":
        print("Note: -directory has no effect without -epochs", file=sys.stderr)
    elif question.is_of_folder:
        folder = question.search or config.text("JOB_EPOCH_HISTORY_DIR") or ""
        paths = _of_jobs(folder)
        return _print(question, _chosen(question, [ad for path in paths for ad in ad_output.ads_of_file(path)]))
    if question.file or question.search:
        paths = _rotated(question.search) if question.search else [question.file]
        return _print(question, _chosen(question, [ad for path in paths for ad in ad_output.ads_of_file(path)]))
    if question.source == "startd":
        return _print_found(question, lambda wanted: _asked_of_startds(config, question, wanted))
    with schedd(config, name=question.name, pool=question.pool) as there:
        return _print_found(question, lambda wanted: _asked(there.ask, wanted))


def _print_found(question: Question, asked: Callable[[_Wanted], Iterator[ClassAd]]) -> int:
    """Print what a daemon finds."""
    if question.scan_limit:
        looked_at = Question(source=question.source, limit=0 if question.is_forwards else question.scan_limit)
        return _print(question, _chosen(question, list(asked(_Wanted(looked_at)))[::-1]))
    if question.source == "totals":
        groups = added_up(question.by, asked(_Wanted(question, question.by)))
        return _print(question, iter(groups[:: -1 if question.is_forwards else 1][: question.limit or None]))
    is_evaluated = bool(question.parquet) or (
        question.form == "row" and not question.row().is_raw)  # it may need any other attribute
    names = () if is_evaluated or question.extract else tuple(question.names() or ())
    ads = asked(_Wanted(question, names))
    return _print(question, iter(list(ads)[::-1][: question.limit or None]) if question.is_forwards else ads)


def _asked_of_startds(config: Config, question: Question, wanted: _Wanted) -> Iterator[ClassAd]:
    """What machines have recorded of jobs that ran there: this one, or those that are named."""
    from condor_actors.tools.lib.machine_commands import STARTD, ask, startds

    names = (question.name,) if question.name else ()
    for _, _, client in startds(config, names=names, pool=question.pool):
        with client:
            yield from _asked(partial(ask, client, STARTD), wanted)


def _of_jobs(folder: str) -> list[str]:
    """The files of JOB_EPOCH_HISTORY_DIR, in the order of their jobs."""
    if not folder:
        raise ToolError("Error: JOB_EPOCH_HISTORY_DIR names no folder; -search FOLDER does, too")
    try:
        found = [match for name in os.listdir(folder) if (match := OF_A_JOB.fullmatch(name))]
    except OSError as error:
        raise ToolError(f"Error: Can't open directory {folder}: {error.strerror}") from None
    in_order = sorted(found, key=lambda each: (int(each[1]), int(each[2])))
    return [os.path.join(folder, each.group()) for each in in_order]


def _rotated(path: str) -> list[str]:
    """A history file with those that were put aside before, ``FILE.YYYYMMDDTHHMMSS``, the oldest first."""
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")
    except OSError as error:
        raise ToolError(f"Error: Can't open directory {folder or '.'}: {error.strerror}") from None
    older = sorted(each for each in beside if each.startswith(f"{name}.") and ROTATED.fullmatch(each[len(name):]))
    found = [os.path.join(folder, each) for each in [*older, *([name] if name in beside else [])]]
    if not found:
        raise ToolError(f"Error: there is no {path}, and no {name}.YYYYMMDDTHHMMSS beside it")
    return found


def _asked(ask: Callable[[Any], Any], wanted: _Wanted) -> Iterator[ClassAd]:
    """The ads that a daemon finds, page by page."""
    from condor_actors.messages.queue import QueryJobs

    question = wanted.question
    limit, cursor = 0 if question.is_forwards or question.source == "totals" else question.limit, ""
    progress = Progress()
    while True:
        page = ask(
            QueryJobs(
                source=question.source, ids=tuple(question.ids), constraint=_constraint(question),
                projection=wanted.projection, limit=limit, since=question.since, cursor=cursor,
            )
        )  # fmt: skip
        for text in page.ads:
            yield ClassAd.from_bytes(text)
        progress.tell(page)
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
    scanned = list(ads if question.is_forwards else reversed(ads))
    for ad in scanned[: question.scan_limit or None]:
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
    if question.extract:
        return _extract(question.extract, ads)
    if question.parquet:
        from condor_actors.tools.printing.parquet import write_parquet

        print(f"Wrote {write_parquet(question.parquet, ads, question.attributes)} ads to {question.parquet}")
        return 0
    if question.form == "table":
        from condor_actors.tools.printing.tables import PrintTable

        return ad_output.write(ad_output.understood(lambda: list(PrintTable.read(question.table_file).rows(ads))))
    rows = question.rows(ads, when_empty="[\n]\n")
    if question.source == "totals":
        return ad_output.write(totals_table(question.by, ads) if rows is None else rows)
    table = {"transfers": _transfers, "daemon": _daemons}.get(question.source, _table)
    return ad_output.write(table(ads, question.width) if rows is None else rows)


def _extract(path: str, ads: Iterator[ClassAd]) -> int:
    """Copy ads into a file that ``-file`` reads, the oldest first."""
    found = list(ads)[::-1]
    with open(path, "x", encoding="utf-8", errors="surrogateescape") as file:
        file.writelines(ad_output.projected_rows("long", found))
    print(f"Wrote {len(found)} ads to {path}")
    return 0


def _table(ads: Iterator[ClassAd], width: int) -> Iterator[str]:
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
        yield line[:width].rstrip() + "\n"


def _transfers(ads: Iterator[ClassAd], width: int) -> Iterator[str]:
    from condor_actors.tools.printing.formats import elapsed
    from condor_actors.tools.printing.queue_views import day

    yield " ID          RUN KIND       BEGAN            TIME  FILES         BYTES OK  HOST\n"
    for ad in ads:
        job = f"{ad.get_int('ClusterId')}.{ad.get_int('ProcId')}"
        began_s, ended_s = ad.get_int("TransferStartTime"), ad.get_int("TransferEndTime")
        done = "yes" if ad.get_bool("TransferSuccess") else "no "
        line = (f"{job:>8} {ad.get_int('RunInstanceId'):>7} {ad.get_str('TransferClass'):<10} {day(began_s)} "
                f"{elapsed(ended_s - began_s):>12} {ad.get_int('TransferFileCount'):>6} "
                f"{ad.get_int('TransferTotalBytes'):>13} {done} {ad.get_str('RemoteHost')}")
        yield line[:width].rstrip() + "\n"


def _daemons(ads: Iterator[ClassAd], width: int) -> Iterator[str]:
    yield " TIMESTAMP   RUNNING      IDLE      HELD  NAME\n"
    for ad in ads:
        line = (f"{ad.get_int('RecordWriteDate'):>10} {ad.get_int('TotalRunningJobs'):>9} "
                f"{ad.get_int('TotalIdleJobs'):>9} {ad.get_int('TotalHeldJobs'):>9}  {ad.get_str('Name')}")
        yield line[:width].rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(main())
