#!/usr/bin/env python3
"""A personal pool from nothing to results: what ``make demo`` runs.

Starts a pool of separate daemons on loopback, submits the four examples, kills the schedd in the middle (nothing is
lost), waits, and leaves pictures and tables in the output folder.  Only the ``condor_*`` tools are used, as a user
would use them.

Usage: demo.py [--dir DIR] [--slots N] [--keep]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import owner
import page_pictures

HERE = Path(__file__).resolve().parent
BIN = Path(sys.prefix) / "bin"
STATES = {1: "idle", 2: "running", 3: "removed", 4: "completed", 5: "held", 6: "transferring", 7: "suspended"}
WATCH_S = 600
TERMINAL = sys.stdout.isatty()


class Failure(Exception):
    """A step of the demo went wrong; its text says which and what to look at."""


def say(text: str = "") -> None:
    """A line of the story."""
    print(text, flush=True)


def run(command: list[str], *, cwd: Path | None = None, quiet: bool = False) -> str:
    """Run a tool of the pool, show the command line and what it prints; its standard output is returned."""
    if not quiet:
        say(f"$ {' '.join(command)}")
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]], cwd=cwd, capture_output=True, text=True, check=False
    )
    if not quiet:
        for line in (done.stdout + done.stderr).splitlines():
            say(f"  {line}")
    if done.returncode != 0:
        raise Failure(f"{' '.join(command)} exited with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Pool:
    """The personal pool of the demo; the environment of this process points the tools at it."""

    def __init__(self, folder: Path, slots: int, config: Path | None = None) -> None:
        self.folder = folder
        self.slots = slots
        self.extra = ["--config", str(config)] if config is not None else []

    def __enter__(self) -> Pool:
        run(["condor_personal", "start", "--dir", str(self.folder), "--slots", str(self.slots), *self.extra])
        for line in run(["condor_personal", "env", "--dir", str(self.folder)], quiet=True).splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            os.environ[name.strip()] = value.strip().strip(";").strip("'\"")
        return self

    @property
    def page(self) -> str:
        """The address of its page."""
        return (self.folder / "run" / "web.url").read_text().strip()

    def __exit__(self, *failure: object) -> None:
        run(["condor_personal", "stop", "--dir", str(self.folder)])


def submit(name: str, out: Path, *arguments: str) -> int:
    """Submit one example; the cluster number is returned."""
    folder = HERE / name
    text = run(["condor_submit", f"{name}.sub", f"OUT={out}", *arguments], cwd=folder)
    return int(text.rsplit("cluster ", 1)[1].rstrip(". \n"))


def queue(clusters: list[int]) -> list[dict[str, int]] | None:
    """The jobs of these clusters that are still in the queue; None while no schedd answers."""
    command = [str(BIN / "condor_q"), *map(str, clusters), "-json", "-attributes", "ClusterId,JobStatus"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return None
    jobs: list[dict[str, int]] = json.loads(done.stdout) if done.stdout.strip() else []
    return jobs


def watch(clusters: list[int]) -> Counter[str]:
    """Show how many jobs are in which state until none is left to run; the last counts are returned."""
    width = 0
    last = ""
    deadline = time.monotonic() + WATCH_S
    while time.monotonic() < deadline:
        jobs = queue(clusters)
        states = Counter(STATES.get(job["JobStatus"], "other") for job in jobs or [])
        counts = ", ".join(f"{n} {state}" for state, n in sorted(states.items())) or "nothing"
        line = "  (the schedd is starting again)" if jobs is None else f"  in the queue: {counts}"
        if TERMINAL:
            print("\r" + line.ljust(width), end="", flush=True)
            width = len(line)
        elif line != last:
            say(line)
        last = line
        if jobs is not None and not set(states) - {"held", "completed", "removed"}:
            if TERMINAL:
                print()
            return states
        time.sleep(0.25)  # a display's refresh; nothing waits for it
    raise Failure(f"the jobs did not end within {WATCH_S} s")


def kill_schedd(folder: Path) -> None:
    """kill -9 the schedd: the running jobs live on in their shadow host, the queue on disk."""
    for line in run(["condor_who", "-daemons"], quiet=True).splitlines():
        words = line.split()
        if words and words[0].lower() == "schedd":
            pid = next(int(word) for word in words[1:] if word.isdigit())
            os.kill(pid, signal.SIGKILL)
            say(f"$ kill -9 {pid}   # the schedd; its master restarts it, the queue is on disk, the jobs run on")
            return
    raise Failure("condor_who -daemons names no schedd")


def results(out: Path) -> None:
    """Put the results together and show them."""
    strips = sorted(out.glob("strip-*.ppm"))
    subprocess.run([sys.executable, str(HERE / "picture" / "assemble.py"), str(out / "picture.png"), *map(str, strips)],
                   check=True)
    hits = [tuple(map(int, path.read_text().split())) for path in sorted(out.glob("pi-*.out"))]
    inside, darts = sum(h for h, _ in hits), sum(d for _, d in hits)
    say(f"pi from {darts:,} darts of {len(hits)} jobs: {4 * inside / darts:.4f}")
    numbers = sorted(map(int, (out / "numbers.txt").read_text().split()))
    same = [int(line) for line in (out / "sorted-ascending.txt").read_text().split()] == numbers
    say(f"sorted-ascending.txt: {len(numbers):,} numbers, {'in order' if same else 'WRONG'}")
    if not same:
        raise Failure("the sorted file is not the input in order")
    text = out / "words-GPL-3.txt"
    if text.exists():
        say("most frequent long words of GPL-3: " + " ".join(line.split()[1] for line in text.read_text().splitlines()))


def left_over(folder: Path) -> list[str]:
    """Processes that still carry the pool's folder in their command line or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            text = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if os.fsencode(f"{folder}/") in text:
            found.append(f"{entry.name} {(entry / 'cmdline').read_bytes().replace(bytes(1), b' ').decode()}")
    return found


