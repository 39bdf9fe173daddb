"""condor_history -parquet: the file is read by DuckDB."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from condor_actors.classads import ClassAd
from condor_actors.tools.printing import parquet

JOBS = b"""ClusterId = 1
ProcId = 0
Owner = "ann"
RequestMemory = 2 * ClusterId
Leverage = 3
WantIt = true
Requirements = TARGET.Memory > 5
Mixed = 1
Gone = undefined
Wrong = 1 + "a"
Things = { 1,"a" }

ClusterId = 2
ProcId = 7
Owner = "b\377b"
requestmemory = 9
Leverage = 0.5
WantIt = false
Mixed = "text"
Late = "here"
"""


def history(*words: str, modules: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "condor_actors.tools.jobs.history", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": modules})


@pytest.fixture
def jobs(tmp_path: Path) -> str:
    (tmp_path / "jobs").write_bytes(JOBS)
    return str(tmp_path / "jobs")


def asked(path: Path, question: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as base:
        return base.execute(question.replace("JOBS", f"'{path}'")).fetchall()


def test_columns_have_the_types_of_their_values(jobs: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    done = history("-file", jobs, "-forwards", "-parquet", str(out))
    assert (done.returncode, done.stdout) == (0, f"Wrote 2 ads to {out}\n"), done.stderr
    types = {str(name): kind for name, kind, *_ in asked(out, "describe select * from JOBS")}
    assert types == {"ClusterId": "BIGINT", "ProcId": "BIGINT", "Owner": "VARCHAR", "RequestMemory": "BIGINT",
                     "Leverage": "DOUBLE", "WantIt": "BOOLEAN", "Requirements": "VARCHAR", "Mixed": "VARCHAR",
                     "Gone": "VARCHAR", "Wrong": "VARCHAR", "Things": "VARCHAR", "Late": "VARCHAR"}
    rows = asked(out, "select RequestMemory, Leverage, WantIt, Requirements, Mixed, Gone, Wrong, Things, Late "
                      "from JOBS")
    assert rows == [(2, 3.0, True, "TARGET.Memory > 5", "1", None, None, '{ 1,"a" }', None),
                    (9, 0.5, False, None, "text", None, None, None, "here")]
    assert asked(out, "select Owner from JOBS where ProcId = 7") == [("b\N{REPLACEMENT CHARACTER}b",)]


def test_columns_and_jobs_can_be_chosen(jobs: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    done = history("-file", jobs, "-constraint", "ClusterId < 2", "-attributes", "requestMemory,Nope", "-parquet",
                   str(out))
    assert done.returncode == 0, done.stderr
    assert [row[0] for row in asked(out, "describe select * from JOBS")] == ["requestMemory", "Nope"]
    assert asked(out, "select * from JOBS") == [(2, None)]


def test_no_job_is_a_table_too(jobs: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    assert history("-file", jobs, "-constraint", "false", "-parquet", str(out)).returncode == 0
    assert asked(out, "select count(*), sum(ClusterId) from JOBS") == [(0, None)]


def test_many_jobs_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "GROUP_ROWS", 7)
    out = tmp_path / "out.parquet"
    assert parquet.write_parquet(str(out), (ClassAd({"ClusterId": number}) for number in range(100))) == 100
    assert asked(out, "select count(*), sum(ClusterId) from JOBS") == [(100, 4950)]
    assert asked(out, "select count(distinct row_group_id) from parquet_metadata(JOBS)") == [(15,)]


def test_a_file_that_is_there_stays(jobs: str, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    out.write_text("mine")
    done = history("-file", jobs, "-parquet", str(out))
    assert (done.returncode, "is there" in done.stderr, out.read_text()) == (1, True, "mine")


def test_half_a_file_does_not_stay(tmp_path: Path) -> None:
    def broken() -> Iterator[ClassAd]:
        yield ClassAd({"ClusterId": 1})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parquet.write_parquet(str(tmp_path / "out.parquet"), broken())
    assert list(tmp_path.iterdir()) == []


def test_without_pyarrow_the_remedy_is_said(jobs: str, tmp_path: Path) -> None:
    without = tmp_path / "without"
    without.mkdir()
    (without / "pyarrow.py").write_text("raise ImportError('No module named pyarrow')\n")
    done = history("-file", jobs, "-parquet", str(tmp_path / "out"), modules=str(without))
    assert (done.returncode, "pip install 'condor-actors[parquet]'" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("other", [("-long",), ("-af", "Owner"), ("-json",), ("-extract", "x", "-constraint", "true")])
def test_another_form_beside_it_is_refused(jobs: str, tmp_path: Path, other: tuple[str, ...]) -> None:
    done = history("-file", jobs, "-parquet", str(tmp_path / "out"), *other)
    assert (done.returncode, "-parquet writes a table of its own" in done.stderr) == (1, True), done.stderr
