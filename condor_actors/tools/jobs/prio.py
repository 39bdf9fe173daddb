"""condor_prio: change the priority of jobs among their owner's.

**Source**: the manual, condor_prio.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from condor_actors.classads import ClassAd, quote
from condor_actors.messages.queue import ActionResult, ActionResults, EditJobs, QueryJobs
from condor_actors.tools.lib.command import ToolError, Words, operands_of, reminder_of, run, values_of
from condor_actors.tools.lib.contact import ACTION_TIMEOUT_S, Schedd, load, schedd
from condor_actors.tools.lib.flags import Flag, Given, parse
from condor_actors.tools.lib.job_ids import ALL_PROCS, id_text, parse_id

FLAGS = (
    Flag("help"), Flag("version"), Flag("all"), Flag("name", 1, 1), Flag("pool", 2, 1), Flag("priority", 1, 1),
)  # fmt: skip


def main() -> int:
    """Entry of ``condor_prio``."""
    return run(_read, "condor_prio", _answer, words=Words(
        unknown="condor_prio: {word} is not a valid option\n{usage}",
        missing="condor_prio: {word} requires another argument"))  # fmt: skip


def _read(words: Sequence[str]) -> list[Given]:
    """``+N`` and ``-N`` are steps, and ``-p`` may be followed by a number with a sign; all else is flags as usual."""
    plain = [f"={word}" if word[:1] in ("+", "-") and word[1:].isdecimal() else word for word in words]
    return [
        Given("step", (item.values[0][1:],)) if not item.name and item.values[0][:1] == "=" else item
        for item in parse(plain, FLAGS)
    ]


def _answer(given: Sequence[Given]) -> int:
    values, targets = values_of(given), operands_of(given)
    level = values["priority"].lstrip("=") if "priority" in values else None
    is_all = "all" in values
    if ("step" in values) == (level is not None) or not (targets or is_all):
        raise ToolError(reminder_of("condor_prio"))
    if level is not None and not level.lstrip("+-").isdecimal():
        raise ToolError(f"condor_prio: -p takes a number, not {level}\n{reminder_of('condor_prio')}")
    with schedd(load(), name=values.get("name", ""), pool=values.get("pool", "")) as there:
        return _change(there, targets, is_all, int(values["step"]) if "step" in values else None,
                       None if level is None else int(level))  # fmt: skip


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
    answer = there.ask(message, ACTION_TIMEOUT_S)
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
