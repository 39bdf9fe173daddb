"""Mails about jobs: when they end, when they are held, as their owner asked (``notification`` in the submit file).

Theory: the mail is a courtesy.  It is composed from the same facts as the line in the user log, handed to the SMTP
server once, and whatever becomes of it the job does not wait.

=================  =====================================================================
JobNotification    mail when
=================  =====================================================================
0 never            –
1 always           it ends, is held, or is evicted
2 complete         it ends
3 error            it ends abnormally or with an exit code other than 0, or is held
=================  =====================================================================
"""

from __future__ import annotations

from typing import Any, Protocol

from condor_actors.classads import ClassAd, unparse
from condor_actors.cores.answers.oversized import advice_for
from condor_actors.messages.codes import HoldCode, JobEventType, Notification
from condor_actors.numerals import moment

__all__ = ["CompletionMail", "mail_text"]

MOST_ATTRIBUTES = 100
MOST_LETTERS = 8191
"""Of ``email_attributes``: names, and letters of each value; a job that names one many times gets no large mail."""


class Sender(Protocol):
    """``machine.mail.Mailer``."""

    def send(self, to: str, subject: str, body: str) -> Any:
        """Send one mail; never fails."""


class CompletionMail:
    """Mails owners about their jobs, as each job's ``notification`` asks.

    Args:
        sender: hands mails to a server.
        domain: completes an address without one.
    """

    def __init__(self, sender: Sender, domain: str) -> None:
        self._sender = sender
        self._domain = domain

    def consider(self, event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> None:
        """Send a mail about an event if the owner wants one."""
        wish = facts.get_int("JobNotification")
        if wish == Notification.NEVER or not _wanted(wish, event, facts):
            return
        to = facts.get_str("NotifyUser") or facts.get_str("Owner")
        if "@" not in to:
            to += f"@{self._domain}"
        subject, body = mail_text(event, cluster, proc, when_s, facts)
        self._sender.send(to, subject, body)


def _wanted(wish: int, event: int, facts: ClassAd) -> bool:
    bad = facts.get_bool("ExitBySignal") or facts.get_int("ExitCode") != 0
    if event == JobEventType.JOB_TERMINATED:
        return wish in (Notification.ALWAYS, Notification.COMPLETE) or (wish == Notification.ERROR and bad)
    if event == JobEventType.JOB_HELD:
        return wish in (Notification.ALWAYS, Notification.ERROR) and facts.get_int("HoldReasonCode") not in (
            HoldCode.USER_REQUEST, HoldCode.SUBMITTED_ON_HOLD, HoldCode.SPOOLING_INPUT)
    return (wish == Notification.ALWAYS and event == JobEventType.JOB_EVICTED
            and facts.find("removereason") is None and facts.find("holdreason") is None)


def mail_text(event: int, cluster: int, proc: int, when_s: float, facts: ClassAd) -> tuple[str, str]:
    """Subject and body."""
    name = f"{cluster}.{proc}"
    what = {JobEventType.JOB_TERMINATED: "has ended", JobEventType.JOB_HELD: "is on hold",
            JobEventType.JOB_EVICTED: "was evicted"}[JobEventType(event)]
    command = " ".join(filter(None, (facts.get_str("Cmd"), facts.get_str("Args") or facts.get_str("Arguments"))))
    lines = [f"Job {name} {what} ({moment(int(when_s)).isoformat(' ')}).", "",
             f"Command:            {command}", f"Folder:             {facts.get_str('Iwd')}"]
    if event == JobEventType.JOB_TERMINATED:
        if facts.get_bool("ExitBySignal"):
            lines.append(f"Ended by:           signal {facts.get_int('ExitSignal')}")
        else:
            lines.append(f"Exit code:          {facts.get_int('ExitCode')}")
        lines += [
            f"Submitted:          {_date(facts.get_int('QDate'))}",
            f"Wall clock:         {facts.get_float('RemoteWallClockTime'):.1f} s in all runs",
            f"CPU, user:          {facts.get_float('CumulativeRemoteUserCpu'):.1f} s",
            f"CPU, system:        {facts.get_float('CumulativeRemoteSysCpu'):.1f} s",
            f"Memory:             {facts.get_int('MemoryUsage')} MiB",
            f"Ran on:             {facts.get_str('LastRemoteHost')}",
        ]
        said = "" if facts.get_bool("ExitBySignal") or facts.get_int("ExitCode") else advice_for(facts)
        lines += ["", said] if said else []
    elif event == JobEventType.JOB_HELD:
        lines += [f"Reason:             {facts.get_str('HoldReason')}",
                  f"Codes:              {facts.get_int('HoldReasonCode')}, {facts.get_int('HoldReasonSubCode')}",
                  "", f"When the cause is gone: condor_release {name}; to give the job up: condor_rm {name}"]
    else:
        lines.append(f"Reason:             {facts.get_str('EvictReason')}")
    extra = [each.strip() for each in facts.get_str("EmailAttributes").split(",") if each.strip()]
    if extra:
        lines.append("")
        lines += [f"{each[:MOST_LETTERS]} = {unparse(facts.evaluate(each), style='tools')[:MOST_LETTERS]}"
                  for each in extra[:MOST_ATTRIBUTES]]
    outcome = what if event != JobEventType.JOB_TERMINATED else (
        f"ended by signal {facts.get_int('ExitSignal')}" if facts.get_bool("ExitBySignal")
        else f"exited with status {facts.get_int('ExitCode')}")
    return f"[Condor] Job {name} {outcome}", "\n".join(lines) + "\n"


def _date(when_s: int) -> str:
    return moment(when_s).isoformat(" ") if when_s else "unknown"
