"""Programs of the site around a run: which a job has, what they are told, and what their answers mean.

What a hook prints is hostile text, as all that comes out of a job's folder: it is bounded, and of its attributes those
count that say how the program is started.

**Source**: HTCondor's manual, "Job Hooks".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr, parse_long_expression
from condor_actors.cores.starter.run_spec import RunSpec, read_spec

if TYPE_CHECKING:
    from condor_actors.cores.starter.job_run import JobRun
    from condor_actors.messages.run import Usage

__all__ = ["HookAnswer", "HookSettings", "Hooks", "Outcome", "ad_at_end", "ad_while_running", "exit_word", "prepared"]

PREPARE_S, EXIT_S = 600.0, 30.0
FIRST_RETRY = 300
"""A hook's status from here on means that the job is tried elsewhere; a smaller one holds it."""
TELLING = 300
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]{0,127})\s*=\s*(\S.*)")
STATUS, MESSAGE = "hookstatuscode", "hookstatusmessage"
PROGRAM, NEW_ARGUMENTS, OLD_ARGUMENTS = "cmd", "arguments", "args"
NEW_ENVIRONMENT, OLD_ENVIRONMENT = "environment", "env"
TAKEN = {PROGRAM, NEW_ARGUMENTS, OLD_ARGUMENTS, NEW_ENVIRONMENT, OLD_ENVIRONMENT}


@attrs.frozen(kw_only=True)
class Hooks:
    """The hooks of one keyword; an empty path: there is none of that kind.

    Attributes:
        keyword: in capitals.
        before_transfer: before its input files come.
        prepare, prepare_arguments: before the job begins; prepare_s: how long each of these two may take.
        update: while it runs.
        exit: when it has ended; exit_s: how long it may take.
    """

    keyword: str
    before_transfer: str = ""
    prepare: str = ""
    prepare_arguments: tuple[str, ...] = ()
    prepare_s: float = PREPARE_S
    update: str = ""
    exit: str = ""
    exit_s: float = EXIT_S


@attrs.frozen(kw_only=True)
class HookSettings:
    """All hooks of the machine.

    Attributes:
        hooks: by keyword in capitals.
        forced: the keyword of every job (STARTER_JOB_HOOK_KEYWORD); default: of jobs that name none that there is
            (STARTER_DEFAULT_JOB_HOOK_KEYWORD).
    """

    hooks: Mapping[str, Hooks] = attrs.field(factory=dict)
    forced: str = ""
    default: str = ""

    def of_job(self, job: ClassAd) -> Hooks | None:
        """The hooks of a job; None: it has none."""
        if not self.hooks:
            return None
        named = self.forced or job.get_str("HookKeyword")
        return self.hooks.get(named.upper()) or self.hooks.get(self.default.upper())


@attrs.frozen(kw_only=True)
class HookAnswer:
    """How a hook has ended.

    Attributes:
        status: its exit status; negative: minus the signal.
        printed: its standard output; is_cut: it was longer.
        said: the end of its standard error.
        problem: why it could not begin; empty: it did.
        late: it was ended because its time was over; most_s: that time.
    """

    status: int = 0
    printed: bytes = b""
    is_cut: bool = False
    said: bytes = b""
    problem: str = ""
    late: bool = False
    most_s: float = 0.0


@attrs.frozen(kw_only=True)
class Outcome:
    """What the hook before the start means.

    Attributes:
        spec: how the program is started now; None: as before.
        ignored: attributes that it printed and that have no effect.
        problem: why the job does not begin; empty: it does.
        holds: it is held for that; else it is tried elsewhere.
    """

    spec: RunSpec | None = None
    ignored: tuple[str, ...] = ()
    problem: str = ""
    holds: bool = True


