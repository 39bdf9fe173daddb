"""``python -m tests.fuzz.parsers [--seconds N] [--seed N] [parser …]``: each parser for its share of the time."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.parsers.running import fuzz
from tests.fuzz.parsers.targets import TARGETS


def main() -> int:
    """Run; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="of processor time, for all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("names", nargs="*", default=sorted(TARGETS))
    options = parser.parse_args()
    failed = 0
    for name in options.names:
        result = fuzz(name, options.seed, seconds=options.seconds / len(options.names))
        print(f"{name}: {result.inputs} inputs, {len(result.findings)} findings")
        for path, text in result.findings:
            print(f"  {path}: {text}")
        failed += bool(result.findings)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
