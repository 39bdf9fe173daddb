"""What a docstring refers to is there: modules and names that were renamed are renamed in the text as well."""

from __future__ import annotations

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "condor_actors"
ROLE = re.compile(r":(mod|class|func|meth|data|attr):`~?([^`<]+)(?:<[^`]*)?`")


def known_names(trees: list[ast.Module]) -> set[str]:
    found = set()
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return found


def is_module(dotted: str) -> bool:
    path = PACKAGE.parent.joinpath(*dotted.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def stale(text: str, names: set[str], modules: set[str]) -> list[str]:
    """References of a text to what is not there."""
    wrong = []
    for role, target in ROLE.findall(text):
        target = target.strip().removesuffix("()").lstrip(".")
        last = target.rpartition(".")[2]
        if target.startswith("condor_actors.") and role == "mod":
            known = is_module(target)
        elif target.startswith("condor_actors."):
            parts = target.split(".")
            known = last in names and any(is_module(".".join(parts[:-cut])) for cut in (1, 2))
        else:
            known = last in (modules if role == "mod" else names)
        if not known:
            wrong.append(f"{role} {target}")
    return wrong


def test_references_lead_somewhere() -> None:
    sources = {path: path.read_text() for path in sorted(PACKAGE.rglob("*.py"))}
    names = known_names([ast.parse(text) for text in sources.values()])
    modules = {path.parent.name if path.stem == "__init__" else path.stem for path in sources}
    wrong = [f"{path.relative_to(PACKAGE)}: {each}" for path, text in sources.items()
             for each in stale(text, names, modules)]
    assert not wrong, "\n".join(wrong)


def test_a_stale_reference_is_seen() -> None:
    assert stale("see :mod:`judgement` and :class:`~.stream.FarEnd`", {"Stream"}, {"stream"}) == [
        "mod judgement", "class stream.FarEnd"]
