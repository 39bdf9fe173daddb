"""condor_run: shell commands as jobs of a real pool."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.pool_fixture import PersonalPool, open_to_jobs, until


@pytest.fixture
def folder(pool: PersonalPool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = pool.work / tmp_path_factory.mktemp("run").name
    made.mkdir()
    open_to_jobs(made)
    return made


@contextmanager
def started(pool: PersonalPool, folder: Path, *words: str, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A condor_run that goes on, and does not outlive the test."""
    with subprocess.Popen(pool.command(*words), cwd=folder, env={**pool.environment, **environment}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        try:
            yield running
        finally:
            if running.poll() is None:
                running.terminate()


def job_in(pool: PersonalPool, folder: Path) -> dict[str, Any]:
    """The job that was submitted from there."""
    job: dict[str, Any] = until(lambda: pool.jobs("-constraint", f'Iwd == "{folder}"'), "the job")[0]
    return job


def test_output_and_status_are_the_commands(pool: PersonalPool, folder: Path) -> None:
    (folder / "numbers").write_text("3\n1\n2\n")
    done = pool.tool("condor_run", "-a", "transfer_input_files = numbers",
                     "sort < numbers; echo trouble >&2; exit 7", cwd=folder)
    assert (done.stdout, done.stderr, done.returncode) == ("1\n2\n3\n", "trouble\n", 7)
    done = pool.tool("condor_run", "echo", "-n", "a  b", "'a  b'", cwd=folder)
    assert (done.stdout, done.stderr, done.returncode) == ("a b a  b", "", 0)
    done = pool.tool("condor_run", "kill -9 $$", cwd=folder)
    assert (done.stdout, done.stderr, done.returncode) == ("", "The job was killed by signal 9.\n", 137)
    assert [each.name for each in folder.iterdir()] == ["numbers"]


def test_what_the_description_says(pool: PersonalPool, folder: Path) -> None:
    done = pool.tool("condor_run", "-u", "local", "-getenv", "-a", "my.Note = strcat(\"a\", \"b\")", "-a",
                     "environment = SECOND=two", "echo $FIRST $SECOND", cwd=folder, environment={"FIRST": "one"})
    assert (done.stdout, done.stderr, done.returncode) == ("one two\n", "", 0)
    (ad, *_) = pool.history("-limit", "1")
    assert (ad["JobUniverse"], ad["Cmd"].rpartition("/")[2][:12]) == (12, ".condor_run.")
    done = pool.tool("condor_run", "-a", "executable = /no/such/file", "true", cwd=folder)
    assert done.returncode == 1
    assert "/no/such/file" in done.stderr
    done = pool.tool("condor_run", "-a", "queue 2", "true", cwd=folder)
    assert (done.returncode, "one job" in done.stderr) == (1, True)
    assert pool.tool("condor_run", cwd=folder).returncode == 1
    assert list(folder.iterdir()) == []


def test_what_the_caller_says_of_machines(pool: PersonalPool, folder: Path) -> None:
    with started(pool, folder, "condor_run", "true", CONDOR_ARCH="VAX", CONDOR_REQUIREMENTS="(Memory > 0)") as running:
        job = job_in(pool, folder)
        assert "Memory > 0" in job["Requirements"]
        assert '"VAX"' in job["Requirements"]
        pool.run("condor_rm", str(job["ClusterId"]))
        said = running.communicate(timeout=120)[1]
    assert said.startswith("The job was removed: ")
    assert running.returncode == 1
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_takes_the_job_along(pool: PersonalPool, folder: Path, number: signal.Signals) -> None:
    with started(pool, folder, "condor_run", "-stream", "echo begun; echo too >&2; exec sleep 1000") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.readline() == "begun\n"
        assert running.stderr.readline() == "too\n"
        job = job_in(pool, folder)
        running.send_signal(number)
        assert running.communicate(timeout=120) == ("", f"Killed by {number.name}.\n")
    assert running.returncode == 128 + number
    until(lambda: not pool.jobs(str(job["ClusterId"])), "the job is gone")
    assert list(folder.iterdir()) == []


def test_a_job_on_hold_is_told_of_and_goes_on(pool: PersonalPool, folder: Path) -> None:
    with started(pool, folder, "condor_run", "-a", "hold = true", "echo done") as running:
        assert running.stderr is not None
        cluster = str(job_in(pool, folder)["ClusterId"])
        assert running.stderr.readline() == f"Job {cluster}.0 is on hold: it was submitted so\n"
        pool.run("condor_release", cluster)
        assert running.communicate(timeout=120)[0] == "done\n"
    assert running.returncode == 0
    with started(pool, folder, "condor_run", "-a", "requirements = false", "true") as running:
        assert running.stderr is not None
        cluster = str(job_in(pool, folder)["ClusterId"])
        pool.run("condor_hold", "-reason", "to wait", cluster)
        assert f"Job {cluster}.0 is on hold: to wait" in running.stderr.readline()
        pool.run("condor_rm", cluster)
        running.communicate(timeout=120)
    assert running.returncode == 1
    assert list(folder.iterdir()) == []


def test_a_signal_that_its_caller_ignores_does_nothing(pool: PersonalPool, folder: Path) -> None:
    command = pool.command("condor_run", "-stream", "echo begun; while [ ! -e go ]; do sleep 0.1; done; echo went on")
    with started(pool, folder, "sh", "-c", 'trap "" HUP; exec "$@"', "sh", *command) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "begun\n"
        running.send_signal(signal.SIGHUP)
        pool.touch_beside(str(job_in(pool, folder)["ClusterId"]), "go")
        assert running.communicate(timeout=120)[0] == "went on\n"
    assert running.returncode == 0
