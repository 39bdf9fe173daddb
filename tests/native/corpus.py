"""The corpus: real programs, each run natively, remotely, and through checkpoint, kill and restart at random moments.

``python -m tests.native.corpus``            every program that is installed; rewrites docs/corpus.md
``python -m tests.native.corpus NAME...``    some; a word that several names contain means them all
``python -m tests.native.corpus --packages`` what to install for all of them

The programs are data, in ``corpus/*.toml``:

===========  ============================================================================================
``name``     unique
``language`` or field of use
``package``  of Debian's that has it
``needs``    commands (or ``python3:MODULE``) without which it is skipped; by default the command itself
``files``    name: content, made before anything runs
``setup``    shell commands, run natively beforehand (compilers, inputs)
``command``  what is compared
``drop``     regular expressions: what differs between two native runs is taken out of the standard output
``ignore``   files that are too large to be looked at
``env``      more environment
``core``     part of ``make test``
``reason``   why it does not work yet: a difference is expected, and listed
===========  ============================================================================================
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

import attrs

from condor_actors.machine.native_programs import runtime_path
from condor_actors.machine.native_shadow import CHECKPOINT_SIGNAL, EventKind

from .chain import DEADLINE_S, MOVED, Chain, Stuck

HERE = Path(__file__).parent / "corpus"
PAGE = Path(__file__).parents[2] / "docs" / "corpus.md"
SEARCH = "/usr/bin:/bin:/usr/local/bin:/usr/games"
WANTED_LINKS = 5
MOST_CHAINS = 12
MOST_S = 300.0
PATIENCE_S = 900.0
FIRST_SEED = 1988


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
        command = [path or program.command[0], *program.command[1:]]
        super().__init__(command, base, seed, work=work, environment=program.environment(work))
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
            if known in ignore:
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
        self.prepare(program)
        native, native_s = self.native(program)
        result = Result(program=program, native_s=native_s, seed=seed)
        again = native if quick else self.native(program)[0]
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


def _cell(result: Result) -> str:
    if result.absent:
        return f"not run: {result.absent}" if " " in result.absent else f"not installed ({result.absent})"
    if result.remote:
        return "does not run: " + (result.program.reason or result.remote)
    if result.moved:
        return "runs; does not move: " + (result.program.reason or result.moved)
    if not result.links:
        return "same; never one process long enough to be moved"
    return "same"


def machine() -> str:
    """Return what the results were seen on."""
    library = os.confstr("CS_GNU_LIBC_VERSION") or "another C library"
    return f"{os.cpu_count()} cores, kernel {os.uname().release.split('-')[0]}, {library}"


def page(results: Sequence[Result], took_s: float) -> str:
    """Return the documentation page for RESULTS of a run that took TOOK_S."""
    good = [r for r in results if r.good]
    moved = [r for r in good if r.links]
    lines = [
        "# Programs that were seen to move",
        "",
        "Made by `make corpus`, which installs Debian's packages and runs `python -m tests.native.corpus`. Each",
        "program runs natively (twice), under the runtime, and then through checkpoints at random moments: it is",
        "killed at each and continued from the image. *Same* means: standard output, exit status and every file that",
        "it wrote, byte for byte. A checkpoint that comes while a program has helpers (children) waits until it is",
        "one process again; *waited* counts how often one was put off. The seconds are of a machine that had other",
        "work, and say only that a program is not too short to be moved. The moments come from the *seed*:",
        "`CONDOR_CORPUS_SEED=N python -m tests.native.corpus NAME` tries the same ones again.",
        "",
        f"Run of {time.strftime('%F', time.gmtime())}, {took_s / 60:.0f} minutes; {machine()}.",
        "",
        f"{len(good)} programs of {len([r for r in results if not r.absent])} in "
        f"{len({r.program.language for r in good})} languages and fields do the same; {len(moved)} of them were moved, "
        f"{sum(r.links for r in moved)} times in all.",
        "",
        "| program | language or field | package | native s | remote s | moves | waited | seed | result |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for r in sorted(results, key=lambda r: (r.program.language.lower(), r.program.name.lower())):
        numbers = f"{r.native_s:.2f} | {r.remote_s:.2f} | {r.links} | {r.deferred} | {r.seed}"
        text = " ".join(_cell(r).replace("|", "\\|").split())
        lines.append(
            f"| {r.program.name} | {r.program.language} | {r.program.package} "
            f"| {numbers if not r.absent else '| | | |'} | {text} |"
        )
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> int:
    """Do what the command line asks for; return the number of programs that failed without a known reason."""
    corpus = programs()
    if list(words) == ["--packages"]:
        print(" ".join(sorted({p.package for p in corpus})))
        return 0
    chosen = [p for p in corpus if not words or any(word.lower() in p.name.lower() for word in words)]
    results = []
    with tempfile.TemporaryDirectory(prefix="corpus") as folder:
        bench = Bench(Path(folder))
        began_s = time.monotonic()
        first = int(os.environ.get("CONDOR_CORPUS_SEED", FIRST_SEED))
        for number, program in enumerate(chosen):
            try:
                result = bench.prove(program, seed=first + MOST_CHAINS * number)
            except subprocess.CalledProcessError as error:
                result = Result(program=program, absent=f"setup: {error.cmd}: {error.stderr.decode()[-300:]}")
            except subprocess.TimeoutExpired:
                result = Result(program=program, absent="takes too long natively")
            results.append(result)
            if not words:
                PAGE.write_text(page(results, time.monotonic() - began_s))
            text = " ".join(_cell(result).split())[:300]
            print(f"{program.name}: {text} ({result.native_s:.2f} s, {result.remote_s:.2f} s, "
                  f"{result.links} links, {result.deferred} waited, seed {result.seed})", flush=True)  # fmt: skip
    return len([r for r in results if not r.good and not r.absent and not r.program.reason])


if __name__ == "__main__":
    raise SystemExit(min(main(sys.argv[1:]), 1))
