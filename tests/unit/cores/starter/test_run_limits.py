"""A run that uses more than it may, and runs beside it."""

from __future__ import annotations

import pytest

from condor_actors.cores.starter import job_run as jr
from condor_actors.messages.run import Usage
from tests.unit.cores.starter.test_job_run import Bench


def test_memory_beyond_the_limit_holds() -> None:
    bench = Bench().running()
    bench.tell(jr.ProgramEnded(-1, 9, False))
    bench.tell(jr.TreeGone(Usage(), oom=True))
    assert (bench.said()[0].hold_code, bench.said()[0].hold_subcode) == (34, 102)


@pytest.mark.parametrize(("code", "number", "begins_again"), [(1, -1, True), (-1, 7, True), (0, -1, False)])
def test_a_program_that_fails_where_others_have_filled_the_disk_begins_again(
        code: int, number: int, begins_again: bool) -> None:
    bench = Bench().running()
    bench.tell(jr.ProgramEnded(code, number, False))
    bench.tell(jr.TreeGone(Usage(), no_room="others have filled it"))
    if begins_again:
        assert (bench.said()[0].cause, bench.said()[0].reason) == ("evicted", "others have filled it")
    else:
        assert any(isinstance(effect, jr.Gather) for effect in bench.out)


@pytest.mark.parametrize("code", [0, 3])
def test_what_its_wrapper_did_not_start_has_not_run(code: int) -> None:
    bench = Bench().running()
    bench.tell(jr.ProgramEnded(code, -1, False))
    bench.tell(jr.TreeGone(Usage(), unstarted="no licence server"))
    (exited,) = bench.said()
    assert (exited.cause, exited.reason, exited.exit_code, exited.hold_code) == (
        "start-failed", "no licence server", -1, 0)


def test_a_program_that_has_filled_the_disk_and_failed_is_held() -> None:
    bench = Bench().running()
    bench.tell(jr.ProgramEnded(1, -1, False))
    bench.tell(jr.TreeGone(Usage(), over_disk="it used 9 MB of 8 MB"))
    exited = bench.said()[0]
    assert (exited.cause, exited.hold_code, exited.hold_subcode) == ("hold", 34, 104)
    assert exited.reason == "it used 9 MB of 8 MB"


def test_disk_beyond_the_limit_holds() -> None:
    bench = Bench().running()
    assert jr.KillTree() in bench.tell(jr.Measured(Usage(disk_kib=9), "too much", 104))
    exited = bench.ended(-1, 9)
    assert (exited.cause, exited.reason, exited.hold_subcode) == ("hold", "too much", 104)


def test_a_run_that_makes_room_is_tried_again() -> None:
    bench = Bench().running()
    assert jr.KillTree() in bench.tell(jr.Measured(Usage(disk_kib=9), "the disk is nearly full", 0))
    exited = bench.ended(-1, 9)
    assert (exited.cause, exited.reason, exited.hold_code) == ("evicted", "the disk is nearly full", 0)
