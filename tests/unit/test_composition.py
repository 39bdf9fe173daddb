"""A class is one thing in one file: inheritance does not cut it into pieces.

A base class that is made for one subclass only, and that nobody names but that subclass, is a piece of it: its methods
share ``self`` with methods in another file.  Parts are objects of their own, with the collaborators they need.
"""

from __future__ import annotations

import ast
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "condor_actors"


def _base_names(node: ast.ClassDef) -> list[str]:
    return [base.id if isinstance(base, ast.Name) else base.attr for base in node.bases
            if isinstance(base, (ast.Name, ast.Attribute))]


def pieces(sources: dict[str, str]) -> list[str]:
    """Base classes of which nothing but one subclass in another file ever hears."""
    home: dict[str, str] = {}
    subclasses: dict[str, list[str]] = {}
    named: dict[str, set[str]] = {}
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                home.setdefault(node.name, path)
                for base in _base_names(node):
                    subclasses.setdefault(base, []).append(path)
            elif isinstance(node, ast.Name):
                named.setdefault(node.id, set()).add(path)
            elif isinstance(node, ast.Attribute):
                named.setdefault(node.attr, set()).add(path)
    return sorted(f"{path}: {name} is a piece of its one subclass in {subclasses[name][0]}"
                  for name, path in home.items()
                  if len(subclasses.get(name, ())) == 1 and subclasses[name][0] != path
                  and named.get(name, set()) == {subclasses[name][0]})


def test_no_class_is_a_piece_of_another() -> None:
    sources = {str(path.relative_to(PACKAGE.parent)): path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    assert pieces(sources) == []


def test_a_piece_is_found() -> None:
    one, two = "class Piece:\n    pass\n", "from a import Piece\n\n\nclass Whole(Piece):\n    pass\n"
    assert pieces({"a.py": one, "b.py": two}) == ["a.py: Piece is a piece of its one subclass in b.py"]
    assert pieces({"a.py": one, "b.py": two, "c.py": "Piece()\n"}) == [], "it is of use by itself"
