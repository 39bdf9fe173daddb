"""What every event does to a run in another batch system, in every state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.cores.shadow import grid_events as gr
from condor_actors.cores.shadow.shadow_events import Report, ScheddBack, Settled
from condor_actors.cores.state_table import EventKey, ignore, total_table
from condor_actors.effects import CancelTimer, SetTimer
from condor_actors.messages.codes import HoldCode, JobEventType
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import StopRun

if TYPE_CHECKING:
    from condor_actors.cores.shadow.grid_run import GridRun

__all__ = ["TABLE", "Step"]

Step = Callable[["GridRun", Any], None]

GRACE_S = 2.0
"""Between two looks for the word of a job that is over: a shared file system may be late with it."""
CANCEL_S = 2.0
"""Between two looks at a job that is to end."""


# ---- looking


def _look(run: GridRun, event: TimerFired) -> None:
    """It is time."""
    run.out.append(gr.Look(run.batch_id))


def _current(run: GridRun, event: gr.Looked) -> gr.BatchJob | None:
    """Which of the jobs of the run's name is the run: the one that may begin, else the first."""
    if not event.found:
        return None
    for name in (event.record.claim, run.batch_id):
        for each in event.found:
            if name and each.batch_id == name:
                return each
    return min(event.found, key=lambda each: run.kind.fits(each) is gr.Fits.OVER)


def _found_out(run: GridRun, event: gr.Looked) -> None:
    """After a crash, or a submission without an answer: is the job there?"""
    run.set_up()
    record, current = event.record, _current(run, event)
    known = record.claim or (current.batch_id if current is not None else record.batch_id)
    if known:
        run.adopt(known, record.since_s(known))
        run.state = gr.GridState.QUEUED
        _follow(run, event)
    elif record.prepared:
        _submit(run)
    else:
        run.state = gr.GridState.PREPARING
        run.out.append(gr.Prepare())


def _follow(run: GridRun, event: gr.Looked) -> None:
    """How the job is there."""
    run.set_up()
    record, current = event.record, _current(run, event)
    if record.claim and record.claim != run.batch_id:
        run.adopt(record.claim, record.since_s(record.claim))
    if record.status is not None:
        _began(run, record)
        _bring(run, record)
        return
    is_over = current is None or run.kind.fits(current) is gr.Fits.OVER
    if is_over:
        run.missing += 1
        if run.missing < run.kind.patience:
            run.look_again(GRACE_S)
        else:
            _conclude(run, current, record)
        return
    assert current is not None
    run.missing = 0
    if record.began_s:
        _began(run, record)
    run.set_status(run.kind.shown(current))
    run.look_again()


def _began(run: GridRun, record: gr.FolderRecord) -> None:
    """The program runs."""
    if run.began:
        return
    run.began = True
    run.state = gr.GridState.RUNNING
    job, since_s = run.job, int(record.began_s)
    counted = job.get_int("JobCurrentStartExecutingDate") == since_s
    run.attributes.update({
        "JobCurrentStartExecutingDate": since_s, "NumJobStarts": job.get_int("NumJobStarts") + (not counted),
        "GridJobStatus": "RUNNING",
    })
    run.note("executing", f"its program began on {record.host}")
    run.log_once(JobEventType.EXECUTE, record.began_s, ExecuteHost=record.host or run.resource)
    run.tell("executing")


def _conclude(run: GridRun, current: gr.BatchJob | None, record: gr.FolderRecord) -> None:
    """The batch system has ended the job, and its script has left no word."""
    if current is None and not record.claim:
        run.out.append(gr.Withdraw())  # it never began: another may, if this one cannot any more
        return
    outcome, reason, code, subcode = run.kind.verdict(run.batch_id, current, record)
    run.end(outcome, reason, code, subcode)


def _never_began(run: GridRun, event: gr.Withdrawn) -> None:
    """The batch system has forgotten a job that did not begin."""
    if event.claim:
        run.missing = 0
        run.look_again(GRACE_S)
    else:
        run.end("evicted", f"{run.resource} has no job {run.batch_id} any more, and it never began")


