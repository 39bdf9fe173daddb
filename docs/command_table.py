"""A mkdocs hook: the commands with their options, and what becomes of HTCondor's submit commands and
parameters, from the live tables."""

from __future__ import annotations

from typing import Any

from condor_actors.config.parameters import find_parameter
from condor_actors.config.parameters.not_in_force import NOT_IN_FORCE
from condor_actors.config.parameters.of_htcondor import NAMES, groups
from condor_actors.cores.submit_commands import COMMANDS, Standing
from condor_actors.tools.lib.flags import NO_DEBUG
from condor_actors.tools.manual.markdown import reference
from condor_actors.tools.manual.sources import flags_of

MARK = "<!-- submit commands -->"
OPTIONS_MARK = "<!-- options -->"
ASK_AND_ACT = ("condor_q", "condor_status", "condor_history", "condor_rm", "condor_hold", "condor_release",
               "condor_vacate_job", "condor_who", "condor_userprio", "condor_prio", "condor_qedit", "condor_reschedule",
               "condor_transform_ads", "condor_wait", "condor_userlog", "condor_tail", "condor_config_val",
               "condor_now")
"""The commands whose options are compared with the manual's."""
REFERENCE_MARK = "<!-- command reference -->"
PARAMETERS_MARK = "<!-- parameters of HTCondor -->"


def parameters() -> str:
    """HTCondor's parameters that are not in force, by why."""
    known = frozenset(name for name in NAMES if find_parameter(name.replace("<>", "X")) is not None)
    lines = [f"{len(known)} of the {len(NAMES)} parameters of HTCondor's manual are known here. The others:", "",
             "| what became of them | names |", "|---|---|"]
    lines += [f"| {became} | {' '.join(f'`{name}`' for name in names)} |" for became, names in groups(known).items()]
    accepted = " ".join(f"`{name}`" for name in sorted(NOT_IN_FORCE))
    return "\n".join([*lines, f"| accepted and checked, not in force yet | {accepted} |"]).replace("<>", "&lt;&gt;")


def options() -> str:
    """The options of HTCondor's manual that are refused, and those that have no effect, by why."""
    refused: dict[tuple[str, str], list[str]] = {}
    idle: dict[tuple[str, str], list[str]] = {}
    for command in ASK_AND_ACT:
        for flag in flags_of(command):
            if flag.refused:
                refused.setdefault((command, flag.refused), []).append(f"`-{flag.name}`")
            elif flag.idle:
                idle.setdefault(("all" if flag.idle == NO_DEBUG else command, flag.idle), []).append(f"`-{flag.name}`")
    lines = ["### Refused", "", "| command | options | why, and what comes nearest |", "|---|---|---|"]
    lines += [f"| `{command}` | {' '.join(names)} | {why} |" for (command, why), names in refused.items()]
    lines += ["", "### Without effect, and told so", "", "| command | options | why none is needed |", "|---|---|---|"]
    lines += [f"| `{command}` | {' '.join(dict.fromkeys(names))} | {why} |" for (command, why), names in idle.items()]
    return "\n".join(lines)


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
    if OPTIONS_MARK in markdown:
        markdown = markdown.replace(OPTIONS_MARK, options())
    if REFERENCE_MARK in markdown:
        markdown = markdown.replace(REFERENCE_MARK, reference())
    return markdown.replace(MARK, tables()) if MARK in markdown else markdown