def demo(folder: Path, slots: int) -> None:
    """The story itself."""
    out = folder / "results"
    if (folder / "pool").exists():  # of an earlier demo that was interrupted
        run(["condor_personal", "stop", "--dir", str(folder / "pool")], quiet=True)
        shutil.rmtree(folder / "pool")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    generator = random.Random(1988)
    (out / "numbers.txt").write_text("\n".join(str(generator.randrange(10**9)) for _ in range(200_000)) + "\n")
    started = time.monotonic()
    with Pool(folder / "pool", slots) as pool:
        run(["condor_status"])
        clusters = [submit(name, out) for name in ("picture", "words", "sort", "pi")]
        run(["condor_q"])
        kill_schedd(pool.folder)
        states = watch(clusters)
        if states:
            run(["condor_q", "-held", *map(str, clusters)])
            raise Failure(f"jobs are left in the queue: {dict(states)}")
        run(["condor_history", *map(str, clusters), "-limit", "10"])
        total = len(run(["condor_history", *map(str, clusters), "-af", "ProcId"], quiet=True).split())
        results(out)
        run(["condor_userprio"])
        address = pool.page
        pictures = page_pictures.take(address, out, clusters[0])
    say()
    say(f"{total} jobs of 4 clusters completed in {time.monotonic() - started:.0f} s, the schedd killed in between.")
    say(f"Look at {out / 'picture.png'} and the other files in {out}.")
    if pictures:
        say(f"The pool's page, as a browser here showed it: {' and '.join(str(each) for each in pictures)}.")
    say(f"The page itself was at {address}; condor_personal start says where the page of your own pool is.")


def second_act(folder: Path) -> None:
    """A program that makes way for an owner and goes on elsewhere."""
    python = owner.find_python()
    if python is None:
        say("No Python here that every user can read: the second act, checkpoints, is left out.")
        return
    out, keyboard, config = folder / "digits", folder / "keyboard", folder / "owner.config"
    if (folder / "pool2").exists():
        run(["condor_personal", "stop", "--dir", str(folder / "pool2")], quiet=True)
        shutil.rmtree(folder / "pool2")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    keyboard.touch()
    os.utime(keyboard, (1, 1))
    config.write_text(owner.POLICY.format(keyboard=keyboard))
    say("\nThe second act: a program moves. Nothing is transferred for it, it uses its files where they are.")
    with Pool(folder / "pool2", 2, config):
        try:
            owner.owner_returns(out, keyboard, python, BIN)
        except (OSError, ValueError, RuntimeError, subprocess.CalledProcessError) as error:
            raise Failure(str(error)) from error
        run(["condor_history", "-limit", "1", "-af:h", "RemoteUserCpu", "NumCkpts", "NumRestarts",
             "NumRemoteSysCalls", "Leverage"])


def main() -> int:
    """Run the demo; 0 when everything came out right and no process is left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dir", type=Path, default=Path(".demo"), help="folder for the pool and its results")
    parser.add_argument("--slots", type=int, default=4, help="slots of the personal pool (default 4)")
    options = parser.parse_args()
    folder = options.dir.resolve()
    for name in [name for name in os.environ if name.upper().startswith(("_CONDOR_", "CONDOR_"))]:
        del os.environ[name]  # the demo's pool only, whatever the caller's shell points at
    try:
        demo(folder, options.slots)
        second_act(folder)
    except Failure as failure:
        say(f"demo: {failure}")
        say(f"The daemons' logs are in {folder / 'pool' / 'log'}.")
        return 1
    lost = left_over(folder / "pool") + left_over(folder / "pool2")
    if lost:
        say("demo: processes are left behind:\n" + "\n".join(lost))
        return 1
    say("No process is left behind.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
