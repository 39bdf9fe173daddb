"""The descriptions of all commands, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from condor_actors.tools.manual.description import Description

__all__ = ["described", "find"]

_MODULES = ("jobs", "pool", "runs", "dag", "admin", "tokens", "live", "programs")


def described() -> Mapping[str, Description]:
    """Every command's description, by the command's name."""
    return {page.name: page for page in _pages()}


def find(name: str) -> Description:
    """The description of a command.

    Raises:
        LookupError: there is no such command.
    """
    for page in _pages():
        if page.name == name:
            return page
    raise LookupError(f"{name} is no command that is described")


def _pages() -> Iterator[Description]:
    """Module by module, so that no more are loaded than are looked at."""
    for module in _MODULES:
        yield from import_module(f"condor_actors.tools.manual.pages.{module}").PAGES
