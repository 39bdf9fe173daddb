"""What a description asks for that would have no effect: refused, or told, before anything is queued.

A word that the description uses as a macro of its own (``$(output_directory)``) is no command there: it sets no
attribute and is only told about.

**Source**: the table of :mod:`condor_actors.cores.submit_commands`.
"""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors.cores.submit_commands import (
    BY_ATTRIBUTE,
    BY_COMMAND,
    Standing,
    SubmitCommand,
    asks,
    grid_objection,
    refusal,
    universe_objection,
)
from condor_actors.messages.codes import Universe
from condor_actors.submit.errors import MOST_QUOTED, SubmitError, printable
from condor_actors.submit.keywords import is_known
from condor_actors.submit.macros import Scope

__all__ = ["is_macro_only", "place_of", "refuse", "row_of", "told"]

ALIASES = {
    "executable": ("cmd",), "initialdir": ("initial_dir", "job_iwd", "iwd"), "input": ("stdin", "in"),
    "output": ("stdout", "out"), "error": ("stderr", "err"), "log": ("userlog",),
    "transfer_input_files": ("transferinputfiles", "transferinput"),
}  # fmt: skip
"""Other names of the commands that name files."""

_HOSTS = frozenset({"machine_count", "node_count", "nodecount"})  # one machine is what every job gets
_NOTHING = frozenset({"", "false", "no", "f", "n", "0", "undefined", '""'})
_PATTERNS = tuple(
    (name.partition("<")[0].lower(), name.partition(">")[2].lower(), row)
    for name, row in ((row.name, row) for row in BY_COMMAND.values())
    if "<" in name and not name.startswith("request_")
)


def row_of(key: str) -> SubmitCommand | None:
    """The row of a command as it stands in a description, in lower case (``my.x``: of the attribute x); None: none."""
    if key.startswith("my."):
        return BY_ATTRIBUTE.get(key[3:])
    row = BY_COMMAND.get(key) or BY_ATTRIBUTE.get(key)
    if row is not None:
        return row
    for prefix, suffix, pattern in _PATTERNS:
        if key.startswith(prefix) and key.endswith(suffix) and len(key) > len(prefix) + len(suffix):
            return pattern
    return None


def is_macro_only(scope: Scope, key: str) -> bool:
    """Whether a command that would be refused serves the description as a macro: it sets no attribute then."""
    row = row_of(key)
    return row is not None and row.standing is Standing.REFUSED and key in scope.referenced


def _given(scope: Scope) -> Iterator[tuple[str, SubmitCommand]]:
    """The commands that ask for something and are not done, in the order they were given."""
    for key in (*scope.assigned, *scope.live):
        row = row_of(key)
        if row is None or row.standing is Standing.DONE:
            continue
        raw = scope.assigned.get(key, scope.live.get(key, ""))
        value = scope.expand(raw).strip() if key in scope.assigned else raw
        if not value:
            continue
        if asks(value) and value.lower() not in _NOTHING:
            yield key, row


def _refuse_resource(scope: Scope) -> None:
    """Refuse jobs of the grid universe for what they cannot be handed to."""
    given = scope.expand(scope.assigned.get("grid_resource", "")).strip()
    row = grid_objection(given.strip('"'))
    if not given and "gridresource" not in scope.assigned:
        raise SubmitError("a job of the grid universe has to say where it runs", command="universe",
                          remedy="say grid_resource = batch slurm, or grid_resource = condor SCHEDD POOL")
    if given and row is not None:
        raise SubmitError(refusal(f"grid_resource = {given}", row), command="grid_resource")


def refuse(scope: Scope, universe: int) -> None:
    """Refuse the jobs of a queue statement that ask for what is not done.

    Args:
        universe: the number of the jobs'.

    Raises:
        SubmitError: with the reason and the nearest thing that works.
    """
    row = universe_objection(universe)
    if row is not None:
        word = scope.expand(scope.assigned.get("universe", str(universe))).strip()
        raise SubmitError(refusal(f"universe = {word}", row), command="universe")
    if universe == Universe.GRID:
        _refuse_resource(scope)
    for key in () if universe == Universe.PARALLEL else _HOSTS & scope.assigned.keys():
        value = scope.expand(scope.assigned[key]).strip()
        if value not in ("", "1"):
            raise SubmitError(
                f"{key} = {value} would have no effect: several machines are claimed for one job in the parallel "
                "universe alone. Say universe = parallel, or use request_cpus for the processors of one machine.",
                command=key)
    for key, row in _given(scope):
        if row.standing is Standing.REFUSED and key not in scope.referenced:
            name = scope.spellings.get(key, key)
            raise SubmitError(refusal(name, row), command=key)


def told(scope: Scope) -> Iterator[str]:
    """A sentence for each command that is taken and has no effect."""
    for key, row in _given(scope):
        name = scope.spellings.get(key, key)
        if row.standing is Standing.IGNORED:
            yield f"{name} has no effect: {row.reason}"
        elif key in scope.referenced:
            yield f"{name} is also a command of the language, which is not carried out ({row.reason}); "\
                  "it is taken for a macro only"


def place_of(error: SubmitError, scope: Scope) -> str:
    """Where the command that an error is about stands: ``file, line N: name = value``; empty when not known.

    An error that names no command is about the first one that it speaks of, by its name or its value.
    """
    import re

    words = () if error.command else re.findall(r"[a-z_][\w.]*", error.problem[:200].lower())
    for key in (error.command, *ALIASES.get(error.command, ()), *words):
        if key in scope.assigned:
            return _written(key, scope)
    problem = error.problem.lower()
    parts = [part for part in re.findall(r"'([^']{2,200})'", problem[:1000]) if part.strip()]
    for key, value in () if error.command else scope.assigned.items():
        plain = value.strip().lower()[:200]
        if len(plain) > 1 and is_known(key) and (re.search(rf"(?<!\w){re.escape(plain)}(?!\w)", problem)
                                                 or any(part in plain for part in parts)):
            return _written(key, scope)
    return ""


def _written(key: str, scope: Scope) -> str:
    file, line = scope.places.get(key, ("", 0))
    written = printable(f"{scope.spellings.get(key, key)} = {scope.assigned[key]}", MOST_QUOTED)
    return f"{file}, line {line}: {written}" if line else written
