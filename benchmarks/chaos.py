"""A pool in trouble: ``python benchmarks/chaos.py [--jobs 3000] [--minutes 30] [--seed 1] [--keep FOLDER]``.

What that is: ``tests/harness/pool_in_trouble.py``.  Needs root, and says what was wrong at the end.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.harness.pool_in_trouble import in_trouble, say


def main() -> int:
    """Run it; the exit status says whether anything was wrong."""
    parser = argparse.ArgumentParser(description="A pool in trouble.")
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="copy logs and files there if anything is wrong")
    options = parser.parse_args()
    wrong = in_trouble(options.jobs, options.minutes, options.seed, options.keep)
    say("\n".join(wrong) if wrong else "nothing is wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
