"""``condor_checkpoint``: programs that can be stopped, moved and continued, with or without a pool.

============================================================  ==========================================
``condor_checkpoint run [OPTIONS] -- PROGRAM ARGUMENTS``      run a program under the runtime
``condor_checkpoint now PID``                                 write a checkpoint of it now
``condor_checkpoint restart [OPTIONS] FILE``                  continue from a checkpoint
``condor_checkpoint info [--json] FILE``                      what is in a checkpoint
``condor_checkpoint verify FILE``                             whether it is whole
``condor_checkpoint core FILE [CORE]``                        make a core file of it for gdb
``condor_checkpoint preflight PROGRAM``                       whether a program can run, and what would fail
``condor_checkpoint job JOBS``                                have running jobs of the pool take one now
============================================================  ==========================================

Options: ``--every TIME`` (60, 60s, 10m, 1h) checkpoints on a timer, ``--image FILE`` says where (default: the
program's name with ``.ckpt``; after a restart, the file itself), ``--job-root DIR`` lets the program use no
files but those below DIR, and read those that every program needs, ``--statistics`` tells at the end what was
done. The exit status is the program's; 115 when it could not be started, 113 when its files were lost.
"""

from __future__ import annotations

import errno
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.machine.native_core import write_core
from condor_actors.machine.native_cpu import level_of_machine
from condor_actors.machine.native_image import Image, ImageDamaged, is_image, latest_image, read_image, verify_image
from condor_actors.machine.native_programs import NativeProgramMissing, runtime_path
from condor_actors.machine.native_shadow import CHECKPOINT_SIGNAL, EventKind, ShadowEvent, ShadowHost, Task

USAGE = 1
HELPERS_PAUSE_S = 0.25
PATIENCE_S = 600.0
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


class _Refused(Exception):
    """A mistake of the caller, told in one message."""


@attrs.define
class _Options:
    every_s: float | None = None
    image: str | None = None
    job_root: str | None = None
    statistics: bool = False
    as_json: bool = False
    words: list[str] = attrs.field(factory=list)


