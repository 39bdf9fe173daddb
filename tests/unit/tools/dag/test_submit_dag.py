"""condor_submit_dag: what it writes, what is in its way, what it refuses."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from condor_actors.tools.dag.submit_dag import main

Submitter = Callable[..., tuple[int, str, str]]


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Submitter:
    (tmp_path / "config").write_text(f"LOCAL_DIR = {tmp_path}\n")
    monkeypatch.setenv("CONDOR_CONFIG", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.dag").write_text("JOB A a.sub\nENV SET P=1;Q=2\nENV GET R\nSET_JOB_ATTR N = 3\nCONFIG x.cfg\n")
    (tmp_path / "x.cfg").write_text("DAGMAN_MAX_JOBS_IDLE = 5\n")

    def called(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["condor_submit_dag", "-no_submit", *words])
        status = main()
        said = capsys.readouterr()
        return status, said.out, said.err

    return called


def test_the_description(submit: Submitter, tmp_path: Path) -> None:
    status, out, err = submit("-maxjobs", "3", "-AutoRescue", "0", "-append", "priority = 4", "-insert_env", "|S=3|T=4",
                              "-include_env", "U,V", "-batch-name", "my batch", "x.dag")
    assert (status, err) == (0, "")
    assert "File for submitting this DAG to HTCondor           : x.dag.condor.sub\n" in out
    text = (tmp_path / "x.dag.condor.sub").read_text()
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    values = {name.strip(): value.strip() for name, value in lines.items()}
    assert (values["universe"], values["remove_kill_sig"], values["My.N"]) == ("scheduler", "SIGUSR1", "3")
    assert values["getenv"].endswith(",U,V,R")
    assert values["My.JobBatchName"] == '"my batch"'
    assert values["My.OtherJobRemoveRequirements"] == '"DAGManJobId =?= $(cluster)"'
    assert "-Lockfile x.dag.lock -Dag x.dag -MaxJobs 3 " in values["arguments"]
    assert " -AutoRescue 0 -Batch-Name my' 'batch -include_env U,V " in values["arguments"]
    assert values["environment"] == (f'"S=3 T=4 P=1 Q=2 _CONDOR_DAGMAN_LOG=x.dag.dagman.out _CONDOR_MAX_DAGMAN_LOG=0 '
                                     f'_CONDOR_DAGMAN_CONFIG_FILE={tmp_path}/x.cfg"')
    assert text.endswith("priority = 4\nqueue\n")


def test_files_of_an_earlier_run(submit: Submitter, tmp_path: Path) -> None:
    assert submit("x.dag")[0] == 0
    status, _, err = submit("x.dag")
    assert (status, err.splitlines()[0]) == (1, 'ERROR: "x.dag.condor.sub" already exists.')
    assert submit("-update_submit", "x.dag")[0] == 0
    (tmp_path / "x.dag.rescue002").touch()
    (tmp_path / "x.dag.rescue003").touch()
    assert "Running rescue DAG 3\n" in submit("x.dag")[1]
    assert submit("-AutoRescue", "0", "x.dag")[0] == 1
    assert "rescue DAG file x.dag.rescue007 does not exist" in submit("-DoRescueFrom", "7", "x.dag")[2]
    assert submit("-DoRescueFrom", "2", "x.dag")[0] == 0
    assert (tmp_path / "x.dag.rescue003.old").exists()
    (tmp_path / "x.dag.nodes.log").touch()
    assert submit("-f", "-DoRecovery", "x.dag")[0] == 0
    assert (tmp_path / "x.dag.nodes.log").exists(), "the run is made anew of it"
    assert submit("-f", "x.dag")[0] == 0
    assert not (tmp_path / "x.dag.nodes.log").exists()
    assert (tmp_path / "x.dag.rescue002.old").exists()


@pytest.mark.parametrize(("words", "said"), [
    (("-maxjobs", "many", "x.dag"), "-maxjobs many: expected an integer"),
    (("-DoRescueFrom", "-1", "x.dag"), "must be non-negative"),
    ((), "no dag file specified"),
    (("-what", "x.dag"), "unknown option -what"),
    (("-config", "other", "x.dag"), "-config other conflicts with CONFIG x.cfg"),
    (("no.dag",), "no.dag: it cannot be read: No such file or directory"),
    (("-valgrind", "x.dag"), "-valgrind is not available"),
    (("-RescueFile", "r", "-DoRescueFrom", "1", "x.dag"), "can not be used with the following flag: -RescueFile"),
    (("-DoRecovery", "-RescueFile", "r", "-load_save", "s", "x.dag"), "the following flags: -DoRecovery,-RescueFile"),
    (("-load_save", "s", "-DoRecovery", "x.dag"), "-DoRecovery can not be used with the following flag: -load_save"),
    (("-RescueFile", "r", "x.dag"), "r does not exist, from which the DAG is to go on"),
    (("-load_save", "s", "x.dag"), "save_files/s does not exist"),
])
def test_what_is_refused(submit: Submitter, tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    status, _, err = submit(*words)
    assert status == 1
    assert said in err
    assert not (tmp_path / "x.dag.condor.sub").exists()


@pytest.mark.parametrize(("named", "kept"), [("./x.dag.rescue002", 2), ("mine", 0), ("y.dag.rescue002", 0)])
def test_a_rescue_file_that_is_named_makes_later_ones_old(submit: Submitter, tmp_path: Path, named: str, kept: int
                                                          ) -> None:
    """They stayed, and the next run without a flag went on from one that was later."""
    for number in range(1, 4):
        (tmp_path / f"x.dag.rescue{number:03d}").touch()
    (tmp_path / named).touch()
    assert submit("-RescueFile", named, "x.dag")[0] == 0
    left = sorted(path.name for path in tmp_path.glob("x.dag.rescue*"))
    assert left == sorted(f"x.dag.rescue{number:03d}{'.old' * (number > kept)}" for number in range(1, 4))


def test_a_rejected_dag(submit: Submitter, tmp_path: Path) -> None:
    (tmp_path / "x.dag").write_text("JOB A x\nREJECT\n")
    assert "x.dag, line 2: the DAG is marked with REJECT" in submit("x.dag")[2]
