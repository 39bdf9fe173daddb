"""What every event does to a run at its starter, in every state.

Theory: the steps are in :mod:`condor_actors.cores.starter.run_steps`; here are the rows that put them into states.
Four events make a run go (its shadow, the startd, its lease, nobody asking any more).  Each notes who wants it and why,
and gives :class:`HasToGo` to the table; in the same way a caller that suspends or continues the run gives it
:class:`WishChanged`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from condor_actors.cores.starter import run_steps as steps
from condor_actors.cores.starter.run_events import (
    Abandon,
    Began,
    CloseRun,
    Gathered,
    HasToGo,
    LinkLost,
    Measured,
    OwnerContinues,
    OwnerSuspends,
    Prepared,
    PrepareFailed,
    ProgramEnded,
    StarterState,
    StartFailed,
    StillFetched,
    TreeGone,
    WishChanged,
)
from condor_actors.cores.starter.run_usage import usage, usage_limit
from condor_actors.cores.state_table import EventKey, ignore, total_table
from condor_actors.messages.run import (
    CheckpointKept,
    CheckpointRun,
    ContinueRun,
    InputsSent,
    OutputsReceived,
    ReattachRun,
    StopRun,
    SuspendRun,
)

if TYPE_CHECKING:
    from condor_actors.cores.starter.job_run import JobRun

__all__ = ["TABLE"]

Step = Callable[["JobRun", Any], Any]


# ---- the table

_gone = ignore("the run is forgotten")
_ready = ignore("the inputs are there")
_prepared = ignore("the sandbox is ready")
_begun = ignore("the program has begun")
_unbegun = ignore("no program runs yet")
_over = ignore("the program has ended")
_ended = ignore("the run is over")
_no_tree = ignore("nothing is being cleared")
_no_list = ignore("no outputs are being listed")
_unsaved = ignore("no checkpoint is on its way")
_no_kill = ignore("nothing is being killed")
_needed = ignore("the run is not over")
_going = ignore("it is being made to go")

_ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    # preparing, deferred, starting, running | stopping, killing | clearing, saving | ended, gone
    InputsSent: (steps.inputs_complete, _ready, _ready, _ready, _ready, _ready, _ready, _ready, _ended, _gone),
    Prepared: (steps.start_in_time, *(_prepared,) * 7, _ended, _gone),
    PrepareFailed: (steps.cannot_prepare, *(_prepared,) * 7, _ended, _gone),
    "timer deferral": (_ready, steps.start_in_time, *(_begun,) * 6, _ended, _gone),
    Began: (
        steps.remember_pid, steps.remember_pid, steps.begin, steps.remember_pid, steps.remember_pid, steps.remember_pid,
        steps.remember_pid, steps.remember_pid, steps.remember_pid, _gone,
    ),
    StartFailed: (
        _unbegun, _unbegun, steps.cannot_start, steps.cannot_start, steps.cannot_start, steps.cannot_start, _over,
        _over, _ended, _gone,
    ),
    StopRun: (*(steps.stop_wanted,) * 9, _gone),
    CloseRun: (
        steps.close, steps.close, steps.close, steps.close, steps.close, steps.close, steps.close_cleared, steps.close,
        steps.close_ended, _gone,
    ),
    Abandon: (*(steps.abandon,) * 8, steps.forget, _gone),
    OutputsReceived: (*(steps.abandon,) * 8, steps.forget, _gone),
    "timer lease": (*(steps.lease_over,) * 8, steps.forget_lost, _gone),
    HasToGo: (
        steps.go_unstarted, steps.go_unstarted, ignore("it goes as soon as it runs"), steps.stop, steps.stop_sooner,
        steps.wait_on, _over, steps.go_unstarted, _ended, _gone,
    ),
    "timer grace": (
        _unbegun, _unbegun, _unbegun, steps.grace_over, steps.grace_over, steps.kill_later, _over, _over, _ended, _gone,
    ),
    "timer again": (
        _no_kill, _no_kill, _no_kill, _no_kill, _no_kill, steps.kill_again, steps.kill_again, _no_kill, _ended, _gone,
    ),
    CheckpointRun: (_unbegun, _unbegun, _unbegun, steps.ask_checkpoint, _going, _going, _over, _over, _ended, _gone),
    SuspendRun: (*(steps.suspend,) * 9, _gone),
    ContinueRun: (*(steps.resume,) * 9, _gone),
    OwnerSuspends: (*(steps.owner_suspends,) * 9, _gone),
    OwnerContinues: (*(steps.owner_continues,) * 9, _gone),
    WishChanged: (
        _unbegun, _unbegun, _unbegun, steps.freeze_or_thaw, steps.freeze_going, steps.thaw_if_free, _over, _over,
        _ended, _gone,
    ),
    ProgramEnded: (
        _unbegun, _unbegun, steps.clear, steps.exited, steps.clear, steps.clear, _over, _over, _ended, _gone,
    ),
    TreeGone: (_no_tree, _no_tree, _no_tree, _no_tree, _no_tree, _no_tree, steps.gather, _no_tree, _ended, _gone),
    Gathered: (
        _no_list, _no_list, _no_list, _no_list, _no_list, _no_list, steps.outputs_listed, _no_list, _ended, _gone,
    ),
    CheckpointKept: (
        _unsaved, _unsaved, _unsaved, _unsaved, _unsaved, _unsaved, _unsaved, steps.start_again, _ended, _gone,
    ),
    StillFetched: (*(_needed,) * 8, steps.keep_on, _gone),
    "timer keep": (*(_needed,) * 8, steps.forget, _gone),
    LinkLost: (*(steps.link_lost,) * 9, _gone),
    ReattachRun: (
        steps.reattach_preparing, steps.reattach, steps.reattach, steps.reattach_running, steps.reattach,
        steps.reattach, steps.reattach, steps.reattach_saving, steps.reattach_ended, _gone,
    ),
    Measured: (_unbegun, _unbegun, _unbegun, usage_limit, usage, usage, _over, _over, _ended, _gone),
}

TABLE: dict[tuple[StarterState, EventKey], Step | ignore] = total_table(
    "a run at its starter", StarterState, _ROWS)
