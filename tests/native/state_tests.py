"""Runs the public state tests of CRIU (``test/zdtm/static``) in the standard universe, and says what became of each.

``python -m tests.native.state_tests SOURCES``             all of them; SOURCES is a checkout, or its git directory
``python -m tests.native.state_tests SOURCES fifo pipe00`` these only
``python -m tests.native.state_tests --help``              everything else

Each of these programs makes a state (open files, pipes, locks, mappings, signals), waits, and after SIGTERM checks
whether the state is what it was.  They are built with their own library in a folder of their own, and nothing of them
is kept here.  Each runs as an ordinary user (``--user`` if root starts this), natively first; what does not hold there
(because it needs root, another kernel, a device) says nothing about this pool and is left out.  Then it runs in the
standard universe, is moved while it waits (a checkpoint, and a restart from it), and gives its own verdict:

============  ==========================================================================================
``passes``    the state was the same after the move
``refused``   it could not make its state: the text tells which call was refused, before anything counted
``no image``  no checkpoint could be taken, with the reason; the program went on, and its state is right
``differs``   it fails in the same way if it is not moved: a call that it looks with is refused, or works otherwise here
``wrong``     anything else; there must be none
============  ==========================================================================================

The table is written to ``--table``, and the status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import json
import os
import pwd
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import psutil

from condor_actors.machine.native.programs import runtime_path
from condor_actors.machine.native.shadow import EventKind, ShadowHost
from condor_actors.messages.codes import CHECKPOINT_SIGNAL
from tests.harness.verdicts import figures, page, put
from tests.native.chain import Chain, Stuck, end_of_test

ROOT = Path(__file__).parents[2]
ATTENDANT = Path(__file__).parent / "programs" / "state_test_attendant.c"
TABLE = ROOT / "build" / "state_tests.md"
START_S, END_S, LIMIT_S, IMAGE_S = 30.0, 40.0, 120, 12.0
SETTLE_S = 0.1
"""From the moment when a test says that its state is made until it waits."""
PASSES, REFUSED, NO_IMAGE, DIFFERS, WRONG = "passes", "refused", "no image", "differs", "wrong"
NOT_HERE = "does not hold natively"
READY = b"ready\n"
MOST_TEXT = 200
PR_SET_CHILD_SUBREAPER = 36


@attrs.frozen
class Verdict:
    """What became of one test, and the text that says why."""

    name: str
    what: str
    why: str = ""


class NotStarted(Exception):
    """The test could not make its state."""


def ordinary(user: str) -> dict[str, Any]:
    """Return the words with which a subprocess runs as an ordinary user: as USER, if root starts this."""
    if os.getuid() != 0:
        return {}
    known = pwd.getpwnam(user)
    if known.pw_uid == 0:
        raise SystemExit(f"--user {user}: the tests run as an ordinary user; name one")
    return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}


def unpacked(sources: Path, folder: Path, user: Mapping[str, Any]) -> Path:
    """Copy the tests of SOURCES, a checkout or a git directory, to FOLDER; return where they are."""
    if (sources / "test" / "zdtm" / "static").is_dir():
        words = ["tar", "-c", "-C", str(sources), "test/zdtm"]
    else:
        words = ["git", f"--git-dir={sources}", "archive", "HEAD", "test/zdtm"]
    place = folder / "test" / "zdtm"
    if not place.exists():
        archive = subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True, **user)
    return place


def built(place: Path, names: Sequence[str], jobs: int, user: Mapping[str, Any]) -> dict[str, list[str]]:
    """Build NAMES (none: all tests) in PLACE; return the command of each that could be built."""
    words = ["make", f"-j{jobs}", "USERCFLAGS=-Wno-error", "-k", "-s"]
    subprocess.run([*words, "-C", str(place / "lib"), "all"], check=True, capture_output=True, **user)
    static = place / "static"
    show = ["make", "-s", "-C", str(static), "--eval=show-tests:;@echo $(TST)", "show-tests"]
    listed = subprocess.run(show, capture_output=True, text=True, check=True, **user).stdout.splitlines()[-1].split()
    wanted = [name for name in dict.fromkeys(listed) if not names or name in names]
    with open(static.parents[2] / "build.log", "wb") as log:
        subprocess.run([*words, "-C", str(static), *wanted], stdout=log, stderr=log, check=False, **user)
    wanted = [name for name in wanted if os.access(static / name, os.X_OK)]
    dry = ["make", "-n", "-C", str(static), "--no-print-directory", *(f"{name}.pid" for name in wanted)]
    lines = subprocess.run(dry, capture_output=True, text=True, check=False, **user).stdout.splitlines()
    found = {words[0].removeprefix("./"): words for line in lines if (words := line.split()) and "--pidfile=" in line}
    return {name: found[name] for name in wanted if name in found}


def _last_error(folder: Path, name: str, output: bytes) -> str:
    """Return what the test in FOLDER wrote last about an error."""
    text = output.decode(errors="replace")
    for path in (folder / f"{name}.out", folder / f"{name}.out.inprogress"):
        if path.exists():
            text += path.read_text(errors="replace")
    lines = [line for line in text.replace(READY.decode(), "").splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"ERR|FAIL|SKIP", line)] or lines
    return re.sub(r"^[\d:. ]+", "", told[0])[:MOST_TEXT] if told else ""


class _Scene:
    """One run of a test in a folder of its own: what its attendant says, and how it is told to go on."""

    def __init__(self, static: Path, name: str, command: Sequence[str], attendant: Path, folder: Path) -> None:
        folder.mkdir()
        shutil.copy2(static / name, folder / name)
        self.folder, self.name = folder, name
        self.command = [str(attendant), f"{name}.pid", f"{name}.out", *command]
        self.go_read, self.go_write = os.pipe()
        self.said_read, self.said_write = os.pipe()
        self.said = b""

    def environment(self) -> dict[str, str]:
        """Return what the test's environment is, natively and here."""
        return {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(self.folder), "ZDTM_ROOTLESS": "1"}

    def ready(self, ended: Sequence[ShadowHost]) -> bool:
        """Whether the test said that it waits; ENDED: further descriptors that may have something to tell."""
        watched = [self.said_read, *(one.fileno() for one in ended)]
        if self.said_read in select.select(watched, [], [], START_S)[0]:
            self.said += os.read(self.said_read, 65536)
        return READY in self.said

    def go(self) -> None:
        """Have the test look at its state."""
        os.write(self.go_write, b"g")

    def right(self) -> bool:
        """Whether the test found its state as it was."""
        path = self.folder / f"{self.name}.out"
        return path.exists() and b"PASS" in path.read_bytes().split()

    def error(self) -> str:
        """Return what went wrong, in the test's words."""
        while select.select([self.said_read], [], [], 0)[0] and (more := os.read(self.said_read, 65536)):
            self.said += more
        return _last_error(self.folder, self.name, self.said)


