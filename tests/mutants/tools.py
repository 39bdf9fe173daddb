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
    Mutation(
        "programs-of-another-python", "condor_actors/patterns.py",
        "return marshal.loads(found[len(_MARK):]) if found.startswith(_MARK) else {}",
        "return marshal.loads(found[len(_MARK):])",
        why="after Python was replaced, commands read regular expressions that it does not understand",
        killed_by=("tests/unit/test_patterns.py::test_programs_of_another_python_are_left_alone",)),
)
