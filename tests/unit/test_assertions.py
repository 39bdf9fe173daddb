"""Tests that cannot fail: finds, in all tests, assertions and tests that say nothing.

Theory: these are the mechanical kinds.  What else a test lets pass shows the standing mutants (``make mutants``).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
SAYS_SOMETHING = {"raises", "warns", "fail", "deprecated_call"}
"""Functions of pytest with which a test fails."""


@cache
def sources() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text("utf-8"), str(path)) for path in sorted(TESTS.rglob("*.py"))}


def vacuous(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) of each assertion that cannot fail, or hardly can."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            wrong = _wrong_with(node.test)
            if wrong:
                yield node.lineno, f"{wrong}: assert {ast.unparse(node.test)[:100]}"
        elif isinstance(node, ast.Call) and _name(node.func) in ("raises", "suppress") and node.args:
            if _is_everything(node.args[0]) and not any(word.arg == "match" for word in node.keywords):
                yield node.lineno, f"also a mistake in the test is an exception: {ast.unparse(node)}"
        elif isinstance(node, ast.ExceptHandler) and _is_everything(node.type) and not _is_looked_at(node):
            yield node.lineno, "what is caught here may be the failed assertion"
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute | ast.Name) and (
                _name(node.value).startswith(("assert_", "assert"))):
            yield node.lineno, f"nobody calls it: {ast.unparse(node)}"


def _wrong_with(test: ast.expr) -> str:
    if isinstance(test, ast.Constant | ast.JoinedStr):
        return "a constant"
    if isinstance(test, ast.Tuple) and test.elts:
        return "a tuple is true"
    if isinstance(test, ast.GeneratorExp | ast.Lambda):
        return "a generator or a function is true"
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or) and not _is_implication(test):
        return "an `or` that lets a wrong result pass; say which of the two it is"
    if isinstance(test, ast.IfExp) and any(isinstance(each, ast.Constant) for each in (test.body, test.orelse)):
        return "a constant, where the condition is that way"
    if isinstance(test, ast.Compare):
        return _wrong_with_comparison(test)
    return ""


def _wrong_with_comparison(test: ast.Compare) -> str:
    left, right, operator = test.left, test.comparators[0], test.ops[0]
    if ast.dump(left) == ast.dump(right) and not any(isinstance(each, ast.Call) for each in ast.walk(left)):
        return "both sides are the same"
    if isinstance(operator, ast.GtE) and isinstance(left, ast.Call) and _name(left.func) == "len" and (
            isinstance(right, ast.Constant) and right.value == 0):
        return "no length is below 0"
    return ""


def _is_implication(test: ast.BoolOp) -> bool:
    """``not a or b``, ``a is None or b``: where a is, b has to be; or names of states, one of which has to be."""
    first = test.values[0]
    negated = isinstance(first, ast.UnaryOp) and isinstance(first.op, ast.Not)
    if isinstance(first, ast.Compare):
        operator = first.ops[0]
        negated = isinstance(operator, ast.NotIn) or (isinstance(operator, ast.Is) and _is_none(first.comparators[0]))
    return negated or all(_is_state(each) for each in test.values)


def _is_state(test: ast.expr) -> bool:
    if isinstance(test, ast.Compare):
        return isinstance(test.ops[0], ast.Is | ast.IsNot) and _is_none(test.comparators[0])
    return isinstance(test, ast.Name | ast.Attribute)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_everything(node: ast.expr | None) -> bool:
    kinds = node.elts if isinstance(node, ast.Tuple) else [node]
    return any(kind is None or _name(kind) in ("Exception", "BaseException", "AssertionError") for kind in kinds)


def _is_looked_at(handler: ast.ExceptHandler) -> bool:
    """Whether something is said of what was caught, or made of it."""
    uses = any(isinstance(each, ast.Name) and each.id == handler.name for each in ast.walk(handler))
    return uses or _says_something(handler)


def _name(node: ast.expr | None) -> str:
    """The last word of ``a.b.c``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _says_something(node: ast.AST) -> bool:
    """Whether it asserts, raises, or tries what must not raise anything else (``try``, ``suppress``)."""
    return any(
        isinstance(each, ast.Assert | ast.Raise | ast.Try)
        or (isinstance(each, ast.Call) and (
            _name(each.func) in SAYS_SOMETHING or _name(each.func) == "suppress"
            or any(word.arg == "check" and isinstance(word.value, ast.Constant) and word.value.value is True
                   for word in each.keywords)))
        for each in ast.walk(node))


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