def natively(scene: _Scene) -> str:
    """Run the test as it is; return why it does not hold, or an empty string."""
    process = subprocess.Popen(
        scene.command, cwd=scene.folder, env=scene.environment(), stdin=scene.go_read, stdout=scene.said_write,
        stderr=scene.said_write, start_new_session=True,
    )  # fmt: skip
    os.close(scene.said_write)
    try:
        if not scene.ready([]):
            return scene.error() or "it did not start"
        scene.go()
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        return "it did not end"
    return "" if scene.right() else scene.error() or "it ended without a verdict"


class _Journey(Chain):
    """The test's attendant and all that it started, in the standard universe."""

    def __init__(self, scene: _Scene, base: Path) -> None:
        super().__init__(scene.command, base, 0, scene.folder, scene.environment(), terminal=scene.go_read)
        os.close(self.output)
        self.output = scene.said_write
        self.scene = scene

    def begun(self) -> None:
        """Start the test and wait until its state is made."""
        self.start(runtime_path())
        end_s = time.monotonic() + START_S
        while not self.scene.ready([self.host]):
            if self.until(EventKind.ENDED, within_s=0.01) or time.monotonic() > end_s:
                raise NotStarted(self.scene.error() or "it did not start")
        self.until(EventKind.ENDED, within_s=SETTLE_S)

    def moved_once(self, number: int) -> str:
        """Move the family; return why no image could be taken, or an empty string."""
        assert self.process
        self.host.vacate(self.session)
        why, end_s = "", time.monotonic() + IMAGE_S
        while time.monotonic() < end_s:
            self.process.send_signal(CHECKPOINT_SIGNAL)
            event = self.expect(EventKind.IMAGE, EventKind.NO_IMAGE, EventKind.ENDED)
            if event.kind is EventKind.ENDED:
                raise Stuck(f"it ended before it was told to: {self.scene.error()}")
            if event.kind is EventKind.IMAGE:
                break
            why = f"{os.strerror(event.value)}: {event.text}"
            if event.value != errno.EAGAIN:
                return why
        else:
            return why
        self.expect(EventKind.ENDED)
        self.process.wait(END_S)
        image = self.folder / f"image.{number % 2}"
        self.image.replace(image)
        self.start(str(image))
        if self.expect(EventKind.STARTED, EventKind.ENDED).kind is EventKind.ENDED:
            raise Stuck(f"it did not come back: {self.scene.error()}")
        return ""

    def finish(self) -> str:
        """Have the test look; return why its state is not right, or an empty string."""
        assert self.process
        self.scene.go()
        if self.until(EventKind.ENDED, within_s=END_S) is None:
            return f"it did not end: {self.scene.error()}"
        self.process.wait(END_S)
        return "" if self.scene.right() else self.scene.error() or "it ended without a verdict"


