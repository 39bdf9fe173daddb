"""``python -m tests.native.fuzz [--seconds N] [--seed N]``: hostile frames and hostile undo journals for the shadow."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from tests.native.fuzz import descriptions, families, journals, queues, sockets, terminals, watches
from tests.native.fuzz.building import HERE, Unbuildable, build_fuzzer, search

LONGEST = 8192


def frames() -> dict[str, bytes]:
    return {**{path.name: path.read_bytes() for path in (HERE / "frames").iterdir()}, **descriptions.seeds(),
            **families.seeds(), **sockets.seeds(), **terminals.seeds(), **watches.seeds(), **queues.seeds()}


HARNESSES = {"shadow_frames": frames, "journal_back": journals.seeds}


def main() -> int:
    """Run; 1 when something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="for each of the two")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    failed = False
    for harness, seeds in HARNESSES.items():
        with tempfile.TemporaryDirectory(prefix="shadow-fuzz", dir=memory) as it:
            place = Path(it)
            build, work = place / "build", place / "work"
            for folder in (build, work, work / "corpus"):
                folder.mkdir()
            for folder in (place, work, work / "corpus"):
                folder.chmod(0o777)
            try:
                fuzzer = build_fuzzer(build, harness)
            except Unbuildable as why:
                print(f"{harness}: not tried: it {why}")
                continue
            for name, data in seeds().items():
                (work / "corpus" / name).write_bytes(data)
            fuzzer = Path(shutil.move(fuzzer, place / harness))
            found = search(fuzzer, work, f"-seed={options.seed}", f"-max_total_time={options.seconds}",
                           f"-max_len={LONGEST}", "corpus")
            print(f"{harness}: {found or f'nothing was found in {options.seconds} s'}")
            failed |= bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