def _unavailable_looking(run: GridRun, event: gr.Unavailable) -> None:
    """Nobody knows whether the job is there: what has begun is waited for, what cannot be submitted is held."""
    run.set_down(event.reason)
    if event.record.status is not None and event.record.claim:
        run.adopt(event.record.claim, event.record.since_s(event.record.claim))
        _began(run, event.record)
        _bring(run, event.record)
    elif event.record.batch_id or event.record.claim or not run.failures:
        run.look_again()
    else:
        _count_failure(run, event.reason)


def _unavailable(run: GridRun, event: gr.Unavailable) -> None:
    """The job goes on without us; its own word counts."""
    run.set_down(event.reason)
    if event.record.status is not None:
        _began(run, event.record)
        _bring(run, event.record)
        return
    if event.record.began_s:
        _began(run, event.record)
    run.look_again()


# ---- submitting


def _prepared(run: GridRun, event: gr.Prepared) -> None:
    """Everything is in its folder."""
    _submit(run)


def _submit(run: GridRun) -> None:
    run.state = gr.GridState.SUBMITTING
    run.out.append(gr.Submit())


def _files_failed(run: GridRun, event: gr.FilesFailed) -> None:
    """A file of the user's cannot be used."""
    run.end("hold", event.reason, event.hold_code, event.hold_subcode)


def _submitted(run: GridRun, event: gr.Submitted) -> None:
    """The batch system has it."""
    run.set_up()
    run.adopt(event.batch_id, event.when_s)
    run.state = gr.GridState.QUEUED
    run.set_status("IDLE")
    run.look_again()


def _refused(run: GridRun, event: gr.SubmitFailed) -> None:
    """Tried again when that may help, after a look whether it was taken after all."""
    if not event.transient:
        run.end("hold", f"{run.resource} refuses the job: {event.reason}", HoldCode.FAILED_TO_CREATE_PROCESS)
        return
    run.set_down(event.reason)
    run.state = gr.GridState.LOOKING
    _count_failure(run, event.reason)


def _count_failure(run: GridRun, reason: str) -> None:
    run.failures += 1
    if run.failures > run.settings.retries:
        run.attributes["GridResourceUnavailableTime"] = int(run.now_s)
        run.note("not submitted", f"{run.failures} times in a row: {reason}", "warn")
        run.held_for = f"{run.resource} could not be reached {run.failures} times in a row: {reason}"
        run.out.append(gr.Withdraw())
    else:
        run.look_again()


def _given_up(run: GridRun, event: gr.Withdrawn) -> None:
    """None of the submissions can begin any more, so the job is held; unless one has."""
    if event.claim:
        run.failures = 0
        run.look_again()
    else:
        run.end("hold", run.held_for, HoldCode.FAILED_TO_CREATE_PROCESS)


# ---- the end


def _bring(run: GridRun, record: gr.FolderRecord) -> None:
    """The program has ended by itself."""
    run.state = gr.GridState.BRINGING
    assert record.status is not None
    by_signal = record.signal > 0
    run.attributes.update({
        "ExitBySignal": by_signal, "ExitStatus": record.signal or record.status,
        ("ExitSignal" if by_signal else "ExitCode"): record.signal or record.status,
        "RemoteUserCpu": round(record.user_cpu_s, 3), "RemoteSysCpu": round(record.system_cpu_s, 3),
        "GridJobStatus": "COMPLETED",
    })
    run.out += [CancelTimer("look"), gr.Bring()]


def _cannot_bring(run: GridRun, event: gr.Unavailable) -> None:
    """The outputs stay there until it answers."""
    run.set_down(event.reason)
    run.look_again()


def _bring_again(run: GridRun, event: TimerFired) -> None:
    """Once more."""
    run.out.append(gr.Bring())


def _brought(run: GridRun, event: gr.Brought) -> None:
    """All is home."""
    run.set_up()
    run.attributes["JobCurrentFinishTransferOutputDate"] = int(run.now_s)
    run.end("exited", "")


def _stop(run: GridRun, event: StopRun) -> None:
    """It is to end, whatever is there of it."""
    run.stopping = event
    run.state = gr.GridState.CANCELLING
    run.out += [CancelTimer("look"), gr.Cancel()]


