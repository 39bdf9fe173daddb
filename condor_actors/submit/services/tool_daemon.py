"""The section about a second program beside the job: tool_daemon_cmd and its kin."""

from __future__ import annotations

from condor_actors.cores.argument_quoting import join_raw
from condor_actors.cores.submit_commands import refusal, starter_objection
from condor_actors.submit.build_context import BuildContext
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.file_checks import NULL_FILE
from condor_actors.submit.quoting import parse_arguments, split_raw, unquote

__all__ = ["tool_daemon"]

COMMAND = "tool_daemon_cmd"
OLD, NEW = ("tool_daemon_arguments", "tool_daemon_args"), "tool_daemon_arguments2"
WRITTEN = (("tool_daemon_output", "ToolDaemonOutput"), ("tool_daemon_error", "ToolDaemonError"))
OF_TOOL = ((*WRITTEN, ("tool_daemon_input", "ToolDaemonInput"), ("suspend_job_at_exec", "SuspendJobAtExec")))


def tool_daemon(context: BuildContext) -> None:
    """ToolDaemonArgs or ToolDaemonArguments; the rest is checked, and was set as it stands."""
    old = [text for name in OLD if (text := context.text(name)) is not None]
    new = context.text(NEW)
    if not context.get("ToolDaemonCmd"):
        told = [command for command, attribute in OF_TOOL if context.get(attribute) not in (None, False, "")]
        told += [OLD[0]] if old else [NEW] if new is not None else []
        if told:
            raise SubmitError(f"{told[0]} is about a tool daemon, and the job has none", command=told[0],
                              remedy=f"name the program: {COMMAND} = PROGRAM, or leave {told[0]} out")
        return
    unfit = starter_objection(context.universe)
    if unfit is not None:
        raise SubmitError(refusal(COMMAND, unfit), command=COMMAND)
    if len(old) > 1:
        raise SubmitError(f"{OLD[0]} and {OLD[1]} are two names of the same command", command=OLD[1],
                          remedy="keep one of them")
    if old and new is not None and not context.boolean("allow_arguments_v1"):
        raise SubmitError(f"both '{OLD[0]}' and '{NEW}' are given; that needs allow_arguments_v1=true", command=NEW)
    own = {context.get("Out"), context.get("Err")} - {None, NULL_FILE}
    for command, attribute in WRITTEN:
        path = context.get(attribute)
        if path in own:
            raise SubmitError(f"{command} = {path} is what the job itself writes", command=command,
                              remedy="give the tool daemon a file of its own")
    if new is not None:
        context.set("ToolDaemonArguments", join_raw(split_raw(unquote(new) or "")))
    elif old:
        attribute, words = parse_arguments(old[0])
        context.set(f"ToolDaemon{attribute}", words)
