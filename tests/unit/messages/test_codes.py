"""Numbers of the contract stand in two modules and nowhere else: reads every other one for literals."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from condor_actors.config.templates import TEMPLATES
from condor_actors.messages import codes
from condor_actors.messages.codes import HoldCode, HoldSubCode, LauncherExit, hold_label

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "condor_actors"
HOMES = {PACKAGE / "messages" / "codes.py", PACKAGE / "messages" / "job_codes.py"}

ATTRIBUTES = {"jobstatus", "lastjobstatus", "jobuniverse", "jobnotification", "holdreasoncode"}
"""Attributes of ads whose values are members of an enumeration."""
NAMES = {"event", "universe", "hold_code", "hold_subcode", "code", "subcode"}
"""Variables, fields and arguments that hold such a number where these modules compare or pass them."""
MEMBERS = {member.name for each in (codes.JobStatus, codes.Universe, codes.HoldCode, codes.JobEventType)
           for member in each} | {"TERMINATED", "ABORTED", "EVICTED", "RELEASED", "DISCONNECTED", "RECONNECTED"}
COMPARED = re.compile(r"\b(?:JobStatus|JobUniverse|HoldReasonCode)\s*(?:==|!=|=\?=|=!=|=)\s*\d")


def modules() -> Iterator[Path]:
    """Every module but the numbers' home, and those with numbers of other contracts: what a DAG's states are called,
    and what HTCondor's Python modules call theirs."""
    elsewhere = {"config", "dag", "compat"}
    yield from (path for path in PACKAGE.rglob("*.py") if path not in HOMES and not elsewhere & {*path.parts})


def is_number(node: ast.AST) -> bool:
    """A whole number above 0 (0 is "none" in most places), or a tuple or set of numbers."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return bool(node.elts) and all(isinstance(each, ast.Constant) and type(each.value) is int for each in node.elts)
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0


def attribute_of(node: ast.AST) -> str:
    """The attribute that ``ad.get_int("X")``, ``ad.find("x")`` or ``ad["X"]`` reads, in lower case."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        node = node.args[0]
    elif isinstance(node, ast.Subscript):
        node = node.slice
    else:
        return ""
    return node.value.lower() if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def last_name(node: ast.AST) -> str:
    """``code`` of ``self.code`` and of ``code``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) of every such literal in a module."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            if any(map(is_number, sides)) and isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.In | ast.NotIn):
                named = next((name for side in sides if (name := attribute_of(side)) in ATTRIBUTES
                              or (name := last_name(side)) in {"event", "universe", "hold_code"}), "")
                if named:
                    yield node.lineno, f"{named} is compared with a number"
        elif isinstance(node, ast.Call):
            if len(node.args) == 2 and attribute_of(node) in ATTRIBUTES and is_number(node.args[1]):
                yield node.lineno, f"{attribute_of(node)} has a number"
            for keyword in node.keywords:
                if (keyword.arg or "").lower() in ATTRIBUTES | NAMES and is_number(keyword.value):
                    yield node.lineno, f"{keyword.arg}= is a number"
        elif isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and str(key.value).lower() in ATTRIBUTES and is_number(value):
                    yield node.lineno, f"{key.value} has a number"
            if len(keys) > 2 and all(isinstance(key, ast.Constant) and type(key.value) is int for key in keys):
                yield node.lineno, "a table by number"
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if attribute_of(target) in ATTRIBUTES and is_number(node.value):
                    yield node.lineno, f"{attribute_of(target)} has a number"
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                known = {name for each in names if (name := last_name(each)) in MEMBERS or name.startswith("HOLD_")}
                if known and is_number(node.value):
                    yield node.lineno, f"{', '.join(sorted(known))} is declared again"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            found = COMPARED.search(node.value)
            if found is not None:
                yield node.lineno, f"{found[0]!r} in an expression"


def test_no_number_of_the_contract_is_written_out() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} {what}: use condor_actors.messages.codes"
        for path in modules()
        for line, what in literals(ast.parse(path.read_text(), str(path)))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("bad", [
    'x = ad.get_int("JobStatus") == 5',
    'x = ad.get_int("JobStatus") in (2, 7)',
    'x = ad.get_int("JobUniverse", 5)',
    "end(hold_code=6)",
    "if event == 12: pass",
    'ad["JobStatus"] = 1',
    'ad = {"HoldReasonCode": 15}',
    "HOLD_INPUT, HOLD_OUTPUT = 13, 12",
    "EXECUTE = 1",
    'constraint = "JobStatus == 5"',
    "names = {0: 'a', 1: 'b', 4: 'c'}",
])
def test_a_literal_is_seen(bad: str) -> None:
    assert list(literals(ast.parse(bad))), bad


def test_templates_of_the_configuration_set_the_same_subcodes() -> None:
    texts = "\n".join(text for templates in TEMPLATES.values() for text in templates.values())
    found = {name: int(number) for name, number in re.findall(r"\$\(HOLD_SUBCODE_(\w+):(\d+)\)", texts)}
    assert found == {each.name: int(each) for each in HoldSubCode}


def test_the_native_side_has_the_same_exit_statuses() -> None:
    text = (ROOT / "native" / "protocol.h").read_text()
    for each in LauncherExit:
        assert re.search(rf"\bEXIT_{each.name} = {int(each)}\b", text), each


def test_hold_codes_have_the_labels_of_the_manual() -> None:
    assert [hold_label(code) for code in (1, 13, 21, 34, 46, 999)] == [
        "UserRequest", "TransferInputError", "StartdHeldJob", "JobOutOfResources", "JobDurationExceeded", "Code999"]
    assert len({hold_label(code) for code in HoldCode}) == len(HoldCode)
