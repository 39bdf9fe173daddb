"""The ClassAd package a second time, without its C core: the oracle for tests."""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import pkgutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import condor_actors.classads

NAME = "pure_classads"
ORIGINAL = condor_actors.classads.__name__


class _Renamed(importlib.machinery.SourceFileLoader):
    """Loads a module of the package with every import of it turned to the second package."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> Any:
        tree = ast.parse(data, path)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                if node.module == ORIGINAL or node.module.startswith(f"{ORIGINAL}."):
                    node.module = NAME + node.module[len(ORIGINAL) :]
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def get_code(self, fullname: str) -> Any:
        """Compile from the source, never from the cached code of the first package."""
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules of the second package in the folders of the first."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname != NAME and not fullname.startswith(f"{NAME}."):
            return None
        place = Path(condor_actors.classads.__path__[0], *fullname.split(".")[1:])
        folder = place.is_dir()
        source = place / "__init__.py" if folder else place.with_suffix(".py")
        if not source.exists():
            return None
        return importlib.util.spec_from_file_location(
            fullname, source, loader=_Renamed(fullname, str(source)),
            submodule_search_locations=[str(place)] if folder else None,
        )


def _load() -> ModuleType:
    sys.meta_path.insert(0, _Finder())
    before = os.environ.get("CONDOR_CLASSADS")
    os.environ["CONDOR_CLASSADS"] = "python"
    try:
        module = importlib.import_module(NAME)
        for found in pkgutil.walk_packages(module.__path__, f"{NAME}."):
            if not found.name.endswith("._core"):
                importlib.import_module(found.name)
    finally:
        if before is None:
            del os.environ["CONDOR_CLASSADS"]
        else:
            os.environ["CONDOR_CLASSADS"] = before
    return module


pure: Any = _load()
"""The package in Python; its modules are attributes of it."""


def shape(node: Any) -> Any:
    """A tree in plain tuples, whichever engine it belongs to.

    Args:
        node: an expression.

    Returns:
        kind, height, what it says itself, and the shapes below it.
    """
    parts: list[Any] = [type(node).__name__, node.height]
    for field in ("value", "span", "name", "key", "absolute", "operator"):
        if hasattr(node, field):
            parts.append(repr(getattr(node, field)))
    if hasattr(node, "pairs"):
        parts.extend(name for name, _ in node.pairs)
    spine: list[Any] = []
    while type(node).__name__ == "Binary":
        spine.append((node.operator, node.height, shape(node.right)))
        node = node.left
    if spine:
        return (*spine, shape(node))
    return (*parts, *map(shape, node.children()))
