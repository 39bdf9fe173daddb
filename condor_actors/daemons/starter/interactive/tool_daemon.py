"""The second program beside a job (tool_daemon_cmd): started when the job stands at its first instruction.

Theory: it is of the run as the job itself is: the account, the control group, the limits, the namespaces and the mark
are the job's, so what stands still, is measured and is killed with the run is the tool too.  The run has begun when the
tool has; it is over when the job has ended and the tool has too, for which it has as long as a job has to leave.  A
namespace of processes ends with its first one, which therefore stays until a pipe is closed here.
"""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import attrs
from twisted.internet.interfaces import IDelayedCall
from twisted.python.failure import Failure

from condor_actors.cores.starter import job_run as jr
from condor_actors.cores.starter.tool_daemon import NULL, tool_variables
from condor_actors.daemons.starter.container_launch import in_image, seen_as
from condor_actors.daemons.starter.interactive.shells import NAMESPACE_FILES, inside
from condor_actors.machine.privilege.helper import send_signal
from condor_actors.machine.run.launch import Ended, Launched, LaunchFailure, LaunchPlan, close_quietly
from condor_actors.machine.run.process_tree import is_alive, is_stopped, own_number, parent_of

if TYPE_CHECKING:
    from condor_actors.daemons.starter.starter import Starter
    from condor_actors.machine.run.sandbox import Sandbox

__all__ = ["ToolDaemon", "make_executable"]

LAST_S = 86_400
"""The longest that a namespace waits for a tool, whatever the job's ad says."""


