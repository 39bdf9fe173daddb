"""What every event does to a standard-universe run at its shadow, in every state.

The rows of every run hold (:mod:`condor_actors.cores.shadow.shadow_run_table`), except where this module has its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from condor_actors.classads import parse_expression
from condor_actors.cores.shadow import shadow_run_table
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.cores.shadow.shadow_run_table import Step
from condor_actors.cores.shadow.standard_events import (
    Checkpointed,
    CloseHome,
    HomeEnded,
    HomeFailed,
    HomeOpen,
    HomeProblem,
    HomeStatistics,
    NotTaken,
    ProgramExited,
)
from condor_actors.cores.state_table import EventKey, ignore, total_table
from condor_actors.effects import CancelTimer, Send, SetTimer
from condor_actors.messages.codes import HELPERS_RUN, JobEventType
from condor_actors.messages.envelope import TimerFired
from condor_actors.messages.run import CheckpointRun, InputsSent, RunExited, StopRun

if TYPE_CHECKING:
    from condor_actors.cores.shadow.standard_run import StandardRun

__all__ = ["EXIT_PATIENCE_S", "TABLE"]

EXIT_PATIENCE_S = 20.0
"""How long the two words about an end (home's and the starter's) wait for each other."""
RETRY_S = 1.0
"""A checkpoint that could not be taken because helpers run is asked for again after this."""
RETRIES = 600


# ---- its home


def _home_open(run: StandardRun, event: HomeOpen) -> None:
    """The starter may begin."""
    run.home, run.home_lasts = True, event.lasts
    run.state = ShadowState.WAITING
    if event.restarted:
        run.attributes["NumRestarts"] = run.job.get_int("NumRestarts") + 1
    run.attributes["VacatedWithCheckpoint"] = False
    run.out.append(Send(run.starter, InputsSent(run_id=run.order.run_id)))


def _close_home(run: StandardRun, event: HomeOpen) -> None:
    """Nobody needs it any more."""
    run.out.append(CloseHome())


def _home_failed(run: StandardRun, event: HomeFailed) -> None:
    """Without a home it cannot begin: tried again, or held."""
    run.out.append(Send(run.starter, StopRun(run_id=run.order.run_id, how="fast", reason=event.reason)))
    if event.hold_code:
        run.end("hold", event.reason, event.hold_code, event.hold_subcode, claim_usable=False)
    else:
        run.end("failed", event.reason, claim_usable=False)


def _home_over(run: StandardRun, event: HomeEnded) -> None:
    """Known, for the day when the run is looked for."""
    run.home, run.home_ended = False, event.reason or "its home is gone"


def _home_over_sending(run: StandardRun, event: HomeEnded) -> None:
    """It broke before the program could begin."""
    _home_over(run, event)
    _home_failed(run, HomeFailed(f"the stream to the starter host ended: {event.reason}"))


def _home_over_running(run: StandardRun, event: HomeEnded) -> None:
    """The starter's word of the end may be on its way."""
    _home_over(run, event)
    run.out.append(SetTimer("word", EXIT_PATIENCE_S))


def _home_over_apart(run: StandardRun, event: HomeEnded) -> None:
    """The program can change nothing any more: another may begin from the last checkpoint."""
    _home_over(run, event)
    run.give_up(run.home_ended)


def _home_over_bringing(run: StandardRun, event: HomeEnded) -> None:
    """It has told all it knows."""
    _home_over(run, event)
    run.finish(0)


def _statistics(run: StandardRun, event: HomeStatistics) -> None:
    """What the papers measure: what the run cost at home, and what it got for it."""
    base, attributes = run.base, run.attributes
    for name, value in (
        ("NumRemoteSysCalls", event.calls), ("FileReadCount", event.read_calls),
        ("FileWriteCount", event.write_calls), ("FileSeekCount", event.seek_calls),
        ("FileOpenCount", event.opened_files), ("FileReadBytes", event.read_bytes),
        ("FileWriteBytes", event.written_bytes), ("CkptBytesSent", event.checkpoint_bytes),
        ("LibraryCacheHits", event.kept_files), ("LibraryCacheBytes", event.kept_bytes),
    ):
        attributes[name] = base.get_int(name) + value
    if event.by_name:
        record = "; ".join(f"'{name}' = {count}" for name, count in event.by_name)
        attributes["RemoteSysCalls"] = parse_expression(f"[ {record} ]")
    attributes["LocalUserCpu"] = 0.0
    attributes["LocalSysCpu"] = round(event.local_cpu_s, 6)
    attributes["CumulativeLocalUserCpu"] = 0.0
    attributes["CumulativeLocalSysCpu"] = round(base.get_float("CumulativeLocalSysCpu") + event.local_cpu_s, 6)
    run.set_leverage()
    run.sent_bytes = event.read_bytes
    run.received_bytes = event.written_bytes + event.checkpoint_bytes


# ---- checkpoints


def _checkpoint(run: StandardRun, event: CheckpointRun) -> None:
    """One is wanted now."""
    run.wanted = RETRIES
    run.out.append(Send(run.starter, event))


def _checkpoint_again(run: StandardRun, event: TimerFired) -> None:
    """The helpers may have ended."""
    if run.wanted > 0:
        run.out.append(Send(run.starter, CheckpointRun(run_id=run.order.run_id, reason="again")))


