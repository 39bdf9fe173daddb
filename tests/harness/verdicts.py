"""The page of what became of programs that others wrote: figures, then a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path


def figures(found: Iterable[str], order: Iterable[str]) -> str:
    """Return how many of FOUND there are of each kind in ORDER, as in ``3 passes, 0 wrong``."""
    counts = Counter(found)
    return ", ".join(f"{counts[kind]} {kind}" for kind in order)


def page(first: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a page with the line FIRST and a table of ROWS, in each of which is one text for each of COLUMNS."""
    lines = [columns, ["---"] * len(columns), *rows]
    cells = ([" ".join(cell.split()).replace("|", "/") for cell in line] for line in lines)
    return "\n".join([first, "", *("| " + " | ".join(line) + " |" for line in cells)]) + "\n"


def put(text: str, path: Path) -> None:
    """Write the page TEXT to PATH, and print its first line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(text.splitlines()[0])
