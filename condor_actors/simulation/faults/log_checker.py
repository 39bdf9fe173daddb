"""What a user log must tell of each job: every event once, and none that its job cannot have had.

Theory: the lines of a log are those of a small machine for each job.  An event that is written twice, or whose
predecessor was lost, is one that the machine does not take.

=======================  ======================================================================================
event                    is wrong
=======================  ======================================================================================
000 submitted            twice
001 executing            while the job executes already; a held one may begin, whose run is told later to end
005 terminated           of a job that has not been executing, unless it was skipped; before its outputs are home
any                      after 005 or 009
010 suspended            twice in a row, or of a job that does not execute
011 unsuspended          without 010
013 released             of a job that is not held
=======================  ======================================================================================
"""

from __future__ import annotations

import re

import attrs

from condor_actors.messages.codes import FileTransferEventType
from condor_actors.messages.codes import JobEventType as Event
from condor_actors.userlog.event_text import TRANSFER_WORDS

__all__ = ["LogChecker"]

_HEADER = re.compile(rb"^(\d{3}) \((\d+\.\d+)\.\d+\) (\d{4}-\S+ \S+) (.*)$", re.MULTILINE)
_BRINGS = TRANSFER_WORDS[FileTransferEventType.OUT_STARTED].encode()

ENDS = frozenset({Event.JOB_TERMINATED, Event.JOB_ABORTED})
RUN_ENDS = frozenset({Event.JOB_EVICTED, Event.JOB_TERMINATED, Event.SHADOW_EXCEPTION, Event.JOB_ABORTED,
                      Event.JOB_HELD, Event.JOB_RECONNECT_FAILED})


@attrs.define
class _Told:
    """What a log has told of a job so far."""

    submitted: bool = False
    executing: bool = False
    suspended: bool = False
    held: bool = False
    skipped: bool = False
    brings: bool = False
    done: bool = False


class LogChecker:
    """Follows all user logs."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], _Told] = {}

    def logged(self, path: str, data: bytes) -> list[str]:
        """Lines of a log are durable; returns what is wrong with them."""
        wrong = []
        for found in _HEADER.finditer(data):
            event, job = int(found[1]), found[2].decode()
            problem = self._take(self._told.setdefault((path, job), _Told()), event, found[4])
            if problem:
                wrong.append(f"{path} says {event:03d} of {job} at {found[3].decode()}, {problem}")
        return wrong

    def is_done(self, path: str, job: str) -> bool:
        """Whether a log says that a job (``002.000``) is done."""
        told = self._told.get((path, job))
        return told is not None and told.done

    def _take(self, told: _Told, event: int, words: bytes) -> str:
        """One event of a job: why it cannot be; empty: it can.

        Args:
            words: of its first line, behind the date.
        """
        problem = _problem(told, event)
        if event == Event.SUBMIT:
            told.submitted = True
        elif event == Event.EXECUTE:
            told.executing = not told.held
        elif event == Event.DATAFLOW_JOB_SKIPPED:
            told.skipped = True
        elif event in (Event.JOB_SUSPENDED, Event.JOB_UNSUSPENDED):
            told.suspended = event == Event.JOB_SUSPENDED
        elif event == Event.JOB_RELEASED:
            told.held = False
        elif event == Event.FILE_TRANSFER:
            told.brings = words.startswith(_BRINGS)
        if event in RUN_ENDS:
            told.executing = told.suspended = told.skipped = told.brings = False
            told.held = told.held or event == Event.JOB_HELD
            told.done = told.done or event in ENDS
        return problem


def _problem(told: _Told, event: int) -> str:
    if event == Event.SUBMIT:
        return "and has said so before" if told.submitted else ""
    if told.done:
        return "which is done"
    if event == Event.EXECUTE:
        return "which executes already" if told.executing else ""
    if event == Event.JOB_TERMINATED:
        return ("and not that its outputs are home" if told.brings else
                "" if told.executing or told.skipped else "and has not said that it executes")
    if event == Event.JOB_SUSPENDED:
        return ("which stands still already" if told.suspended else
                "" if told.executing else "and has not said that it executes")
    if event == Event.JOB_UNSUSPENDED:
        return "" if told.suspended else "which does not stand still"
    if event == Event.JOB_RELEASED:
        return "" if told.held else "which is not held"
    return ""
