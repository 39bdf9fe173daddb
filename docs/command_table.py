"""A mkdocs hook: what becomes of each submit command, made from the live table while the site is built."""

from __future__ import annotations

from typing import Any

from condor_actors.cores.submit_commands import COMMANDS, Standing

MARK = "<!-- submit commands -->"


def tables() -> str:
    """The refused commands with reason and remedy, the ignored ones, and the list of those that are carried out."""
    groups: dict[tuple[str, str], list[str]] = {}
    ignored: dict[str, list[str]] = {}
    for row in COMMANDS:
        if row.standing is Standing.REFUSED:
            groups.setdefault((row.reason, row.instead), []).append(f"`{row.name}`")
        elif row.standing is Standing.IGNORED:
            ignored.setdefault(row.reason, []).append(f"`{row.name}`")
    lines = ["### Refused", "", "| commands | why | instead |", "|---|---|---|"]
    lines += [f"| {' '.join(names)} | {reason} | {instead} |" for (reason, instead), names in groups.items()]
    lines += ["", "### Without effect, and told so", "", "| commands | why none is needed |", "|---|---|"]
    lines += [f"| {' '.join(names)} | {reason} |" for reason, names in ignored.items()]
    done = " ".join(f"`{row.name}`" for row in COMMANDS if row.standing is Standing.DONE)
    return "\n".join([*lines, "", "### Carried out", "", done])


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the tables where a page asks for them."""
    return markdown.replace(MARK, tables()) if MARK in markdown else markdown
