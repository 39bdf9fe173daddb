"""What a description of the standard universe becomes."""

from __future__ import annotations

from pathlib import Path

import attrs
import pytest

from condor_actors.classads import ClassAd, requirements_hold
from condor_actors.submit import Description, Options, SubmitError
from condor_actors.tools.lib.submit_files import LocalFiles
from tests.unit.submit.worlds import World, described, jobs_of

TEXT = "universe = standard\nexecutable = /bin/true\nrequirements = Disk > 0\n"
SLOT = {"Arch": "X86_64", "OpSys": "LINUX", "Disk": 10**9, "Memory": 10**6, "HasStandardUniverse": True, "CpuLevel": 3}


def test_files_stay_and_the_machine_must_have_the_runtime() -> None:
    (job,) = jobs_of(TEXT + "queue\n")
    assert job["JobUniverse"] == 1
    assert job["ShouldTransferFiles"] == "NO"
    assert job["WantCheckpoint"] is True
    assert "TransferInput" not in job
    assert requirements_hold(job, ClassAd(SLOT), 0.0)
    assert not requirements_hold(job, ClassAd({**SLOT, "HasStandardUniverse": False}), 0.0)


@pytest.mark.parametrize(("attribute", "value", "fits"), [
    ("CkptCpuLevel", 3, True), ("CkptCpuLevel", 4, False), ("CkptArch", "X86_64", True), ("CkptArch", "AARCH64", False),
    ("CkptOpSys", "FREEBSD", False),
])
def test_a_checkpoint_needs_a_machine_that_can_go_on_from_it(attribute: str, value: object, fits: bool) -> None:
    (job,) = jobs_of(TEXT + "queue\n")
    job[attribute] = value
    assert requirements_hold(job, ClassAd(SLOT), 0.0) is fits


def test_a_list_of_files_is_not_needed_and_said_to_be_so() -> None:
    made = described(TEXT + "transfer_input_files = a, b\nqueue\n")
    assert any("transfer_input_files has no effect" in sentence for sentence in made.warnings)


def rooted(folder: Path, text: str) -> ClassAd:
    around = attrs.evolve(World().environment(), cwd=str(folder), files=LocalFiles())
    made = Description(around, lambda: 5, Options())
    made.read(TEXT + text + "queue\n", "job.sub")
    (cluster,) = made.clusters
    return ClassAd.from_bytes(cluster.ad)


@pytest.mark.parametrize("root", ["{0}", "{0}/", ".", "/", "{0}/other/.."])
def test_a_job_with_a_root_of_its_own(root: str, tmp_path: Path) -> None:
    job = rooted(tmp_path, f"job_root = {root.format(tmp_path)}\n")
    assert job["JobRoot"] == ("/" if root == "/" else str(tmp_path))


@pytest.mark.parametrize(("text", "names"), [
    ("job_root = other\n", "initialdir"), ("job_root = none\n", "No such directory"),
    ("job_root = .\nexecutable = /home/bob/program\n", "executable"), ("job_root = /usr\n", "initialdir"),
])
def test_a_root_must_have_what_the_job_begins_with(text: str, names: str, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with pytest.raises(SubmitError, match=names):
        rooted(tmp_path, text)


def _read(folder: Path, executable: str) -> Description:
    around = attrs.evolve(World().environment(), cwd=str(folder), files=LocalFiles())
    made = Description(around, lambda: 5, Options())
    made.read(f"universe = standard\nexecutable = {executable}\nqueue\n", "job.sub")
    return made


def test_a_program_that_cannot_run_is_refused_when_it_is_submitted(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no program\n")
    with pytest.raises(SubmitError, match="cannot run"):
        _read(tmp_path, "text")


def test_a_call_that_would_be_refused_is_named() -> None:
    class Talks(World):
        def preflight(self, path: str) -> tuple[bool, str, tuple[str, ...]]:
            return True, "can run; these would be refused", ("connect: the network (EACCES)",)

    made = described(TEXT + "queue\n", Talks())
    assert any("connect: the network" in sentence for sentence in made.warnings)
    python = described(TEXT.replace("/bin/true", "/bin/python3") + "queue\n", Talks(files={"/bin/python3": 9}))
    assert not any("connect" in sentence for sentence in python.warnings)
