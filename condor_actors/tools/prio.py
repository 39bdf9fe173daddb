"""condor_prio: change the priority of jobs among their owner's.

**Source**: the manual, condor_prio.
"""

from __future__ import annotations

import sys

from condor_actors.classads import ClassAd, quote
from condor_actors.messages.queue import ActionResult, ActionResults, EditJobs, QueryJobs
from condor_actors.tools.contact import Schedd, ToolError, load, refused, schedd
from condor_actors.tools.job_ids import ALL_PROCS, id_text, parse_id
from condor_actors.wire.blocking import WireError

USAGE = (
    "Usage: condor_prio [{+|-}priority ] [-p priority] [ -a ] [-n schedd_name] [ -pool pool_name ] "
    "[user | cluster | cluster.proc | -a] ..."
)


def main() -> int:
    """Entry of ``condor_prio``."""
    step = level = None
    name = pool = ""
    targets: list[str] = []
    is_all = False
    words = sys.argv[1:]
    while words:
        word = words.pop(0)
        bare = word.lstrip("-").lower()
        if word[0] in "+-" and word[1:].isdigit():
            step = int(word)
        elif not word.startswith("-"):
            targets.append(word)
        elif bare == "p" or (bare and "priority".startswith(bare) and bare != "pool"[: len(bare)]):
            if not words or not words[0].lstrip("+-").isdigit():
                return _usage()
            level = int(words.pop(0))
        elif bare and "all".startswith(bare):
            is_all = True
        elif bare and ("name".startswith(bare) or "pool".startswith(bare)):
            if not words:
                print(f"condor_prio: {word} requires another argument", file=sys.stderr)
                return 1
            if "name".startswith(bare):
                name = words.pop(0)
            else:
                pool = words.pop(0)
        elif bare and "help".startswith(bare):
            print(USAGE)
            return 0
        elif bare and "version".startswith(bare):
            from condor_actors.tools.version import platform_line, version_line

            print(f"{version_line()}\n{platform_line()}")
            return 0
        else:
            return _usage()
    if (step is None) == (level is None) or not (targets or is_all):
        return _usage()
    try:
        with schedd(load(), name=name, pool=pool) as there:
            return _change(there, targets, is_all, step, level)
    except WireError as error:
        print(refused(error), file=sys.stderr)
    except ToolError as error:
        print(error.text, file=sys.stderr)
    return 1


def _usage() -> int:
    print(USAGE, file=sys.stderr)
    return 1


def _change(there: Schedd, targets: list[str], is_all: bool, step: int | None, level: int | None) -> int:
    status = 0
    for word in ["all jobs"] if is_all else targets:
        found = None if is_all else parse_id(word)
        ids = () if found is None else (found,)
        constraint = "true" if is_all else "" if found is not None else f"Owner == {quote(word)}"
        if step is not None:
            status |= _each(there, ids, constraint, step, word)
            continue
        new = ClassAd({"JobPrio": level or 0}).to_bytes()
        status |= _report(_edit(there, EditJobs(attributes=new, ids=ids, constraint=constraint)), word, found)
    return status


def _each(there: Schedd, ids: tuple[tuple[int, int], ...], constraint: str, step: int, word: str) -> int:
    """Raise or lower each job's priority by ``step``: jobs of equal priority are changed together."""
    cursor = ""
    levels: dict[int, list[tuple[int, int]]] = {}
    while True:
        page = there.ask(
            QueryJobs(ids=ids, constraint=constraint, projection=("ClusterId", "ProcId", "JobPrio"), cursor=cursor)
        )
        for text in page.ads:
            ad = ClassAd.from_bytes(text)
            job = (ad.get_int("ClusterId"), ad.get_int("ProcId"))
            levels.setdefault(ad.get_int("JobPrio"), []).append(job)
        cursor = page.cursor
        if not cursor:
            break
    if not levels:
        print(f"Couldn't retrieve current priority for {word}.", file=sys.stderr)
        return 1
    status = 0
    for level, jobs in levels.items():
        for first in range(0, len(jobs), 5000):
            some = tuple(jobs[first : first + 5000])
            answer = _edit(there, EditJobs(attributes=ClassAd({"JobPrio": level + step}).to_bytes(), ids=some))
            status |= _report(answer, word, None)
    return status


def _edit(there: Schedd, message: EditJobs) -> ActionResults:
    answer = there.ask(message)
    assert isinstance(answer, ActionResults)
    return answer


def _report(answer: ActionResults, word: str, found: tuple[int, int] | None) -> int:
    bad = [row for row in answer.results if row[2] is not ActionResult.SUCCESS]
    for cluster, proc, _ in bad:
        print(f"Couldn't set new priority for {id_text(cluster, proc)}.", file=sys.stderr)
    if not answer.count and not bad:
        shown = word if found is None else id_text(found[0], found[1] if found[1] != ALL_PROCS else ALL_PROCS)
        print(f"Couldn't set new priority for {shown}.", file=sys.stderr)
    return 0 if answer.count else 1


if __name__ == "__main__":
    sys.exit(main())