def travelled(scene: _Scene, base: Path, moves: int) -> Verdict:
    """Run a test in the standard universe."""
    journey = _Journey(scene, base)
    try:
        journey.begun()
        reasons = [journey.moved_once(number) for number in range(moves)]
        why = journey.finish()
    except NotStarted as error:
        return Verdict(scene.name, REFUSED, str(error))
    except (AssertionError, subprocess.TimeoutExpired) as error:
        return Verdict(scene.name, WRONG, " ".join(f"{error}".split())[:MOST_TEXT])
    finally:
        end_of_test()
    refused = next((reason for reason in reasons if reason), "")
    return Verdict(scene.name, WRONG, why) if why else Verdict(scene.name, NO_IMAGE if refused else PASSES, refused)


def verdict(static: Path, name: str, command: Sequence[str], attendant: Path, moves: int) -> Verdict:
    """Run one test natively and in the standard universe, in this process."""
    with tempfile.TemporaryDirectory(prefix="state-test", ignore_cleanup_errors=True) as base:
        why = natively(_Scene(static, name, command, attendant, Path(base, "native")))
        if why:
            return Verdict(name, NOT_HERE, why)
        found = travelled(_Scene(static, name, command, attendant, Path(base, "moved")), Path(base), moves)
        if found.what != WRONG or not moves:
            return found
        still = travelled(_Scene(static, name, command, attendant, Path(base, "still")), Path(base), 0)
        same = still.what == WRONG and _without_numbers(still.why) == _without_numbers(found.why)
        return Verdict(name, DIFFERS if same else WRONG, found.why)


def _without_numbers(text: str) -> str:
    return re.sub(r"\d+|state-test\S*", "", text)


