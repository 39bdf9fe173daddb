"""Bugs of the commands."""

from __future__ import annotations

from tests.mutants.mutation import Mutation

MUTATIONS: tuple[Mutation, ...] = (
    Mutation(
        "bundle-outlives-its-sources", "condor_actors/tools/start.py",
        "if int(now.st_mtime) != time or now.st_size != size:",
        "if now.st_size != size:",
        why="after an upgrade, commands run the code of before",
        killed_by=("tests/unit/tools/test_start.py::test_no_module_comes_from_the_bundle_whose_source_has_changed",)),
)
