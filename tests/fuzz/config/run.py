"""Fuzz the configuration language: ``python tests/fuzz/config/run.py tests/fuzz/config/corpus -max_total_time=600``.

Needs the package atheris; what it finds lands in the corpus folder, which the test suite replays.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

with atheris.instrument_imports(include=["condor_actors.config"]):
    from tests.fuzz.config.language import one_input


def main() -> None:
    """Run the fuzzer with the command line's options."""
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
