"""How long and how much, as ``htcondor`` says it to people."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_SPANS = ((86400, "day"), (3600, "hour"), (60, "minute"))
_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")


class _Voice:
    """Whether sentences are printed: not with ``-q``."""

    silent = False


def fall_silent() -> None:
    """Print no sentences from now on; errors and data are printed as before."""
    _Voice.silent = True


def tell(*sentences: str) -> None:
    """Sentences to standard error; empty ones are left out."""
    for sentence in sentences:
        if sentence and not _Voice.silent:
            print(sentence, file=sys.stderr)


def plural(count: int, word: str) -> str:
    """``1 time``, ``2 times``."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def span(seconds: float) -> str:
    """``12 seconds``, ``5 hours``, ``2 days 3 hours``."""
    for length_s, unit in _SPANS:
        if seconds >= length_s:
            said = plural(int(seconds // length_s) if unit == "day" else round(seconds / length_s), unit)
            return f"{said} {plural(int(seconds % 86400) // 3600, 'hour')}" if unit == "day" else said
    return plural(max(0, int(seconds)), "second")


def size(count: float) -> str:
    """Bytes as ``256 B`` or ``1.456 MB``."""
    power = 0
    while count >= 1024 and power < len(_SIZES) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.3f} {_SIZES[power]}" if power else f"{int(count)} B"


def clock(seconds: float) -> str:
    """``0+01:02:03``."""
    whole = max(0, int(seconds))
    return f"{whole // 86400}+{whole // 3600 % 24:02}:{whole // 60 % 60:02}:{whole % 60:02}"


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], right: tuple[int, ...] = ()) -> list[str]:
    """Lines of a table with an underlined head on a terminal; ``right``: the columns that end at their right edge."""
    widths = [max(len(head), *(len(row[n]) for row in rows)) if rows else len(head) for n, head in enumerate(heads)]
    lines = ["   ".join(cell.rjust(width) if n in right else cell.ljust(width)
                        for n, (cell, width) in enumerate(zip(row, widths, strict=True))).rstrip()
             for row in (heads, *rows)]  # fmt: skip
    return [f"\033[4m{lines[0]}\033[0m" if sys.stderr.isatty() else lines[0], *lines[1:]]
