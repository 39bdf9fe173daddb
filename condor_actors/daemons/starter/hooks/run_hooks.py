"""Programs of the site around a run: before its files come, before the job begins, while it runs, when it has ended.

Theory: a hook is the administrator's program and runs as the job's account in the job's folder, so it can do no more
than the job, and what it says counts for the job alone.  Its processes belong to the run: they have its mark and its
control group, and nothing of them outlives it.  The core knows nothing of hooks: to it a program that is being prepared
is one that is being started, and one whose hook for its end runs is one whose tree is being cleared.

**Source**: HTCondor's manual, "Job Hooks", for the names, their input and output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.hooks import (
    HookAnswer,
    Hooks,
    Outcome,
    ad_at_end,
    ad_while_running,
    exit_word,
    prepared,
)
from condor_actors.cores.starter.run_spec import BadJob
from condor_actors.machine.run.launch import Ended, LaunchFailure, LaunchPlan, input_of
from condor_actors.machine.run.pipe_reader import PipeReader
from condor_actors.machine.run.process_tree import MARK
from condor_actors.messages.codes import HoldCode

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter

__all__ = ["RunHooks"]

MOST_BYTES = 64 * 1024
SAID_BYTES = 2000
PATH = "/usr/local/bin:/usr/bin:/bin"
OVER = "hook"
"""The timer of a hook that is waited for."""
_BEFORE = (jr.StarterState.PREPARING, jr.StarterState.STARTING)


class RunHooks:
    """The hooks of one run.

    Args:
        starter: whose run it is.
        hooks: which ones; None: none.
    """

    def __init__(self, starter: Starter, hooks: Hooks | None) -> None:
        self._starter = starter
        self._hooks = hooks if hooks is not None else Hooks(keyword="")
        self._waited_for: _Hook | None = None
        self._advisory: _Hook | None = None
        self._is_asked = self._is_prepared = self._has_ended = False
        self._frozen = False

    @property
    def runs(self) -> bool:
        """Whether the run waits for one."""
        return self._waited_for is not None

    # ---- before its files come

    def before_transfer(self, go_on: Callable[[], None]) -> bool:
        """Whether there is a hook to run before the scratch directory is filled; ``go_on`` is called after it.

        It begins in no folder of the job's, for nothing may lie there when files come; what it leaves running is
        killed.
        """
        program, starter = self._hooks.before_transfer, self._starter
        if self._is_asked or not program:
            return False
        self._is_asked = True

        def over(answer: HookAnswer) -> None:
            if starter.processes is not None:
                starter.processes.kill()
            if starter.core.state is jr.StarterState.PREPARING and self._take(answer, "_BEFORE_TRANSFER"):
                go_on()

        self._run(program, (), starter.job_ad, over, self._hooks.prepare_s)
        return True

    # ---- before the job begins

    def before_start(self, go_on: Callable[[], None], give_up: Callable[[], None]) -> bool:
        """Whether there is a hook to run before the program; ``go_on`` is called when it has ended well.

        Args:
            go_on: launches the program.
            give_up: lets go of what was opened for it.
        """
        program = self._hooks.prepare
        if self._is_prepared or not program:
            return False
        self._is_prepared = True

        def over(answer: HookAnswer) -> None:
            if not self._take(answer):
                give_up()
            else:
                go_on()

        if not self._run(program, self._hooks.prepare_arguments, self._starter.job_ad, over, self._hooks.prepare_s):
            give_up()
        return True

    def _take(self, answer: HookAnswer, when: str = "") -> bool:
        """Take what the hook for the start, or before the transfer, has said; False: the job does not begin."""
        starter, hook = self._starter, f"{self._hooks.keyword}_HOOK_PREPARE_JOB{when}"
        core, job = starter.core, ClassAd.from_bytes(starter.job_ad)
        if core.stopping is not None or core.closing is not None:
            starter.decide(jr.StartFailed(f"Error from {starter.claim.slot_name}: it was to go before it began", 0))
            return False
        try:
            found = prepared(answer, job, starter.spec, hook)
        except BadJob as error:
            found = Outcome(problem=f"with what the hook {hook} says it cannot be run: {error}")
        if found.problem:
            self._fail(found.problem, HoldCode.HOOK_PREPARE_JOB_FAILURE if found.holds else 0)
            return False
        if found.ignored:
            starter.context.log.warn("run {run}: {names} of the hook {hook} have no effect; it can change the "
                                     "program, its arguments and its environment", run=starter.run_id,
                                     names=", ".join(found.ignored), hook=hook)
        if found.spec is not None:
            starter.spec = found.spec
            if when:  # the next hook, and the job, see what it has changed
                starter.job_ad = job.to_bytes()
        return True

    def _fail(self, problem: str, hold_code: int) -> None:
        """The job does not begin."""
        failed = jr.PrepareFailed if self._starter.core.state is jr.StarterState.PREPARING else jr.StartFailed
        self._starter.decide(failed(f"Error from {self._starter.claim.slot_name}: {problem}", hold_code))

    # ---- while it runs

    def update(self) -> None:
        """The usage of the job was measured: tell the hook for that, unless the last one still runs."""
        program = self._hooks.update
        if not program or self._advisory is not None:
            return
        starter = self._starter
        ad = ad_while_running(ClassAd.from_bytes(starter.job_ad), starter.core, starter.core.usage)

        def over(answer: HookAnswer) -> None:
            self._advisory = None

        try:
            self._advisory = self._begin(program, (), ad.to_bytes(), over)
        except OSError as error:
            starter.context.log.warn("run {run}: {error}", run=starter.run_id, error=error)

    # ---- when it has ended

    def before_end(self, go_on: Callable[[], None]) -> bool:
        """Whether there is a hook to run now that nothing of the job is left; ``go_on`` is called when it has ended."""
        program, core = self._hooks.exit, self._starter.core
        if self._has_ended or not program or core.began is None or core.checkpointing:
            return False
        self._has_ended = True
        if self._must_hurry():
            return False
        starter = self._starter
        ad = ad_at_end(ClassAd.from_bytes(starter.job_ad), core, starter.usage())

        def over(answer: HookAnswer) -> None:
            go_on()

        return self._run(program, (exit_word(core),), ad.to_bytes(), over, self._hooks.exit_s)

    def _must_hurry(self) -> bool:
        """The machine is wanted back at once, or its owner is there."""
        core = self._starter.core
        return core.by_owner or (core.closing is not None and core.closing.grace_s <= 0.0)

    # ---- what happens meanwhile

    def look(self) -> None:
        """The core has decided something: what is waited for ends when the run is to go, and stands still with it."""
        if self._waited_for is None:
            return
        core = self._starter.core
        if core.state in _BEFORE:
            if core.stopping is not None or core.closing is not None:
                self.timer()
                return
            frozen = core.by_user or core.by_owner
            processes = self._starter.processes
            if frozen != self._frozen and processes is not None:
                self._frozen = frozen
                (processes.freeze if frozen else processes.thaw)()
        elif self._must_hurry():
            self.timer()

    def timer(self) -> None:
        """The hook has had its time, or has none any more."""
        hook, processes = self._waited_for, self._starter.processes
        if hook is not None and processes is not None:
            hook.late = True
            processes.kill()
            self._starter.context.set_timer(OVER, 1.0)  # what it has begun meanwhile

    def _run(self, program: str, arguments: Sequence[str], ad: bytes, over: Callable[[HookAnswer], None],
             most_s: float) -> bool:
        """Run one that is waited for; False: it could not be begun, and the core knows."""
        starter = self._starter
        if starter.processes is None:
            starter.processes = starter.held.processes = starter.edges.processes_for(starter.claim, starter.run_id)

        def ended(answer: HookAnswer) -> None:
            self._waited_for = None
            self._frozen = False
            starter.context.cancel_timer(OVER)
            over(attrs.evolve(answer, most_s=most_s))

        try:
            hook = self._waited_for = self._begin(program, arguments, ad, ended)
        except OSError as error:
            self._waited_for = None
            if starter.core.state in _BEFORE:
                self._fail(f"the hook {program} cannot be run: {error}", HoldCode.HOOK_PREPARE_JOB_FAILURE)
            return False
        starter.processes.leader(hook.pid)
        starter.context.set_timer(OVER, most_s)
        return True

    def _begin(self, program: str, arguments: Sequence[str], ad: bytes, over: Callable[[HookAnswer], None]) -> _Hook:
        starter = self._starter
        sandbox, account = starter.sandbox, starter.account or starter.edges.host.own_account
        environment = {
            "PATH": PATH, "HOME": account.home, "USER": account.name, "LOGNAME": account.name,
            "_CONDOR_SLOT": starter.claim.slot_name.partition("@")[0],
            MARK: f"{starter.edges.root.path}:{starter.run_id}"}
        if sandbox is not None:
            environment |= {"_CONDOR_SCRATCH_DIR": sandbox.path, "_CONDOR_JOB_AD": f"{sandbox.path}/.job.ad",
                            "_CONDOR_MACHINE_AD": f"{sandbox.path}/.machine.ad"}
        claim = starter.claim
        plan = LaunchPlan(
            program=program, arguments=tuple(arguments), environment=environment,
            directory="/" if sandbox is None else sandbox.path, stdin=-1,
            stdout=-1, stderr=-1, account=starter.account,
            cgroups=claim.cgroup.directories if claim.cgroup is not None else (),
            limits=starter.edges.limits(starter.spec, claim, account))
        hook = _Hook(starter, over)
        hook.begin(plan, ad)
        return hook


class _Hook:
    """One program that runs, and what it prints."""

    def __init__(self, starter: Starter, over: Callable[[HookAnswer], None]) -> None:
        self._starter = starter
        self._over = starter.context.as_turn(over)
        self._printed = self._said = b""
        self._pipes: list[PipeReader] = []
        self.pid = 0
        self.late = False

    def begin(self, plan: LaunchPlan, ad: bytes) -> None:
        """Start it with an ad for its standard input.

        Raises:
            OSError: it cannot be started.
        """
        reactor: Any = self._starter.context.system.clock
        opened = [input_of(ad)]
        try:
            for take in (self._print, self._say):
                reading, writing = os.pipe2(os.O_CLOEXEC)
                opened.append(writing)
                self._pipes.append(PipeReader(reactor, reading, take))
            launched = self._starter.edges.launcher.launch(
                attrs.evolve(plan, stdin=opened[0], stdout=opened[1], stderr=opened[2]), lambda: None, self._failed,
                self._ended)
            self.pid = launched.pid
        except BaseException:
            self._close()
            raise
        finally:
            for descriptor in opened:
                os.close(descriptor)
        for pipe in self._pipes:
            pipe.read()


    def _print(self, data: bytes) -> None:
        self._printed = (self._printed + data)[:MOST_BYTES + 1]

    def _say(self, data: bytes) -> None:
        self._said = (self._said + data)[-SAID_BYTES:]

    def _close(self) -> None:
        for pipe in self._pipes:
            pipe.close()

    def _failed(self, failure: LaunchFailure) -> None:
        self._leave()
        self._close()
        self._over(HookAnswer(problem=failure.reason))

    def _ended(self, how: Ended) -> None:
        self._leave()
        for pipe in self._pipes:
            pipe.drain()
        self._close()
        self._over(HookAnswer(status=-how.exit_signal if how.exit_signal >= 0 else how.exit_code,
                              printed=self._printed[:MOST_BYTES], is_cut=len(self._printed) > MOST_BYTES,
                              said=self._said, late=self.late))

    def _leave(self) -> None:
        """Its number means nothing any more."""
        processes = self._starter.processes
        if processes is not None and processes.pid == self.pid:
            processes.leader_ended()
        self.pid = 0
