"""Sections about what happens to the job when: hold, retries, periodic and exit policy, mail, deferral."""

from __future__ import annotations

from condor_actors.classads import ClassAd, ClassAdSyntaxError, Expr
from condor_actors.cores.cron_schedule import CRON_FIELDS, BadCron, cron_line
from condor_actors.messages.codes import HoldCode, JobStatus, Notification, Universe
from condor_actors.submit.build_context import BuildContext, parsed
from condor_actors.submit.errors import SubmitError

_NOTIFICATION = {each.name.lower(): int(each) for each in Notification}


def status(context: BuildContext) -> None:
    """JobStatus, with a hold reason for jobs that begin held."""
    held = context.boolean("hold")
    if held and context.spool:
        raise SubmitError("Cannot set 'hold' to 'true' when using -remote or -spool")
    if held:
        context.set("JobStatus", int(JobStatus.HELD))
        context.set("HoldReason", "submitted on hold at user's request")
        context.set("HoldReasonCode", int(HoldCode.SUBMITTED_ON_HOLD))
    elif context.spool:
        context.set("JobStatus", int(JobStatus.HELD))
        context.set("HoldReason", "Spooling input data files")
        context.set("HoldReasonCode", int(HoldCode.SPOOLING_INPUT))
    else:
        context.set("JobStatus", int(JobStatus.IDLE))
    context.set("EnteredCurrentStatus", context.world.now_s)


def notification(context: BuildContext) -> None:
    """JobNotification."""
    word = context.text("notification", "JobNotification") or context.needed("JOB_DEFAULT_NOTIFICATION")
    number = _NOTIFICATION.get(word.lower())
    if number is None:
        raise SubmitError("Notification must be 'Never', 'Always', 'Complete', 'Start', or 'Error'")
    context.set("JobNotification", number)


def rank(context: BuildContext) -> None:
    """Rank."""
    given = context.text("rank", "preferences")
    append = context.setting("APPEND_RANK")
    default = context.setting("DEFAULT_RANK")
    text = given or default
    if append:
        text = f"({text}) + ({append})" if text else append
    if text is None:
        context.set("Rank", 0.0)
    else:
        context.set_expression("Rank", text, "rank")


_PERIODIC = (
    ("periodic_hold", "PeriodicHold"), ("periodic_hold_reason", "PeriodicHoldReason"),
    ("periodic_hold_subcode", "PeriodicHoldSubCode"), ("periodic_release", "PeriodicRelease"),
    ("periodic_remove", "PeriodicRemove"), ("periodic_vacate", "PeriodicVacate"),
    ("on_exit_hold_reason", "OnExitHoldReason"), ("on_exit_hold_subcode", "OnExitHoldSubCode"),
)  # fmt: skip


def periodic(context: BuildContext) -> None:
    """Periodic… and OnExitHoldReason, OnExitHoldSubCode."""
    for command, attribute in _PERIODIC:
        text = context.text(command, attribute)
        if text is not None:
            context.set_expression(attribute, text, command)


def leave_in_queue(context: BuildContext) -> None:
    """LeaveJobInQueue; a spooled job stays until its output was fetched, at most ten days."""
    text = context.text("leave_in_queue", "LeaveJobInQueue")
    if text is not None:
        context.set_expression("LeaveJobInQueue", text, "leave_in_queue")
    elif context.spool:
        context.set_expression(
            "LeaveJobInQueue",
            f"JobStatus == {JobStatus.COMPLETED} && (CompletionDate is undefined || CompletionDate == 0 || "
            "((time() - CompletionDate) < 864000))",
        )
    else:
        context.set("LeaveJobInQueue", False)


def retries(context: BuildContext) -> None:
    """OnExitRemove, OnExitHold, JobMaxRetries, JobSuccessExitCode."""
    remove, hold = context.text("on_exit_remove", "OnExitRemove"), context.text("on_exit_hold", "OnExitHold")
    most = context.integer("max_retries", "JobMaxRetries")
    success = context.integer("success_exit_code", "JobSuccessExitCode")
    until = context.text("retry_until")
    retried = most is not None or success is not None or until is not None
    if hold is not None or retried:
        context.set_expression("OnExitHold", hold or "false", "on_exit_hold")
    if not retried:
        if remove is not None:
            context.set_expression("OnExitRemove", remove, "on_exit_remove")
        return
    if most is None:
        most = int(context.needed("DEFAULT_JOB_MAX_RETRIES"))
    if most < 0:
        raise SubmitError(f"max_retries={most} is invalid, expected 0 or more")
    context.set("JobMaxRetries", most)
    code = "0"
    if success is not None:
        context.set("JobSuccessExitCode", success)
        code = "JobSuccessExitCode"
    clauses = ["NumJobCompletions > JobMaxRetries", f"ExitCode =?= {code}"]
    if until is not None:
        clauses.append(_until(until))
    if remove is not None:
        clauses.append(f"({remove})" if "?" in remove else remove)
    context.set_expression("OnExitRemove", " || ".join(clauses), "on_exit_remove")


def _until(text: str) -> str:
    try:
        tree = parsed(text)
    except ClassAdSyntaxError:
        raise SubmitError(f"retry_until={text} is invalid, it must be an integer or boolean expression.") from None
    if isinstance(tree, int) and not isinstance(tree, bool):
        return f"ExitCode =?= {tree}"
    if isinstance(tree, (bool, Expr)):
        return f"({text})" if "?" in text.replace("=?=", "") else text
    raise SubmitError(f"retry_until={text} is invalid, it must be an integer or boolean expression.")


_DEFERRAL = (
    ("DeferralTime", ("deferral_time",), None),
    ("DeferralWindow", ("cron_window", "deferral_window"), 0),
    ("DeferralPrepTime", ("cron_prep_time", "deferral_prep_time"), 300),
)


def deferral(context: BuildContext) -> None:
    """DeferralTime, DeferralWindow, DeferralPrepTime, ScheddInterval."""
    given = {name: value for name in CRON_FIELDS if (value := context.get(name)) is not None}
    if not given and context.text("deferral_time", "DeferralTime") is None:
        return
    if context.universe == Universe.SCHEDULER:
        raise SubmitError("a job of the scheduler universe begins at once: it has no deferral or cron time",
                          remedy="use universe = local, which waits for its time")
    try:
        cron_line(ClassAd(given))
    except BadCron as error:
        raise SubmitError(str(error)) from None
    for attribute, commands, default in _DEFERRAL:
        if given and attribute == "DeferralTime":
            continue  # the schedd gives the job its times
        text = context.text(*commands, attribute)
        if text is not None:
            context.set_expression(attribute, text, commands[0])
            value = context.get(attribute)
            if isinstance(value, int) and value < 0:
                raise SubmitError(f"Invalid value '{text}' for {commands[0]}: expected 0 or more")
        elif default is not None:
            context.set(attribute, default)
    context.set_expression("ScheddInterval", context.needed("SCHEDD_INTERVAL"))
