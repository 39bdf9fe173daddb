"""A long comparison in child processes: ``python -m tests.conformance.classads.campaign [--calls] [FIRST] [COUNT]``.

Prints every difference that is not one of the deliberate ones (see `deliberate`), how often each of those
appeared, and a summary line; exit status 1 when there is one that nobody meant.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[3]


@attrs.frozen
class Outcome:
    """What a campaign found.

    Attributes:
        compared: seeds compared.
        crashed: seeds on which the other engine died.
        differences: all differences.
    """

    compared: int
    crashed: list[int]
    differences: list[dict[str, Any]]


def run(first: int, count: int, calls: bool = False) -> Outcome:
    """Compare the engines on a range of seeds.

    Args:
        first: the first seed.
        count: how many.
        calls: whether to compare calls of functions instead of whole expressions.

    Returns:
        what was found.
    """
    crashed: list[int] = []
    differences: list[dict[str, Any]] = []
    end = first + count
    with tempfile.TemporaryDirectory() as folder:
        progress = Path(folder, "seed")
        while first < end:
            kind = ["--calls"] if calls else []
            command = [sys.executable, "-m", "tests.conformance.classads.compare", str(first), str(end - first)]
            done = subprocess.run(
                [*command, *kind, "--progress", str(progress)], cwd=ROOT, capture_output=True, text=True, check=False
            )
            differences += [json.loads(line) for line in done.stdout.splitlines()]
            if done.returncode == 0:
                break
            if done.returncode > 0:
                raise RuntimeError(done.stderr)
            seed = int(progress.read_text(encoding="ascii"))
            crashed.append(seed)
            first = seed + 1
    return Outcome(count, crashed, differences)


def main() -> None:
    """Run a campaign and print what it found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("count", type=int, nargs="?", default=100_000)
    parser.add_argument("--calls", action="store_true", help="calls of functions instead of whole expressions")
    options = parser.parse_args()
    outcome = run(options.first, options.count, options.calls)
    meant: Counter[str] = Counter()
    unexplained = 0
    for difference in outcome.differences:
        why = difference["why"]
        if why is None:
            unexplained += 1
            print(json.dumps(difference))
        else:
            meant[why] += 1
    for why, times in meant.most_common():
        print(f"{times:6} {why}")
    print(
        f"{outcome.compared} compared, {meant.total()} deliberate differences, {unexplained} unexplained, "
        f"the other engine died on {len(outcome.crashed)}"
    )
    sys.exit(unexplained > 0)


if __name__ == "__main__":
    main()
