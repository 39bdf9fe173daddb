"""What Slurm's words mean, and the script that runs there: tried with every shell there is."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.grid_events import BatchJob, Fits, FolderRecord
from condor_actors.cores.shadow.slurm_jobs import (
    batch_name,
    is_transient,
    make_script,
    parse_accounting,
    parse_queue,
    read_record,
    shown_status,
    submission_words,
    what_it_is,
)
from condor_actors.cores.starter.run_spec import read_spec

SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]


def test_only_jobs_of_ours_are_read() -> None:
    text = ("7|RUNNING|None|n1|condor.1.0.1.ab\n8|PENDING|Priority||condor.1.0.1.ab\n9|RUNNING|None|n1|mine\n"
            "10_[1-3]|PENDING|None||condor.x\nnonsense\n")
    assert parse_queue(text) == {"condor.1.0.1.ab": (BatchJob("7", "RUNNING", "None", "n1"),
                                                     BatchJob("8", "PENDING", "Priority", ""))}


def test_the_accounting() -> None:
    assert parse_accounting("7", "CANCELLED by 0\n") == BatchJob("7", "CANCELLED")
    assert parse_accounting("7", "\n") is None


@pytest.mark.parametrize(("state", "reason", "shown", "fits"), [
    ("PENDING", "Priority", "IDLE", Fits.WAITING), ("PENDING", "JobHeldUser", "HELD", Fits.WAITING),
    ("RUNNING", "None", "RUNNING", Fits.RUNNING), ("COMPLETING", "None", "RUNNING", Fits.RUNNING),
    ("SUSPENDED", "None", "SUSPENDED", Fits.RUNNING), ("CONFIGURING", "None", "IDLE", Fits.WAITING),
])
def test_states(state: str, reason: str, shown: str, fits: Fits) -> None:
    assert (shown_status(state, reason), what_it_is(state)) == (shown, fits)


@pytest.mark.parametrize("state", ["COMPLETED", "FAILED", "TIMEOUT", "SOMETHING_NEW"])
def test_all_else_is_over(state: str) -> None:
    assert what_it_is(state) is Fits.OVER


def test_a_run_has_one_name_and_no_other_has_it() -> None:
    job = ClassAd({"QDate": 5, "Owner": "a", "GlobalJobId": "s#1.0#5"})
    name = batch_name("1.0#1@s", job)
    assert name == batch_name("1.0#1@s", ClassAd(dict(job.items())))
    assert name.startswith("condor.1.0.1.")
    assert len({name, batch_name("1.0#2@s", job), batch_name("1.0#1@t", job),
                batch_name("1.0#1@s", ClassAd({**dict(job.items()), "QDate": 6}))}) == 4


def test_what_is_submitted() -> None:
    job = ClassAd({"BatchQueue": "short", "BatchProject": "p", "BatchRuntime": 61, "RequestCpus": 2,
                   "RequestMemory": 100, "RequestGPUs": 1, "BatchExtraSubmitArgs": "--job-name=mine --x='a b'"})
    words = submission_words(job, "condor.n", "/f")
    assert words[:9] == ["--parsable", "--partition=short", "--account=p", "--time=2", "--cpus-per-task=2",
                         "--mem=100M", "--gres=gpu:1", "--job-name=mine", "--x=a b"]
    assert words[9] == "--job-name=condor.n"  # the last one counts
    assert words[-1] == "/f/script"
    assert "--output=/a%%j/said" in submission_words(job, "condor.n", "/a%j")
    with pytest.raises(ValueError, match="batch_extra_submit_args"):
        submission_words(ClassAd({"BatchExtraSubmitArgs": "'"}), "n", "/f")


def test_trouble_is_told_from_a_refusal() -> None:
    assert is_transient("sbatch: error: Batch job submission failed: Unable to contact slurm controller")
    assert is_transient("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
    assert not is_transient("sbatch: error: Batch job submission failed: Invalid account or account/partition")


def ran(folder: Path, shell: str, body: str, number: str = "7", **more: object) -> None:
    sandbox = folder / "sandbox"
    sandbox.mkdir(exist_ok=True)
    program = sandbox / "condor_exec.exe"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    job = ClassAd({"Cmd": "x", "Iwd": "/", "Out": "o", "Err": "e", "Arguments": "'a ''b' c", **more})
    script = folder / "script"
    script.write_text(make_script(read_spec(job), str(folder), {"GIVEN": "it's"}))
    words = [shell, "sh"] if shell == "busybox" else [shell]
    subprocess.run([*words, str(script)], env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": number}, cwd="/",
                   capture_output=True, check=False)


def record(folder: Path) -> FolderRecord:
    files = {name: (folder / name).read_text() for name in ("began", "end", "death") if (folder / name).exists()}
    return read_record(files, os.readlink(folder / "claim") if (folder / "claim").is_symlink() else "")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("body", "status", "number"), [
    ("exit 0", 0, 0), ("exit 7", 7, 0), ("exit 137", 137, 0), ("kill -9 $$", 137, 9), ("kill -15 $$", 143, 15),
    ("kill -11 $$", 139, 11), ("exit 143", 143, 0),
])
def test_how_a_program_ended(tmp_path: Path, shell: str, body: str, status: int, number: int) -> None:
    ran(tmp_path, shell, body)
    found = record(tmp_path)
    assert (found.status, found.signal, found.claim) == (status, number, "7")
    assert found.began_s > 1e9


@pytest.mark.parametrize("shell", SHELLS)
def test_what_a_program_sees(tmp_path: Path, shell: str) -> None:
    ran(tmp_path, shell, 'echo "$1|$2|$GIVEN|$PWD"; echo bad >&2; cat')
    assert (tmp_path / "sandbox/_condor_stdout").read_text() == f"a 'b|c|it's|{tmp_path}/sandbox\n"
    assert (tmp_path / "sandbox/_condor_stderr").read_text() == "bad\n"


@pytest.mark.parametrize("shell", SHELLS)
def test_variables_of_the_job_are_the_programs_alone(tmp_path: Path, shell: str) -> None:
    """Whatever they are called: the script goes on with its own."""
    names = ("PATH", "folder", "status", "SLURM_JOB_ID", "ENV", "BASH_ENV")
    ran(tmp_path, shell, 'echo "$PATH|$folder|$status|$SLURM_JOB_ID"; exit 3',
        Environment=" ".join(f"{name}=/none" for name in names))
    assert (tmp_path / "sandbox/_condor_stdout").read_text() == "|".join(["/none"] * 4) + "\n"
    found = record(tmp_path)
    assert (found.status, found.claim) == (3, "7")
    assert found.began_s > 1e9


def test_names_with_quotes_and_blanks_are_no_commands(tmp_path: Path) -> None:
    odd = tmp_path / "it's $(touch evil) a;b"
    odd.mkdir()
    ran(odd, "sh", "echo here", ShouldTransferFiles="NO", Cmd=str(odd / "sandbox/condor_exec.exe"), Iwd=str(odd),
        Out="o'u $(touch evil)t", Err="e\"r`touch evil`r")
    assert (odd / "o'u $(touch evil)t").read_text() == "here\n"
    assert not list(tmp_path.rglob("evil"))


@pytest.mark.parametrize("claim", ["8", "withdrawn"])
def test_of_two_jobs_for_a_run_one_begins(tmp_path: Path, claim: str) -> None:
    (tmp_path / "claim").symlink_to(claim)
    ran(tmp_path, "sh", "echo twice > /dev/full; touch ../ran")
    assert not (tmp_path / "ran").exists()
    assert record(tmp_path).status is None


def test_without_its_folder_nothing_begins(tmp_path: Path) -> None:
    ran(tmp_path, "sh", "exit 0")
    script = (tmp_path / "script").read_text()
    shutil.rmtree(tmp_path)
    done = subprocess.run(["sh", "-c", script], env={"PATH": os.environ["PATH"], "SLURM_JOB_ID": "9"}, check=False)
    assert done.returncode == 0
    assert not tmp_path.exists()


@pytest.mark.parametrize("end", ["", "x y z", "99999999999999999999 0m0s 0m0s", "-1"])
def test_a_folder_that_says_nonsense_says_nothing(end: str) -> None:
    found = read_record({"end": end, "began": "soon n1", "batch_id": "twelve"}, "../../etc")
    assert (found.status, found.began_s, found.batch_id, found.claim) == (None, 0.0, "", "")
