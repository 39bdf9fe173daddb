"""Sections about what happens to the job when: hold, retries, periodic and exit policy, mail, deferral."""

from __future__ import annotations

from condor_actors.classads import ClassAdSyntaxError, Expr
from condor_actors.submit.build_context import BuildContext, parsed
from condor_actors.submit.errors import SubmitError

_NOTIFICATION = {"never": 0, "always": 1, "complete": 2, "error": 3, "start": 4}


def status(sheet: BuildContext) -> None:
    """JobStatus, with a hold reason for jobs that begin held."""
    held = sheet.boolean("hold")
    if held and sheet.spool:
        raise SubmitError("Cannot set 'hold' to 'true' when using -remote or -spool")
    if held:
        sheet.set("JobStatus", 5)
        sheet.set("HoldReason", "submitted on hold at user's request")
        sheet.set("HoldReasonCode", 15)
    elif sheet.spool:
        sheet.set("JobStatus", 5)
        sheet.set("HoldReason", "Spooling input data files")
        sheet.set("HoldReasonCode", 16)
    else:
        sheet.set("JobStatus", 1)
    sheet.set("EnteredCurrentStatus", sheet.world.now_s)


def notification(sheet: BuildContext) -> None:
    """JobNotification."""
    word = sheet.text("notification", "JobNotification") or sheet.setting("JOB_DEFAULT_NOTIFICATION") or "never"
    number = _NOTIFICATION.get(word.lower())
    if number is None:
        raise SubmitError("Notification must be 'Never', 'Always', 'Complete', 'Start', or 'Error'")
    sheet.set("JobNotification", number)


def rank(sheet: BuildContext) -> None:
    """Rank."""
    given = sheet.text("rank", "preferences")
    append = sheet.setting("APPEND_RANK")
    default = sheet.setting("DEFAULT_RANK")
    text = given or default
    if append:
        text = f"({text}) + ({append})" if text else append
    if text is None:
        sheet.set("Rank", 0.0)
    else:
        sheet.set_expression("Rank", text, "rank")


_PERIODIC = (
    ("periodic_hold", "PeriodicHold"), ("periodic_hold_reason", "PeriodicHoldReason"),
    ("periodic_hold_subcode", "PeriodicHoldSubCode"), ("periodic_release", "PeriodicRelease"),
    ("periodic_remove", "PeriodicRemove"), ("periodic_vacate", "PeriodicVacate"),
    ("on_exit_hold_reason", "OnExitHoldReason"), ("on_exit_hold_subcode", "OnExitHoldSubCode"),
)  # fmt: skip


def periodic(sheet: BuildContext) -> None:
    """Periodic… and OnExitHoldReason, OnExitHoldSubCode."""
    for command, attribute in _PERIODIC:
        text = sheet.text(command, attribute)
        if text is not None:
            sheet.set_expression(attribute, text, command)


def leave_in_queue(sheet: BuildContext) -> None:
    """LeaveJobInQueue; a spooled job stays until its output was fetched, at most ten days."""
    text = sheet.text("leave_in_queue", "LeaveJobInQueue")
    if text is not None:
        sheet.set_expression("LeaveJobInQueue", text, "leave_in_queue")
    elif sheet.spool:
        sheet.set_expression(
            "LeaveJobInQueue",
            "JobStatus == 4 && (CompletionDate is undefined || CompletionDate == 0 || "
            "((time() - CompletionDate) < 864000))",
        )
    else:
        sheet.set("LeaveJobInQueue", False)


def retries(sheet: BuildContext) -> None:
    """OnExitRemove, OnExitHold, JobMaxRetries, JobSuccessExitCode."""
    remove, hold = sheet.text("on_exit_remove", "OnExitRemove"), sheet.text("on_exit_hold", "OnExitHold")
    most = sheet.integer("max_retries", "JobMaxRetries")
    success = sheet.integer("success_exit_code", "JobSuccessExitCode")
    until = sheet.text("retry_until")
    retried = most is not None or success is not None or until is not None
    if hold is not None or retried:
        sheet.set_expression("OnExitHold", hold or "false", "on_exit_hold")
    if not retried:
        if remove is not None:
            sheet.set_expression("OnExitRemove", remove, "on_exit_remove")
        return
    if most is None:
        most = int(sheet.setting("DEFAULT_JOB_MAX_RETRIES") or 2)
    if most < 0:
        raise SubmitError(f"max_retries={most} is invalid, expected 0 or more")
    sheet.set("JobMaxRetries", most)
    code = "0"
    if success is not None:
        sheet.set("JobSuccessExitCode", success)
        code = "JobSuccessExitCode"
    clauses = ["NumJobCompletions > JobMaxRetries", f"ExitCode =?= {code}"]
    if until is not None:
        clauses.append(_until(until))
    if remove is not None:
        clauses.append(f"({remove})" if "?" in remove else remove)
    sheet.set_expression("OnExitRemove", " || ".join(clauses), "on_exit_remove")


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


def deferral(sheet: BuildContext) -> None:
    """DeferralTime, DeferralWindow, DeferralPrepTime, ScheddInterval."""
    cron = any(
        sheet.get(name) is not None
        for name in ("CronMinute", "CronHour", "CronDayOfMonth", "CronMonth", "CronDayOfWeek")
    )
    if not cron and sheet.text("deferral_time", "DeferralTime") is None:
        return
    for attribute, commands, default in _DEFERRAL:
        text = sheet.text(*commands, attribute)
        if text is not None:
            sheet.set_expression(attribute, text, commands[0])
            value = sheet.get(attribute)
            if isinstance(value, int) and value < 0:
                raise SubmitError(f"Invalid value '{text}' for {commands[0]}: expected 0 or more")
        elif default is not None:
            sheet.set(attribute, default)
    sheet.set_expression("ScheddInterval", sheet.setting("SCHEDD_INTERVAL") or "300")