@cache
def asserting() -> frozenset[str]:
    """Names of the functions of the tests that say something, by themselves or through others."""
    every = [function for tree in sources().values() for function in functions(tree)]
    found = {function.name for function in every if _says_something(function)}
    calls = [(function.name, _calls(function)) for function in every if function.name not in found]
    while True:
        more = {name for name, called in calls if name not in found and called & found}
        if not more:
            return frozenset(found)
        found |= more


def _calls(function: Function) -> set[str]:
    return {_name(node.func) for node in ast.walk(function) if isinstance(node, ast.Call)}


def silent(tree: ast.AST, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, name) of each test that says nothing."""
    for function in functions(tree):
        if function.name.startswith("test_") and not _says_something(function) and not _calls(function) & known:
            yield function.lineno, function.name


def evaded(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each test that ends, content, where what it prepares for its assertion fails.

    Of a property it may be part: not every example has what is looked for.
    """
    for function in functions(tree):
        if not function.name.startswith("test_") or any("given" in ast.unparse(d) for d in function.decorator_list):
            continue
        for handler in ast.walk(function):
            if isinstance(handler, ast.ExceptHandler) and any(
                    isinstance(each, ast.Return) and each.value is None for each in handler.body):
                yield handler.lineno, function.name


def everywhere(find: Callable[[ast.Module], Iterator[tuple[int, str]]]) -> list[str]:
    return [f"{path.relative_to(TESTS)}:{line} {text}" for path, tree in sources().items() for line, text in find(tree)]


def test_every_assertion_can_fail() -> None:
    wrong = everywhere(vacuous)
    assert not wrong, "\n".join(wrong)


def test_no_test_ends_early_because_something_failed() -> None:
    wrong = everywhere(evaded)
    assert not wrong, "\n".join(wrong)


def test_every_test_says_something() -> None:
    wrong = everywhere(lambda tree: silent(tree, asserting()))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", [
    "assert True", "assert 'text'", "assert (a == 1, 'why')", "assert (x for x in y)", "assert lambda: a",
    "assert a or True", "assert a if b else True", "assert a == 1 or b == 2", "assert broken or status in (1, 2)",
    "assert a == a",
    "assert len(a) >= 0", "with pytest.raises(Exception): f()", "with raises((OSError, Exception)): f()",
    "with suppress(AssertionError): f()", "mock.assert_called_once", "try: f()\nexcept Exception: pass",
    "try: f()\nexcept: pass",
])
def test_what_cannot_fail_is_found(text: str) -> None:
    assert [line for line, _ in vacuous(ast.parse(text))] != []


@pytest.mark.parametrize("text", [
    "assert a", "assert a == 1", "assert not a or b == 1", "assert a is None or a > 3", "assert a or b",
    "assert f() == f()", "assert len(a) >= 1", "with pytest.raises(OSError): f()",
    "with pytest.raises(Exception, match='why'): f()", "mock.assert_called_once()",
    "try: f()\nexcept Exception as e: raise X from e", "assert all(a)",
])
def test_what_can_fail_is_left_alone(text: str) -> None:
    assert list(vacuous(ast.parse(text))) == []


def test_a_silent_test_is_found() -> None:
    known = frozenset({"check"})
    assert [name for _, name in silent(ast.parse("def test_a():\n    f()\n"), known)] == ["test_a"]
    for body in ("assert f()", "check(3)", "with pytest.raises(OSError): f()", "run(x, check=True)"):
        assert list(silent(ast.parse(f"def test_a():\n    {body}\n"), known)) == []


def test_an_evasion_is_found() -> None:
    body = "    try:\n        x = f()\n    except OSError:\n        return\n    assert x\n"
    assert [name for _, name in evaded(ast.parse(f"def test_a():\n{body}"))] == ["test_a"]
    assert list(evaded(ast.parse(f"@given(x)\ndef test_a():\n{body}"))) == []
