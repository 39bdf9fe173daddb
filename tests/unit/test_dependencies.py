"""Declared means used, used means declared: the imports of the package against setup.cfg, in both directions."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from configparser import ConfigParser
from functools import cache
from pathlib import Path

from tests.harness.commands import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
MODULES = {
    "cryptography": {"cryptography"}, "pyopenssl": {"OpenSSL"}, "pyjwt": {"jwt"}, "python-xlib": {"Xlib"},
    "twisted": {"twisted", "zope", "constantly", "incremental"}, "prometheus_client": {"prometheus_client"},
    "attrs": {"attrs", "attr"}, "google-re2": {"re2"}, "nvidia-ml-py": {"pynvml"},
    "pysquashfsimage": {"PySquashfsImage"},
}
"""Modules of the distributions whose name is another; what comes with Twisted and is part of its interface."""
UNIMPORTED = {
    "cffi": "builds the native modules and loads them",
    "google-re2": "loaded by name when a pattern first needs it",
    "nvidia-ml-py": "loaded by name when GPUs are looked for",
}


def declared() -> dict[str, set[str]]:
    """Distributions of ``install_requires`` with their modules."""
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    names = [re.split(r"[\[<>=;\s]", line)[0].lower() for line in config["options"]["install_requires"].split("\n")]
    return {name: MODULES.get(name, {name}) for name in names if name}


@cache
def imported() -> frozenset[tuple[str, str]]:
    """(top-level module, where) of every import of something outside the package and the standard library."""
    found = set()
    for folder in ("condor_actors", "twisted"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(), str(path))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else (
                    [node.module or ""] if isinstance(node, ast.ImportFrom) else [])
                for name in names:
                    top = name.partition(".")[0]
                    if top not in sys.stdlib_module_names and top != "condor_actors":
                        found.add((top, str(path.relative_to(ROOT))))
    return frozenset(found)


def test_what_is_imported_is_declared() -> None:
    known = set().union(*declared().values())
    assert not {f"{where} imports {name}" for name, where in imported() if name not in known}


def test_what_is_declared_is_imported() -> None:
    used = {name for name, _ in imported()}
    assert {name for name, modules in declared().items() if not modules & used} == UNIMPORTED.keys()


def test_every_command_has_a_function() -> None:
    assert len(COMMANDS) > 50
    for entry in COMMANDS.values():
        assert callable(entry.load()), entry


def test_the_package_can_write_its_manual_while_it_is_built() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    needed = {line for line in config["options"]["install_requires"].split("\n") if line}
    built_with = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    assert needed <= built_with
