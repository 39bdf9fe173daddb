"""What the start of a program costs, with and without contents of files that the execute machine keeps.

Usage: python benchmarks/library.py [--rounds N] [--only WORD]

Each program is started in the standard universe: the first time on a host; foreseen, as it is later, and sent; and with
what an execute machine has kept.  A relay stands between the program and its home (benchmarks/delay.c): with no delay,
with 20 ms for a round trip, and with 20 ms and 100 Mbit/s.  Round trips are what the 20 ms add, in units of 20 ms:
answers that are waited for one after the other.  Each figure is the least of N rounds.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from condor_actors.machine.native.shadow import ShadowHost
from condor_actors.machine.standard.library_cache import LibraryCache
from tests.native.library_runs import Outcome, run, warmed

HERE = Path(__file__).resolve().parent
FOLDERS = ("/usr", "/lib", "/lib64", "/bin", "/opt")
WIRES = ((0.0, 0), (20.0, 0), (20.0, 12_500_000))
"""Milliseconds of a round trip, and bytes in a second (0: as many as there can be)."""
PROGRAMS = (
    ("python3 -c pass", ["/usr/bin/python3", "-c", "pass"]),
    ("python3, six modules", ["/usr/bin/python3", "-c", "import json, decimal, asyncio, email, sqlite3, ssl"]),
    ("perl -e 1", ["/usr/bin/perl", "-MPOSIX", "-e", "1"]),
    ("Rscript -e 1", ["/usr/bin/Rscript", "-e", "1"]),
    ("java -version", ["/usr/bin/java", "-version"]),
)


def relayed(program: str, delay_ms: float, rate: int, far: socket.socket) -> socket.socket:
    """The end of a wire whose other end is FAR."""
    if not delay_ms:
        return far
    near, end = socket.socketpair()
    words = [program, str(far.fileno()), str(near.fileno()), str(int(delay_ms * 500)), str(rate)]
    subprocess.Popen(words, pass_fds=(far.fileno(), near.fileno()))
    far.close()
    near.close()
    return end


def started(command: Sequence[str], cache: LibraryCache | None, folder: Path, relay: str, wire: tuple[float, int],
            rounds: int) -> tuple[float, Outcome]:
    """The seconds and the cost of the quickest of ROUNDS starts."""
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        outcome = run(ShadowHost(), cache, command, folder, FOLDERS, wire=partial(relayed, relay, *wire))
        found.append((time.perf_counter() - began, outcome))
    return min(found, key=lambda each: each[0])


def measure(name: str, command: Sequence[str], folder: Path, relay: str, rounds: int) -> None:
    """Print a row for each way of starting a program."""
    cache = LibraryCache(folder / "cache", 1 << 30)
    script = "import sys; sys.path.insert(0, sys.argv[1]); from benchmarks.library import first; first(sys.argv[2:])"
    first = []
    for number in range(len(WIRES)):  # each in a process that has not seen the program yet
        done = subprocess.run([sys.executable, "-c", script, str(HERE.parent), relay, str(number), *command],
                              capture_output=True, check=True, text=True)
        first.append(done.stdout.split())
    row(name, "first on a host", [float(each[0]) for each in first], int(first[0][1]), int(first[0][2]))
    started(command, None, folder, relay, WIRES[0], 3)  # what was learned of another program is made anew
    for how, kept in (("later, sent", None), ("later, kept there", cache)):
        if kept is not None:
            warmed(ShadowHost(), kept, command, folder, FOLDERS)
        found = [started(command, kept, folder, relay, wire, rounds) for wire in WIRES]
        cost = found[-1][1].statistics
        row(name, how, [each[0] for each in found], cost.calls, cost.bytes_out)


def first(words: Sequence[str]) -> None:
    """In a process of its own: print seconds, calls and bytes of a program's first start."""
    relay, number, *command = words
    with tempfile.TemporaryDirectory() as folder:
        took_s, found = started(command, None, Path(folder), relay, WIRES[int(number)], 1)
    print(took_s, found.statistics.calls, found.statistics.bytes_out)


def row(name: str, how: str, took_s: Sequence[float], calls: int, sent: int) -> None:
    """Print one."""
    trips = (took_s[1] - took_s[0]) / (WIRES[1][0] / 1e3)
    times = " | ".join(f"{each * 1e3:,.0f}" for each in took_s)
    print(f"| {name} | {how} | {calls} | {trips:.0f} | {sent / 1e6:.2f} | {times} |", flush=True)


def main() -> None:
    """Measure all that are installed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="programs whose name has this word")
    options = parser.parse_args()
    print("| program | start | calls | round trips | MB | ms | ms, 20 ms away | ms, 20 ms away, 100 Mbit/s |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        relay = str(Path(folder) / "delay")
        subprocess.run(["gcc", "-O2", "-w", "-o", relay, str(HERE / "delay.c"), "-lpthread"], check=True)
        for name, command in PROGRAMS:
            if shutil.which(command[0]) and options.only in name:
                measure(name, command, Path(folder), relay, options.rounds)


if __name__ == "__main__":
    main()
