"""The corpus: real programs, each run natively, remotely, and through checkpoint, kill and restart at random moments.

``python -m tests.native.corpus_run`` runs all of it. The programs are data, in ``corpus/*.toml``:

===========  ============================================================================================
``name``     unique
``language`` or field of use
``package``  of Debian's that has it
``needs``    commands (or ``python3:MODULE``) without which it is skipped; by default the command itself
``files``    name: content, made before anything runs
``setup``    shell commands, run natively beforehand (compilers, inputs)
``command``  what is compared
``drop``     regular expressions: what differs between two native runs is taken out of the standard output
``ignore``   files (patterns) that are too large to be looked at, or nobody's business
``env``      more environment
``note``     for the page: what is not compared, and why
``core``     part of ``make test``
``reason``   why it does not work yet: a difference is expected, and listed
===========  ============================================================================================
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import os
import re
import shutil
import stat
import subprocess
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.native.chain import DEADLINE_S, MOVED, Chain, Stuck

HERE = Path(__file__).parent / "corpus"
SEARCH = "/usr/bin:/bin:/usr/local/bin:/usr/games"
WANTED_LINKS = 5
MOST_CHAINS = 12
MOST_S = 300.0
PATIENCE_S = 900.0


@attrs.frozen(kw_only=True)
class Program:
    """One entry of the corpus; see the module's table."""

    name: str
    language: str
    package: str
    command: list[str]
    needs: list[str] = attrs.Factory(lambda self: [self.command[0]], takes_self=True)
    files: dict[str, str] = attrs.field(factory=dict)
    setup: list[str] = attrs.field(factory=list)
    drop: list[str] = attrs.field(factory=list)
    ignore: list[str] = attrs.field(factory=list)
    env: dict[str, str] = attrs.field(factory=dict)
    note: str = ""
    core: bool = False
    reason: str = ""

    def missing(self) -> str:
        """Return what is not installed, or an empty string."""
        for word in self.needs:
            command, _, module = word.partition(":")
            if command == "python3" and module:
                code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
                if subprocess.run(["python3", "-c", code], env=self.environment(Path("/")), check=False).returncode:
                    return module
            elif not word.startswith("./") and not shutil.which(module or command, path=SEARCH):
                return module or command
        return ""

    def environment(self, folder: Path) -> dict[str, str]:
        """Return the environment, the same for every run."""
        fixed = {"PATH": SEARCH, "LC_ALL": "C.UTF-8", "HOME": str(folder), "TMPDIR": str(folder), "TZ": "UTC"}
        return {**fixed, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2", **self.env}


@attrs.frozen
class Outcome:
    """What can be compared of a run: status, output, and every file (mode and digest) by its path."""

    status: int
    output: bytes
    files: dict[str, tuple[int, str]]

    def differs(self, other: Outcome) -> str:
        """Return in a few words what is not as in OTHER, or an empty string."""
        if self.status != other.status:
            return f"status {self.status} instead of {other.status}: {self.output[-200:].decode(errors='replace')}"
        if self.output != other.output:
            return f"output: {self.output[-200:].decode(errors='replace')}"
        for name in sorted(self.files.keys() | other.files.keys()):
            if self.files.get(name) != other.files.get(name):
                return f"file {name}"
        return ""


@attrs.frozen(kw_only=True)
class Result:
    """What became of one program of the corpus."""

    program: Program
    native_s: float = 0.0
    remote_s: float = 0.0
    links: int = 0
    deferred: int = 0
    """Checkpoints that had to wait for helpers."""
    image_bytes: int = 0
    seed: int = 0
    """Of the random moments."""
    absent: str = ""
    remote: str = ""
    """What differed in the remote run; empty if nothing did."""
    moved: str = ""
    """What differed after checkpoints and restarts."""

    @property
    def good(self) -> bool:
        """Whether nothing differed."""
        return not (self.absent or self.remote or self.moved)


def programs() -> list[Program]:
    """Return the corpus."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        found += [Program(**entry) for entry in tomllib.loads(path.read_text())["program"]]
    return found


class _Journey(Chain):
    """A chain in a folder that holds nothing but the program's files, with patience for helpers."""

    def __init__(self, program: Program, base: Path, seed: int) -> None:
        work = base / "work"
        path = shutil.which(program.command[0], path=SEARCH) if "/" not in program.command[0] else None
        super().__init__(program.command, base, seed, work=work, environment=program.environment(work))
        self.program = path or program.command[0]
        self.deferred = 0
        self.image_bytes = 0

    def travel(self, links: int, pause_s: float) -> tuple[int, int]:
        """Run to the end with at most LINKS checkpoints; return the status and how many there were."""
        self.start(runtime_path())
        done = 0
        assert self.process
        while True:
            if self.expect(EventKind.STARTED, EventKind.ENDED).kind is EventKind.ENDED:
                break
            if not self._move_on(done < links, pause_s):
                break
            self.expect(EventKind.ENDED)
            status = self.process.wait(DEADLINE_S)
            if status != MOVED:
                raise Stuck(f"the runtime left with {status} instead of {MOVED}")
            done += 1
            image = self.folder / f"image.{done % 2}"
            self.image_bytes = max(self.image_bytes, self.image.stat().st_size)
            self.image.replace(image)
            shutil.rmtree(self.folder / f"image.{done % 2}.undo", ignore_errors=True)
            self.start(str(image))
        status = self.process.wait(DEADLINE_S)
        os.close(self.output)
        return status, done

    def _move_on(self, wanted: bool, pause_s: float) -> bool:
        """Wait a random while and take a checkpoint; False when the program ended instead."""
        assert self.process
        pause = self.random.random() * 2 * pause_s if wanted else PATIENCE_S
        vacated = False
        while not self.until(EventKind.ENDED, within_s=pause):
            if not wanted:
                raise Stuck("the program did not end")
            if not vacated:
                self.host.vacate(self.session)
                vacated = True
            self.process.send_signal(CHECKPOINT_SIGNAL)
            event = self.expect(EventKind.IMAGE, EventKind.NO_IMAGE, EventKind.ENDED)
            if event.kind is EventKind.IMAGE:
                return True
            if event.kind is EventKind.ENDED:
                return False
            if event.value != errno.EAGAIN:
                raise Stuck(f"no checkpoint: {os.strerror(event.value)} ({event.text})")
            self.deferred += 1
            pause = self.random.random() * 0.05
        return False


def _contents(folder: Path, ignore: Sequence[str]) -> dict[str, tuple[int, str]]:
    found = {}
    for place, _folders, names in os.walk(folder):
        for name in names:
            path = Path(place) / name
            known = str(path.relative_to(folder))
            if any(fnmatch.fnmatch(known, pattern) for pattern in ignore):
                continue
            mode = path.lstat().st_mode
            content = path.read_bytes() if stat.S_ISREG(mode) else os.fsencode(os.readlink(path))
            found[known] = (mode, hashlib.sha256(content).hexdigest())
    return found


class Bench:
    """Runs programs of the corpus in a scratch folder, always under the same path."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.work = base / "work"
        self.prepared = base / "prepared"

    def prepare(self, program: Program) -> None:
        """Make the program's files and run its setup."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.rmtree(self.prepared, ignore_errors=True)
        self.work.mkdir()
        for name, content in program.files.items():
            (self.work / name).write_text(content)
        for line in program.setup:
            subprocess.run(
                line, shell=True, cwd=self.work, env=program.environment(self.work), check=True, capture_output=True
            )
        self.work.rename(self.prepared)

    def _fresh(self) -> None:
        shutil.rmtree(self.work, ignore_errors=True)
        subprocess.run(["cp", "-a", "--reflink=auto", str(self.prepared), str(self.work)], check=True)

    def _outcome(self, program: Program, status: int, output: bytes) -> Outcome:
        for pattern in program.drop:
            output = re.sub(pattern.encode(), b"", output)
        return Outcome(status, output, _contents(self.work, program.ignore))

    def native(self, program: Program) -> tuple[Outcome, float]:
        """Run PROGRAM as it is; return what it did and the seconds it took."""
        self._fresh()
        path = self.base / "output"
        began_s = time.monotonic()
        with open(path, "wb") as output:
            done = subprocess.run(
                program.command, cwd=self.work, env=program.environment(self.work), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, check=False, timeout=PATIENCE_S,
                executable=shutil.which(program.command[0], path=SEARCH) if "/" not in program.command[0] else None,
            )  # fmt: skip
        took_s = time.monotonic() - began_s
        return self._outcome(program, done.returncode, path.read_bytes()), took_s

    def travelled(self, program: Program, seed: int, links: int, pause_s: float) -> tuple[Outcome, _Journey, int]:
        """Run PROGRAM under the runtime with at most LINKS checkpoints, about PAUSE_S apart."""
        self._fresh()
        for old in self.base.glob("image*"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        journey = _Journey(program, self.base, seed)
        try:
            status, done = journey.travel(links, pause_s)
        finally:
            if journey.process and journey.process.poll() is None:
                journey.process.kill()
                journey.process.wait()
        return self._outcome(program, status, (self.base / "output").read_bytes()), journey, done

    def prove(self, program: Program, seed: int = 1, quick: bool = False) -> Result:
        """Run PROGRAM in all three ways and compare; QUICK: one native run, one chain."""
        absent = program.missing()
        if absent:
            return Result(program=program, absent=absent)
        try:
            self.prepare(program)
            native, native_s = self.native(program)
            again = native if quick else self.native(program)[0]
        except subprocess.CalledProcessError as error:
            return Result(program=program, absent=f"setup: {error.cmd}: {error.stderr.decode()[-300:]}")
        except (Stuck, subprocess.TimeoutExpired):
            return Result(program=program, absent="takes too long natively")
        result = Result(program=program, native_s=native_s, seed=seed)
        if again.differs(native):
            return attrs.evolve(result, remote=f"two native runs differ: {again.differs(native)}")
        try:
            began_s = time.monotonic()
            remote, _, _ = self.travelled(program, seed, 0, 0)
            result = attrs.evolve(result, remote_s=time.monotonic() - began_s, remote=remote.differs(native))
        except (Stuck, AssertionError, subprocess.TimeoutExpired) as error:
            return attrs.evolve(result, remote=str(error))
        if result.remote:
            return result
        return self._prove_moves(result, native, seed, 1 if quick else MOST_CHAINS)

    def _prove_moves(self, result: Result, native: Outcome, seed: int, most: int) -> Result:
        pause_s = max(0.01, result.remote_s / (WANTED_LINKS + 2))
        end_s = time.monotonic() + MOST_S
        for number in range(most):
            if number and time.monotonic() > end_s:
                break
            try:
                moved, journey, links = self.travelled(result.program, seed + number, WANTED_LINKS, pause_s)
            except (Stuck, AssertionError, subprocess.TimeoutExpired) as error:
                return attrs.evolve(result, moved=str(error))
            result = attrs.evolve(
                result,
                links=result.links + links,
                deferred=result.deferred + journey.deferred,
                image_bytes=max(result.image_bytes, journey.image_bytes),
                moved=moved.differs(native),
            )
            if result.moved or result.links >= WANTED_LINKS:
                break
            pause_s = max(0.005, pause_s / 2)  # it was faster, or seldom alone: look more often
        return result
