from __future__ import annotations

import pytest

from condor_actors.api.job_names import constraint_text, jobs_meant
from condor_actors.classads import ClassAdSyntaxError, parse_expression


@pytest.mark.parametrize(("jobs", "ids", "constraint"), [
    (12, ((12, -1),), ""),
    ("12", ((12, -1),), ""),
    ("12.3", ((12, 3),), ""),
    ((12, 3), ((12, 3),), ""),
    ([12, "13.1", (14, 0)], ((12, -1), (13, 1), (14, 0)), ""),
    (iter(["5"]), ((5, -1),), ""),
    ('Owner == "x"', (), 'Owner == "x"'),
    (parse_expression("a  <  3"), (), "a < 3"),
])
def test_jobs_are_named(jobs: object, ids: object, constraint: str) -> None:
    assert jobs_meant(jobs) == (ids, constraint)  # type: ignore[arg-type]


@pytest.mark.parametrize(("jobs", "error"), [
    ([], ValueError), ("", ValueError), ("a ==", ClassAdSyntaxError), (["x"], ValueError), (3.5, TypeError),
    (True, TypeError), ([(1, 2, 3)], TypeError), ([None], TypeError),
])
def test_what_names_no_jobs(jobs: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        jobs_meant(jobs)  # type: ignore[arg-type]


def test_constraints() -> None:
    assert constraint_text(None) == constraint_text("  ") == ""
    assert constraint_text(r'regexp("\.x", Cmd)') == r'regexp("\\.x", Cmd)'
    with pytest.raises(TypeError):
        constraint_text(3)  # type: ignore[arg-type]
