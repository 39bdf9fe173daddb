"""A second program beside a job, its tool daemon: which one the job's ad names, and what it is told.

Theory: a debugger, a profiler or a monitor runs where the job runs and with its rights, and learns the job's process by
two variables.  The job stands at its first instruction until the tool is there; with ``SuspendJobAtExec`` until the
tool lets it go.

**Source**: HTCondor's starter (ToolDaemonProc) for the attributes, the variables and their values.
"""

from __future__ import annotations

import posixpath

import attrs

from condor_actors.classads import ClassAd
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw

__all__ = ["BadTool", "ToolSpec", "tool_of", "tool_variables"]

NULL = "/dev/null"
ADDRESS, PROCESS = "TDP_LASS_ADDRESS", "TDP_AP_PID"
IN_VARIABLES = "ENV"
"""What a tool finds as the address of the place where it learns more: its own variables say all."""


class BadTool(ValueError):
    """A tool daemon that cannot be run as it is; its text says why."""


@attrs.frozen(kw_only=True)
class ToolSpec:
    """A tool daemon.

    Attributes:
        program, stdin, stdout, stderr: names in the scratch directory, or paths of the machine where the job's files
            stay where they are.
        arguments: its own.
        lets_go: it continues the job, which stands at its first instruction until then.
    """

    program: str
    arguments: tuple[str, ...] = ()
    stdin: str = NULL
    stdout: str = NULL
    stderr: str = NULL
    lets_go: bool = False

    @property
    def outputs(self) -> tuple[str, ...]:
        """The files that it writes to."""
        return tuple(dict.fromkeys(name for name in (self.stdout, self.stderr) if name != NULL))


def tool_of(job: ClassAd, *, transfers: bool) -> ToolSpec | None:
    """The tool daemon of a job; None: it has none.

    Raises:
        BadTool: what the ad says of it cannot be done.
    """
    command, lets_go = job.get_str("ToolDaemonCmd"), job.get_bool("SuspendJobAtExec")
    if not command:
        if lets_go:
            raise BadTool("SuspendJobAtExec stops the job at its first instruction, and there is no ToolDaemonCmd to "
                          "let it go on: say tool_daemon_cmd = PROGRAM, or leave suspend_job_at_exec out")
        return None

    def place(attribute: str) -> str:
        path = job.get_str(attribute) or NULL
        if path == NULL or not transfers:
            return path
        name = posixpath.basename(path)
        if name in ("", ".", "..") or "\0" in name:
            raise BadTool(f"{attribute} = {path[:200]!r} names no file: say the name of one")
        return name

    return ToolSpec(program=place("ToolDaemonCmd"), arguments=_words(job), stdin=place("ToolDaemonInput"),
                    stdout=place("ToolDaemonOutput"), stderr=place("ToolDaemonError"), lets_go=lets_go)


def _words(job: ClassAd) -> tuple[str, ...]:
    raw = job.evaluate("ToolDaemonArguments")
    if isinstance(raw, str):
        try:
            return tuple(split_raw(raw))
        except UnbalancedQuote as error:
            raise BadTool(f"the job's ToolDaemonArguments cannot be read: {error}") from None
    return tuple(job.get_str("ToolDaemonArgs").split())


def tool_variables(pid: int) -> dict[str, str]:
    """What a tool finds in its environment beside the job's variables.

    Args:
        pid: of the job, as the tool sees it.
    """
    return {ADDRESS: IN_VARIABLES, PROCESS: str(pid)}