def _interval_s(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match or float(match[1]) <= 0:
        raise _Refused(f"--every {text}: not a time; give seconds, or a number with s, m or h, as 60s")
    return float(match[1]) * _UNITS_S[match[2]]


def _parse(words: Sequence[str]) -> _Options:
    options = _Options()
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name in ("--every", "--image", "--job-root"):
            if not equals:
                if not left:
                    raise _Refused(f"{name} needs a value")
                value = left.pop(0)
            if name == "--every":
                options.every_s = _interval_s(value)
            elif name == "--job-root":
                if not os.path.isdir(value):
                    raise _Refused(f"--job-root {value}: no such directory")
                options.job_root = os.path.abspath(value)
            else:
                options.image = value
        elif word == "--statistics":
            options.statistics = True
        elif word == "--json":
            options.as_json = True
        elif word == "--":
            options.words = left
            break
        elif word.startswith("-"):
            raise _Refused(f"unknown option {word}; see condor_checkpoint --help")
        else:
            options.words = [word, *left]
            break
    return options


class _Run:
    """One program from its start (or restart) to its end."""

    def __init__(self, executable: str, task: Task, options: _Options) -> None:
        self._host = ShadowHost()
        self._options = options
        ours, theirs = socket.socketpair()
        with theirs:
            self._session = self._host.open(ours, task)
            self._process = subprocess.Popen(
                [executable, str(theirs.fileno()), "-", "family"],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._next_s: float | None = None  # when to ask for the next checkpoint
        self._asked_s: float | None = None  # when the one was asked for that has not come yet
        self._wanted = False  # by somebody who is to hear what becomes of it
        self._running = False
        self._over = False
        self._failure: str | None = None
        self._exit_status: int | None = None

    def _take(self, event: ShadowEvent) -> None:
        if event.kind is EventKind.STARTED:
            self._running = True
        elif event.kind is EventKind.EXITED:
            self._exit_status = event.value
            if event.detail:
                self._failure = f"cannot be started: {os.strerror(event.detail)}"
        elif event.kind is EventKind.NO_IMAGE:
            helpers_run = event.value == errno.EAGAIN
            if not helpers_run:
                _say(f"no checkpoint: {os.strerror(event.value)} ({event.text})")
            elif self._wanted:
                _say(f"no checkpoint yet: {event.text}")
            self._wanted = False
            self._plan_next(HELPERS_PAUSE_S if helpers_run else self._options.every_s)
        elif event.kind is EventKind.WRITE_LOST:
            _say(f"{event.text}: {os.strerror(event.value)}")
        elif event.kind is EventKind.BROKEN:
            self._failure = event.text
        elif event.kind in (EventKind.IMAGE, EventKind.INCREMENT):
            self._plan_next(self._options.every_s)
            if self._options.statistics:
                _say(f"checkpoint {event.text}: {event.value} bytes in {event.detail / 1e6:.1f} ms")
        elif event.kind is EventKind.ENDED:
            self._over = True

    def _plan_next(self, pause_s: float | None) -> None:
        """Ask again in PAUSE_S, but let the program work at least as long as its last checkpoint took."""
        now_s = time.monotonic()
        took_s = 0.0 if self._asked_s is None else now_s - self._asked_s
        self._asked_s = None
        self._next_s = None if pause_s is None else now_s + max(pause_s, took_s)

    def _show_statistics(self) -> None:
        done = self._host.statistics(self._session)
        _say(
            f"{done.calls} calls served in {done.served_ns / 1e6:.1f} ms of processor time, "
            f"{done.bytes_in} bytes in, {done.bytes_out} bytes out, {done.files_opened} files opened, "
            f"{done.checkpoints} checkpoints"
        )

    def want_checkpoint(self, *_: object) -> None:
        """The same for somebody who asked on his own."""
        self._wanted = True
        self.ask_for_checkpoint()

    def ask_for_checkpoint(self) -> None:
        """Make the program write a checkpoint, if it runs already."""
        if self._running and self._process.poll() is None:
            self._process.send_signal(CHECKPOINT_SIGNAL)
        elif self._options.every_s:
            self._plan_next(self._options.every_s)

    def wait(self) -> int:
        """Serve until the end. Returns the exit status to end with; a death by signal is ours as well."""
        self._plan_next(self._options.every_s)
        while not self._over:
            left = None if self._next_s is None else max(0.0, self._next_s - time.monotonic())
            ready, _, _ = select.select([self._host], [], [], left)
            for event in self._host.events() if ready else ():
                if event.kind is EventKind.ENDED and self._options.statistics:
                    pass  # its numbers were shown with EXITED or LOST
                elif event.kind in (EventKind.EXITED, EventKind.LOST) and self._options.statistics:
                    self._show_statistics()
                self._take(event)
            if self._next_s is not None and time.monotonic() >= self._next_s:
                self._asked_s = time.monotonic()
                self._next_s = self._asked_s + PATIENCE_S  # one at a time: others would queue up
                self.ask_for_checkpoint()
        status = self._process.wait()
        if self._failure:
            _say(self._failure)
        if status < 0:
            _die_of(-status)
        return status


def _die_of(number: int) -> None:
    """End as the program did: whoever waits for us is to see the same signal."""
    signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
    os.kill(os.getpid(), number)


def _say(words: str) -> None:
    sys.stderr.write(f"condor_checkpoint: {words}\n")


def _forward_signals(run: _Run) -> None:
    signal.signal(signal.SIGUSR1, run.want_checkpoint)


def _start(executable: str, task: Task, options: _Options) -> int:
    run = _Run(executable, task, options)
    _forward_signals(run)
    try:
        return run.wait()
    except KeyboardInterrupt:
        return run.wait()  # the program got the signal as well and decides


def _run(words: Sequence[str]) -> int:
    options = _parse(words)
    if not options.words:
        raise _Refused("run: which program? condor_checkpoint run -- PROGRAM ARGUMENTS")
    program = options.words[0]
    found = program if "/" in program else shutil.which(program)
    if not found or not os.path.exists(found):
        _say(f"{program}: no such program")
        return 127
    image = os.path.abspath(options.image or f"{os.path.basename(program)}.ckpt")
    task = Task(
        program=found,
        arguments=options.words,
        environment=dict(os.environ),
        image=image,
        increments=1,
        job_root=options.job_root,
    )
    return _start(runtime_path(), task, options)


def _restart(words: Sequence[str]) -> int:
    options = _parse(words)
    if len(options.words) != 1:
        raise _Refused("restart: give one checkpoint file")
    path = os.path.abspath(options.words[0])
    _whole(path)
    image = _verified(latest_image(path))
    if image.cpu_level > level_of_machine():
        raise _Refused(f"{path}: needs a processor of level x86-64-v{image.cpu_level}, this one has less")
    task = Task(
        program=image.program,
        arguments=[image.program],
        environment={},
        image=os.path.abspath(options.image or path),
        increments=1,
        job_root=options.job_root,
    )
    return _start(path, task, options)


def _now(words: Sequence[str]) -> int:
    options = _parse(words)
    if len(options.words) != 1 or not options.words[0].isdigit():
        raise _Refused("now: give the number of one process")
    pid = int(options.words[0])
    try:
        executable = os.readlink(f"/proc/{pid}/exe")
        if os.path.basename(executable) == "condor_runtime" or is_image(f"/proc/{pid}/exe"):
            os.kill(pid, CHECKPOINT_SIGNAL)
        else:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"condor_checkpoint" not in line and b"condor_actors.tools.checkpoint" not in line:
                raise _Refused(f"process {pid} does not run under condor_checkpoint")
            os.kill(pid, signal.SIGUSR1)
    except OSError as error:
        raise _Refused(f"process {pid}: {error.strerror}") from error
    return 0


def _whole(path: str) -> Image:
    try:
        return read_image(path)
    except (ImageDamaged, OSError) as error:
        raise _Refused(f"{path}: {error}") from error


def _verified(path: str) -> Image:
    try:
        return verify_image(path)
    except (ImageDamaged, OSError) as error:
        raise _Refused(f"{path}: {error}") from error


def _info(words: Sequence[str]) -> int:
    options = _parse(words)
    for path in options.words:
        image = _whole(path)
        if options.as_json:
            print(json.dumps(attrs.asdict(image, filter=lambda a, _: a.name != "segments"), indent=2, default=list))
            continue
        print(f"{path}: checkpoint of {image.program}, pid {image.note.get('pid')}, {image.threads} thread(s)")
        print(f"  written {time.strftime('%F %T', time.localtime(int(image.note.get('written', '0'))))}")
        print(f"  {image.size_bytes} bytes, {image.stored_bytes} on disk, {len(image.segments)} regions")
        print(f"  needs x86-64-v{image.cpu_level}; working directory {image.directory}")
        for file in image.files:
            names = ",".join(map(str, file.descriptors)) or "mapped"
            print(f"  {names:>8}  {file.kind} {file.path} at {file.offset}")
    return 0


def _verify(words: Sequence[str]) -> int:
    for path in _parse(words).words:
        _verified(path)
        print(f"{path}: whole")
    return 0


def _core(words: Sequence[str]) -> int:
    options = _parse(words)
    if len(options.words) not in (1, 2):
        raise _Refused("core: give one checkpoint file, and where the core file is to go (default: core)")
    path, target = (*options.words, "core")[:2]
    image = _whole(path)
    try:
        write_core(image, target)
    except (ImageDamaged, OSError) as error:
        raise _Refused(f"{path}: {error}") from error
    print(f"{target}: gdb {image.program} {target}")
    return 0


def _preflight(words: Sequence[str]) -> int:
    from condor_actors.machine.native_preflight import examine

    worst = 0
    for program in _parse(words).words:
        verdict = examine(program)
        print(f"{program}: {verdict.summary}")
        for remark in verdict.remarks:
            print(f"  {remark}")
        worst = max(worst, 0 if verdict.runs else 1)
    return worst


def _job(words: Sequence[str]) -> int:
    from condor_actors.messages.queue import JobAction
    from condor_actors.tools.job_actions import run

    sys.argv = ["condor_checkpoint job", *words]
    return run("condor_checkpoint job", JobAction.CHECKPOINT)


COMMANDS = {
    "run": _run,
    "now": _now,
    "restart": _restart,
    "info": _info,
    "verify": _verify,
    "core": _core,
    "preflight": _preflight,
    "job": _job,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "-help", "--help", "help"):
        print(__doc__)
        return 0 if words else USAGE
    command = COMMANDS.get(words[0])
    try:
        if command is None:
            raise _Refused(f"unknown command '{words[0]}'; it knows {', '.join(COMMANDS)}")
        return command(words[1:])
    except (_Refused, NativeProgramMissing) as why:
        _say(str(why))
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
