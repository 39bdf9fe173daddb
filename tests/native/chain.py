"""A program's life in links: run, checkpoint at some moment, kill, restart from the image, and so on."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import select
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs
import psutil

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowEvent, ShadowHost, Task
from condor_actors.messages.codes import CHECKPOINT_SIGNAL

DEADLINE_S = 120
MOVED = 112


class Stuck(AssertionError):
    """Nothing happened until the deadline."""


class NoImage(Stuck):
    """No checkpoint can be taken of the program as it is."""


_endings: list[Callable[[], None]] = []


def at_end_of_test(ending: Callable[[], None]) -> None:
    """Have ENDING called when the test is over, however it ended."""
    _endings.append(ending)


def end_of_test() -> None:
    """Call what is to be called at the end of a test."""
    while _endings:
        _endings.pop()()


def end_family(process: subprocess.Popen[bytes]) -> None:
    """End PROCESS and its children, if it still runs, as after a test that failed."""
    if process.poll() is not None:
        return
    first = psutil.Process(process.pid)
    for member in [*first.children(recursive=True), first]:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()
    process.wait(DEADLINE_S)


@attrs.define
class Life:
    """What became of a chain."""

    status: int
    links: int
    output: bytes


class Chain:
    """Runs one program, checkpointing it at random moments and continuing it from its images."""

    increments = 0
    job_root: str | None = None
    through: Sequence[str] = ()
    """A command that executes the runtime or image whose words follow it."""

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        seed: int,
        work: Path | None = None,
        environment: Mapping[str, str] | None = None,
        terminal: int | None = None,
    ) -> None:
        self.host = ShadowHost()
        self.program = command[0]
        self.command = command
        self.folder = folder
        self.work = work or folder
        self.environment = environment or {"PATH": os.environ["PATH"], "LC_ALL": "C"}
        self.terminal = terminal  # for its standard input
        self.image = folder / "image"
        self.random = random.Random(seed)
        self.output = os.open(folder / "output", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        self.session = -1
        self.process: subprocess.Popen[bytes] | None = None
        at_end_of_test(self.end)

    def end(self) -> None:
        """End the program's processes, if there are any left."""
        if self.process is not None and self.process.poll() is None:
            self.host.close(self.session)
            end_family(self.process)

    def start(self, executable: str) -> None:
        """Start the runtime or an image of it, with a shadow of its own."""
        ours, theirs = socket.socketpair()
        null = os.open("/dev/null", os.O_RDWR) if self.terminal is None else os.dup(self.terminal)
        task = Task(
            program=self.program,
            arguments=self.command,
            environment=self.environment,
            directory=str(self.work),
            image=str(self.image),
            standard_fds=(null, self.output, self.output),
            increments=self.increments,
            job_root=self.job_root,
        )
        with theirs:
            self.session = self.host.open(ours, task)
            words = [*self.through, executable, str(theirs.fileno()), "-", "family"]
            self.process = subprocess.Popen(
                words, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
            )
        os.close(null)

    def until(self, *kinds: EventKind, within_s: float = DEADLINE_S) -> ShadowEvent | None:
        """Return the next event of one of KINDS, or None when it does not come in time."""
        end_s = time.monotonic() + within_s
        while (left := end_s - time.monotonic()) > 0:
            if not select.select([self.host], [], [], left)[0]:
                return None
            for event in self.host.events():
                if event.session != self.session:
                    continue  # one queue serves all sessions of the process
                if event.kind is EventKind.BROKEN:
                    raise AssertionError(f"broken: {event.text}")
                if event.kind in kinds:
                    return event
        return None

    def expect(self, *kinds: EventKind) -> ShadowEvent:
        """Return the next event of one of KINDS; fail when it does not come."""
        event = self.until(*kinds)
        if event is None:
            raise Stuck(f"none of {kinds} came")
        return event

    def asked_for_image(self) -> ShadowEvent:
        """Ask for a checkpoint, and again when a member could not park in time; return its event, or the end's.

        Raises:
            NoImage: none can be taken; the text says why.

        """
        assert self.process
        while True:
            self.process.send_signal(CHECKPOINT_SIGNAL)
            event = self.expect(EventKind.IMAGE, EventKind.ENDED, EventKind.NO_IMAGE)
            if event.kind is not EventKind.NO_IMAGE:
                return event
            if event.value != errno.EAGAIN:
                raise NoImage(f"no checkpoint: {os.strerror(event.value)} ({event.text})")

    def moved(self, number: int) -> bool:
        """Let the program go on from its image, in a file of NUMBER's; return whether it had not ended before."""
        assert self.process
        self.host.vacate(self.session)
        if self.asked_for_image().kind is EventKind.ENDED:
            return False
        self.expect(EventKind.ENDED)
        assert self.process.wait(DEADLINE_S) == MOVED
        image = self.folder / f"image.{number % 2}"
        self.image.replace(image)
        self.start(str(image))
        return True

    def live(self, links: int, pause_s: float) -> Life:
        """Run to the end with at most LINKS checkpoints, about PAUSE_S apart."""
        self.start(runtime_path())
        assert self.process
        done = 0
        while True:
            if self.expect(EventKind.STARTED, EventKind.ENDED).kind is EventKind.ENDED:
                break
            pause = self.random.random() * 2 * pause_s if done < links else DEADLINE_S
            if self.until(EventKind.ENDED, within_s=pause):
                break
            if done >= links:
                raise Stuck("the program did not end")
            if not self.moved(done):
                break
            done += 1
        status = self.process.wait(DEADLINE_S)
        output = (self.folder / "output").read_bytes()
        os.close(self.output)
        return Life(status, done, output)


def moved_life(command: Sequence[str], folder: Path, seed: int, links: int, pause_s: float, least: int = 1) -> Life:
    """Return COMMAND's life with up to LINKS moves, LEAST of them for certain.

    A program that was faster than its first checkpoints is run again with less time before them.
    """
    for pause in (pause_s, pause_s / 4, 0.0, 0.0, 0.0):
        life = Chain(command, folder, seed).live(links, pause)
        if life.links >= least:
            return life
    raise AssertionError(f"the program was always faster than {least} checkpoint(s)")