def prepared(answer: HookAnswer, job: ClassAd, spec: RunSpec, hook: str) -> Outcome:
    """What a hook before the start of a job means, also that before its files come.

    Args:
        answer: of the hook.
        job: its ad, which is changed; spec: how it would be started.
        hook: its parameter, for the texts.

    Raises:
        BadJob: with what the hook says it cannot be run.
    """
    name = f"the hook {hook}"
    if answer.problem:
        return Outcome(problem=f"{name} cannot be run: {answer.problem}")
    if answer.late:
        return Outcome(problem=f"{name} did not end within {answer.most_s:g} s")
    found, strange = _attributes(answer.printed)
    said = ClassAd.from_pairs(list(found.values()))
    status, message = answer.status, said.get_str("HookStatusMessage") or _sentence(answer.said)
    code = said.get_int("HookStatusCode", -1)
    if status >= 0 and code >= 0:
        status = code
    if status:
        how = f"status {status}" if status > 0 else f"signal {-status}"
        return Outcome(problem=f"{name} failed with {how}{': ' if message else ''}{_line(message)}",
                       holds=status < FIRST_RETRY)
    if answer.is_cut:
        return Outcome(problem=f"{name} printed more than 64 KiB")
    if strange:
        return Outcome(problem=f"{name} printed a line that is no attribute: {strange}")
    changed = found.keys() & TAKEN
    ignored = tuple(sorted(spelled for key, (spelled, _) in found.items() if key not in {*TAKEN, STATUS, MESSAGE}))
    if not changed:
        return Outcome(ignored=ignored)
    return Outcome(spec=_changed(spec, job, found), ignored=ignored)


def _changed(spec: RunSpec, job: ClassAd, found: Mapping[str, tuple[str, Expr]]) -> RunSpec:
    """How the program is started with the attributes of a hook."""
    for new, old in ((NEW_ARGUMENTS, OLD_ARGUMENTS), (NEW_ENVIRONMENT, OLD_ENVIRONMENT)):
        if old in found and new not in found and new in job:
            job.pop(new)
    for key in found.keys() & TAKEN:
        job[found[key][0]] = found[key][1]
    fresh = read_spec(job)
    program = job.get_str("Cmd") if PROGRAM in found else spec.program
    return attrs.evolve(spec, program=program, arguments=fresh.arguments, environment=fresh.environment)


def _attributes(printed: bytes) -> tuple[dict[str, tuple[str, Expr]], str]:
    """The attributes of a text by lower-case name, and the first line that is none."""
    found: dict[str, tuple[str, Expr]] = {}
    for line in printed.decode(errors="replace").splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if match is None:
            return found, repr(_line(text))
        try:
            found[match[1].lower()] = (match[1], parse_long_expression(match[2]))
        except ClassAdSyntaxError as error:
            return found, f"{_line(text)!r}: {error}"
    return found, ""


def _sentence(said: bytes) -> str:
    return said.decode(errors="replace").strip()


def _line(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)[:TELLING]


# ---- what the other hooks are told


def ad_while_running(job: ClassAd, run: JobRun, usage: Usage) -> ClassAd:
    """The job's ad with what its run uses, for UPDATE_JOB_INFO; ``job`` is changed."""
    job["JobState"] = "Suspended" if run.suspended else "Running"
    job["JobPid"] = run.pid
    job["NumPids"] = usage.processes
    job["JobStartDate"] = int(run.began.when_s) if run.began is not None else 0
    job["RemoteSysCpu"] = usage.system_cpu_s
    job["RemoteUserCpu"] = usage.user_cpu_s
    job["ImageSize"] = max(usage.memory_kib, usage.peak_memory_kib)
    return job


def ad_at_end(job: ClassAd, run: JobRun, usage: Usage) -> ClassAd:
    """The job's ad with how its run has ended, for JOB_EXIT; ``job`` is changed."""
    ad_while_running(job, run, usage)
    ad_of_end = {"JobState": "Exited", "ExitBySignal": run.status[1] > 0, "JobDuration": usage.wall_s,
                 "ExitReason": run.reason or ("died on a signal" if run.status[1] > 0 else "exited normally")}
    if run.status[1] > 0:
        ad_of_end["ExitSignal"] = run.status[1]
    else:
        ad_of_end["ExitCode"] = run.status[0]
    for name, value in ad_of_end.items():
        job[name] = value
    return job


def exit_word(run: JobRun) -> str:
    """Why a run has ended, as JOB_EXIT is told: exit, remove, hold or evict."""
    if run.cause == "exited":
        return "exit"
    if run.cause == "hold" or (run.stopping is not None and run.stopping.how == "hold"):
        return "hold"
    return "remove" if run.cause == "killed" and run.stopping is not None and run.stopping.how == "remove" else "evict"