def make_executable(sandbox: Sandbox, name: str) -> None:
    """Let a program among the job's files be executed: transfers keep no modes of files that are not the job's program.

    Raises:
        OSError: it is not there.
    """
    with sandbox.rights():
        opened = os.open(f"{sandbox.path}/{name}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            facts = os.fstat(opened)
            if stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid():
                os.fchmod(opened, stat.S_IMODE(facts.st_mode) | 0o555)
        finally:
            os.close(opened)


class ToolDaemon:
    """The tool daemon of a run, if its job has one.

    Args:
        starter: whose run it is.

    Attributes:
        failure: why the job does not run, when that is the tool's doing.
    """

    def __init__(self, starter: Starter) -> None:
        self.failure: jr.StartFailed | None = None
        self._starter = starter
        self._process: Launched | None = None
        self._begins: Callable[[], None] | None = None
        self._held: Callable[[], None] | None = None
        self._timer: IDelayedCall | None = None
        self._waits, self._lets_end = -1, -1

    def arranged(self, plan: LaunchPlan) -> LaunchPlan:
        """The launch of the job that waits for its tool; as it is, where there is none.

        Raises:
            OSError: there is no descriptor left.
        """
        spec = self._starter.spec
        if spec.tool is None:
            return plan
        if "pid" not in plan.isolate:
            return attrs.evolve(plan, stops_at_exec=True)
        self._close_pipe()
        self._waits, self._lets_end = os.pipe2(os.O_CLOEXEC)
        return attrs.evolve(plan, stops_at_exec=True, lingers=(self._waits, min(int(spec.vacate_s), LAST_S)))

    # ---- begin

    def begins(self, pid: int, then: Callable[[], None]) -> bool:
        """The job (``pid``: its first process) stands at its first instruction: start its tool, if it has one.

        Args:
            then: called when the tool runs.
        """
        run = self._starter
        if run.spec.tool is None:
            return False
        if self._begins is None:
            close_quietly(self._waits)
            self._waits, self._begins = -1, then
            run.context.defer_to_turn(run.held.in_thread(self._open), lambda result: self._opened(pid, result))
        return True

    def _open(self) -> tuple[int, int, int]:
        """In a worker: its standard files.

        Raises:
            OSError: one cannot be opened.
        """
        run = self._starter
        tool, sandbox, null = run.spec.tool, run.sandbox, run.edges.host.null
        assert tool is not None
        assert sandbox is not None
        folder = sandbox.path if run.spec.transfers else run.spec.iwd
        opened: list[int] = []
        try:
            for path, opening in ((tool.stdin, sandbox.open_input), (tool.stdout, sandbox.open_output),
                                  (tool.stderr, sandbox.open_output)):
                same = path == tool.stdout and len(opened) == 2
                opened.append(null if path == NULL else opened[1] if same else opening(os.path.join(folder, path)))
        except BaseException:
            close_quietly(*{each for each in opened if each != null})
            raise
        stdin, stdout, stderr = opened
        return stdin, stdout, stderr

    def _opened(self, pid: int, result: Any) -> None:
        run = self._starter
        if isinstance(result, Failure):
            result.trap(OSError)
            error: Any = result.value
            self._fail(f"{error.filename}: {error.strerror}")
            return
        try:
            if run.core.state is jr.StarterState.STARTING and run.processes is not None and run.processes.pid:
                as_turn = run.context.as_turn
                self._process = run.edges.launcher.launch(
                    self._plan(pid, *result), as_turn(self._began), as_turn(self._failed), as_turn(self._ended))
        except OSError as error:
            self._fail(str(error), is_machines=True)
        finally:
            close_quietly(*{each for each in result if each != run.edges.host.null})

    def _plan(self, pid: int, stdin: int, stdout: int, stderr: int) -> LaunchPlan:
        from condor_actors.daemons.starter.run_launch import niceness_of, variables_of

        run, edges, spec = self._starter, self._starter.edges, self._starter.spec
        assert spec.tool is not None
        assert run.sandbox is not None
        isolate, scratch = edges.isolation(spec), seen_as(spec, run.sandbox)
        variables = variables_of(run)
        if spec.container is not None:
            variables = in_image(spec, variables, scratch, run.held.image)
        variables |= tool_variables(own_number(inside(run, isolate, pid)))
        directory = scratch if spec.transfers else spec.iwd
        return LaunchPlan(
            program=os.path.join(directory, spec.tool.program), arguments=spec.tool.arguments, environment=variables,
            directory=directory, stdin=stdin, stdout=stdout, stderr=stderr, account=run.account,
            cgroups=run.claim.cgroup.directories if run.claim.cgroup is not None else (), nice=niceness_of(run),
            join=[f"/proc/{inside(run, isolate, pid)}/ns/{NAMESPACE_FILES.get(name, name)}" for name in isolate],
            limits=edges.limits(spec, run.claim, run.account or edges.host.own_account),
            filter=edges.filter_of(isolate))

    def _began(self) -> None:
        """The tool runs, and so does the job, unless the tool is to let it go."""
        run, then = self._starter, self._begins
        run.run_log.say("its tool daemon runs", run.context.now_s())
        if run.spec.tool is not None and not run.spec.tool.lets_go:
            self._continue_job()
        if then is not None:
            then()

    def _continue_job(self) -> None:
        if self._starter.processes is not None:
            self._starter.processes.signal_leader(signal.SIGCONT)

    def _failed(self, failure: LaunchFailure) -> None:
        self._process = None
        self._fail(str(failure), is_machines=failure.is_machines)

    def _fail(self, reason: str, *, is_machines: bool = False) -> None:
        """No tool, no job: the run ends when the job, which stands still, is killed."""
        run = self._starter
        assert run.spec.tool is not None
        said = (f"Error from {run.claim.slot_name}: Failed to execute the tool daemon '{run.spec.tool.program}': "
                f"{reason}")
        self._end_job(jr.StartFailed(said, 0) if is_machines else jr.StartFailed(said))

    def _end_job(self, failure: jr.StartFailed) -> None:
        self.failure = failure
        self._close_pipe()
        if self._starter.processes is not None:
            self._starter.processes.kill()

    # ---- end

    def keeps(self, then: Callable[[], None]) -> bool:
        """The job has ended: whether the run goes on, for the tool to end too; ``then`` is called when it is over."""
        self._begins = None
        if self._process is None or self._held is not None:
            return False
        self._held = then
        over = self._starter.context.as_turn(self._waited)
        self._timer = self._starter.edges.reactor.callLater(self._starter.spec.vacate_s, over)
        return True

    def _waited(self) -> None:
        """The tool has ended, or had its time: what lives of it is killed with the rest."""
        held, timer, self._timer = self._held, self._timer, None
        if timer is not None and timer.active():
            timer.cancel()
        if held is not None:
            held()
        self._held = None

    def _ended(self, how: Ended) -> None:
        run, self._process = self._starter, None
        said = f"signal {how.exit_signal}" if how.exit_signal > 0 else f"status {how.exit_code}"
        run.run_log.say(f"its tool daemon has ended with {said}", run.context.now_s())
        self._close_pipe()
        if self._held is not None:
            self._waited()
        elif run.core.state is jr.StarterState.RUNNING and run.spec.tool is not None and self._left_standing():
            self._end_job(jr.StartFailed(
                f"Error from {run.claim.slot_name}: the tool daemon '{run.spec.tool.program}' has ended with {said}, "
                "and the job still stands at its first instruction (suspend_job_at_exec): it has to continue process "
                "$TDP_AP_PID"))

    def _left_standing(self) -> bool:
        """Whether the job stands still, and nothing of its run is left that could let it go."""
        run = self._starter
        if run.spec.tool is None or not run.spec.tool.lets_go or run.processes is None or run.core.suspended:
            return False
        try:
            job = inside(run, run.edges.isolation(run.spec), run.processes.pid)
        except OSError:
            return False
        others = set(run.processes.pids()) - {run.processes.pid, parent_of(job), job}
        return is_stopped(job) and not any(map(is_alive, others))

    def signal(self, number: int) -> None:
        """The job was asked to go: so is its tool, and a job that stands still hears of it."""
        run = self._starter
        if run.spec.tool is None or run.core.state is not jr.StarterState.STOPPING:
            return
        if self._process is not None:
            with suppress(ProcessLookupError):
                send_signal(self._process.pid, number)
        if run.spec.tool.lets_go:
            self._continue_job()

    def _close_pipe(self) -> None:
        """Nothing keeps the job's namespace when the job has ended."""
        close_quietly(self._waits, self._lets_end)
        self._waits = self._lets_end = -1

    def close(self) -> None:
        """The run is over."""
        self._close_pipe()
        if self._timer is not None and self._timer.active():
            self._timer.cancel()
        self._timer = None
