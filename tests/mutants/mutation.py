"""A standing mutant: one change to the code that must not go unnoticed.

Theory: a mutation is the text of a bug.  It says what is to be replaced and by what, why that matters, and which tests
must fail for it.  These are tests of the mutated code's own directory: a bug that only a simulated pool or a whole
installation notices is found late and explains itself badly.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import attrs

__all__ = ["ROOT", "SHARED_FLOORS", "Mutation", "StaleMutation", "home_directories", "names_of_tests"]

ROOT = Path(__file__).resolve().parents[2]
SHARED_FLOORS = ("actors", "cores")
"""Packages whose properties stand directly in ``tests/property``, named after what they say."""


class StaleMutation(Exception):
    """The text that a mutation replaces is not in its file exactly once."""


@attrs.frozen
class Mutation:
    """One bug.

    Attributes:
        name: what ``ONLY=`` takes; says what the bug does.
        file: the mutated file, from the root of the tree.
        old: text that occurs exactly once in the file.
        new: what takes its place.
        why: what someone would suffer from it.
        killed_by: tests that must fail, as pytest names them.
    """

    name: str
    file: str
    old: str
    new: str
    why: str = attrs.field(kw_only=True)
    killed_by: tuple[str, ...] = attrs.field(kw_only=True)

    @property
    def is_native(self) -> bool:
        """Whether something has to be compiled for it."""
        return self.file.startswith("native/")

    @property
    def package(self) -> str:
        """The package of ``condor_actors`` that it changes, or ``native``."""
        parts = self.file.split("/")
        return "native" if self.is_native else parts[1]

    def applied_to(self, text: str) -> str:
        """The text of the file with the bug in it.

        Raises:
            StaleMutation: the code has changed; says what to do.
        """
        found = text.count(self.old)
        if found != 1:
            raise StaleMutation(
                f"{self.file}: the text that mutation {self.name!r} replaces occurs {found} times, not once; "
                f"adapt it in tests/mutants: {self.old!r}")
        return text.replace(self.old, self.new)


def home_directories(mutation: Mutation) -> tuple[str, ...]:
    """Where the tests stand that a mutation of this file must not get past."""
    package = mutation.package
    if mutation.file.startswith("native/classads/"):
        package = "classads"
    elif package == "native":
        return ("tests/native",)
    elif package.endswith(".py"):  # a module that belongs to no package
        return ("tests/unit",)
    homes = tuple(f"{kind}/{package}" for kind in ("tests/unit", "tests/property", "tests"))
    return (*homes, "tests/property") if package in SHARED_FLOORS else homes


@cache
def names_of_tests(path: Path) -> frozenset[str]:
    """The functions and classes of a test file, and what it assigns (a stateful test's ``TestCase``)."""
    names = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(names)
