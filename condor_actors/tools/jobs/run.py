"""condor_run: a shell command as a job, as if it were run here.

The command becomes a script, the script a job; what it wrote appears here when it has ended (``-stream``: while it
runs), and its exit status is the command's.  A signal that would end condor_run removes the job first.  The number of
the cluster is known before the schedd has the job, and signals wait while it is handed over: no job stays behind.

**Source**: the manual, condor_run.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from types import FrameType

import attrs

from condor_actors.classads import ClassAd
from condor_actors.durable import naming
from condor_actors.messages.codes import JobEventType, JobStatus
from condor_actors.messages.queue import ActOnJobs, JobAction
from condor_actors.submit import Description, SubmitError
from condor_actors.tools.lib.command import ToolError, reminder_of, run, values_of
from condor_actors.tools.lib.contact import ACTION_TIMEOUT_S, load, schedd
from condor_actors.tools.lib.flags import Flag, Given, is_flag, match, parse
from condor_actors.tools.lib.job_ids import ALL_PROCS
from condor_actors.tools.lib.submission import Submission, environment, make_logs
from condor_actors.tools.lib.submit_files import check_name
from condor_actors.userlog.reader import Event, EventReader
from condor_actors.userlog.watch import FALLBACK_S, GrowingFile
from condor_actors.wire.blocking import WireError

FLAGS = (
    Flag("help", 1), Flag("version", 1), Flag("universe", 1, 1), Flag("append", 1, 1), Flag("getenv", 1),
    Flag("stream", 1),
)
SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
"""They end condor_run, and the job with it."""
BY_SIGNAL = 128
"""Added to the number of a signal: the exit status of what it ended, as shells have it."""
PIECE_BYTES = 65536
MOST_TRIES = 100
"""Names of temporary files that are tried."""
ENDS = (JobEventType.JOB_TERMINATED, JobEventType.JOB_ABORTED)
REMOVAL_S = 60.0
"""How long the end of a job that was removed is waited for; another signal ends the wait."""
_RETURNED = re.compile(r"\(return value (\d{1,10})\)")
_KILLED = re.compile(r"\(signal (\d{1,10})\)")
_WHY = re.compile(r"^\t(.*)$", re.MULTILINE)


class Interrupted(Exception):
    """A signal came that ends condor_run."""

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(number)


@attrs.frozen
class Files:
    """The temporary files of one condor_run, in its working directory."""

    script: str
    description: str
    log: str
    output: str
    error: str

    @classmethod
    def fresh(cls, pid: int) -> Files:
        """Those of the process ``pid``, none of which is there.

        What the job writes is made here, empty: a link that another user has put in its place, where this folder is not
        the caller's alone, would lead it into a file of the caller's.  What root submits runs as nobody, who makes it.

        Raises:
            ToolError: all the names are taken.
        """
        for number in (f"{pid}{more}" for more in ("", *(f".{each}" for each in range(1, MOST_TRIES)))):
            files = cls(*(f".condor_{name}.{number}" for name in ("run", "submit", "log", "out", "error")))
            if any(os.path.lexists(path) for path in attrs.astuple(files)):
                continue
            try:
                for path in (files.log, files.output, files.error) if os.geteuid() != 0 else ():
                    _write(path, "", 0o666)
            except FileExistsError:
                continue
            return files
        raise ToolError(f"Error: in {os.getcwd()} all names like .condor_run.{pid} are taken; remove these files, or "
                        "run the command in another folder")

    def remove(self) -> None:
        """Remove those that there are."""
        for path in attrs.astuple(self):
            with suppress(OSError):
                os.unlink(path)


def main() -> int:
    """Entry of ``condor_run``."""
    return run(_read, "condor_run", _answer)


def _read(words: Sequence[str]) -> list[Given]:
    """Flags as far as the command; what follows its first word belongs to it."""
    end = 0
    while end < len(words) and is_flag(words[end]):
        found = match(words[end], FLAGS)
        end += 1 + (found[0].takes if found is not None else 0)
    return [*parse(words[:end], FLAGS), *(Given("", (word,), "", word) for word in words[end:])]


def _answer(given: Sequence[Given]) -> int:
    command = " ".join(item.values[0] for item in given if not item.name)
    if not command:
        raise ToolError(f"Error: condor_run needs a shell command\n{reminder_of('condor_run')}")
    values = values_of(given)
    files = Files.fresh(os.getpid())
    try:
        with _signals_raise():
            try:
                text = _description(values.get("universe", "vanilla"), files, "getenv" in values, "stream" in values,
                                    [item.values[0] for item in given if item.name == "append"])
                _write(files.script, f"#!{os.environ.get('SHELL') or '/bin/sh'}\n{command}\n", 0o777)
                _write(files.description, text, 0o666)
                return _Job(files, is_streamed="stream" in values).run(text)
            except Interrupted as error:
                print(f"Killed by {signal.Signals(error.number).name}.", file=sys.stderr)
                return BY_SIGNAL + error.number
    finally:
        files.remove()


def _description(universe: str, files: Files, getenv: bool, stream: bool, appended: Sequence[str]) -> str:
    """The submit description; what the caller adds comes last, so that it wins."""
    lines = [f"universe = {universe}", f"executable = {files.script}", f"initialdir = {check_name(os.getcwd())}",
             "notification = Never", f"log = {files.log}", f"output = {files.output}", f"error = {files.error}"]
    if stream:
        lines += ["stream_output = true", "stream_error = true"]
    if getenv:
        lines.append("getenv = true")
    terms = [os.environ[name] for name in ("CONDOR_REQUIREMENTS",) if os.environ.get(name)]
    terms += [f'{name} == "{os.environ[variable]}"' for variable, name in
              (("CONDOR_ARCH", "Arch"), ("CONDOR_OPSYS", "OpSys")) if os.environ.get(variable)]
    if terms:
        lines.append("requirements = " + " && ".join(terms))
    return "\n".join([*lines, *appended, "queue", ""])


def _write(path: str, text: str, mode: int) -> None:
    made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with naming(path), open(made, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """`Interrupted` comes of the signals that end condor_run, except those that its caller has it ignore (nohup)."""
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise Interrupted(number)

    before = {each: signal.getsignal(each) for each in SIGNALS}
    for each, had in before.items():
        if had is not signal.SIG_IGN:
            signal.signal(each, interrupt)
    try:
        yield
    finally:
        for each, had in before.items():
            signal.signal(each, had)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Signals that come in between come at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Job:
    """The job of one condor_run, from its submission to its end."""

    def __init__(self, files: Files, *, is_streamed: bool) -> None:
        self._files = files
        self._is_streamed = is_streamed
        self._config = load("SUBMIT")
        self._shown = {files.output: 0, files.error: 0}
        self._is_queued = False
        self._status: int | None = None
        self._cluster = 0

    def run(self, text: str) -> int:
        """Submit the job and wait for its end.

        Returns:
            its exit status.

        Raises:
            Interrupted: by a signal; the job is removed.
            ToolError: it was not taken, or it was removed.
        """
        try:
            with _signals_wait():
                self._submit(text)
            self._wait()
        except BaseException:
            if self._is_queued:
                with _signals_wait():
                    is_removed = self._remove()
                if is_removed:
                    self._wait_for_removal()
            raise
        self._is_queued = False
        self._show_all()
        assert self._status is not None
        return self._status

    def _submit(self, text: str) -> None:
        with schedd(self._config) as there:
            submission = Submission(there, lambda: schedd(self._config), spool=False)
            description = Description(environment(self._config), submission.reserve)
            try:
                clusters = description.read(text, self._files.description)
            except SubmitError as error:
                notes = filter(None, (error.problem, description.blamed(error), error.remedy))
                raise ToolError("\n    ".join(["Failed to submit the job:", *notes])) from None
            for sentence in description.warnings:
                print(f"WARNING: {sentence}", file=sys.stderr)
            if len(clusters) != 1 or len(clusters[0].procs) != 1:
                raise ToolError("Error: condor_run runs one job; an added line asks for another number of them")
            self._cluster = clusters[0].cluster_id
            self._is_queued = True
            submission.send(clusters)
        make_logs(clusters)
        if ClassAd.from_bytes(clusters[0].ad).get_int("JobStatus") == JobStatus.HELD:  # no event tells of it
            self._say_held("it was submitted so")

    def _remove(self) -> bool:
        """Ask for its removal; whether it was heard."""
        message = ActOnJobs(action=JobAction.REMOVE, ids=((self._cluster, ALL_PROCS),),
                            reason="condor_run was interrupted")
        try:
            with schedd(self._config) as there:
                there.ask(message, ACTION_TIMEOUT_S)
            return True
        except (ToolError, WireError) as error:
            print(f"Job {self._cluster}.0 could not be removed and may still be in the queue "
                  f"(condor_rm {self._cluster} removes it): {error}", file=sys.stderr)
            return False

    def _wait_for_removal(self) -> None:
        """Until its log tells of its end, after which nobody writes into files that are removed then."""
        reader, deadline_s = EventReader(), time.monotonic() + REMOVAL_S
        with GrowingFile(self._files.log) as log:
            while not any(event.number in ENDS for event in reader.feed(log.read())):
                if not log.wait(deadline_s):
                    return

    def _wait(self) -> None:
        """Follow the event log, and the output where it is streamed, until the job has ended."""
        reader = EventReader()
        with GrowingFile(self._files.log) as log:
            while True:
                for event in reader.feed(log.read()):
                    if event.cluster == self._cluster:
                        self._take(event)
                if self._status is not None:
                    return
                if self._is_streamed:
                    self._stream(log)
                else:
                    log.wait(None)

    def _stream(self, log: GrowingFile) -> None:
        """Print what came, then wait for more in the log or in the output; the log's watch tells of new files too."""
        with ExitStack() as stack:
            files = [log]
            for path in (self._files.output, self._files.error):
                with suppress(FileNotFoundError):
                    files.append(stack.enter_context(GrowingFile(path)))
            self._show_all()
            watched = [number for each in files if (number := each.fileno()) is not None]
            select.select(watched, [], [], None if len(watched) == len(files) else FALLBACK_S)
        log.forget()

    def _show_all(self) -> None:
        for path, number in ((self._files.output, 1), (self._files.error, 2)):
            with suppress(FileNotFoundError):
                self._show(path, number)

    def _show(self, path: str, number: int) -> None:
        """Print what is new in a file; a job that began anew has written it anew."""
        sys.stdout.flush()
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size < self._shown[path]:
                self._shown[path] = 0
            file.seek(self._shown[path])
            while piece := file.read(PIECE_BYTES):
                self._shown[path] += len(piece)
                while piece:
                    piece = piece[os.write(number, piece):]

    def _take(self, event: Event) -> None:
        if event.number == JobEventType.JOB_TERMINATED:
            returned, killed = _RETURNED.search(event.text), _KILLED.search(event.text)
            if returned is not None:
                self._status = int(returned.group(1))
            else:
                number = int(killed.group(1)) if killed is not None else 0
                print(f"The job was killed by signal {number}.", file=sys.stderr)
                self._status = BY_SIGNAL + number
        elif event.number == JobEventType.JOB_ABORTED:
            self._is_queued = False
            raise ToolError(f"The job was removed: {_why(event)}")
        elif event.number == JobEventType.JOB_HELD:
            self._say_held(_why(event))

    def _say_held(self, why: str) -> None:
        print(f"Job {self._cluster}.0 is on hold: {why}\n"
              f"condor_release {self._cluster} lets it go on; Control-C removes it.", file=sys.stderr, flush=True)


def _why(event: Event) -> str:
    found = _WHY.search(event.text)
    return found.group(1) if found is not None else "no reason was given"


if __name__ == "__main__":
    sys.exit(main())
