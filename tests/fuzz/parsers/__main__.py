"""``python -m tests.fuzz.parsers [--seconds N] [--others N] [--seed N] [--workers N] [parser …]``: a minute for each.

The time is processor time, so that a busy machine tries as much as an idle one.  ``--workers`` parsers at once.
``--others`` is the time of parsers that are not among those that everything goes through (``FIRST``).
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.fuzz.parsers.running import fuzz
from tests.fuzz.parsers.targets import TARGETS

# What every pool reads all the time.  The journal has a fuzzer of its own (tests.native.fuzz).
FIRST = ("broker", "bulk", "classads", "config", "event_log", "frames", "image", "manifest", "messages", "submit")


def main() -> int:
    """Run; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, for each parser")
    parser.add_argument("--others", type=float, help="of processor time, for each that is not one of the first")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("names", nargs="*", default=sorted(TARGETS), metavar="parser")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(TARGETS)):
        parser.error(f"no parser {', '.join(unknown)}; there are {', '.join(sorted(TARGETS))}")
    others_s = options.seconds if options.others is None else options.others
    times = [options.seconds if name in FIRST else others_s for name in options.names]
    failed = 0
    # A process for each parser: the memory that one takes is not counted for the next.
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn"), max_tasks_per_child=1) as workers:
        tried = [workers.submit(fuzz, name, seed=options.seed, seconds=seconds)
                 for name, seconds in zip(options.names, times, strict=True)]
        for name, future in zip(options.names, tried, strict=True):
            result = future.result()
            print(f"{name}: {result.inputs} inputs, {len(result.findings)} findings", flush=True)
            for path, text in result.findings:
                print(f"  {path}: {text}", flush=True)
            failed += bool(result.findings)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