def _alone(given: argparse.Namespace) -> int:
    """Run one test in this process, print its verdict, and leave nobody behind."""

    def overdue(*_: object) -> None:
        raise Stuck(f"not done within {LIMIT_S} s")

    user = ordinary(given.user)
    if user:  # here, since an ordinary user may not be allowed to execute this Python
        os.setgroups(user["extra_groups"])
        os.setgid(user["group"])
        os.setuid(user["user"])
    signal.signal(signal.SIGALRM, overdue)
    signal.alarm(LIMIT_S)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    name = given.names[0]
    try:
        found = verdict(given.sources / "static", name, given.command.split(), given.attendant, given.moves)
    except Stuck as error:
        found = Verdict(name, WRONG, str(error))
    signal.alarm(0)
    print(json.dumps(attrs.asdict(found)), flush=True)
    for member in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            member.kill()
    return 0


def _apart(words: Sequence[str], name: str, command: Sequence[str]) -> Verdict:
    """Run one test in a process of its own."""
    words = [sys.executable, "-m", "tests.native.state_tests", "--command", " ".join(command), *words, name]
    done = subprocess.run(words, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return Verdict(name, WRONG, f"its runner ended with {done.returncode}: {done.stderr[-MOST_TEXT:]}")
    return Verdict(**json.loads(lines[-1]))


def table(verdicts: Sequence[Verdict]) -> str:
    """Return VERDICTS as a page: figures, then a line for each test that holds natively."""
    kinds = (PASSES, REFUSED, NO_IMAGE, DIFFERS, WRONG)
    here = [v.what for v in verdicts if v.what != NOT_HERE]
    first = f"{len(verdicts)} tests were built, {len(here)} hold natively: {figures(here, kinds)}."
    order = [WRONG, DIFFERS, NO_IMAGE, REFUSED, PASSES, NOT_HERE]
    ordered = sorted(verdicts, key=lambda v: (order.index(v.what), v.name))
    return page(first, ("test", "verdict", "reason"), [(v.name, v.what, v.why) for v in ordered])


def run_all(given: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Build in FOLDER and run what the command line asks for."""
    user = ordinary(given.user)
    folder.chmod(0o755)
    if user:
        os.chown(folder, user["user"], user["group"])
    place = unpacked(given.sources, folder, user)
    commands = built(place, given.names, given.workers, user)
    unknown = [name for name in given.names if name not in commands]
    if unknown:
        print(f"not built: {' '.join(unknown)} (see build.log in the folder of --built)", file=sys.stderr)
    attendant = folder / "attendant"
    subprocess.run(["gcc", "-O1", "-o", str(attendant), str(ATTENDANT)], check=True)
    words = ["--attendant", str(attendant), "--moves", str(given.moves), "--user", given.user, str(place)]
    verdicts = []
    with ThreadPoolExecutor(given.workers) as pool:
        for future in [pool.submit(_apart, words, name, command) for name, command in commands.items()]:
            verdicts.append(future.result())
            print(f"{verdicts[-1].name}: {verdicts[-1].what} {verdicts[-1].why}".rstrip(), flush=True)
    return verdicts


def main(words: list[str]) -> int:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        prog="state_tests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", type=Path, help="a checkout of CRIU, or its git directory")
    parser.add_argument("names", nargs="*", help="tests; without any, all of them")
    parser.add_argument("--built", type=Path, help="keep the built tests in this folder for the next run")
    parser.add_argument("--moves", type=int, default=1, help="how often each is moved (default 1; 0: not at all)")
    parser.add_argument("--table", type=Path, default=TABLE, help=f"where the table goes (default {TABLE.name})")
    parser.add_argument("--user", default="nobody", help="who runs the tests if root starts this (default nobody)")
    parser.add_argument("--workers", type=int, default=2, help="tests at a time (default 2)")
    parser.add_argument("--command", help=argparse.SUPPRESS)
    parser.add_argument("--attendant", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    if given.command:
        return _alone(given)
    with contextlib.ExitStack() as stack:
        if given.built is None:
            given.built = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="state-tests")))
        given.built.mkdir(parents=True, exist_ok=True)
        verdicts = run_all(given, given.built.absolute())
    put(table(verdicts), given.table)
    return 1 if any(v.what == WRONG for v in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