def _stop_preparing(run: GridRun, event: StopRun) -> None:
    """Nothing was submitted."""
    run.stopping = event
    run.end("evicted", event.reason)


def _stop_anew(run: GridRun, event: StopRun) -> None:
    """Another reason for the same."""
    run.stopping = event


def _cancel(run: GridRun, event: TimerFired) -> None:
    """Once more."""
    run.out.append(gr.Cancel())


def _cancel_again(run: GridRun, event: gr.Submitted | gr.SubmitFailed | gr.FilesFailed) -> None:
    """What was on its way has arrived, or not."""
    if isinstance(event, gr.Submitted):
        run.batch_id = event.batch_id
    run.out.append(SetTimer("cancel", 0.0))


def _cancelled(run: GridRun, event: gr.Cancelled) -> None:
    """Nothing is left of it; a job that is ending is waited for."""
    run.set_up()
    if not event.gone:
        run.out.append(SetTimer("cancel", CANCEL_S))
        return
    assert run.stopping is not None
    run.end("evicted", run.stopping.reason)


def _cannot_cancel(run: GridRun, event: gr.Unavailable) -> None:
    """Tried until it can be."""
    run.set_down(event.reason)
    run.out.append(SetTimer("cancel", run.settings.unavailable_s))


def _settled(run: GridRun, event: Settled) -> None:
    """Committed: nothing of it is needed any more."""
    run.out.append(gr.CleanUp())


def _say_again(run: GridRun, event: ScheddBack) -> None:
    """What was told last may never have been committed."""
    run.tell("executing" if run.began else "")


def _end_again(run: GridRun, event: ScheddBack) -> None:
    """Who asks has not heard that the run is over: the turn in which it was told crashed."""
    assert run.ended is not None
    run.out.append(Report(run.ended, again=True))


# ---- the table

_not_looking = ignore("it was asked before something else happened")
_not_preparing = ignore("no files are being put together")
_not_submitting = ignore("no submission is under way")
_not_bringing = ignore("no outputs are on their way")
_not_cancelling = ignore("it is not to end")
_not_withdrawn = ignore("it was not withdrawn")
_ending = ignore("it is to end")
_home = ignore("its program has ended by itself, and its outputs are on their way")
_over = ignore("the run is over")
_unsettled = ignore("the run is not over")

_ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    # looking, preparing, submitting, queued | running, bringing, cancelling, ended
    "timer look": (_look, _not_preparing, _not_looking, _look, _look, _bring_again, _ending, _over),
    gr.Looked: (_found_out, _not_looking, _not_looking, _follow, _follow, _home, _ending, _over),
    gr.Unavailable: (_unavailable_looking, _not_looking, _not_looking, _unavailable, _unavailable,
                     _cannot_bring, _cannot_cancel, _over),
    gr.Prepared: (_not_preparing, _prepared, *(_not_preparing,) * 3, _home, _ending, _over),
    gr.FilesFailed: (_not_preparing, _files_failed, _files_failed, *(_not_preparing,) * 2, _files_failed, _cancel_again,
                     _over),
    gr.Submitted: (*(_not_submitting,) * 2, _submitted, _not_submitting, _not_submitting, _home, _cancel_again, _over),
    gr.SubmitFailed: (*(_not_submitting,) * 2, _refused, _not_submitting, _not_submitting, _home, _cancel_again,
                      _over),
    gr.Withdrawn: (_given_up, _not_withdrawn, _not_withdrawn, _never_began, _never_began, _home, _ending, _over),
    gr.Brought: (*(_not_bringing,) * 5, _brought, _not_bringing, _over),
    gr.Cancelled: (*(_not_cancelling,) * 6, _cancelled, _over),
    "timer cancel": (*(_not_cancelling,) * 6, _cancel, _over),
    StopRun: (_stop, _stop_preparing, _stop, _stop, _stop, _home, _stop_anew, _over),
    ScheddBack: (*(_say_again,) * 7, _end_again),
    Settled: (*(_unsettled,) * 7, _settled),
}

TABLE: dict[tuple[gr.GridState, EventKey], Step | ignore] = total_table(
    "a run in another batch system", gr.GridState, _ROWS)
