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

``condor_checkpoint COMMAND --help`` shows the options of each. The exit status is the program's; 115 when it could
not be started, 113 when its files were lost; 1 for a mistake on the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import hashlib
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.machine.native.core import write_core
from condor_actors.machine.native.cpu import level_of_machine
from condor_actors.machine.native.image import Image, ImageDamaged, is_image, latest_image, read_image, verify_image
from condor_actors.machine.native.programs import NativeProgramMissing, runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowEvent, ShadowHost, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from condor_actors.tools.jobs.checkpoint_options import PARSERS, BadCall
from condor_actors.tools.lib.command import framed, help_of

USAGE = 1
HELPERS_PAUSE_S = 0.25
PATIENCE_S = 600.0
MOST_NAMES = 10_000
_UNITS_S = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}


@attrs.define
class _Options:
    every_s: float | None = None
    image: str | None = None
    job_root: str | None = None
    statistics: bool = False


def _interval_s(text: str) -> float:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not match or float(match[1]) <= 0:
        raise BadCall(f"--every {text}: not a time; give seconds, or a number with s, m or h, as 60s")
    return float(match[1]) * _UNITS_S[match[2]]


def _options_of(parsed: argparse.Namespace) -> _Options:
    if parsed.job_root is not None and not os.path.isdir(parsed.job_root):
        raise BadCall(f"--job-root {parsed.job_root}: no such directory")
    return _Options(
        every_s=None if parsed.every is None else _interval_s(parsed.every),
        image=parsed.image,
        job_root=parsed.job_root and os.path.abspath(parsed.job_root),
        statistics=parsed.statistics,
    )


class _Run:
    """One program from its start (or restart) to its end."""

    def __init__(self, executable: str, task: Task, options: _Options) -> None:
        self._host = ShadowHost()
        self._options = options
        ours, theirs = socket.socketpair()
        with theirs:
            self._session = self._host.open(ours, task)
            self._process = subprocess.Popen(
                [executable, str(theirs.fileno()), "-", "family", f"parent={os.getpid()}"],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        self._next_s: float | None = None  # when to ask for the next checkpoint
        self._asked_s: float | None = None  # when the one was asked for that has not come yet
        self._wanted = False  # by someone who is to hear what becomes of it
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
        elif event.kind is EventKind.REFUSED:
            _say(event.text)
        elif event.kind is EventKind.BROKEN:
            self._failure = self._failure or event.text  # what comes later came of it
        elif event.kind in (EventKind.IMAGE, EventKind.INCREMENT):
            self._plan_next(self._options.every_s)
            if self._options.statistics:
                stored = os.stat(event.text).st_blocks * 512
                _say(f"checkpoint {event.text}: {stored} bytes on disk in {event.detail / 1e6:.1f} ms")
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
        """The same for someone who asked on his own."""
        self._wanted = True
        self.ask_for_checkpoint()

    def pass_on(self, number: int, _: object) -> None:
        """A signal that ends programs: what becomes of it is the program's to say."""
        if self._process.poll() is None:
            self._process.send_signal(number)

    def ask_for_checkpoint(self) -> None:
        """Make the program write a checkpoint, if it runs already."""
        if self._running and self._process.poll() is None:
            self._process.send_signal(CHECKPOINT_SIGNAL)
        elif self._options.every_s:
            self._plan_next(self._options.every_s)

    def wait(self) -> int:
        """Serve until the end. Returns the exit status to end with, or the number of the signal, negative."""
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
        return status


def _end_as(status: int) -> int:
    """End as the program did: the parent is to see the same signal."""
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -status)
    return status


def _say(words: str) -> None:
    sys.stderr.write(f"condor_checkpoint: {words}\n")


def _forward_signals(run: _Run) -> None:
    signal.signal(signal.SIGUSR1, run.want_checkpoint)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:  # what is ignored here is ignored there
            signal.signal(number, run.pass_on)


def _start(executable: str, task: Task, options: _Options) -> int:
    run = _Run(executable, task, options)
    _forward_signals(run)
    try:
        return run.wait()
    except KeyboardInterrupt:
        return run.wait()  # the program got the signal as well and decides


def _run(words: Sequence[str]) -> int:
    parsed = PARSERS["run"]().parse_args(words)
    options = _options_of(parsed)
    command = parsed.words[1:] if parsed.words[:1] == ["--"] else parsed.words
    if not command:
        raise BadCall("run: which program? condor_checkpoint run -- PROGRAM ARGUMENTS")
    program = command[0]
    found = program if "/" in program else shutil.which(program)
    if not found or not os.path.exists(found):
        _say(f"{program}: no such program")
        return 127
    image, held = _place(program, options.image)
    task = Task(
        program=found,
        arguments=command,
        environment=dict(os.environ),
        image=image,
        increments=1,
        journal_outlives=True,
        job_root=options.job_root,
    )
    with held:
        status = _start(runtime_path(), task, options)
    return _end_as(status)


def _hold(image: str) -> socket.socket | None:
    """Say on this machine that a program's checkpoints go to IMAGE, until that is closed; None: another's do.

    It is a socket without a name in any folder: the program's own folder has what it would have without us.
    """
    name = hashlib.sha256(f"{os.getuid()} {os.path.realpath(image)}".encode(errors="surrogateescape")).hexdigest()
    lock = socket.socket(socket.AF_UNIX)
    try:
        lock.bind(f"\0condor_checkpoint/{name}")
        lock.listen()
    except OSError:
        lock.close()
        lock = socket.socket(socket.AF_UNIX)
        lock.setblocking(False)
        with contextlib.suppress(OSError):
            lock.connect(f"\0condor_checkpoint/{name}")
            holder = lock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", holder)[1] == os.getuid():  # a stranger's word does not count
                lock.close()
                return None
    return lock


