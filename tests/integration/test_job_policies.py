"""Policies of jobs, from the submit description to the event log, on a real pool."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.pool_fixture import PersonalPool, fresh_folder, until


@pytest.fixture(scope="module")
def pool() -> Iterator[PersonalPool]:
    with fresh_folder() as folder:
        made = PersonalPool(folder, config="PERIODIC_EXPR_INTERVAL = 1\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\n")
        yield made
        made.stop()


def test_each_policy_does_what_it_says_with_its_reason(pool: PersonalPool) -> None:
    jobs = {
        # Wall-clock time adds up over the runs: the second would be held before its start is known, again and again.
        "hold": "periodic_hold = JobStatus == 2 && NumJobStarts == (NumHolds ?: 0) + 1 && RemoteWallClockTime > 1\n"
                "periodic_hold_reason = \"long enough\"\n"
                "periodic_hold_subcode = 17\nperiodic_release = HoldReasonSubCode == 17 && NumJobStarts < 2\n",
        "remove": "periodic_remove = (JobStatus == 2) && (time() - EnteredCurrentStatus) > 1\n",
        "vacate": "periodic_vacate = NumJobStarts == 1 && LastVacateTime is undefined && RemoteWallClockTime > 1\n",
        "submitted": "hold = true\nperiodic_release = true\nperiodic_remove = JobStatus == 2\n",
    }
    clusters = {
        name: pool.submit(f"executable = /bin/sleep\ntransfer_executable = false\narguments = 600\nlog = {name}.log\n"
                          f"{policy}queue\n")
        for name, policy in jobs.items()
    }
    exits = {
        "exit-hold": 'on_exit_hold = ExitCode == 7\non_exit_hold_reason = strcat("code ", ExitCode)\n'
                     "on_exit_hold_subcode = ExitCode + 1\n",
        "exit-remove": "on_exit_remove = NumJobCompletions >= 3\n",
    }
    (pool.work / "seven.sh").write_text("#!/bin/sh\nexit 7\n")
    (pool.work / "seven.sh").chmod(0o755)
    for name, policy in exits.items():
        clusters[name] = pool.submit(f"executable = seven.sh\nlog = {name}.log\n{policy}queue\n")

    # Held, released, run again, held for good.
    until(lambda: [ad for ad in pool.jobs(str(clusters["hold"])) if ad["JobStatus"] == 5 and ad["NumJobStarts"] == 2],
          "the second hold")
    (held,) = pool.jobs(str(clusters["hold"]))
    assert (held["HoldReason"], held["HoldReasonCode"], held["HoldReasonSubCode"]) == ("long enough", 3, 17)
    log = (pool.work / "hold.log").read_text()
    assert "long enough" in log
    assert "Code 3 Subcode 17" in log
    assert "The job attribute PeriodicRelease expression" in log

    pool.until_status(f"{clusters['remove']}.0", 0)
    (removed,) = pool.history(str(clusters["remove"]))
    assert removed["JobStatus"] == 3
    assert "PeriodicRemove expression" in removed["RemoveReason"]
    assert "PeriodicRemove expression" in (pool.work / "remove.log").read_text()

    until(lambda: [ad for ad in pool.jobs(str(clusters["vacate"])) if ad["NumJobStarts"] == 2], "another run")
    assert "004 (" in (pool.work / "vacate.log").read_text()
    pool.until_status(f"{clusters['submitted']}.0", 0)

    pool.until_status(f"{clusters['exit-hold']}.0", 5)
    (held,) = pool.jobs(str(clusters["exit-hold"]))
    assert (held["HoldReason"], held["HoldReasonCode"], held["HoldReasonSubCode"]) == ("code 7", 3, 8)
    pool.until_status(f"{clusters['exit-remove']}.0", 0)
    (done,) = pool.history(str(clusters["exit-remove"]))
    assert (done["NumJobCompletions"], done["NumJobStarts"], done["ExitCode"]) == (3, 3, 7)
    pool.run("condor_rm", "-all")
