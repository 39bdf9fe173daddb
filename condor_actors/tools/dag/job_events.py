"""What events of the nodes' log mean to a run, and how dagman.out shows them."""

from __future__ import annotations

import re
import time

from condor_actors.dag.run_events import Change
from condor_actors.messages.codes import JobEventType
from condor_actors.userlog.reader import Event

__all__ = ["CHANGES", "TOLD", "date_of", "hold_reason", "jobs_made", "shown_date"]

CHANGES = {
    JobEventType.EXECUTE: Change.RUNNING, JobEventType.JOB_UNSUSPENDED: Change.RUNNING,
    JobEventType.JOB_EVICTED: Change.IDLE, JobEventType.SHADOW_EXCEPTION: Change.IDLE,
    JobEventType.JOB_RECONNECT_FAILED: Change.IDLE, JobEventType.JOB_RELEASED: Change.IDLE,
    JobEventType.JOB_HELD: Change.HELD,
}
TOLD = {int(each): each.name for each in (
    JobEventType.JOB_EVICTED, JobEventType.SHADOW_EXCEPTION, JobEventType.JOB_SUSPENDED, JobEventType.JOB_UNSUSPENDED,
    JobEventType.CHECKPOINTED, JobEventType.IMAGE_SIZE, JobEventType.REMOTE_ERROR, JobEventType.JOB_DISCONNECTED,
    JobEventType.JOB_RECONNECTED, JobEventType.JOB_RECONNECT_FAILED, JobEventType.FILE_TRANSFER,
    JobEventType.CLUSTER_SUBMIT, JobEventType.CLUSTER_REMOVE, JobEventType.FACTORY_PAUSED,
    JobEventType.FACTORY_RESUMED)}
"""Events of jobs that mean nothing to the run, or more to people than to it."""
_MADE = re.compile(r'Materialized (\d{1,9}) jobs from|<a n="NextProcId"><i>(\d{1,9})</i>')
_COMPLETE = re.compile(r'items\.\s+Complete\b|<a n="Completion"><i>1</i>')
_DATE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")


def shown_date(when_s: float) -> str:
    """A date as dagman.out has it."""
    return time.strftime("%m/%d/%y %H:%M:%S", time.localtime(when_s))


def date_of(event: Event) -> str:
    """When an event happened, as dagman.out shows it; empty: it does not say."""
    date = _DATE.search(event.text)
    return shown_date(time.mktime(time.strptime(date[0], "%Y-%m-%d %H:%M:%S"))) if date else ""


def jobs_made(event: Event) -> tuple[int, bool]:
    """Of a cluster that has left the queue: how many jobs it has made, -1: it does not say; whether these were all."""
    found = _MADE.search(event.text)
    return int(found[1] or found[2]) if found else -1, _COMPLETE.search(event.text) is not None


def hold_reason(event: Event) -> str:
    """Why a job was held, or a cluster makes no more jobs."""
    return "".join(event.text.splitlines()[1:2]).strip() or "(unknown)"