def _held(image: str) -> socket.socket:
    held = _hold(image)
    if held is None:
        raise BadCall(f"{image}: the checkpoints of a program that runs go there; name another file with --image")
    return held


def _place(program: str, wanted: str | None) -> tuple[str, socket.socket]:
    """Where checkpoints go: WANTED, or a file named after PROGRAM that is no other program's checkpoint."""
    if wanted is not None:
        image = os.path.abspath(wanted)
        return image, _held(image)
    name = os.path.abspath(os.path.basename(program))
    for number in range(1, MOST_NAMES):
        image = f"{name}.ckpt" if number == 1 else f"{name}.{number}.ckpt"
        if not os.path.lexists(image) and (held := _hold(image)) is not None:
            if number > 1:
                _say(f"{name}.ckpt is of another run; the checkpoints of this one go to {image}")
            return image, held
    raise BadCall(f"{name}.ckpt: there are {MOST_NAMES} of that name; remove some, or name a file with --image")


def _restart(words: Sequence[str]) -> int:
    parsed = PARSERS["restart"]().parse_args(words)
    options = _options_of(parsed)
    path = os.path.abspath(parsed.file)
    _whole(path)
    held = _held(path)
    image = _verified(latest_image(path))
    if image.cpu_level > level_of_machine():
        raise BadCall(f"{path}: needs a processor of level x86-64-v{image.cpu_level}, this one has less")
    place = os.path.abspath(options.image or path)
    task = Task(
        program=image.program,
        arguments=[image.program],
        environment={},
        image=place,
        increments=1,
        journal_outlives=True,
        job_root=options.job_root,
    )
    with held, contextlib.nullcontext() if place == path else _held(place):
        status = _start(path, task, options)
    return _end_as(status)


def _now(words: Sequence[str]) -> int:
    number = PARSERS["now"]().parse_args(words).pid
    if not number.isdecimal():
        raise BadCall(f"now: {number}: not the number of a process")
    pid = int(number)
    try:
        executable = os.readlink(f"/proc/{pid}/exe")
        if os.path.basename(executable) == "condor_runtime" or is_image(f"/proc/{pid}/exe"):
            os.kill(pid, CHECKPOINT_SIGNAL)
        else:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
            if b"condor_checkpoint" not in line and b"condor_actors.tools.jobs.checkpoint" not in line:
                raise BadCall(f"process {pid} does not run under condor_checkpoint")
            os.kill(pid, signal.SIGUSR1)
    except OSError as error:
        raise BadCall(f"process {pid}: {error.strerror}") from error
    return 0


def _whole(path: str) -> Image:
    try:
        return read_image(path)
    except (ImageDamaged, OSError) as error:
        raise BadCall(_of_file(path, error)) from error


def _of_file(path: str, error: Exception) -> str:
    return f"{path}: {(isinstance(error, OSError) and error.strerror) or error}"


def _verified(path: str) -> Image:
    try:
        return verify_image(path)
    except (ImageDamaged, OSError) as error:
        raise BadCall(_of_file(path, error)) from error


def _info(words: Sequence[str]) -> int:
    parsed = PARSERS["info"]().parse_args(words)
    for path in parsed.files:
        image = _whole(path)
        if parsed.json:
            print(json.dumps(attrs.asdict(image, filter=lambda a, _: a.name != "segments"), indent=2, default=list))
            continue
        print(f"{path}: checkpoint of {image.program}, pid {image.note.get('pid')}, {image.threads} thread(s)")
        if image.processes > 1:
            print(f"  {image.processes} processes; what follows is of the first")
        print(f"  written {time.strftime('%F %T', time.localtime(int(image.note.get('written', '0'))))}")
        print(f"  {image.size_bytes} bytes, {image.stored_bytes} on disk, {len(image.segments)} regions")
        print(f"  needs x86-64-v{image.cpu_level}; working directory {image.directory}")
        for file in image.files:
            names = ",".join(map(str, file.descriptors)) or "mapped"
            print(f"  {names:>8}  {file.kind} {file.path} at {file.offset}")
    return 0


def _verify(words: Sequence[str]) -> int:
    for path in PARSERS["verify"]().parse_args(words).files:
        _verified(path)
        print(f"{path}: whole")
    return 0


def _core(words: Sequence[str]) -> int:
    parsed = PARSERS["core"]().parse_args(words)
    path, target = parsed.file, parsed.core
    image = _whole(path)
    try:
        write_core(image, target)
    except (ImageDamaged, OSError) as error:
        raise BadCall(_of_file(path, error)) from error
    print(f"{target}: gdb {image.program} {target}")
    return 0


def _preflight(words: Sequence[str]) -> int:
    from condor_actors.machine.native.preflight import examine

    worst = 0
    for program in PARSERS["preflight"]().parse_args(words).programs:
        verdict = examine(program)
        print(f"{program}: {verdict.summary}")
        for remark in (*verdict.remarks, *verdict.libraries):
            print(f"  {remark}")
        worst = max(worst, 0 if verdict.runs else 1)
    return worst


def _job(words: Sequence[str]) -> int:
    from condor_actors.messages.queue import JobAction
    from condor_actors.tools.lib.job_actions import run

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


@framed
def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "-help", "--help", "help"):
        print(help_of("condor_checkpoint"))
        return 0 if words else USAGE
    command = COMMANDS.get(words[0])
    try:
        if command is None:
            raise BadCall(f"unknown command '{words[0]}'; it knows {', '.join(COMMANDS)}")
        return command(words[1:])
    except (BadCall, NativeProgramMissing) as why:
        _say(str(why))
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
