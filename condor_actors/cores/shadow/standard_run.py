"""One run of a standard-universe job as its shadow sees it: its files stay at home, and it can go on elsewhere.

Theory: such a run is a :class:`~condor_actors.cores.shadow.shadow_run.ShadowRun` without files that travel.  In their
place it has a *home*: a session that does the program's system calls, and the stream that brings them.  A program
without a home can change nothing any more, so a run whose home has ended is over at once, wherever its process may
still be: another may begin from the last checkpoint without waiting for any lease.

================= ==========================================================================================
event             what follows
================= ==========================================================================================
``HomeOpen``      the starter may begin
``HomeFailed``    ended: tried again, or held
``Checkpointed``  the queue and the log hear of it; asked for again after the interval
``NotTaken``      asked for again soon when helpers run, else told in the log
``HomeProblem``   told in the log
``ProgramExited`` the exit status, known here before the starter tells it
``HomeEnded``     with an exit: waits for the starter's word; without: the run is lost, or its end is on the way
================= ==========================================================================================

What every event does in every state is in :mod:`condor_actors.cores.shadow.standard_run_table`.  Before a new shadow
host takes up a run of a dead one, the program's home has died with that: it ends the run and lets the job go on from
its last checkpoint, unless a note at home says that the program had ended by itself.
"""

from __future__ import annotations

from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import ShadowState
from condor_actors.cores.shadow.shadow_run import ShadowRun
from condor_actors.cores.shadow.standard_events import (
    Checkpointed,
    CheckpointFacts,
    CloseHome,
    HomeEnded,
    HomeFailed,
    HomeOpen,
    HomeProblem,
    HomeStatistics,
    NotTaken,
    OpenHome,
    ProgramExited,
)
from condor_actors.cores.shadow.standard_run_table import EXIT_PATIENCE_S, TABLE
from condor_actors.effects import CancelTimer, Effect, Send, SetTimer
from condor_actors.messages.codes import HoldCode
from condor_actors.messages.run import Reattached, StopRun
from condor_actors.messages.shadow_host import StartRun

__all__ = [
    "CheckpointFacts", "Checkpointed", "CloseHome", "HomeEnded", "HomeFailed", "HomeOpen", "HomeProblem",
    "HomeStatistics", "NotTaken", "OpenHome", "ProgramExited", "StandardRun",
]

APART_S = 60.0
"""How long a run whose starter is out of reach waits for it while its stream still lives, where that ends with its
connection."""


class StandardRun(ShadowRun):
    """Decides what the shadow of a standard-universe run does.

    Args:
        order, job, transfer_key: as for every run.
        exited: exit status of this very run, when a former shadow host has noted it.
    """

    table = TABLE

    def __init__(self, order: StartRun, job: ClassAd, transfer_key: str, exited: int | None = None) -> None:
        super().__init__(order, job, transfer_key)
        self.home = self.home_lasts = False
        self.home_ended = ""
        self._noted_exit = exited
        self.status: int | None = None
        self.problem = 0
        self.why = ""
        self.wanted = 0
        self.problem_told = ""
        self.base = job.copy()
        self.received_bytes = 0
        self.vacated_with_checkpoint = False

    def start(self, now_s: float) -> tuple[Effect, ...]:
        """The first turn."""
        if self._noted_exit is None:
            return super().start(now_s)
        self.now_s = now_s
        self.status = self._noted_exit
        self.exit_at_home()
        return self._take()

    def send_inputs(self, missing: tuple[str, ...]) -> None:
        self.state = ShadowState.SENDING
        self.out.append(OpenHome())

    def set_leverage(self) -> None:
        """Remote processor time for one second of the home's."""
        remote_s = sum(self.base.get_float(f"CumulativeRemote{name}") + self.attributes.get_float(f"Remote{name}")
                       for name in ("UserCpu", "SysCpu"))
        local_s = self.attributes.get_float("CumulativeLocalSysCpu")
        if local_s > 0.0:
            self.attributes["Leverage"] = round(remote_s / local_s, 1)

    def finish(self, received_bytes: int) -> None:
        """The outputs are home: say how the run ended."""
        exited = self.exited
        assert exited is not None
        if exited.cause == "exited" and self.problem:
            name = self.job.get_str("Cmd")
            self.end("hold", f"Error from {self.order.slot_name}: Failed to execute '{name}': "
                              f"{self.why}", HoldCode.FAILED_TO_CREATE_PROCESS, self.problem,
                              claim_usable=exited.claim_open)
            return
        if exited.cause == "exited" and self.status is not None and exited.exit_signal <= 0:
            self.exited = attrs.evolve(exited, exit_code=self.status & 0xFF)
        elif exited.cause != "exited" and self.status is not None and not self.problem:
            self.exit_at_home(claim_usable=exited.claim_open)
            return
        self.attributes["VacatedWithCheckpoint"] = self.vacated_with_checkpoint
        self.set_leverage()
        super().finish(received_bytes or self.received_bytes)

    def exit_at_home(self, *, claim_usable: bool = False) -> None:
        """Home knows that the program has ended; the starter's word never came, or says less."""
        assert self.status is not None
        code = self.status & 0xFF
        self.attributes.update({"ExitBySignal": False, "ExitStatus": code, "ExitCode": code,
                                "TerminationPending": True})
        self.end("exited", "", claim_usable=claim_usable)

    def give_up(self, reason: str) -> None:
        """The run is lost to its shadow, or never was more than an order."""
        if self.status is not None and not self.problem:
            self.exit_at_home()
        else:
            super().give_up(reason)

    def end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0, *, claim_usable: bool = True) -> None:
        """The run is over: tell the schedd until it has committed that."""
        super().end(outcome, reason, code, subcode, claim_usable=claim_usable)
        self.out += [CancelTimer("home"), CancelTimer("word"), CancelTimer("checkpoint"), CloseHome()]

    def go_apart(self, reason: str) -> None:
        """The link is gone: the run goes on without us, for the time of its lease."""
        super().go_apart(reason)
        if self.state is ShadowState.APART:
            if self.home_ended:
                self.give_up(self.home_ended)
            elif not self.home_lasts:
                self.out.append(SetTimer("lease", min(APART_S, self.order.lease_s)))

    def heard_perhaps(self) -> None:
        """Its program depends on its home, not on a lease."""

    def reattached(self, message: Any) -> None:
        """Whether the run was found, or is not there, or nobody can say."""
        if not isinstance(message, Reattached) or self.home:
            super().reattached(message)
            return
        self.state = ShadowState.RUNNING
        self.catch_up(message)
        self.began = True
        self.wish = None
        self.home_ended = self.home_ended or "its shadow host has died"
        self.out += [CancelTimer("lease"), SetTimer("word", EXIT_PATIENCE_S)]
        if not message.ended:
            self.out.append(Send(self.starter, StopRun(run_id=self.order.run_id, how="fast",
                                                         reason=self.home_ended)))
