"""What came of seeds, kept in a file as they are done, so that a long run goes on where it was interrupted.

Theory: a seed is the same run every time as long as the program is the same.  So an outcome counts for the commit that
it came from and for no other, and for none if the program was changed since.  Outcomes of several commits may stand in
one file, one JSON line for each piece of work.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from condor_actors.simulation.faults.kinds import WorldKind

__all__ = ["BadKeptSeeds", "KeptSeeds", "Outcome"]

USUAL = WorldKind()


class BadKeptSeeds(ValueError):
    """The file is something else, or damaged; says where."""


@attrs.frozen
class Outcome:
    """What came of some seeds.

    Attributes:
        seeds, events, cpu_s: how many they were, what happened in them, what they cost.
        failures: by seed, what there is to say about each that broke a rule.
    """

    seeds: int
    events: int
    cpu_s: float
    failures: tuple[tuple[int, str], ...] = ()


class KeptSeeds:
    """The file.

    Args:
        path: of the file; made when it does not exist.
        commit: which program this is; machines: sizes of the pools; kind: of worlds.  Only what was kept for all
            three is found.

    Raises:
        BadKeptSeeds: the file holds something else.
        OSError: it cannot be read or written.
    """

    def __init__(self, path: Path, commit: str, machines: Sequence[int], kind: WorldKind = USUAL) -> None:
        self._of = {"commit": commit, "machines": list(machines), **kind.plain()}
        self._known: dict[tuple[int, int], Outcome] = {}
        path.touch()
        end = 0
        for number, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):  # its writer was killed in the middle
                os.truncate(path, end)
                break
            end += len(line)
            try:
                self._learn(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise BadKeptSeeds(f"{path}:{number}: not a line that `condor_simulate seeds --keep` wrote "
                                   f"({type(error).__name__}: {error}); remove it, or name another file") from error
        self._file = path.open("ab")

    def _learn(self, plain: dict[str, Any]) -> None:
        outcome = Outcome(plain["seeds"], plain["events"], plain["cpu_s"],
                          tuple((seed, said) for seed, said in plain["failures"]))
        of = {name: plain[name] for name in ("commit", "machines")} | {
            name: plain[name] for name in attrs.asdict(USUAL) if name in plain}
        if of == self._of and not plain["commit"].endswith("-dirty"):
            self._known[plain["first"], outcome.seeds] = outcome

    def find(self, first: int, number: int) -> Outcome | None:
        """What came of ``number`` seeds from ``first`` on; None when that is not known."""
        return self._known.get((first, number))

    def add(self, first: int, outcome: Outcome) -> None:
        """Keep what came of the seeds from ``first`` on, unless it is known."""
        if self.find(first, outcome.seeds) is None:
            self._known[first, outcome.seeds] = outcome
            line = json.dumps({**self._of, "first": first, **attrs.asdict(outcome)})
            self._file.write(f"{line}\n".encode())
            self._file.flush()

    def close(self) -> None:
        """Give the file back."""
        self._file.close()
