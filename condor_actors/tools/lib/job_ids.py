"""Job ids on command lines: ``C``, ``C.P`` and, from event logs, ``C.P.S``."""

from __future__ import annotations

from condor_actors.patterns import late

_ID = late(r"(\d+)(?:\.(-?\d+)(?:\.\d+)?)?\.?\Z")
ALL_PROCS = -1
MOST_DIGITS = 15
"""Of a number: there are no jobs of larger ones, and no message holds them."""


def parse_id(word: str) -> tuple[int, int] | None:
    """(cluster, proc) of a word, proc -1 for a whole cluster, None when it is no id."""
    found = _ID.match(word)
    if found is None or any(len(number or "") > MOST_DIGITS for number in found.groups()):
        return None
    return int(found.group(1)), int(found.group(2)) if found.group(2) is not None else ALL_PROCS


def take_operand(word: str, ids: list[tuple[int, int]], owners: list[str]) -> None:
    """Put a word of a command line where it belongs: among the jobs, or among the users."""
    found = parse_id(word)
    if found is not None:
        ids.append(found)
    else:
        owners.append(word)


def id_text(cluster: int, proc: int) -> str:
    """The usual form of an id."""
    return str(cluster) if proc == ALL_PROCS else f"{cluster}.{proc}"
