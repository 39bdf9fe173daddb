"""Jobs of the local and scheduler universes: run here, as their owner, by the owner's shadow host.

Theory: there is no claim, no starter and no sandbox; the program starts in its initial directory with its own files, as
the user would have started it.  The kernel kills it when the shadow host dies (the launcher's death signal), so a new
host that is asked to take such a run up again knows that it is over, and the job is run anew.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from twisted.python.failure import Failure

from condor_actors.actors import Actor
from condor_actors.actors.workers import InWorker, NoAnswer, touching
from condor_actors.classads import ClassAd
from condor_actors.cores.shadow.shadow_events import ScheddBack, Settled
from condor_actors.cores.starter.run_spec import BadJob, RunSpec, read_spec
from condor_actors.daemons.shadow.host_messages import SHADOW_HOST, ShadowReport
from condor_actors.daemons.shadow.strangers import refuse_stranger
from condor_actors.machine.run.launch import Ended, Launched, Launcher, LaunchFailure, LaunchPlan, close_quietly
from condor_actors.machine.run.users import Account
from condor_actors.messages.codes import HoldCode, JobEventType, Universe
from condor_actors.messages.envelope import Delivery, Refused, TimerFired
from condor_actors.messages.run import ContinueRun, StopRun, SuspendRun
from condor_actors.messages.shadow_host import RunEnded, RunUpdated, StartRun
from condor_actors.userlog.paths import log_paths
from condor_actors.userlog.writer import FAILED, UserLogs

__all__ = ["LocalShadow"]

KILL_AFTER_S = 10.0
UPDATE_DELAY_S = 0.5


class _Unusable(Exception):
    """A file that cannot be opened.

    Attributes:
        code, subcode: what the job is held with.
    """

    def __init__(self, text: str, code: int, subcode: int = 0) -> None:
        super().__init__(text)
        self.code, self.subcode = code, subcode


def _open_files(logs: UserLogs, job: ClassAd, spec: RunSpec) -> list[int]:
    """In a worker: descriptors of the program's standard files.

    Raises:
        _Unusable: one of them, the initial directory or the user log.
        NoAnswer: another worker is stuck in the same folder.
    """
    problem = logs.problem(job)
    if problem:
        raise _Unusable(problem, HoldCode.UNABLE_TO_INIT_USER_LOG)
    opened: list[int] = []
    code = HoldCode.IWD_ERROR
    try:
        touching(spec.iwd)
        os.stat(spec.iwd)
        code = HoldCode.UNABLE_TO_OPEN_INPUT
        opened.append(_open_stream(os.path.join(spec.iwd, spec.stdin), os.O_RDONLY))
        code = HoldCode.UNABLE_TO_OPEN_OUTPUT
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        opened.append(_open_stream(os.path.join(spec.iwd, spec.stdout), flags))
        same = spec.stderr == spec.stdout
        opened.append(os.dup(opened[1]) if same else _open_stream(os.path.join(spec.iwd, spec.stderr), flags))
    except NoAnswer:
        close_quietly(*opened)
        raise
    except OSError as error:
        close_quietly(*opened)
        raise _Unusable(f"{error.filename}: {error.strerror}", code, error.errno or 0) from None
    return opened


def _open_stream(path: str, flags: int) -> int:
    """Open a file of a program, waiting for nobody; the program may then wait as it likes."""
    touching(path)
    descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY, 0o644)
    os.set_blocking(descriptor, True)
    return descriptor


class LocalShadow(Actor):
    """Runs one job of the local or scheduler universe as its owner.

    Args:
        order: what the schedd said.
        launcher: starts processes.
        logs: user logs.
        environment: of the owner, beneath the job's.
        in_thread: runs what touches the owner's files.
        account: as whom the program runs; None: as this process, which is the owner's.
    """

    def __init__(self, order: StartRun, launcher: Launcher, logs: UserLogs, environment: Mapping[str, str],
                 in_thread: InWorker, account: Account | None = None) -> None:
        self._order = order
        self._job = ClassAd.from_bytes(order.job_ad)
        self._launcher = launcher
        self._logs = logs
        self._environment = dict(environment)
        self._in_thread = in_thread
        self._account = account
        self._process: Launched | None = None
        self._stopping: StopRun | None = None
        self._attributes = ClassAd()
        self._over = self._reaped_already = self._suspended = False
        self._ended: RunEnded | None = None

    def started(self) -> None:
        """Start the program."""
        if self._order.reattach:
            self._end("failed", "the shadow host that ran it has died")
            return
        try:
            spec = read_spec(self._job_without_transfer())
        except BadJob as error:
            self._end("hold", str(error), HoldCode.FAILED_TO_CREATE_PROCESS)
            return
        work = self._in_thread(_open_files, self._logs, self._job, spec)
        self.context.defer_to_turn(work, lambda result: self._opened(result, spec))

    def _job_without_transfer(self) -> ClassAd:
        job = self._job.copy()
        job["ShouldTransferFiles"] = "NO"
        return job

    def _opened(self, result: Any, spec: RunSpec) -> None:
        """Its files are open, or not."""
        if isinstance(result, Failure):
            result.trap(_Unusable, NoAnswer)
            error: Any = result.value
            if isinstance(error, _Unusable):
                self._end("hold", str(error), error.code, error.subcode)
                return
            if error.late is not None:
                error.late.addCallback(lambda late: close_quietly(*late) if isinstance(late, list) else None)
            is_log = error.filename in log_paths(self._job)
            self._end("hold", f"{FAILED if is_log else ''}{error.filename or spec.program}: {error.strerror}",
                      HoldCode.UNABLE_TO_INIT_USER_LOG if is_log else HoldCode.UNABLE_TO_OPEN_INPUT, error.errno)
        elif self._over or self._stopping is not None:
            close_quietly(*result)
        else:
            self._launch(spec, result)

    def _launch(self, spec: RunSpec, opened: list[int]) -> None:
        try:
            plan = LaunchPlan(
                program=spec.program, arguments=spec.arguments,
                environment={**self._environment, **spec.environment, "_CONDOR_JOB_IWD": spec.iwd,
                             "CONDOR_ID": spec.job_id},
                directory=spec.iwd, stdin=opened[0], stdout=opened[1], stderr=opened[2], account=self._account)
            as_turn = self.context.as_turn
            self._process = self._launcher.launch(plan, as_turn(self._began), as_turn(self._failed), self._reaped())
        except OSError as error:
            self._end("hold", f"{error.filename or spec.program}: {error.strerror}", HoldCode.FAILED_TO_CREATE_PROCESS,
                      error.errno or 0)
        finally:
            close_quietly(*opened)

    # ---- the process

    def _reaped(self) -> Callable[[Ended], None]:
        """Takes its end: as a turn, but its number means nothing from now on."""
        gone = self.context.as_turn(self._gone)

        def reaped(ended: Ended) -> None:
            self._reaped_already = True
            gone(ended)

        return reaped

    def _began(self) -> None:
        process = self._process
        if self._over or process is None:
            return
        self._attributes.update({
            "JobCurrentStartExecutingDate": int(self.context.now_s()), "JobPid": process.pid,
            "NumJobStarts": self._job.get_int("NumJobStarts") + 1,
        })
        self._log(JobEventType.EXECUTE, ExecuteHost="<127.0.0.1>")
        self.context.set_timer("update", UPDATE_DELAY_S)

    def _failed(self, failure: LaunchFailure) -> None:
        self._end("hold", f"cannot start the job: {failure}", HoldCode.FAILED_TO_CREATE_PROCESS)

    def _gone(self, ended: Ended) -> None:
        by_signal = ended.exit_signal > 0
        self._attributes.update({
            "RemoteUserCpu": round(ended.user_cpu_s, 3), "RemoteSysCpu": round(ended.system_cpu_s, 3),
            "ImageSize": ended.peak_memory_kib, "ResidentSetSize": ended.peak_memory_kib,
            "MemoryUsage": (ended.peak_memory_kib + 1023) // 1024, "ExitBySignal": by_signal,
        })
        if self._stopping is not None:
            self._end("evicted", self._stopping.reason)
            return
        self._attributes["ExitSignal" if by_signal else "ExitCode"] = (
            ended.exit_signal if by_signal else ended.exit_code)
        self._attributes["ExitStatus"] = ended.exit_signal if by_signal else ended.exit_code
        self._end("exited", "")

    def _signal(self, number: int) -> None:
        if self._process is not None and (number == signal.SIGKILL or not self._reaped_already):
            with contextlib.suppress(ProcessLookupError, PermissionError):  # another user's may be what is left of it
                os.killpg(self._process.pid, number)

    # ---- words

    def receive(self, delivery: Delivery) -> None:
        """The schedd's wishes, and timers."""
        message = delivery.message
        if delivery.sender.node:
            refuse_stranger(self.context, delivery, self._order.run_id)
            return
        if isinstance(message, Settled):
            self.context.stop_actor(self.context.address.actor)
            return
        if isinstance(message, ScheddBack):
            self._say_again()
        elif self._over:
            return
        elif isinstance(message, StopRun):
            self._stop(message)
        elif isinstance(message, SuspendRun):
            self._signal(signal.SIGSTOP)
            self._suspended = True
            self._log(JobEventType.JOB_SUSPENDED, NumPids=1)
            self._tell("suspended")
        elif isinstance(message, ContinueRun):
            self._signal(signal.SIGCONT)
            self._suspended = False
            self._log(JobEventType.JOB_UNSUSPENDED)
            self._tell("continued")
        elif isinstance(message, TimerFired) and message.key == "update":
            self._tell("executing")
        elif isinstance(message, TimerFired):
            self._signal(signal.SIGKILL)
        else:
            self.context.reply(delivery, Refused(code="invalid", text="a job of this universe has no starter"))

    def _say_again(self) -> None:
        """Who asks may not have heard how the run is: the turn in which it was told crashed."""
        if self._ended is not None:
            self._report(self._ended)
        elif "JobPid" in self._attributes:
            self._tell("suspended" if self._suspended else "continued")

    def _stop(self, message: StopRun) -> None:
        self._stopping = message
        if self._process is None:
            self._end("evicted", message.reason)
            return
        spec = read_spec(self._job_without_transfer())
        self._signal(signal.SIGKILL if message.how == "fast" else spec.signal_for(message.how))
        self._signal(signal.SIGCONT)
        given = self._job.get_int("JobUniverse") == Universe.SCHEDULER and any(
            name in self._job for name in ("JobMaxVacateTime", "KillSigTimeout"))
        self.context.set_timer("kill", spec.vacate_s if given else KILL_AFTER_S)

    def _tell(self, event: str) -> None:
        self._report(RunUpdated(run_id=self._order.run_id, event=event, attributes=self._attributes.to_bytes()))

    def _report(self, message: Any) -> None:
        self.context.tell(SHADOW_HOST, ShadowReport(self._order.run_id, message))

    def _log(self, event: int, **facts: Any) -> None:
        ad = self._job.copy()
        ad.update(facts)
        self._logs.write(event, self._job.get_int("ClusterId"), [self._job.get_int("ProcId")], self.context.now_s(), ad)

    def _end(self, outcome: str, reason: str, code: int = 0, subcode: int = 0) -> None:
        if self._over:
            return
        self._over = True
        self.context.cancel_timer("update")
        self.context.cancel_timer("kill")
        self._signal(signal.SIGKILL)
        self._ended = RunEnded(
            run_id=self._order.run_id, outcome=outcome, attributes=self._attributes.to_bytes(), reason=reason,
            hold_code=code, hold_subcode=subcode)
        self._report(self._ended)

    def dropped(self) -> None:
        """A program whose shadow is gone does not run on: the job begins again."""
        if not self._over:
            self._signal(signal.SIGKILL)
