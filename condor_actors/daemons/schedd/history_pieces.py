"""What a question comes to in a piece of the history, from its columns alone.

Theory: a part of a question (a condition, what is grouped by) depends on the attributes that it names and on those
that their texts name in turn, so on few.  The jobs of a piece have few combinations of these attributes' texts.  Each
combination is made an ad and the part evaluated in it, with the code and the rights to see that a whole ad would meet;
which job has which result is then a matter of looking up numbers.  A condition of several that must all hold is taken
apart, since each of them alone has fewer combinations.

It is exact, or :class:`NeedsJobs` says that the jobs themselves have to be looked at: for what reads an ad as a whole,
for attributes whose column was left out, and for what takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress, repeat
from typing import Any

from condor_actors.classads import ClassAd, Expr, is_true, unparse
from condor_actors.classads.language.expressions import Binary, Literal, Reference
from condor_actors.classads.language.references import references
from condor_actors.cores.schedd.job_attributes import JobSight
from condor_actors.daemons.schedd.history_filter import WHOLE, is_plain
from condor_actors.patterns import late
from condor_actors.store.column_file import Column, ColumnFile
from condor_actors.store.history_columns import OF_JOBS, SUMS, WHEN_S
from condor_actors.store.history_totals import day_of

__all__ = ["NeedsJobs", "Pieces", "conditions", "date_keys", "written"]

PIECE_S = 5.0
"""For how long a piece may be worked at before its jobs are looked through, which can be done in parts."""
MOST_REMEMBERED = 20_000
"""Combinations of one part whose result is remembered from piece to piece."""
_VALUE = late(rb'-?[0-9]{1,18}(?:\.[0-9]{1,18})?|true|false|undefined|"[^"\\\n]*"')
_NAME = late(r"[a-z_][a-z0-9_]*")
_WHOLE_NUMBER = late(rb"-?[0-9]{1,15}")
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "<": int.__lt__, "<=": int.__le__, ">": int.__gt__, ">=": int.__ge__}
_DATES: dict[int, dict[str, str]] = {}


class NeedsJobs(Exception):
    """The columns do not say it."""


def conditions(constraint: Expr | None) -> list[Expr]:
    """The conditions that must all be true for the whole to be."""
    found: list[Expr] = []
    waiting = [] if constraint is None else [constraint]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Binary) and node.operator == "&&":
            waiting += [node.right, node.left]
        else:
            found.append(node)
    return found


def date_keys(ended_s: float) -> dict[str, str]:
    """The date at which a job ended, as totals name it."""
    quarter = int(ended_s // WHEN_S)
    found = _DATES.get(quarter)
    if found is None:
        date = f"{day_of(quarter * WHEN_S):08d}"
        if len(_DATES) > MOST_REMEMBERED:
            _DATES.clear()
        found = _DATES[quarter] = {"Year": date[:4], "Month": f"{date[:4]}-{date[4:6]}",
                                   "Day": f"{date[:4]}-{date[4:6]}-{date[6:]}"}
    return found


def written(value: Any) -> bytes:
    """A value as a group is known by it."""
    return unparse(value).encode("utf-8", "surrogateescape")


class _Part:
    """A part of a question: a condition, or a name that is grouped by.

    Args:
        expression: it.
        is_condition: its result is whether it is true; otherwise its value's text.
    """

    def __init__(self, expression: Expr, *, is_condition: bool) -> None:
        self.expression = expression
        self.is_condition = is_condition
        self.names = references(expression)[0]
        self.is_plain = is_plain(expression) and not self.names & WHOLE
        self.known: dict[tuple[tuple[str, ...], Any], Any] = {}
        self.bound = _bound(expression) if is_condition else None

    def of(self, ad: ClassAd) -> Any:
        """The result in an ad."""
        value = self.expression.evaluate(ad)
        return is_true(value) if self.is_condition else written(value)


def _bound(expression: Expr) -> tuple[Callable[[int, int], bool], int] | None:
    """Of ``Name < 7`` how it compares, and with what."""
    if isinstance(expression, Binary) and isinstance(expression.left, Reference) and isinstance(
            expression.right, Literal) and expression.left.scope is None and not expression.left.absolute:
        number, compare = expression.right.value, _COMPARED.get(expression.operator)
        if compare is not None and type(number) is int and abs(number) < 1 << 52:
            return compare, number
    return None


class Pieces:
    """Answers for pieces.

    Args:
        constraint: which jobs count.
        by: what they are grouped by; none: only :meth:`chosen` is asked.
        sight: what the asker sees.
        owner: only this user's; empty: all.
    """

    def __init__(self, constraint: Expr | None, by: Sequence[Expr], sight: JobSight, owner: str) -> None:
        self._conditions = [_Part(each, is_condition=True) for each in conditions(constraint)]
        self._by = [_Part(each, is_condition=False) for each in by]
        self._sight, self._owner = sight, owner
        self._until_s = 0.0

    def chosen(self, file: ColumnFile, skipped: int) -> bytes:
        """For each job of a piece whether it counts (1) or not (0).

        Args:
            file: the columns.
            skipped: so many of the first jobs have been forgotten.

        Raises:
            NeedsJobs: the columns do not say it.
            BadColumns: they are damaged.
        """
        self._until_s = time.monotonic() + PIECE_S
        count = int(file.facts["count"])
        mask = bytes(skipped) + b"\1" * (count - skipped)
        if self._owner:
            column = _there(file, "#owner")
            mine = written(self._owner)
            mask = _both(mask, _looked_up(column.codes, [text == mine for text in column.texts]))
        for part in self._conditions:
            if not any(mask):
                break
            mask = _both(mask, bytes(self._results(file, part)))
        return mask

    def groups(self, file: ColumnFile, skipped: int) -> dict[tuple[bytes, ...], list[float]]:
        """Jobs, starts and seconds of each group, the newest job's first; arguments and errors as of :meth:`chosen`."""
        mask = self.chosen(file, skipped)
        sums: dict[tuple[bytes, ...], list[float]] = {}
        if not any(mask):
            return sums
        keys: Iterable[Any] = zip(*(self._results(file, part) for part in self._by), strict=True)
        rows = zip(keys, *(file.reals(name) for name in SUMS), strict=True)
        for key, starts, wall_s, core_s, cpu_s in compress(rows, mask):
            found = sums.get(key)
            if found is None:
                found = sums[key] = [0.0] * 5
            found[0] += 1.0
            found[1] += starts
            found[2] += wall_s
            found[3] += core_s
            found[4] += cpu_s
        return sums

    def _results(self, file: ColumnFile, part: _Part) -> Iterable[Any]:
        """What a part comes to for each job."""
        names = self._needed(file, part)
        columns = [_there(file, name) for name in names]
        if not columns:
            return repeat(part.of(ClassAd()), int(file.facts["count"]))
        if len(columns) == 1:
            column = columns[0]
            results = self._of_texts(part, names[0], column)
            return _looked_up(column.codes, results) if part.is_condition else map(results.__getitem__, column.codes)
        combined = list(zip(*(column.codes for column in columns), strict=True))
        known = {codes: self._of(part, names, tuple(column.texts[code] for column, code in
                                                    zip(columns, codes, strict=True)))
                 for codes in dict.fromkeys(combined)}
        return map(known.__getitem__, combined)

    def _of_texts(self, part: _Part, name: str, column: Column) -> list[Any]:
        if part.bound is not None and name not in OF_JOBS.values() and _are(_WHOLE_NUMBER, column.texts):
            compare, number = part.bound
            return [False, *(compare(each, number) for each in map(int, column.texts[1:]))]
        used = set(column.codes) if len(column.texts) < 1000 else None
        return [self._of(part, (name,), (text,)) if used is None or code in used else None
                for code, text in enumerate(column.texts)]

    def _of(self, part: _Part, names: tuple[str, ...], texts: tuple[bytes, ...]) -> Any:
        """What a part comes to where attributes have these texts."""
        found = part.known.get((names, texts))
        if found is None:
            if time.monotonic() > self._until_s:
                raise NeedsJobs("it takes long")
            if len(part.known) >= MOST_REMEMBERED:
                part.known.clear()
            found = part.known[names, texts] = part.of(self._ad(names, texts))
        return found

    def _ad(self, names: tuple[str, ...], texts: tuple[bytes, ...]) -> ClassAd:
        lines = [b"%s = %s\n" % (name.encode(), text) for name, text in zip(names, texts, strict=True)
                 if text and not name.startswith("#")]
        ad = ClassAd.from_bytes(b"".join(lines))
        of_job = {name: text for name, text in zip(names, texts, strict=True) if name.startswith("#")}
        if "#owner" in of_job:
            owner = ClassAd.from_bytes(b"Owner = " + of_job["#owner"]).get_str("Owner")
            ad = self._sight.whole(ad, owner)
            ad["Owner"] = owner
        if "#outcome" in of_job:
            ad["Outcome"] = ClassAd.from_bytes(b"Outcome = " + of_job["#outcome"]).get_str("Outcome")
        for name, value in date_keys(int(of_job["#when"]) * WHEN_S).items() if "#when" in of_job else ():
            ad[name] = value
        return ad

    def _needed(self, file: ColumnFile, part: _Part) -> tuple[str, ...]:
        """The columns that a part depends on.

        Raises:
            NeedsJobs: it depends on the whole ad, or a column is not there.
        """
        if not part.is_plain:
            raise NeedsJobs("it reads whole ads")
        found: dict[str, None] = {}
        waiting = list(part.names)
        while waiting:
            name = waiting.pop()
            column_name = OF_JOBS.get(name, name)
            if column_name in found:
                continue
            if not _NAME.fullmatch(name):
                raise NeedsJobs(f"{name} is no plain name")
            column = file.column(column_name)
            if column is None:
                if not file.is_whole:
                    raise NeedsJobs(f"{name} has no column")
                continue
            found[column_name] = None
            if column_name == name and not _are(_VALUE, column.texts):
                waiting += _named_by(name, column.texts)
        if self._sight.hides_any(found):
            found["#owner"] = None
        return tuple(sorted(found))


def _named_by(name: str, texts: Sequence[bytes]) -> Iterator[str]:
    """Attributes that texts refer to."""
    for text in texts[1:]:
        expression = ClassAd.from_bytes(b"%s = %s\n" % (name.encode(), text)).expression(name)
        if expression is None:
            continue
        named = references(expression)[0]
        if named & WHOLE or not is_plain(expression):
            raise NeedsJobs(f"some {name} reads whole ads")
        yield from named


def _are(pattern: Any, texts: Sequence[bytes]) -> bool:
    return all(map(pattern.fullmatch, texts[1:]))


def _there(file: ColumnFile, name: str) -> Column:
    column = file.column(name)
    if column is None:
        raise NeedsJobs(f"{name} has no column")
    return column


def _looked_up(codes: Sequence[int], results: Sequence[Any]) -> bytes:
    """For each code whether its result is true."""
    table = bytes(map(bool, results))
    if isinstance(codes, bytes):
        return codes.translate(table.ljust(256, b"\0"))
    return bytes(map(table.__getitem__, codes))


def _both(one: bytes, other: bytes) -> bytes:
    return (int.from_bytes(one, "little") & int.from_bytes(other, "little")).to_bytes(len(one), "little")
