"""condor_wait: wait until the jobs of an event log have ended.

Looks at nothing but the log.  **Source**: the manual, condor_wait.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from condor_actors import records
from condor_actors.messages.codes import JobEventType
from condor_actors.tools.lib.command import ToolError, Words, reminder_of, run
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given
from condor_actors.userlog.reader import Event, EventReader
from condor_actors.userlog.watch import GrowingFile

FLAGS = (
    Flag("help"),
    Flag("version"),
    Flag("debug", 1, colon=True, idle=NO_DEBUG),
    Flag("status"),
    Flag("echo", 1, colon=True),
    Flag("wait", 1, 1),
    Flag("num", 1, 1),
    Flag("allevents", 1),
    Flag("log", 1, 1),
    Flag("event-id", 8, 1, colon=True),
)


@records.define
class Call:
    """The command line, understood."""

    log: str = ""
    job: tuple[int, ...] = ()
    wait_s: float | None = None
    number: int = 0
    is_status: bool = False
    is_echo: bool = False
    is_all: bool = False
    event: int = -1
    event_count: int = 1

    @property
    def is_reading_only(self) -> bool:
        """Whether the end of the log is the end of the wait: ``-wait 0``, and ``-allevents`` without ``-wait``."""
        return self.wait_s == 0 or (self.is_all and self.wait_s is None)


def main() -> int:
    """Entry of ``condor_wait``."""
    return run(FLAGS, "condor_wait", _answer, words=Words(
        unknown="Unrecognized option: {word}\n{usage}", missing="-{flag} requires an argument\n{usage}",
        help_stream="err"))  # fmt: skip


def _answer(given: Sequence[Given]) -> int:
    call = Call()
    for item in given:
        _take(call, item.name, item.values[0] if item.values else "", item.qualifier)
    if not call.log:
        raise ToolError(reminder_of("condor_wait"))
    if call.is_all and call.number:
        raise _wrong("-num cannot be used with -allevents")
    return _wait(call)


def _wrong(problem: str) -> ToolError:
    """What a command line that cannot be understood leads to."""
    return ToolError(f"{problem}\n{reminder_of('condor_wait')}")


def _take(call: Call, name: str, value: str, qualifier: str) -> None:
    if not name:
        if not call.log:
            call.log = value
        elif not call.job:
            call.job = _job(value)
        else:
            raise _wrong(f"Extra argument: {value}")
    elif name == "log":
        call.log = value
    elif name == "wait":
        if not value.isdecimal():
            raise _wrong(f"-wait {value}: expected a number of seconds")
        call.wait_s = float(value)
    elif name == "num":
        if not value.isdecimal() or int(value) < 1:
            raise _wrong("-num must be greater than zero")
        call.number = int(value)
    elif name in ("status", "echo"):
        setattr(call, f"is_{name}", True)
    elif name == "allevents":
        call.is_all = True
    elif name == "event-id":
        if not value.isdecimal() or not (qualifier or "1").isdecimal():
            raise _wrong("-event-id requires an id, and a number behind its colon")
        call.event, call.event_count = int(value), int(qualifier or 1)


def _job(word: str) -> tuple[int, ...]:
    parts = word.split(".")
    if not all(part.isdecimal() for part in parts) or len(parts) > 3:
        raise ToolError(f"Couldn't understand job number: {word}")
    return tuple(int(part) for part in parts)


def _say(text: str) -> int:
    print(text, file=sys.stderr)
    return 1


class Oversized:
    """Compares what the jobs of a log used with what they asked for: the first ten thousand tell."""

    MOST = 10_000

    def __init__(self) -> None:
        from condor_actors.cores.answers.oversized import Requests

        self._requests = Requests()

    def take(self, event: Event) -> None:
        """Count the end of a job."""
        from condor_actors.userlog.allocations import cpu_s_of
        from condor_actors.userlog.event_facts import facts_of

        if self._requests.jobs < self.MOST:
            facts = facts_of(event, is_xml=event.text.lstrip().startswith("<"))
            if facts.get_int("ReturnValue", -1) == 0:
                busy = facts.get_float("CpusUsage")
                self._requests.take(facts, cpu_s_of(facts.get_str("RunRemoteUsage")) / busy if busy > 0 else 0.0)

    def advice(self) -> str:
        """A sentence; empty: the requests suit."""
        said = self._requests.advice()
        return f"{'They' if self._requests.jobs > 1 else 'It'} {said}." if said else ""


class _Watch:
    """Counts what the events of a log say."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._open: set[tuple[int, int, int]] = set()
        self._submitted = 0
        self._ended = 0
        self._found = 0
        self._oversized = Oversized() if sys.stderr.isatty() else None
        """What the jobs asked for and did not use, for a person who waits."""

    def take(self, event: Event) -> None:
        """Count an event of a job that is watched."""
        job = (event.cluster, event.proc, event.subproc)
        wanted = self._call.job
        if job[: len(wanted)] != wanted:
            return
        if self._call.is_echo:
            print(event.text, end="")
        name = f"{job[0]}.{job[1]}.{job[2]}"
        said = ""
        if event.number == JobEventType.SUBMIT:
            self._open.add(job)
            self._submitted += 1
            said = "submitted"
        elif event.number in (JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED):
            self._open.discard(job)
            self._ended += 1
            said = "completed" if event.number == JobEventType.JOB_TERMINATED else "aborted"
            if event.number == JobEventType.JOB_TERMINATED:
                if self._oversized is not None:
                    self._oversized.take(event)
        elif event.number == JobEventType.CLUSTER_SUBMIT:  # its jobs come later
            self._open.add(job)
            self._submitted += 1
        elif event.number == JobEventType.CLUSTER_REMOVE:
            self._open.discard(job)
        elif event.number == JobEventType.EXECUTE:
            host = event.text.partition("host: ")[2].split("\n", 1)[0].strip()
            said = f"executing on host {host}"
        elif event.number == self._call.event:
            said = f"event {event.number} found"
        self._found += event.number == self._call.event
        if said and self._call.is_status:
            print(f"{name} {said}", flush=True)

    def _done(self) -> int:
        print("All jobs done.", flush=True)
        said = self._oversized.advice() if self._oversized is not None else ""
        if said:
            print(said, file=sys.stderr)
        return 0

    def verdict(self, is_first: bool) -> int | None:
        """The exit status when the wait is over, None when it is not."""
        call = self._call
        if call.event >= 0 and self._found >= call.event_count:
            print(f"Got {self._found} events of id {call.event}")
            return 0
        if call.is_all or call.event >= 0:
            return None
        if call.number:
            if self._ended >= call.number:
                print(f"Specifed number of jobs ({call.number}) done.")
                return 0
            return None
        if not self._submitted:
            if not is_first or call.wait_s is not None:
                return None
            what = "that job" if call.job else "any jobs"
            return _say(f"This log does not mention {what}!")
        if not self._open:
            return self._done()
        return None


BEGIN_S = 10.0
"""How long the first event of a log may take that condor_submit has just made."""


def _wait(call: Call) -> int:
    try:
        log = GrowingFile(call.log, is_watched=False)
    except OSError as error:
        return _say(f"Couldn't open {call.log}: {error.strerror}")
    begin_s = time.monotonic() + BEGIN_S
    deadline_s = None if call.wait_s is None else time.monotonic() + call.wait_s
    reader, watch = EventReader(), _Watch(call)
    is_first = True
    with log:
        while True:
            data = log.read()
            if is_first and not data and call.wait_s is None and log.wait(begin_s):
                continue
            for event in reader.feed(data):
                watch.take(event)
            if reader.stranger:
                return _say(f"{call.log}:1: {reader.stranger!r} is no event of a job: this is no event log; give the "
                            "one that 'log = FILE' in the submit description names")
            status = watch.verdict(is_first)
            if status is not None:
                return status
            is_first = False
            sys.stdout.flush()
            if data:
                continue
            if call.is_reading_only:
                return 0
            if not log.wait(deadline_s):
                print("Time expired.")
                return 1



if __name__ == "__main__":
    sys.exit(main())
