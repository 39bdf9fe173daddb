"""Configuration text, cut into logical lines that remember where they began.

A line may go on over several physical ones (backslash at the end; comment lines in between vanish), and
``NAME @=tag`` takes every line up to ``@tag``, without the blanks at its ends. Comments are whole lines that begin
with ``#``.
"""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors.config.errors import ConfigError
from condor_actors.patterns import late
from condor_actors.records import NamedTuple

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

__all__ = ["LogicalLine", "logical_lines"]

_BLOCK: Final = late(r"((?:[\w.$]|\$\([^()]*\))+)\s*@=\s*(\S+)\s*$")


class LogicalLine(NamedTuple):
    """One statement's text.

    Attributes:
        text: without the blanks at both ends.
        file: the file it stands in, or what stands in a file's place.
        line: of its first physical line, from 1.
        block: of ``NAME @=tag`` the text between, else None; ``text`` is then the name.
    """

    text: str
    file: str
    line: int
    block: str | None = None


def logical_lines(content: str, file: str) -> Iterator[LogicalLine]:
    """Cut ``content`` into statements.

    Raises:
        ConfigError: a block without its end.
    """
    physical = content.split("\n")
    at = 0
    while at < len(physical):
        first = at
        text = physical[at].strip()
        at += 1
        if not text or text.startswith("#"):
            continue
        block = _BLOCK.match(text) if "@=" in text else None
        if block is not None:
            kept, end = _block(physical, at, f"@{block[2]}")
            if end is None:
                raise ConfigError(
                    f"the text that begins with {block[1]} @={block[2]} has no end",
                    file=file,
                    line=first + 1,
                    name=block[1],
                    expected=f"a line @{block[2]}",
                )
            yield LogicalLine(block[1], file, first + 1, "\n".join(kept))
            at = end
            continue
        text, at = _continued(physical, text, at)
        if text:
            yield LogicalLine(text, file, first + 1)


def _block(physical: list[str], at: int, closing: str) -> tuple[list[str], int | None]:
    """The lines up to the closing one, continued ones joined, and where to go on; None when it does not close."""
    kept: list[str] = []
    while at < len(physical):
        text = physical[at].strip()
        at += 1
        if text == closing:
            return kept, at
        if text.startswith("#"):
            continue
        text, at = _continued(physical, text, at)
        if text:
            kept.append(text)
    return kept, None


def _continued(physical: list[str], text: str, at: int) -> tuple[str, int]:
    """Join what a backslash at the end continues; comment lines on the way vanish, their backslashes too."""
    parts = []
    while text.endswith("\\"):
        parts.append(text[:-1])
        while at < len(physical) and physical[at].lstrip().startswith("#"):
            at += 1
        if at >= len(physical):
            text = ""
            break
        text = physical[at].strip()
        at += 1
    parts.append(text)
    return "".join(parts).strip(), at
