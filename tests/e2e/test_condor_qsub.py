"""condor_qsub: scripts written for other batch systems, in a real pool."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.pool_fixture import PersonalPool, open_to_jobs, until

SUBMITTED = re.compile(r'Your job (\d+) \("([^"]+)"\) has been submitted\n')


@pytest.fixture
def folder(pool: PersonalPool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = pool.work / tmp_path_factory.mktemp("qsub").name
    made.mkdir()
    open_to_jobs(made)
    return made


def submitted(pool: PersonalPool, folder: Path, *words: str) -> tuple[int, str]:
    """The cluster and its name."""
    found = SUBMITTED.fullmatch(pool.run("condor_qsub", *words, cwd=folder))
    assert found is not None
    return int(found[1]), found[2]


def until_over(pool: PersonalPool, cluster: int) -> None:
    until(lambda: not pool.jobs("-constraint", f"ClusterId == {cluster}"), "the job's end")


def test_a_script_with_options_of_its_own(pool: PersonalPool, folder: Path) -> None:
    (folder / "data").write_text("b\na\n")
    (folder / "sort.sh").write_text('#PBS -N sorted -j oe\n#PBS -W stagein=data@here:data\n'
                                    'sort data; echo "$1 $2" >&2\n')
    cluster, name = submitted(pool, folder, "-l", "mem=10Mb", "sort.sh", "two words", "-x")
    assert name == "sorted"
    until_over(pool, cluster)
    assert (folder / f"sorted.o{cluster}").read_text() == "a\nb\ntwo words -x\n"
    assert pool.history("-constraint", f"ClusterId == {cluster}")[0]["RequestMemory"] == 10


def test_an_array(pool: PersonalPool, folder: Path) -> None:
    script = folder / "task.sh"
    script.write_text("#!/bin/sh\necho $SGE_TASK_ID of $SGE_TASK_LAST, $SGE_TASK_STEPSIZE\n")
    script.chmod(0o755)
    cluster, name = submitted(pool, folder, "-t", "1-5:2", "-o", "out.$JOB_ID.$TASK_ID", "-e", "/dev/null", "task.sh")
    assert name == "task.sh"
    until_over(pool, cluster)
    assert {path.name: path.read_text() for path in folder.glob("out.*")} == {
        f"out.{cluster}.{task}": f"{task} of 5, 2\n" for task in (1, 3, 5)}


def test_a_program_and_what_is_submitted_not_at_all(pool: PersonalPool, folder: Path) -> None:
    said = pool.run("condor_qsub", "-test", "-print", "-b", "y", "-h", "sort", "-r", cwd=folder)
    assert "transfer_executable = false\n" in said
    assert 'arguments = "-r"\n' in said
    assert "has been submitted" not in said
    cluster, name = submitted(pool, folder, "-b", "y", "-h", "sort", "-r")
    assert name == "sort"
    assert pool.jobs("-constraint", f"ClusterId == {cluster}")[0]["JobStatus"] == 5
    pool.run("condor_rm", str(cluster))


def test_what_is_wrong_names_the_line(pool: PersonalPool, folder: Path) -> None:
    (folder / "bad.sh").write_text("#!/bin/sh\n\n#PBS -l nodes=2\n#PBS -y\n")
    done = pool.tool("condor_qsub", "bad.sh", cwd=folder)
    assert done.returncode == 1
    assert "bad.sh, line 4: unknown option -y" in done.stderr
    done = pool.tool("condor_qsub", "missing.sh", cwd=folder)
    assert (done.returncode, done.stderr) == (1, "condor_qsub: missing.sh: No such file or directory\n")
