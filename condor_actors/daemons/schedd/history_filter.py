"""Reads of an ad of the history only what a question needs of it.

Theory: a job's ad has a hundred lines, a question names three attributes, and reading a line costs ten times what
passing over it does.  So where it is certain that only some attributes count, only their lines are read.  It is certain
when the expression has only names and functions of :data:`PLAIN`, and what the names stand for in this ad are plain
values; otherwise the whole ad is read.  The lines that all jobs of a cluster share are looked through only once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, Expr
from condor_actors.classads.language.expressions import Call, RecordExpr
from condor_actors.classads.language.references import references

__all__ = ["WHOLE", "NeededLines", "is_plain"]

PLAIN = frozenset({
    "abs", "bool", "ceiling", "floor", "formattime", "ifthenelse", "int", "isboolean", "iserror", "isinteger", "isreal",
    "isstring", "isundefined", "max", "min", "pow", "real", "regexp", "round", "size", "strcat", "strcmp", "stricmp",
    "string", "stringlistimember", "stringlistmember", "substr", "time", "tolower", "toupper",
})
"""Functions that look at their arguments alone."""
WHOLE = frozenset({"my", "self", "toplevel", "root", "parent", "target"})
"""Names by which an expression means an ad as a whole."""
MOST_NAMES = 10_000
"""That are remembered; ads are their owners' to write."""
_IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]*")


class NeededLines:
    """What one question needs of each ad.

    Args:
        expressions: that are evaluated in it.
        projection: attributes that are wanted of it.

    Attributes:
        is_all: whether the whole ad is needed.
    """

    def __init__(self, expressions: Iterable[Expr], projection: Sequence[str]) -> None:
        expressions = tuple(expressions)
        self._evaluated: frozenset[str] = frozenset().union(*(references(each)[0] for each in expressions))
        self._names = self._evaluated | {name.lower() for name in projection}
        self.is_all = not (all(is_plain(each) for each in expressions) and not self._evaluated & WHOLE
                           and all(map(_IDENTIFIER.fullmatch, self._names)))
        self._is_needed: dict[bytes, bool] = {}
        self._shared: tuple[bytes, bytes] = (b"", b"")

    def ad(self, shared: bytes, own: bytes) -> ClassAd:
        """The ad, with what is needed of it.

        Args:
            shared: the lines of its cluster.
            own: those of the job, which count more.
        """
        if not self.is_all:
            if self._shared[0] != shared:
                self._shared = shared, self._lines_of(shared)
            ad = ClassAd.from_bytes(self._shared[1] + self._lines_of(own))
            if all(_is_value(ad.own.get(name)) for name in self._evaluated):
                return ad
        return ClassAd.from_bytes(shared + own)

    def _lines_of(self, text: bytes) -> bytes:
        known = self._is_needed
        lines = []
        for line in text.split(b"\n"):
            name = line.partition(b" ")[0]
            is_needed = known.get(name)
            if is_needed is None:
                is_needed = name.lower().decode("ascii", "replace") in self._names
                if len(known) < MOST_NAMES:
                    known[name] = is_needed
            if is_needed:
                lines.append(line)
        lines.append(b"")
        return b"\n".join(lines)


def is_plain(expression: Expr) -> bool:
    waiting = [expression]
    while waiting:
        node = waiting.pop()
        if isinstance(node, RecordExpr) or (isinstance(node, Call) and node.name.lower() not in PLAIN):
            return False
        waiting.extend(node.children())
    return True


def _is_value(value: object) -> bool:
    """Whether an attribute depends on no other one."""
    return value is None or isinstance(value, (bool, int, float, str)) or value is UNDEFINED or value is ERROR
