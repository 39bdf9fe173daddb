"""The descriptions of all commands, by name."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from condor_actors.tools.manual.description import Description
from condor_actors.tools.manual.pages import admin, dag, jobs, pool, programs, runs, tokens

__all__ = ["described", "find"]


@functools.cache
def described() -> Mapping[str, Description]:
    """Every command's description, by the command's name."""
    modules = (jobs, runs, dag, pool, tokens, admin, programs)
    return {page.name: page for module in modules for page in module.PAGES}


def find(name: str) -> Description:
    """The description of a command.

    Raises:
        LookupError: there is no such command.
    """
    page = described().get(name)
    if page is None:
        raise LookupError(f"{name} is no command that is described")
    return page
