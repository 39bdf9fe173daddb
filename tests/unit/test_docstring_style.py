"""One style of docstrings, Google's, and one style of imports, absolute ones, in all Python of the tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("condor_actors", "tests", "benchmarks", "examples", "twisted", "etc", "docs")
OTHER_STYLES = {
    "Sphinx's": re.compile(r"^\s*:(?:[ic]?var|param|arg|r?type|returns?|raises?|keyword)\b[^`]*?:\s", re.MULTILINE),
    "Epydoc's": re.compile(r"^\s*@(?:param|type|return|rtype|raise|ivar|keyword)\b", re.MULTILINE),
    "NumPy's": re.compile(r"^\s*(?:Parameters|Returns|Raises|Attributes|Yields|Notes)\n\s*-{3,}\s*$", re.MULTILINE),
}
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def wrong_in(text: str) -> Iterator[tuple[int, str]]:
    """(line, what is wrong) of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "a relative import"
        elif isinstance(node, DOCUMENTED):
            said = ast.get_docstring(node) or ""
            for style, words in OTHER_STYLES.items():
                if words.search(said):
                    yield getattr(node, "lineno", 1), f"a docstring in {style} style"


def sources() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_there_is_one_style() -> None:
    wrong = [f"{path.relative_to(ROOT)}:{line} {what}" for path in sources()
             for line, what in wrong_in(path.read_text())]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", [
    'class A:\n    """Thing.\n\n    :ivar name: its name.\n    """', '"""Text.\n\n:param x: a number.\n"""',
    'def f():\n    """Do.\n\n    :returns: the sum.\n    """',
    'def f():\n    """Do.\n\n    @param x: a number.\n    """',
    'def f():\n    """Do.\n\n    Parameters\n    ----------\n    x\n    """', "from . import other", "from .a import b",
])
def test_other_styles_are_found(text: str) -> None:
    assert list(wrong_in(text))


@pytest.mark.parametrize("text", [
    'def f():\n    """Do what :func:`g` does.\n\n    Args:\n        x: a number.\n    """', "from a.b import c",
    '"""A table:\n\nname  value\n----  -----\n"""',
])
def test_the_one_style_is_left_alone(text: str) -> None:
    assert not list(wrong_in(text))
