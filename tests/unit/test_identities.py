"""An identity is one value: code that goes by a part of it is named here with the reason, or it is a mistake."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "condor_actors"
KEYED = {"get", "setdefault", "pop", "add", "discard"}
REASONS = {
    ("cores/rights.py", "is_user"): "the question itself: a person, and the whole name",
    ("cores/rights.py", "is_super_user"): "of a local process only",
    ("cores/rights.py", "is_shadow_of"): "a shadow's name together with its host",
    ("cores/startd/owner_state.py", "may_pause"): "of a local process only",
    ("cores/schedd/submission.py", "reserve"): "people only are let that far, and the name is whole",
    ("cores/schedd/submission.py", "owner_of"): "people only are let that far, and the name is whole",
    ("wire/idtokens/token_issuer.py", "_decides"): "people only, and the name is whole",
    ("wire/authorization.py", "default_levels"): "everybody who is neither local nor a machine has none",
    ("wire/post_office.py", "_as_user_of_ours"): "only certificates say whose users they are",
}
"""File and function that compare a part of an identity, or the name of one, and why they may."""


def is_identity(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id.endswith("identity")) or (
        isinstance(node, ast.Attribute) and node.attr == "identity")


def part_of_identity(node: ast.AST) -> str:
    """``name`` or ``user`` of something called an identity."""
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and each.attr in ("name", "user") and is_identity(each.value):
            return each.attr
    return ""


def compared(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Functions and lines that compare a name, use it as a key, or take every method but one for local."""
    for function in ast.walk(tree):
        if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Compare):
                operands = [node.left, *node.comparators]
                other = any(isinstance(each, ast.NotEq) for each in node.ops) and any(
                    isinstance(each, ast.Constant) and each.value == "tls" for each in operands)
                if any(part_of_identity(each) for each in operands) or other:
                    yield function.name, node.lineno
            elif (isinstance(node, ast.Subscript) and part_of_identity(node.slice)) or (
                    isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KEYED
                    and node.args and part_of_identity(node.args[0])):
                yield function.name, node.lineno


def sources() -> Iterator[tuple[str, str]]:
    """Path and text of each file in which identities occur."""
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if "simulation" not in path.parts and ("identity" in text or '"tls"' in text):
            yield str(path.relative_to(PACKAGE)), text


def test_nobody_goes_by_a_part_of_an_identity() -> None:
    found = {(path, name): line for path, text in sources() for name, line in compared(ast.parse(text))}
    assert {place: line for place, line in found.items() if place not in REASONS} == {}
    assert set(REASONS) <= set(found), "a reason for nothing"


def test_the_kind_is_seen() -> None:
    wrong = """
def one(identity): return identity.user == "alice"
def two(self, delivery): self.seen[delivery.identity.name] = 1
def three(identity): return identity.method != "tls"
def four(self, identity): return self.seen.setdefault(identity.name, {})
def fine(identity): return identity == self.owner and identity.is_local
"""
    assert [name for name, _ in compared(ast.parse(wrong))] == ["one", "two", "three", "four"]
