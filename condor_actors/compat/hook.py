"""The real names (``htcondor2``, ``classad2``, ``htcondor``, ``classad``) for a program that imports them.

Theory: a finder at the front of ``sys.meta_path`` answers for these four names with the modules here, which are the
very same objects under both names.  It refuses to stand in front of an installed HTCondor: which of two pools a program
talks to must not depend on a hook.

`install_names` writes the four names into an environment as tiny modules that do the same, so that programs need no
hook; it refuses where a distribution has one of them already, and removes only what it wrote itself.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

NAMES = ("classad", "classad2", "htcondor", "htcondor2")
MARK = "# written by python -m condor_actors.compat --install"


class AlreadyThere(Exception):
    """HTCondor's own modules are installed; the text says where."""


def installed() -> list[str]:
    """Where modules of these names are that are not ours."""
    found = []
    for name in NAMES:
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.origin is not None and MARK not in _beginning(spec.origin):
            found.append(f"{name} ({spec.origin})")
    return found


def _beginning(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(200)
    except OSError:
        return ""


class Hook(MetaPathFinder, Loader):
    """Finds the modules here under the real names."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None,
                  ) -> ModuleSpec | None:
        """Answer for the four names and what is below them."""
        if fullname.partition(".")[0] not in NAMES:
            return None
        try:
            found = importlib.util.find_spec(_here(fullname))
        except ModuleNotFoundError:  # its parent has no modules below it
            return None
        if found is None:
            return None
        is_package = fullname in NAMES or found.submodule_search_locations is not None
        return ModuleSpec(fullname, self, is_package=is_package)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module itself, imported under its own name."""
        return importlib.import_module(_here(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """It has been executed already; its own name stays."""
        spec = importlib.util.find_spec(module.__name__ if module.__name__.startswith("condor_actors") else
                                        _here(module.__name__))
        if spec is not None:
            module.__spec__ = spec
            module.__name__ = spec.name


def _here(name: str) -> str:
    """Where a module is; what is below the older name is what is below the newer one."""
    top, dot, rest = name.partition(".")
    return f"condor_actors.compat.{'htcondor2' if dot and top == 'htcondor' else top}{dot}{rest}"


def module_named(name: str) -> ModuleType:
    """The module for one of the four names; what is below it is found from now on (for `install_names`)."""
    if not any(isinstance(finder, Hook) for finder in sys.meta_path):
        sys.meta_path.insert(0, Hook())
    module = importlib.import_module(_here(name))
    if not hasattr(module, "__path__"):
        module.__path__ = []
    return module


def install_hook() -> None:
    """Serve the real names in this process from now on.

    Raises:
        AlreadyThere: HTCondor's own modules are installed.
    """
    there = installed()
    if there:
        raise AlreadyThere(f"HTCondor's own modules are installed: {', '.join(there)}; they are not hidden")
    if not any(isinstance(finder, Hook) for finder in sys.meta_path):
        sys.meta_path.insert(0, Hook())


def install_names(folder: Path) -> list[Path]:
    """Write the four names into a folder of modules.

    Returns:
        what was written.

    Raises:
        AlreadyThere: one of them is there and not ours.
        OSError: the folder cannot be written.
    """
    paths = [folder / f"{name}.py" for name in NAMES]
    there = installed() + [str(path) for path in paths if path.exists() and MARK not in _beginning(str(path))]
    there += [str(folder / name) for name in NAMES if (folder / name).exists()]
    if there:
        raise AlreadyThere(f"HTCondor's own modules are installed: {', '.join(there)}; they are not replaced")
    for path in paths:
        path.write_text(f"{MARK}; --remove takes it away\nimport sys\n\n"
                        "from condor_actors.compat.hook import module_named\n\n"
                        "sys.modules[__name__] = module_named(__name__)\n")
    return paths


def remove_names(folder: Path) -> list[Path]:
    """Take away what `install_names` wrote.

    Returns:
        what was removed.
    """
    paths = [folder / f"{name}.py" for name in NAMES]
    ours = [path for path in paths if path.exists() and MARK in _beginning(str(path))]
    for path in ours:
        path.unlink()
    return ours
