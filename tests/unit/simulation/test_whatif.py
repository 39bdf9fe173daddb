"""What-if: a pool's own ads and history under another configuration."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from condor_actors.simulation.command import main
from condor_actors.simulation.cores.whatif import answer, read_history, read_machines

HOUR_S = 3600.0
BEGIN_S = 1_700_006_400.0

PROTECTING = """
use POLICY : Desktop
StartIdleTime = 120
ContinueIdleTime = 60
POLLING_INTERVAL = 60
"""
PREEMPTING = """
use POLICY : Always_Run_Jobs
PRIORITY_POLICY = UP_DOWN
PREEMPTION_REQUIREMENTS = true
NEGOTIATOR_CONSIDER_PREEMPTION = true
MaxJobRetirementTime = 0
"""
RUNNING_ALL = "use POLICY : Always_Run_Jobs\n"


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    """Four machines, two of which have owners; a heavy user and a light one."""
    slots = [
        f'Name = "slot1@m{number}"\nMyType = "Machine"\nMachine = "m{number}"\nCpus = 1\nMemory = 2048\nDisk = 100000\n'
        f'TotalSlotCpus = 1\nTotalSlotMemory = 2048\nTotalSlotDisk = 100000\nArch = "X86_64"\nOpSys = "LINUX"\n'
        f'MachineResources = "Cpus Memory Disk Swap"\nTotalTimeOwnerIdle = {3000 if number < 2 else 0}\n'
        "TotalTimeClaimedBusy = 7000\nStart = true\nRequirements = START\n"
        for number in range(4)]
    (tmp_path / "ads").write_text("\n".join(slots))
    random = Random(1)
    jobs = []
    for number in range(40):
        heavy = number < 30
        asked_s = BEGIN_S + (10.0 * number if heavy else (number - 29) * 2 * HOUR_S)
        work_s = random.uniform(1.0, 3.0) * HOUR_S if heavy else 600.0
        jobs.append(
            f'ClusterId = {number + 1}\nProcId = 0\nOwner = "{"heavy" if heavy else "light"}"\nJobStatus = 4\n'
            f"QDate = {int(asked_s)}\nCompletionDate = {int(asked_s + work_s + 5000)}\nCommittedTime = {int(work_s)}\n"
            'JobUniverse = 5\nRequestCpus = 1\nRequestMemory = 100\nRequestDisk = 10\n'
            'Requirements = (TARGET.Arch == "X86_64") && (TARGET.Memory >= RequestMemory)\n')
    jobs.append('ClusterId = 99\nProcId = 0\nOwner = "light"\nJobStatus = 3\nQDate = 1\n')
    (tmp_path / "history").write_text("\n".join(jobs))
    for name, text in (("protecting", PROTECTING), ("preempting", PREEMPTING), ("all", RUNNING_ALL)):
        (tmp_path / name).write_text(f"LOCAL_DIR = {tmp_path}\nCONDOR_HOST = cm\n{text}")
    return tmp_path


def test_files_are_read(pool: Path) -> None:
    machines = read_machines(pool / "ads")
    assert [round(machine.owners_part, 2) for machine in machines] == [0.3, 0.3, 0.0, 0.0]
    assert machines[0].plan.share.memory_mib == 2048
    jobs = read_history(pool / "history", 31.0)
    assert len(jobs) == 40, "a removed job is none that was served"
    assert jobs[0].demand_s > HOUR_S
    assert jobs[0].wait_s == pytest.approx(5000, abs=2)
    assert 'TARGET.Arch == "X86_64"' in jobs[0].ad


def test_requests_keep_what_they_refer_to(pool: Path) -> None:
    """As condor_submit writes them: what a job needs is asked of other attributes, which a run may change."""
    (pool / "history").write_text(
        'ClusterId = 1\nProcId = 0\nOwner = "root"\nAccountingGroup = "light"\nJobStatus = 4\nQDate = 1700006400\n'
        "JobCurrentStartDate = 1700006500\nJobCurrentStartExecutingDate = 1700006504\nCompletionDate = 1700006604\n"
        "CommittedTime = 104\nJobUniverse = 5\nRequestCpus = 1\nRequestDisk = DiskUsage\nDiskUsage = 10\n"
        "RequestMemory = ifThenElse(MemoryUsage =!= undefined,MemoryUsage,128)\nMemoryUsage = 9000\n"
        "Requirements = (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory)\n")
    (job,) = read_history(pool / "history", 31.0)
    assert (job.user, job.demand_s, job.placement_s) == ("light", 100.0, 4.0)
    assert "DiskUsage = 10" in job.ad
    assert "MemoryUsage = 9000" not in job.ad
    told = json.loads(answer(config=pool / "all", ads=pool / "ads", history=pool / "history", as_json=True))
    assert told["columns"][1]["users"]["light"]["jobs"] == 1


def test_preemption_helps_the_light_user_and_costs_work(pool: Path) -> None:
    text = answer(config=pool / "preempting", against=pool / "all", ads=pool / "ads", history=pool / "history",
                  as_json=True)
    was, before, after = json.loads(text)["columns"]
    assert was["all"]["jobs"] == before["all"]["jobs"] == after["all"]["jobs"] == 40
    waits = [column["users"]["light"]["mean wait ratio"] for column in (before, after)]
    assert waits[1] < 0.5 * waits[0]
    assert before["evictions"] == 0
    assert after["evictions"] > 0
    assert after["lost_h"] > 0.0, "vanilla jobs begin again"


def test_owners_are_protected_by_a_policy_that_does(pool: Path) -> None:
    text = answer(config=pool / "protecting", ads=pool / "ads", history=pool / "history", as_json=True)
    _, column = json.loads(text)["columns"]
    assert column["unfinished"] == 0
    assert 0.0 < column["reaction_s"] <= column["worst_s"] <= 61.0


@pytest.mark.parametrize(("change", "says"), [
    (("ads", ""), "no slot ads"),
    (("ads", 'Name = "a\n'), "ad 1 cannot be read"),
    (("history", ""), "no completed jobs"),
    (("preempting", "PRIORITY_POLICY = SIDEWAYS\n"), "SIDEWAYS"),
    (("preempting", "use POLICY : NoSuchThing\n"), "NoSuchThing"),
])
def test_bad_input_is_refused(pool: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str],
                              says: str) -> None:
    (pool / change[0]).write_text(change[1])
    words = ["what-if", "--config", str(pool / "preempting"), "--ads", str(pool / "ads"), "--history",
             str(pool / "history")]
    assert main(words) == 2
    assert says in capsys.readouterr().err


def test_a_file_that_is_not_there_is_named(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["what-if", "--config", str(pool / "all"), "--ads", str(pool / "none"), "--history", str(pool / "history")]
    assert main(words) == 2
    assert f"{pool / 'none'}: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["paper-1988", "--seeds", "none"], ["paper-1988", "--policies", "LOTTERY"],
                                   ["scale", "--machines", "0"], ["nothing"], []])
def test_wrong_words_are_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: condor_simulate" in capsys.readouterr().err


def test_who_saves_work_is_known_by_the_attributes_that_jobs_have(tmp_path: Path) -> None:
    common = ("ProcId = 0\nOwner = \"ann\"\nJobStatus = 4\nQDate = 1700000000\nCompletionDate = 1700009000\n"
              "CommittedTime = 4000\nJobUniverse = 5\n")
    (tmp_path / "history").write_text("\n".join((
        f"ClusterId = 1\n{common}", f"ClusterId = 2\nSuccessCheckpointExitCode = 85\n{common}",
        f'ClusterId = 3\nWhenToTransferOutput = "ON_EXIT_OR_EVICT"\n{common}')))
    assert {job.name: job.saves for job in read_history(tmp_path / "history", 31.0)} == {
        "1.0": False, "2.0": True, "3.0": True}