def _checkpointed(run: StandardRun, event: Checkpointed) -> None:
    """A checkpoint is whole: the queue and the log hear of it."""
    facts, job = event.facts, run.job
    run.wanted, run.problem_told = 0, ""
    count = run.attributes.get_int("NumCkpts", job.get_int("NumCkpts")) + 1
    run.attributes.update({
        "NumCkpts": count, "NumCkpts_RAW": count, "LastCkptTime": int(run.now_s),
        "LastCkptDigest": facts.digest, "LastCkptGeneration": facts.generation, "CkptCpuLevel": facts.cpu_level,
        "CkptArch": "X86_64", "CkptOpSys": "LINUX", "CkptSize": facts.size_bytes // 1024,
        "CkptStoredSize": facts.stored_bytes // 1024, "CkptThreads": facts.threads,
        "CkptProcesses": facts.processes,
        "LastCkptSeconds": round(facts.took_s, 3),
        "CkptBytesSent": run.attributes.get_int("CkptBytesSent", job.get_int("CkptBytesSent")) + facts.sent_bytes,
    })
    run.vacated_with_checkpoint = event.last
    usage = {name: run.attributes.get_float(name)
             for name in ("RemoteUserCpu", "RemoteSysCpu", "LocalUserCpu", "LocalSysCpu")}
    run.log(JobEventType.CHECKPOINTED, **usage, RunCheckpointBytes=facts.sent_bytes)
    run.report_now("")


def _not_taken(run: StandardRun, event: NotTaken) -> None:
    """Asked for again soon when helpers run; why it cannot be is said once, to its user as well."""
    reason = event.reason or f"error {event.number}"
    if event.number == HELPERS_RUN and run.wanted > 0:
        run.wanted -= 1
        run.out.append(SetTimer("checkpoint", RETRY_S))
    else:
        run.wanted = 0
    if reason != run.problem_told:
        run.problem_told = reason
        run.note("no checkpoint", f"no checkpoint: {reason}")
        run.log(JobEventType.GENERIC, Info=f"Job cannot be checkpointed now: {reason}")
    run.attributes.update({"LastCkptProblem": reason, "LastCkptProblemTime": round(run.now_s, 3)})
    run.tell("")


# ---- the end


def _home_problem(run: StandardRun, event: HomeProblem) -> None:
    """Its user hears of it, whatever the program makes of that itself."""
    run.note("problem at home", event.text)
    run.log(JobEventType.GENERIC, Info=event.text)


def _program_exited(run: StandardRun, event: ProgramExited) -> None:
    """Home knows the exit status before the starter tells it."""
    run.status, run.problem, run.why = event.status, event.problem, event.why


def _bring(run: StandardRun, event: RunExited) -> None:
    """The run is over at its starter; home has answered everything, and what happened there last is still to come."""
    run.exited = event
    run.state = ShadowState.BRINGING
    run.out += [CancelTimer("update"), CancelTimer("lease"), CancelTimer("word"), CancelTimer("checkpoint")]
    run.note_usage(event.usage)
    if run.home:
        run.out += [SetTimer("home", EXIT_PATIENCE_S), CloseHome()]
    else:
        run.finish(0)


def _home_is_late(run: StandardRun, event: TimerFired) -> None:
    """Its last word never came."""
    run.finish(0)


def _word_is_late(run: StandardRun, event: TimerFired) -> None:
    """The starter's word never came."""
    run.give_up(run.home_ended)


# ---- the table

_no_home = ignore("no home is being opened")
_not_running = ignore("no program of it is known to run")
_apart = ignore("the starter is out of reach")
_home = ignore("the run has ended at its starter")
_not_home = ignore("the run has not ended at its starter")
_over = ignore("the run is over")

_ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    **shadow_run_table.ROWS,
    # preparing, activating, sending | waiting, running, apart | bringing, ended
    HomeOpen: (_close_home, _close_home, _home_open, *(_close_home,) * 4, _over),
    HomeFailed: (_no_home, _no_home, _home_failed, *(_no_home,) * 4, _over),
    HomeEnded: (
        _home_over, _home_over, _home_over_sending, _home_over_running, _home_over_running, _home_over_apart,
        _home_over_bringing, _over,
    ),
    HomeStatistics: (*(_statistics,) * 7, _over),
    CheckpointRun: (*(_not_running,) * 4, _checkpoint, _apart, _home, _over),
    "timer checkpoint": (*(_not_running,) * 4, _checkpoint_again, _apart, _home, _over),
    Checkpointed: (*(_checkpointed,) * 7, _over),
    NotTaken: (*(_not_taken,) * 7, _over),
    HomeProblem: (*(_home_problem,) * 7, _over),
    ProgramExited: (*(_program_exited,) * 7, _over),
    RunExited: (*(_bring,) * 6, _home, _over),
    "timer home": (*(_not_home,) * 6, _home_is_late, _over),
    "timer word": (*(_not_running,) * 4, _word_is_late, _apart, _home, _over),
}

TABLE: dict[tuple[ShadowState, EventKey], Step | ignore] = total_table(
    "a standard-universe run at its shadow", ShadowState, _ROWS)
