"""Jobs that save their own work: checkpoint_exit_code, its files, the signal that asks for it, and eviction in
between."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until

STEPS = """#!/bin/sh
# Counts to 5; after every step it saves and ends with 85, to be started again.
step=$(cat step 2>/dev/null || echo 0)
step=$((step + 1))
echo "step $step"
echo $step > step
[ $step -ge 5 ] && exit 0
exit 85
"""
WAITS = """#!/bin/sh
# Saves when it is told to; the second start finds what the first has saved.
if [ -e saved ]; then echo "went on from $(cat saved)"; exit 0; fi
trap 'echo "the middle" > saved; exit 85' USR1
echo began
touch ready
while true; do sleep 0.05; done
"""


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, slots=1, config="PERIODIC_CHECKPOINT = (time() - LastPeriodicCheckpoint) > 1\n"
                                                    "POLLING_INTERVAL = 0.5\n")
        yield made
        made.stop()


def program(pool: PersonalPool, name: str, text: str) -> None:
    path = pool.work / name
    path.write_text(text)
    path.chmod(0o755)


def test_a_job_is_started_again_after_each_checkpoint(pool: PersonalPool) -> None:
    program(pool, "steps.sh", STEPS)
    cluster = pool.submit("executable = steps.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = step\n"
                          "should_transfer_files = yes\noutput = steps.out\nlog = steps.log\nqueue\n")
    pool.wait("steps.log")
    assert (pool.work / "steps.out").read_text() == "".join(f"step {number}\n" for number in range(1, 6))
    log = (pool.work / "steps.log").read_text()
    assert log.count("\n003 (") == 4, log
    ended = pool.history(str(cluster))[0]
    assert (ended["NumCkpts"], ended["ExitCode"]) == (4, 0)
    assert (pool.work / "step").read_text() == "5\n"


def test_the_policy_asks_for_a_checkpoint_by_signal(pool: PersonalPool) -> None:
    program(pool, "waits.sh", WAITS)
    pool.submit('executable = waits.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = saved\n'
                '+WantCheckpointSignal = True\n+CheckpointSig = "SIGUSR1"\nshould_transfer_files = yes\n'
                "output = waits.out\nlog = waits.log\nqueue\n")
    pool.wait("waits.log")
    assert (pool.work / "waits.out").read_text() == "began\nwent on from the middle\n"


def test_a_checkpoint_outlives_the_eviction(pool: PersonalPool) -> None:
    program(pool, "holds.sh", STEPS.replace("[ $step -ge 5 ] && exit 0", "[ $step = 3 ] && [ ! -e $1 ] && "
                                            "{ touch $1.here; sleep 1000; }\n[ $step -ge 5 ] && exit 0"))
    gate = pool.work / "gate"
    cluster = pool.submit(f"executable = holds.sh\narguments = {gate}\ncheckpoint_exit_code = 85\n"
                          "transfer_checkpoint_files = step\nshould_transfer_files = yes\n"
                          "output = holds.out\nlog = holds.log\nqueue\n")
    until(lambda: (pool.work / "gate.here").exists() or None, "the third step")
    pool.kill("shadow-host")
    pool.until_status(f"{cluster}.0", 2)
    gate.touch()
    pool.run("condor_vacate_job", "-fast", f"{cluster}.0")
    pool.wait("holds.log")
    text = (pool.work / "holds.out").read_text()
    assert text.startswith("step 1\nstep 2\n"), text
    assert text.endswith("step 3\nstep 4\nstep 5\n"), text
    assert text.count("step 2\n") == 1, text


def test_a_checkpoint_outlives_a_hold_for_an_output_that_is_missing(pool: PersonalPool) -> None:
    program(pool, "unmade.sh", STEPS.replace(
        "[ $step -ge 5 ] && exit 0", "[ $step -ge 3 ] && { [ -e $1 ] && echo made > result; exit 0; }"))
    gate = pool.work / "made.now"
    cluster = pool.submit(f"executable = unmade.sh\narguments = {gate}\ncheckpoint_exit_code = 85\n"
                          "transfer_checkpoint_files = step\ntransfer_output_files = result\n"
                          "should_transfer_files = yes\noutput = unmade.out\nlog = unmade.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 5)
    assert (pool.work / "unmade.out").read_text() == "step 1\nstep 2\nstep 3\n"
    gate.touch()
    pool.run("condor_release", f"{cluster}.0")
    pool.wait("unmade.log")
    assert (pool.work / "result").read_text() == "made\n"
    assert pool.history(str(cluster))[0]["NumCkpts"] == 2


def test_without_named_files_everything_new_is_the_checkpoint(pool: PersonalPool) -> None:
    program(pool, "all.sh", STEPS.replace("echo $step > step", "echo $step > step\n[ $step = 1 ] && echo kept > once"))
    pool.submit("executable = all.sh\ncheckpoint_exit_code = 85\nshould_transfer_files = yes\n"
                "output = all.out\nlog = all.log\nqueue\n")
    pool.wait("all.log")
    assert (pool.work / "once").read_text() == "kept\n"


def test_a_checkpoint_without_its_file_is_a_hold(pool: PersonalPool) -> None:
    program(pool, "none.sh", "#!/bin/sh\nexit 85\n")
    cluster = pool.submit("executable = none.sh\ncheckpoint_exit_code = 85\ntransfer_checkpoint_files = nothing\n"
                          "should_transfer_files = yes\nlog = none.log\nqueue\n")
    pool.until_status(f"{cluster}.0", 5)
    assert "nothing" in pool.jobs(str(cluster))[0]["HoldReason"]
    pool.run("condor_rm", str(cluster))
