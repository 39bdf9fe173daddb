"""A run in another batch system: submitted once, whatever is lost, and ended as its own word or the system says."""

from __future__ import annotations

from typing import Any

import pytest

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.grid_events import (
    BatchJob,
    Bring,
    Brought,
    Cancel,
    Cancelled,
    CleanUp,
    FilesFailed,
    FolderRecord,
    GridSettings,
    GridState,
    Look,
    Looked,
    Prepare,
    Prepared,
    Submit,
    SubmitFailed,
    Submitted,
    Unavailable,
    Withdraw,
    Withdrawn,
)
from condor_actors.cores.shadow.grid_run import GridRun
from condor_actors.cores.shadow.shadow_events import Log, ScheddBack, Settled
from condor_actors.cores.shadow.slurm_jobs import SLURM
from condor_actors.effects import SetTimer
from condor_actors.messages.codes import HoldCode, HoldSubCode, JobEventType
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import StopRun
from condor_actors.messages.shadow_host import StartRun

RUN = "1.0#1@s"
BEGAN = FolderRecord(prepared=True, batch_id="7", claim="7", host="n1", began_s=90.0)


def run_of(*, reattach: bool = False, more: str = "") -> GridRun:
    order = StartRun(run_id=RUN, job_ad=b"", claim_id="", secret="", starter_node="", slot_name="", slot_ad=b"",
                     lease_s=60.0, reattach=reattach)
    run = GridRun(order, ClassAd.from_text(f'ClusterId = 1\nProcId = 0\nGridResource = "batch slurm"\n{more}'),
                  GridSettings(retries=2), SLURM)
    assert type(run.start(100.0)[0]) is (Look if reattach else Prepare)
    return run


def give(run: GridRun, *events: Any) -> list[Any]:
    """All effects of some events."""
    found: list[Any] = []
    for event in events:
        found += run.handle(event, 100.0)
        run.validate()
    return found


def kinds(effects: list[Any]) -> list[type]:
    return [type(effect) for effect in effects]


def events_of(effects: list[Any]) -> list[int]:
    return [effect.event for effect in effects if isinstance(effect, Log)]


def queued() -> GridRun:
    run = run_of()
    give(run, Prepared(), Submitted("7"))
    assert run.state is GridState.QUEUED
    return run


def looked(state: str, record: FolderRecord = BEGAN, batch_id: str = "7", reason: str = "") -> Looked:
    return Looked((BatchJob(batch_id, state, reason, "n1"),), record)


def test_its_whole_life() -> None:
    run = run_of()
    assert Submit in kinds(give(run, Prepared()))
    done = give(run, Submitted("7"))
    assert events_of(done) == [JobEventType.GRID_SUBMIT]
    assert run.attributes.get_str("GridJobId") == "batch slurm 7"
    done = give(run, looked("PENDING", FolderRecord(prepared=True)))
    assert run.attributes.get_str("GridJobStatus") == "IDLE"
    assert [effect.delay_s for effect in done if isinstance(effect, SetTimer)] == [10.0]  # at a moment that all share
    assert events_of(give(run, looked("RUNNING"))) == [JobEventType.EXECUTE]
    assert run.state is GridState.RUNNING
    ended = FolderRecord(prepared=True, claim="7", host="n1", began_s=90.0, status=3, user_cpu_s=1.5)
    assert Bring in kinds(give(run, looked("COMPLETED", ended)))
    give(run, Brought())
    assert run.ended is not None
    assert run.ended.outcome == "exited"
    ad = ClassAd.from_bytes(run.ended.attributes)
    assert (ad.get_int("ExitCode"), ad.get_bool("ExitBySignal"), ad.get_float("RemoteUserCpu")) == (3, False, 1.5)
    assert kinds(give(run, Settled())) == [CleanUp]


def test_a_submission_without_an_answer_is_looked_for_before_another() -> None:
    run = run_of()
    give(run, Prepared(), SubmitFailed("no answer within 5 s", transient=True))
    assert run.state is GridState.LOOKING
    assert kinds(give(run, TimerFired(key="look"))) == [Look]
    give(run, looked("PENDING", FolderRecord(prepared=True)))
    assert run.state is GridState.QUEUED


def test_a_submission_that_did_not_arrive_is_repeated() -> None:
    run = run_of()
    give(run, Prepared(), SubmitFailed("no answer within 5 s", transient=True))
    assert Submit in kinds(give(run, Looked((), FolderRecord(prepared=True))))


