"""Why a job is held or moved, and why a machine does nothing."""

from __future__ import annotations

from typing import Any

from condor_actors.classads import ClassAd
from condor_actors.cores.answers.held import why_it_is_held
from condor_actors.cores.answers.machine import why_it_does_nothing
from condor_actors.cores.answers.moves import run_ends, why_it_moves
from condor_actors.messages.codes import HoldCode, HoldSubCode
from tests.unit.cores.answers.test_waiting import NOW_S, job, slot


def test_a_job_that_needed_more() -> None:
    ad = job(HoldReason="Memory usage is over the limit", HoldReasonCode=int(HoldCode.JOB_OUT_OF_RESOURCES),
             HoldReasonSubCode=int(HoldSubCode.MEMORY_EXCEEDED), MemoryUsage=1800, JobStatus=5)
    text = why_it_is_held(ad, NOW_S)
    assert "on hold for 5 minutes" in text
    assert "condor_qedit 7.0 RequestMemory 2700" in text


def test_every_code_has_an_answer() -> None:
    for code in (*HoldCode, 0, 999):
        text = why_it_is_held(job(HoldReason="x.", HoldReasonCode=int(code)), NOW_S)
        assert text.startswith("It has been on hold for 5 minutes: x. ")
        assert "{" not in text


def test_a_job_that_is_moved_again_and_again() -> None:
    lines: list[tuple[float, str]] = [(0.0, "submitted by ann")]
    reasons = ["evicted: PREEMPT is true", "evicted: PREEMPT is true", "lost: the starter is gone"]
    for number, reason in enumerate(reasons):
        lines += [(number * 3600.0, f"run {number + 1} begins on slot1@{'lab' if number < 2 else 'hall'}"),
                  (number * 3600.0 + 1800, f"run {number + 1} ended: {reason}")]
    text = why_it_moves(run_ends(lines), 3 * 3600.0)
    assert "run 3 times in 3 hours" in text
    assert '2 times "PREEMPT is true" and 1 time "its machine was not heard of any more"' in text
    assert "2 of these runs were on lab" in text
    assert why_it_moves(run_ends(lines[:5]), 9e9) == ""


def machine(*slots: ClassAd, waiting: tuple[ClassAd, ...] = (), in_all: int = 0) -> str:
    return why_it_does_nothing(slots, waiting, in_all, NOW_S)


def test_a_machine_in_its_owners_hands() -> None:
    text = machine(slot("KeyboardIdle > 900 && LoadAvg < 0.3", KeyboardIdle=30, LoadAvg=1.5, CondorLoadAvg=0.0,
                        State="Owner"))
    assert "lab is its owner's now: used 30 seconds ago, with a load of 1.5" in text
    assert "KeyboardIdle > 900" in text
    assert "LoadAvg < 0.3" in text


def test_nobody_wants_anything() -> None:
    assert "nobody in the pool has an idle job" in machine(slot())


def test_jobs_that_do_not_fit_and_one_that_does() -> None:
    large = job(RequestMemory=9000)
    text = machine(slot(), waiting=(large,), in_all=40)
    assert "40 jobs wait in the pool; none fits" in text
    assert "9000" in text
    assert "7.0 of ann" in machine(slot(), waiting=(large, job()), in_all=41)
    assert "their queues do not answer" in machine(slot(), in_all=3)


def test_full_drained_and_asleep() -> None:
    def taken(**more: Any) -> ClassAd:
        return slot(RemoteOwner="bob@dom", **more)

    assert "runs 2 jobs: 2 of bob@dom. All its cores are in use." in machine(
        slot(PartitionableSlot=True, Cpus=0), taken(), taken())
    assert "condor_drain -cancel lab" in machine(slot(Draining=True, DrainReason="a new kernel"))
    assert "sleeps" in machine(slot(Offline=True))
