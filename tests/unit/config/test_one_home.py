"""Every parameter that the code reads is a row of the table, and only the table says what it is by default."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from condor_actors.config import detected, find_parameter, load_config
from condor_actors.config.parameter import Kind
from condor_actors.config.settings import table_value
from condor_actors.cores.negotiator.match_settings import MatchSettings
from condor_actors.cores.schedd.schedd_settings import ScheddSettings, schedd_settings

PACKAGE = Path(__file__).resolve().parents[3] / "condor_actors"
READERS = {"text", "needed_text", "value", "raw", "setting", "needed", "table_value", "integer", "real", "seconds",
           "boolean", "size", "list_of", "path", "expression", "source", "where", "parameter", "is_set"}
"""Functions whose first argument, where it is in capitals, is the name of a parameter."""
NAME = re.compile(r"[A-Z][A-Z0-9_]{2,}")
FACTS = {*detected._SOURCES, "SUBSYSTEM", "LOCALNAME", "CONFIG_ROOT"}
"""What the configuration finds out by itself."""
TEXTS = {Kind.TEXT, Kind.PATH, Kind.WORDS, Kind.CHOICE, Kind.EXPRESSION}
"""Kinds of which 0 is no value, so that nothing but "not set" can stand before an ``or``."""


READS = re.compile(r"\(\s*[\"'][A-Z][A-Z0-9_]{2,}[\"']")
"""What a module says that reads a parameter."""


@cache
def texts() -> dict[str, str]:
    """Name and text of every module but the table's and the language's own."""
    return {str(path.relative_to(PACKAGE)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))
            if path.parent.name != "parameters"}


@cache
def tree(place: str) -> ast.Module:
    """The tree of a module."""
    return ast.parse(texts()[place], place)


def modules(saying: re.Pattern[str]) -> Iterator[tuple[str, ast.Module]]:
    """Name and tree of every module that says something; the trees are what costs."""
    for place, text in texts().items():
        if saying.search(text):
            yield place, tree(place)


def parameter_read(node: ast.AST) -> str:
    """The parameter that a call reads: ``X`` of ``config.integer("X")``; empty: it reads none."""
    if not isinstance(node, ast.Call) or not node.args or not isinstance(node.args[0], ast.Constant):
        return ""
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    name = node.args[0].value
    return name if called in READERS and isinstance(name, str) and NAME.fullmatch(name) else ""


def undeclared(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of what is read and is no row."""
    for node in ast.walk(tree):
        name = parameter_read(node)
        if name and name not in FACTS and find_parameter(name) is None:
            yield node.lineno, name  # type: ignore[attr-defined]


def second_defaults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of each parameter that is given another value where it is read, in case it has none."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
            for value, fallback in zip(node.values, node.values[1:], strict=False):
                row = find_parameter(parameter_read(value) or "-")
                given = bool(fallback.value) if isinstance(fallback, ast.Constant) else True
                computed = not isinstance(fallback, ast.Constant)
                if row is not None and given and (not computed or (row.default is not None and row.kind in TEXTS)):
                    yield node.lineno, row.name
        elif isinstance(node, ast.Call) and len(node.args) > 1 and parameter_read(node):
            yield node.lineno, parameter_read(node)


def settings_with_values(classes: Iterable[tuple[str, ast.Module]], trees: Iterable[tuple[str, ast.Module]]
                         ) -> Iterator[str]:
    """Fields that are filled from the configuration somewhere, and have a value of their own in their class."""
    own = {}
    for place, tree in classes:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own[node.name] = (place, {
                    field.target.id for field in node.body
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
                    and isinstance(field.value, ast.Constant) and field.value.value not in (None, "", False)})
    for place, tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if isinstance(node.func, ast.Attribute) and node.func.attr == "settings" and node.args:
                called = getattr(node.args[0], "id", "")
            home, valued = own.get(called, ("", set()))
            for keyword in node.keywords:
                if keyword.arg in valued and parameter_read(keyword.value):
                    yield f"{home}: {called}.{keyword.arg} has a default; {place}:{node.lineno} reads it"


def test_every_parameter_is_declared() -> None:
    wrong = [f"{place}:{line} {name}" for place, tree in modules(READS) for line, name in undeclared(tree)]
    assert not wrong, "give these a row in condor_actors/config/parameters:\n" + "\n".join(wrong)


def test_only_the_table_has_defaults() -> None:
    wrong = [f"{place}:{line} {name}" for place, tree in modules(READS) for line, name in second_defaults(tree)]
    wrong += settings_with_values(modules(re.compile(r"\bclass ")), modules(READS))
    assert not wrong, "the default belongs into the table alone:\n" + "\n".join(wrong)


@pytest.mark.parametrize("bad", [
    'config.text("NOBODY_USER") or "nobody"', 'config.integer("COLLECTOR_PORT") or 9618',
    'config.integer("MAX_JOBS_RUNNING", 100)', 'name = config.text("NOBODY_USER") or owner',
])
def test_a_second_default_is_seen(bad: str) -> None:
    assert list(second_defaults(ast.parse(bad)))


def test_an_undeclared_name_is_seen() -> None:
    assert list(undeclared(ast.parse('config.text("NO_SUCH_PARAMETER")'))) == [(1, "NO_SUCH_PARAMETER")]
    trees = [("a.py", ast.parse('class S:\n    most: int = 5\n\n\nS(most=config.integer("MAX_JOBS_RUNNING"))'))]
    [found] = settings_with_values(trees, trees)
    assert "S.most" in found


def test_settings_without_a_configuration_are_those_of_an_empty_one() -> None:
    config = load_config(files=[], environ={})
    bare, read = ScheddSettings(), schedd_settings(config, machine="localhost")
    for name in ("max_jobs_per_submission", "max_jobs_per_owner", "max_jobs_submitted", "job_start_count"):
        assert getattr(bare, name) == getattr(read, name)
    assert (bare.max_jobs_per_submission, bare.max_jobs_per_owner, bare.job_start_count) == (20_000, 100_000, 1)
    assert MatchSettings().pre_job_rank == config.expression("NEGOTIATOR_PRE_JOB_RANK")


def test_a_default_made_of_others_needs_a_configuration() -> None:
    with pytest.raises(ValueError, match=r"\$\(FULL_HOSTNAME\)"):
        table_value("UID_DOMAIN")


def test_what_must_have_a_value_has_its_default_when_set_to_nothing() -> None:
    config = load_config(files=[], environ={}, overrides={"NOBODY_USER": "", "UID_DOMAIN": "", "FULL_HOSTNAME": "h.x"})
    assert config.needed_text("NOBODY_USER") == "nobody"
    assert config.needed_text("UID_DOMAIN") == config.full_hostname == "h.x"


def placed_by_hand(tree: ast.AST) -> Iterator[int]:
    """Lines that ask where a setting stands to say so in an error: ``Config.unusable`` does."""
    for function in ast.walk(tree):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)) and function.name != "unusable":
            calls = [(node.lineno, node.func) for node in ast.walk(function) if isinstance(node, ast.Call)]
            if any(isinstance(called, ast.Attribute) and called.attr == "where" for _, called in calls):
                yield from (line for line, called in calls if getattr(called, "id", "") == "ConfigError")


def test_errors_of_settings_are_made_in_one_place() -> None:
    assert [f"{place}:{line}" for place, tree in modules(re.compile("ConfigError"))
            for line in placed_by_hand(tree)] == []
    wrong = "def f(config):\n    file, line = config.where('LOG')\n    raise ConfigError('no', file=file, line=line)\n"
    assert list(placed_by_hand(ast.parse(wrong))) == [3]
