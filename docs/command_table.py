"""A mkdocs hook: what becomes of HTCondor's submit commands and parameters, from the live tables."""

from __future__ import annotations

from typing import Any

from condor_actors.config.parameters import find_parameter
from condor_actors.config.parameters.not_in_force import NOT_IN_FORCE
from condor_actors.config.parameters.of_htcondor import NAMES, groups
from condor_actors.cores.submit_commands import COMMANDS, Standing

MARK = "<!-- submit commands -->"
PARAMETERS_MARK = "<!-- parameters of HTCondor -->"


def parameters() -> str:
    """HTCondor's parameters that are not in force, by why."""
    known = frozenset(name for name in NAMES if find_parameter(name.replace("<>", "X")) is not None)
    lines = [f"{len(known)} of the {len(NAMES)} parameters of HTCondor's manual are known here. The others:", "",
             "| what became of them | names |", "|---|---|"]
    lines += [f"| {became} | {' '.join(f'`{name}`' for name in names)} |" for became, names in groups(known).items()]
    accepted = " ".join(f"`{name}`" for name in sorted(NOT_IN_FORCE))
    return "\n".join([*lines, f"| accepted and checked, not in force yet | {accepted} |"]).replace("<>", "&lt;&gt;")


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
    if PARAMETERS_MARK in markdown:
        markdown = markdown.replace(PARAMETERS_MARK, parameters())
    return markdown.replace(MARK, tables()) if MARK in markdown else markdown
