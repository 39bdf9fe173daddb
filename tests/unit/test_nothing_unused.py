"""Nothing is there that nobody uses: functions, methods and classes of the package, and messages.

Parameters that nobody reads are found by ``config/test_in_force.py``, distributions that nobody imports by
``test_dependencies.py``.  A use is a name in the code: an attribute or a variable of that name, anywhere but in
``__all__``; tests do not count, for what only tests use is no part of the product.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "condor_actors"
USERS = ("condor_actors", "twisted", "docs", "benchmarks")
"""Folders whose code may use what the package has."""

NO_REGISTRATION = {"property", "staticmethod", "classmethod", "cached_property", "abstractmethod", "contextmanager",
                   "lru_cache", "cache", "implementer", "override", "frozen", "define", "total_ordering", "setter"}
"""Decorators that leave a function to its callers; any other one puts it into a table."""

CALLED_BY_PROGRAMS = ("condor_actors/api/", "condor_actors/compat/")
"""Packages whose public names are there for other people's programs."""
CALLED_BY_TWISTED = {
    "lineLengthExceeded", "lineReceived", "timeoutConnection",
    "_openFile", "buildProtocol", "clientConnectionForTLS", "serverConnectionForTLS", "connectionReady", "closeStdin",
    "eofReceived",
    "execCommand", "isClassAllowed", "isModuleAllowed", "isTypeAllowed", "logPrefix", "postOptions", "requestAvatarId",
    "resumeProducing", "stopProducing", "pauseProducing", "render_GET", "signalProcess",
    "windowChanged",
    "readConnectionLost", "writeConnectionLost",
}
CALLED_BY_PYTHON = {"connection_made", "data_received", "connection_lost", "find_class", "find_spec", "get_code",
                    "seekable"}
"""By asyncio, of a protocol; by pickle, of an unpickler; by io, of a stream that it buffers; by imports."""
CALLED_BY_A_MADE_NAME = {
    "_bad", "_disk_full", "_disk_sick", "_kill_job",  # faults, by the word of the schedule
}
ASKED_BY_PEOPLE = {
    "QueryTrace",  # the negotiator's answer to "why did it get nothing", for scripts over the wire
}
ANSWERS_BY_KIND = {"EnrolMachine"}
"""Made by the machine that joins; what comes is told by its level before there is a certificate."""


Trees = dict[str, ast.Module]


@pytest.fixture(scope="module")
def users() -> Trees:
    """All code that may use what the package has, read once."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text())
            for folder in USERS for path in sorted((ROOT / folder).rglob("*.py"))}


def below(trees: Trees, *folders: str) -> list[tuple[str, ast.Module]]:
    return [(place, tree) for place, tree in trees.items() if place.startswith(folders)]


def exports(tree: ast.Module) -> set[int]:
    """The strings of ``__all__``, which use nothing."""
    return {id(each) for node in tree.body if isinstance(node, (ast.Assign, ast.AnnAssign))
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id == "__all__" and node.value is not None
            for each in ast.walk(node.value)}


def uses(tree: ast.Module) -> Iterator[str]:
    listed = exports(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in listed:
            yield from (word for word in node.value.replace(":", ".").split(".") if word.isidentifier())


def is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    for decorator in node.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name not in NO_REGISTRATION:
            return True
    return False


def unused(definitions: list[tuple[str, ast.Module]], users: list[tuple[str, ast.Module]]) -> list[str]:
    used = Counter(name for _, tree in users for name in uses(tree))
    known = CALLED_BY_TWISTED | CALLED_BY_PYTHON | CALLED_BY_A_MADE_NAME
    return [f"{place}:{node.lineno} {node.name}" for place, tree in definitions for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not is_registered(node)
            and not node.name.startswith("__") and not used[node.name] and node.name not in known]


def commands() -> set[str]:
    """The functions that ``setup.cfg`` makes commands of."""
    return set(re.findall(r"^ +condor_\w+ = [\w.]+:(\w+)$", (ROOT / "setup.cfg").read_text(), re.MULTILINE))


def test_everything_defined_is_used(users: Trees) -> None:
    left = unused(below(users, "condor_actors/"), list(users.items()))
    assert [each for each in left if each.rpartition(" ")[2] not in commands() and not (
        each.startswith(CALLED_BY_PROGRAMS) and not each.rpartition(" ")[2].startswith("_"))] == []


def test_what_is_unused_is_seen() -> None:
    tree = ast.parse('__all__ = ["f"]\n\n\ndef f():\n    pass\n\n\n@table("g")\ndef g():\n    pass\n')
    assert unused([("a.py", tree)], [("a.py", tree)]) == ["a.py:4 f"]


# ---- messages


def messages(users: Trees) -> dict[str, str]:
    """Name and module of every message."""
    return {node.name: place for place, tree in below(users, "condor_actors/messages/") for node in tree.body
            if isinstance(node, ast.ClassDef)
            and any(isinstance(each, ast.Name) and each.id == "message" for each in node.decorator_list)}


def annotations(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            notes = [each.annotation for each in every] + [node.returns]
        elif isinstance(node, ast.AnnAssign):
            notes = [node.annotation]
        else:
            continue
        found |= {id(each) for note in notes if note is not None for each in ast.walk(note)}
    return found


def made_and_met(kinds: dict[str, str], code: Iterable[tuple[str, ast.Module]]) -> tuple[set[str], set[str]]:
    """Messages that someone makes, and those that someone looks out for or takes (an annotation counts)."""
    made, met = set(), set()
    for place, tree in code:
        called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        notes = annotations(tree)
        for node in ast.walk(tree):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
            if name not in kinds or (place == kinds[name] and id(node) not in notes):
                continue
            (made if id(node) in called else met).add(name)
    return made, met


def test_every_message_is_sent_and_taken(users: Trees) -> None:
    kinds = messages(users)
    made, met = made_and_met(kinds, below(users, "condor_actors/"))
    assert kinds.keys() - made - ASKED_BY_PEOPLE == set(), "nobody makes these"
    answers = {name for name in kinds if name not in met}
    assert answers - read_by_field(kinds, users) - ANSWERS_BY_KIND == set(), "nobody takes these"


def read_by_field(kinds: dict[str, str], users: Trees) -> set[str]:
    """Answers whose asker knows what comes: a field of theirs is read somewhere in the package."""
    fields = {node.name: {each.target.id for each in node.body if isinstance(each, ast.AnnAssign)
                          and isinstance(each.target, ast.Name)}
              for _, tree in below(users, "condor_actors/messages/") for node in tree.body
              if isinstance(node, ast.ClassDef) and node.name in kinds}
    read = {node.attr for _, tree in below(users, "condor_actors/tools/", "condor_actors/daemons/",
                                           "condor_actors/wire/", "condor_actors/services/")
            for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return {name for name, names in fields.items() if names - {"KIND", "VERSION", "LEVEL"} <= read}
