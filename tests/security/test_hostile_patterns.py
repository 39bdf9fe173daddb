"""Every regular expression of the source, with long texts of few kinds of letters: none takes their length squared.

They are found in the source, so one that is written tomorrow is tried as well.  Of each, the texts are made that it
nearly matches: one of its repetitions said very often, and something behind it that cannot follow.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from re import _constants as code  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import condor_actors
from tests.harness.processor_time import at_most

SOURCE = Path(condor_actors.__file__).parent
MOST_S = 1.0
"""Of processor time, for what takes some hundredths of a second; with the square of the length it is minutes."""
LENGTH = 60_000
FUNCTIONS = ("compile", "match", "fullmatch", "search", "sub", "split", "findall", "finditer")
LETTERS = "a1 _-.=\"'\\:/,<(A0x\t\n$%"
BEHIND = ("", "\0", "!", "\n!")
REPEATS = (code.MAX_REPEAT, code.MIN_REPEAT, code.POSSESSIVE_REPEAT)
PAIRS = ("a(", "Aa", "1.", "a=", '"a', "a ", "=\"", "1 ", "\\\"", "/a", "$(", "[:")


def called(call: ast.Call) -> str:
    """``compile``, ``search`` …, where it makes or uses an expression."""
    function = call.func
    if isinstance(function, ast.Name) and function.id == "late":
        return "compile"
    if (isinstance(function, ast.Attribute) and function.attr in FUNCTIONS and isinstance(function.value, ast.Name)
            and function.value.id == "re"):
        return function.attr
    return ""


def text_of(node: ast.expr, known: dict[str, Any]) -> Any:
    """The expression; None: it is put together while the program runs."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = [text_of(each.value if isinstance(each, ast.FormattedValue) else each, known) for each in node.values]
        return "".join("xy" if part is None else str(part) for part in parts)
    if isinstance(node, ast.BinOp):
        left, right = text_of(node.left, known), text_of(node.right, known)
        return left + right if left is not None and right is not None else None
    return None


def flags_of(call: ast.Call) -> int:
    """The flags that a call names."""
    words = ast.unparse(call)
    found = 0
    for flag in re.RegexFlag:
        if f"re.{flag.name}" in words:
            found |= flag
    if isinstance(call.func, ast.Name) and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        for letter in call.args[1].value:
            found |= re.RegexFlag[letter.upper()]
    return int(found)


def expressions() -> Iterator[tuple[str, str | bytes, int, frozenset[str]]]:
    """Each expression: where it is, its text, its flags, and how it is used: ``match``, ``fullmatch``, ``search``."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = {node.targets[0].id: node.value.value for node in ast.walk(tree)
                 if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
                 and isinstance(node.value, ast.Constant)}
        named: dict[int, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Call):
                named[id(node.value)] = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
        uses: dict[str, set[str]] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                uses.setdefault(ast.unparse(node.value), set()).add(node.attr)
        for node in ast.walk(tree):
            function = called(node) if isinstance(node, ast.Call) else ""
            if function and (text := text_of(node.args[0], known)) is not None:
                used = {function} if function != "compile" else uses.get(named.get(id(node), ""), set())
                used = used & set(FUNCTIONS) or set(FUNCTIONS)
                ways = frozenset(each if each.endswith("match") else "search" for each in used)
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", text, flags_of(node), ways


def fits(letter: str, operator: Any, given: Any) -> bool:
    """Whether one step of an expression takes a letter."""
    if operator is code.NOT_LITERAL:
        return ord(letter) != given
    if operator is code.ANY:
        return letter != "\n"
    source = "[" + "".join(_class(each) for each in given) + "]"
    return re.fullmatch(source, letter) is not None


def _class(part: tuple[Any, Any]) -> str:
    operator, given = part
    if operator is code.NEGATE:
        return "^"
    if operator is code.LITERAL:
        return re.escape(chr(given))
    if operator is code.RANGE:
        return f"{re.escape(chr(given[0]))}-{re.escape(chr(given[1]))}"
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[str(given).rpartition("_")[2]]
    return f"\\{letter.upper() if 'NOT' in str(given) else letter}"


class Sample:
    """Texts that an expression takes, with one of its repetitions said often.

    Args:
        often: which one, counted from 1 in the order of the expression.
        turn: which of the letters that fit a step stands there.
    """

    def __init__(self, often: int, turn: int) -> None:
        self.often, self.turn, self.met = often, turn, 0

    def of(self, steps: Any) -> str:
        """The text of a piece of an expression."""
        return "".join(self._step(operator, given) for operator, given in steps)

    def _step(self, operator: Any, given: Any) -> str:
        if operator is code.LITERAL:
            return chr(given)
        if operator in (code.NOT_LITERAL, code.ANY, code.IN):
            good = [each for each in LETTERS if fits(each, operator, given)]
            good = good or [chr(each) for each in range(0x2100) if fits(chr(each), operator, given)]
            return good[self.turn * 7 % len(good)] if good else ""
        if operator in REPEATS:
            return self._repeated(*given)
        if operator is code.SUBPATTERN:
            return self.of(given[3])
        if operator is code.BRANCH:
            return max((self.of(each) for each in given[1]), key=len)
        if operator is code.ATOMIC_GROUP:
            return self.of(given)
        return ""

    def _repeated(self, least: int, most: Any, steps: Any) -> str:
        self.met += 1
        mine = self.met
        inner = self.of(steps)
        is_inside = mine < self.often <= self.met
        if mine == self.often and inner:
            return inner * max(least, min(int(most), LENGTH // len(inner)))
        return inner * max(least, 1 if is_inside else least)


def texts(expression: str | bytes, flags: int) -> Iterator[str]:
    """What is tried."""
    steps = parser.parse(expression, flags)
    count = Sample(0, 0)
    count.of(steps)
    for often in range(1, count.met + 1):
        for turn in range(3):
            text = Sample(often, turn).of(steps)
            for behind in BEHIND:
                yield text + behind
    for letter in (*LETTERS, *PAIRS):
        yield letter * (LENGTH // len(letter)) + "\0"


READ_OTHERWISE = {
    "classads/language/lexer.py:": "its reader stops where no token begins; test_hostile_lengths reads long ones",
    "classads/language/times.py:": "its reader leaves one blank of many; test_hostile_lengths has it read long ones",
    "submit/queue_statement.py:36": "a user's own words, read by the user's own command",
}
ALL = [each for each in expressions() if not each[0].startswith(tuple(READ_OTHERWISE))]


def test_they_are_found() -> None:
    assert len(ALL) > 250


@pytest.mark.parametrize(("place", "expression", "flags", "ways"), ALL, ids=[each[0] for each in ALL])
def test_one(place: str, expression: str | bytes, flags: int, ways: frozenset[str]) -> None:
    compiled = re.compile(expression, flags)
    for text in dict.fromkeys(texts(expression, flags)):
        given: Any = text.encode("utf-8") if isinstance(expression, bytes) else text
        for way in ways:
            with at_most(MOST_S):
                if way == "search":
                    sum(1 for _ in compiled.finditer(given))
                else:
                    getattr(compiled, way)(given)
