"""The ClassAd package a second time, without its C core: the oracle for tests."""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import condor_actors.classads

NAME = "pure_classads"


def _load() -> ModuleType:
    folder = Path(condor_actors.classads.__path__[0])
    first = folder / "__init__.py"
    spec = importlib.util.spec_from_file_location(NAME, first, submodule_search_locations=[str(folder)])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    before = os.environ.get("CONDOR_CLASSADS")
    os.environ["CONDOR_CLASSADS"] = "python"
    try:
        spec.loader.exec_module(module)
        for found in pkgutil.walk_packages([str(folder)], f"{NAME}."):
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

    :param node: an expression.
    :returns: kind, height, what it says itself, and the shapes below it.
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
