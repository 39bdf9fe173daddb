"""What one user's questions cost another: ``python -m benchmarks.flood``.

A personal pool with a queue; one user asks a thousand questions a second (``QueryJobs`` of the whole queue and
``Ping``), over several links and from several processes, without waiting for one answer before the next question,
and reads every answer; another asks one question after the other.  Reported is the
ratio of the other's median while the flood goes on, and right after it, to her median before, in one run.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from condor_actors.messages.admin import Ping
from condor_actors.messages.queue import QueryJobs
from condor_actors.wire.blocking import connect

RATE = 1_000
FLOODERS = 4
SECONDS = 8.0
OTHER_UID, FLOOD_UID = 12_001, 12_002


def medians_ms(node: str, seconds: float) -> list[float]:
    """How long each of a user's questions took, one after the other, in milliseconds."""
    taken = []
    end_s = time.monotonic() + seconds
    with connect(node) as client:
        while time.monotonic() < end_s:
            began_s = time.perf_counter()
            client.ask("schedd", QueryJobs(limit=1))
            taken.append((time.perf_counter() - began_s) * 1e3)
            time.sleep(0.005)
    return taken


def flood(node: str, rate: float, seconds: float) -> int:
    """Ask at a rate over one link, many on their way at a time; how many were answered.

    What is refused as busy counts as well.  A daemon that answers more slowly is asked as fast as it answers.
    """
    began_s = time.monotonic()

    def questions() -> Iterator[Any]:
        for number in itertools.count():
            now_s = time.monotonic()
            if now_s > began_s + seconds:
                return
            time.sleep(max(0.0, began_s + number / rate - now_s))
            yield QueryJobs(limit=1) if number % 2 else Ping()

    with connect(node) as client:
        return sum(1 for _ in client.ask_all("schedd", questions()))


def as_user(uid: int, *words: str) -> subprocess.Popen[str]:
    """This module again, as another user where we may."""
    command = [sys.executable, "-m", "benchmarks.flood", *words]
    if os.getuid() == 0:
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run(node: str) -> tuple[float, float, float, int]:
    """(quiet, flooded, after) medians in milliseconds, and the questions of the flood per second."""
    quiet = statistics.median(_other(node, SECONDS / 2))
    flooders = [as_user(FLOOD_UID, "--flood", node) for _ in range(FLOODERS)]
    for each in flooders:
        assert each.stdout is not None
        each.stdout.readline()
    flooded = statistics.median(_other(node, SECONDS / 2))
    asked = sum(int(each.communicate()[0]) for each in flooders)
    after = statistics.median(_other(node, SECONDS / 4))
    return quiet, flooded, after, round(asked / SECONDS)


def _other(node: str, seconds: float) -> list[float]:
    asking = as_user(OTHER_UID, "--ask", node, str(seconds))
    return [float(word) for word in asking.communicate()[0].split()]


def main() -> None:
    """Ask, flood, or measure both."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ask", nargs=2)
    parser.add_argument("--flood")
    options = parser.parse_args()
    if options.ask:
        print(*medians_ms(options.ask[0], float(options.ask[1])))
    elif options.flood:
        print("begun", flush=True)
        print(flood(options.flood, RATE / FLOODERS, SECONDS))
    else:
        with tempfile.TemporaryDirectory(prefix="condor-flood-") as name:
            _measure(Path(name))


def _measure(folder: Path) -> None:
    folder.chmod(0o755)
    tool = str(Path(sys.executable).parent / "condor_personal")
    subprocess.run([tool, "start", "--dir", str(folder / "p"), "--slots", "1"], check=True, stdout=subprocess.DEVNULL)
    try:
        quiet, flooded, after, rate = run(f"unix:{folder / 'p' / 'run' / 'schedd.sock'}")
    finally:
        subprocess.run([tool, "stop", "--dir", str(folder / "p")], check=True, stdout=subprocess.DEVNULL)
    print(f"another user's median question: {quiet:.2f} ms; beside {rate} questions/s of one user {flooded:.2f} ms "
          f"({flooded / quiet:.2f} times); after them {after:.2f} ms ({after / quiet:.2f} times)")


if __name__ == "__main__":
    main()