def test_after_so_many_it_is_held_when_none_can_begin_any_more() -> None:
    run = run_of()
    give(run, Prepared(), SubmitFailed("down", transient=True), Unavailable("down"))
    assert run.ended is None
    assert Withdraw in kinds(give(run, Unavailable("down")))
    give(run, Withdrawn())
    assert run.ended is not None
    assert run.ended.outcome == "hold"
    assert "could not be reached 3 times in a row: down" in run.ended.reason


def test_one_that_began_after_all_is_not_held() -> None:
    run = run_of()
    give(run, Prepared(), SubmitFailed("down", transient=True), Unavailable("down"), Unavailable("down"))
    give(run, Withdrawn("9"))
    assert run.ended is None
    give(run, looked("RUNNING", FolderRecord(prepared=True, claim="9", began_s=95.0), "9"))
    assert (run.state, run.batch_id) == (GridState.RUNNING, "9")


def test_what_the_batch_system_refuses_is_held_at_once() -> None:
    run = run_of()
    give(run, Prepared(), SubmitFailed("invalid partition", transient=False))
    assert run.ended is not None
    assert run.ended.reason == "batch slurm refuses the job: invalid partition"


@pytest.mark.parametrize(("event", "state", "first"), [
    (Looked((), FolderRecord()), GridState.PREPARING, Prepare),
    (Looked((), FolderRecord(prepared=True)), GridState.SUBMITTING, Submit),
    (Looked((), FolderRecord(prepared=True, batch_id="7")), GridState.QUEUED, SetTimer),
    (looked("PENDING", FolderRecord(prepared=True)), GridState.QUEUED, SetTimer),
    (looked("RUNNING"), GridState.RUNNING, SetTimer),
    (Looked((), FolderRecord(prepared=True, claim="7", began_s=90.0, status=0)), GridState.BRINGING, Bring),
    (Unavailable("down", FolderRecord(claim="7", began_s=90.0, status=0)), GridState.BRINGING, Bring),
    (Unavailable("down"), GridState.LOOKING, SetTimer),
])
def test_another_grid_manager_takes_it_up_where_it_is(event: Any, state: GridState, first: type) -> None:
    run = run_of(reattach=True)
    done = give(run, event)
    assert run.state is state
    assert first in kinds(done)


def test_what_was_logged_is_not_logged_again() -> None:
    run = run_of(reattach=True, more='GridJobId = "batch slurm 7"\n')
    assert events_of(give(run, looked("PENDING", FolderRecord(prepared=True)))) == []
    run = run_of(reattach=True)
    (log,) = [each for each in give(run, looked("PENDING", FolderRecord(prepared=True))) if isinstance(each, Log)]
    assert log.again  # the writer checks whether it is there


def test_a_submission_that_only_the_queue_has_heard_of_is_looked_for_in_the_log() -> None:
    """The grid manager before this one may have been killed between the queue's commit and its line in the log."""
    run = run_of(reattach=True, more='GridJobId = "batch slurm 7"\nJobCurrentStartDate = 80\n')
    done = give(run, looked("PENDING", FolderRecord(prepared=True, batch_id="7", submitted_s=90.0)))
    assert [(each.event, each.when_s, each.again, each.once_since_s) for each in done if isinstance(each, Log)] == [
        (JobEventType.GRID_SUBMIT, 90.0, True, 20.0)]  # in the log it may have the second before or after


def test_of_two_jobs_of_its_name_the_one_with_the_claim_is_followed() -> None:
    run = queued()
    both = (BatchJob("7", "COMPLETED"), BatchJob("8", "RUNNING"))
    give(run, Looked(both, FolderRecord(prepared=True, claim="8", began_s=95.0)))
    assert (run.batch_id, run.state) == ("8", GridState.RUNNING)


@pytest.mark.parametrize(("state", "outcome", "code", "subcode"), [
    ("CANCELLED", "hold", HoldCode.STARTD_HELD_JOB, 0), ("TIMEOUT", "hold", HoldCode.JOB_EXECUTE_EXCEEDED, 0),
    ("OUT_OF_MEMORY", "hold", HoldCode.JOB_OUT_OF_RESOURCES, HoldSubCode.MEMORY_EXCEEDED),
    ("NODE_FAIL", "evicted", 0, 0), ("PREEMPTED", "evicted", 0, 0), ("FAILED", "hold", HoldCode.STARTD_HELD_JOB, 0),
])
def test_without_a_word_slurm_decides(state: str, outcome: str, code: int, subcode: int) -> None:
    run = queued()
    give(run, looked(state), looked(state), looked(state))
    assert run.ended is None  # its word may be late
    give(run, looked(state))
    assert run.ended is not None
    assert (run.ended.outcome, run.ended.hold_code, run.ended.hold_subcode) == (outcome, code, subcode)


