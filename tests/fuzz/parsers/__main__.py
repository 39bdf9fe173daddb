"""``python -m tests.fuzz.parsers [--seconds N] [--seed N] [--workers N] [parser …]``: a minute for each parser.

The time is processor time, so that a busy machine tries as much as an idle one.  ``--workers`` parsers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.fuzz.parsers.running import fuzz
from tests.fuzz.parsers.targets import TARGETS


def main() -> int:
    """Run; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, for each parser")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("names", nargs="*", default=sorted(TARGETS), metavar="parser")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(TARGETS)):
        parser.error(f"no parser {', '.join(unknown)}; there are {', '.join(sorted(TARGETS))}")
    failed = 0
    # A process for each parser: the memory that one takes is not counted for the next.
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as workers:
        tried = workers.map(partial(fuzz, seed=options.seed, seconds=options.seconds), options.names)
        for name, result in zip(options.names, tried, strict=True):
            print(f"{name}: {result.inputs} inputs, {len(result.findings)} findings", flush=True)
            for path, text in result.findings:
                print(f"  {path}: {text}", flush=True)
            failed += bool(result.findings)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
