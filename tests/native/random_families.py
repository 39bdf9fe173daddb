"""Random families of processes, checkpointed and moved at random moments: each must find what it finds natively.

``python -m tests.native.random_families --checkpoints 1000 --seed 1`` (``make families``) goes on to the next family
until there were so many checkpoints. A family that went wrong is named with its seed and what it wrote.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import attrs

from tests.native.chain import Chain, Stuck, end_of_test

SOURCE = Path(__file__).parent / "programs" / "random_family.c"
STEPS, REST_MS, MOST_MOVES, PAUSE_S = 6, 20, 15, 0.08


@attrs.frozen
class Outcome:
    """What became of one family: how often it was moved, and what was wrong with it (empty: nothing)."""

    seed: int
    moves: int
    wrong: str


def compiled_family(folder: Path) -> str:
    """Compile the program into FOLDER and return its path."""
    target = folder / "random_family"
    subprocess.run(["gcc", "-O1", "-o", str(target), str(SOURCE), "-lpthread"], check=True)
    return str(target)


def one_family(program: str, seed: int, folder: Path) -> Outcome:
    """Run the family of SEED natively and through moves, in folders below FOLDER."""
    command = [program, str(seed), str(STEPS), str(REST_MS)]
    native, moved = folder / "native", folder / "moved"
    native.mkdir()
    moved.mkdir()
    done = subprocess.run(command, cwd=native, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    try:
        life = Chain(command, moved, seed).live(MOST_MOVES, PAUSE_S)
    except (AssertionError, Stuck) as failure:
        return Outcome(seed, 0, f"{type(failure).__name__}: {failure}")
    finally:
        end_of_test()
    as_native = (life.status, life.output) == (done.returncode, done.stdout) and done.returncode == 0
    wrong = "" if as_native else f"natively {done.stdout!r}, moved {life.status} {life.output!r}"
    return Outcome(seed, life.links, wrong)


def families(program: str, first: int, checkpoints: int) -> Iterator[Outcome]:
    """Yield the outcomes of families from seed FIRST on until they were moved CHECKPOINTS times."""
    seed = first
    while checkpoints > 0:
        folder = Path(tempfile.mkdtemp(prefix="family"))
        outcome = one_family(program, seed, folder)
        yield outcome
        if not outcome.wrong:
            shutil.rmtree(folder)
        checkpoints -= max(outcome.moves, 1)
        seed += 1


def main(arguments: list[str]) -> int:
    """Run families and print what came of each."""
    parser = argparse.ArgumentParser(prog="random_families", description=__doc__)
    parser.add_argument("--checkpoints", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    moves = wrong = count = 0
    with tempfile.TemporaryDirectory(prefix="families") as folder:
        for outcome in families(compiled_family(Path(folder)), given.seed, given.checkpoints):
            count += 1
            moves += outcome.moves
            wrong += bool(outcome.wrong)
            print(f"family {outcome.seed}: {outcome.moves} moves {outcome.wrong or 'right'}", flush=True)
    print(f"{count} families, {moves} checkpoints, each followed by a restart: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