def test_one_that_was_forgotten_before_it_began_is_submitted_anew() -> None:
    run = queued()
    gone = Looked((), FolderRecord(prepared=True, batch_id="7"))
    assert Withdraw in kinds(give(run, gone, gone, gone, gone))
    give(run, Withdrawn())
    assert run.ended is not None
    assert run.ended.outcome == "evicted"


def test_one_that_was_forgotten_while_it_ran_is_lost() -> None:
    run = queued()
    gone = Looked((), BEGAN)
    give(run, gone, gone, gone, gone)
    assert run.ended is not None
    assert run.ended.outcome == "lost"


def test_down_and_up_are_said_once() -> None:
    run = queued()
    assert events_of(give(run, Unavailable("down"), Unavailable("down"))) == [JobEventType.GRID_RESOURCE_DOWN]
    assert run.attributes.get_int("GridResourceUnavailableTime") == 100
    waiting = looked("PENDING", FolderRecord(prepared=True))
    assert events_of(give(run, waiting, waiting)) == [JobEventType.GRID_RESOURCE_UP]
    assert run.attributes.get_int("GridResourceUnavailableTime", -1) == 0


def test_it_ends_when_nothing_is_left_there() -> None:
    run = queued()
    assert Cancel in kinds(give(run, StopRun(run_id=RUN, how="remove", reason="by alice")))
    give(run, Unavailable("down"), TimerFired(key="cancel"), Cancelled(False))
    assert run.ended is None
    give(run, TimerFired(key="cancel"), Cancelled(True))
    assert run.ended is not None
    assert (run.ended.outcome, run.ended.reason) == ("evicted", "by alice")


def test_a_file_that_cannot_be_used_holds_it() -> None:
    run = run_of()
    give(run, FilesFailed("cannot read input file x", 13, 2))
    assert run.ended is not None
    assert (run.ended.hold_code, run.ended.hold_subcode) == (13, 2)


def test_a_schedd_that_forgot_is_told_again() -> None:
    run = queued()
    give(run, looked("RUNNING"))
    (report,) = give(run, ScheddBack())
    assert report.message.event == "executing"


def test_outputs_are_fetched_when_it_answers_again() -> None:
    run = queued()
    ended = FolderRecord(prepared=True, claim="7", began_s=90.0, status=0)
    give(run, looked("COMPLETED", ended))
    done = give(run, Unavailable("down"))
    assert events_of(done) == [JobEventType.GRID_RESOURCE_DOWN]
    assert kinds(give(run, TimerFired(key="look"))) == [Bring]
    assert events_of(give(run, Brought())) == [JobEventType.GRID_RESOURCE_UP]
    assert run.ended is not None
    assert run.ended.outcome == "exited"


def test_a_file_that_cannot_be_sent_is_a_reason_to_hold_it() -> None:
    run = run_of()
    give(run, Prepared(), FilesFailed("cannot read input file x", HoldCode.TRANSFER_INPUT_ERROR, 2))
    assert run.ended is not None
    assert (run.ended.outcome, run.ended.hold_code) == ("hold", HoldCode.TRANSFER_INPUT_ERROR)


def test_one_that_is_to_end_while_it_is_sent_is_cancelled_after_that() -> None:
    run = run_of()
    give(run, Prepared(), StopRun(run_id=RUN, how="remove", reason="asked"))
    done = give(run, FilesFailed("cannot read input file x", HoldCode.TRANSFER_INPUT_ERROR, 2))
    assert [effect.key for effect in done if isinstance(effect, SetTimer)] == ["cancel"]
    give(run, TimerFired(key="cancel"), Cancelled(True))
    assert run.ended is not None
    assert run.ended.outcome == "evicted"


def test_a_submission_that_was_not_recorded_is_told_at_one_time_whoever_finds_it() -> None:
    """A grid manager that finds the job by its claim may be killed before its word is kept: the next says the same."""
    record = FolderRecord(prepared=True, claim="9", host="n1", began_s=95.0)
    assert (record.since_s("9"), record.since_s("8")) == (95.0, 0.0)
    assert FolderRecord(prepared=True, batch_id="9", submitted_s=90.0, claim="9", began_s=95.0).since_s("9") == 90.0
