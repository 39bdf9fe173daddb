"""The parameter table as text: for ``condor_config_val -help``, the reference page, the shipped configuration.

Run as ``python -m condor_actors.config.reference sample`` or ``… page`` it prints one of the latter two.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

from condor_actors.config.parameter import Parameter
from condor_actors.config.parameters import sections
from condor_actors.config.parameters.not_in_force import NOT_IN_FORCE

__all__ = ["described", "page", "sample"]

WIDTH = 100


def described(parameter: Parameter) -> str:
    """One row for a person at a terminal."""
    lines = [parameter.name, ""]
    lines += textwrap.wrap(parameter.doc, WIDTH, initial_indent="    ", subsequent_indent="    ")
    lines += ["", *(f"    {title}: {text}" for title, text in facts(parameter)), ""]
    return "\n".join(lines)


def facts(parameter: Parameter) -> Iterator[tuple[str, str]]:
    """What the row says beside its paragraph, as pairs of title and text."""
    yield "value", parameter.expected
    if parameter.unit:
        yield "unit", parameter.unit
    yield "default", parameter.default if parameter.default not in (None, "") else "none"
    if parameter.read_by:
        yield "read by", ", ".join(parameter.read_by)
    yield "a change", "takes effect on condor_reconfig" if parameter.change == "live" else "needs a restart"
    if parameter.sensitive:
        yield "shown", "never to others"
    if parameter.name in NOT_IN_FORCE:
        yield "in force", f"not needed here: {NOT_IN_FORCE[parameter.name]}"


def sample() -> str:
    """The configuration that is shipped: every parameter with its default, as comments."""
    lines = [
        "# condor_config: the configuration of a machine of a Condor pool.",
        "#",
        "# Every parameter is here with its default, commented out; take the # away to set one. Settings of your own",
        "# are better off in a file below LOCAL_CONFIG_DIR, which is read after this one; the later setting wins.",
        "# NAME = value may use $(OTHER). SCHEDD.NAME = value is for the schedd alone. condor_config_val -verbose NAME",
        "# tells what holds and where it was set; condor_config check judges a file before it is put into force.",
        "",
        "LOCAL_CONFIG_DIR = $(CONFIG_ROOT)/config.d",
    ]
    for section, rows in sections().items():
        lines += ["", "#" * WIDTH, f"## {section}", "#" * WIDTH]
        for row in rows:
            lines.append("")
            lines += textwrap.wrap(row.doc, WIDTH, initial_indent="## ", subsequent_indent="## ")
            unit = f" ({row.unit})" if row.unit else ""
            restart = "; needs a restart" if row.change == "restart" else ""
            kind = row.expected[0].upper() + row.expected[1:]
            if row.name in NOT_IN_FORCE:
                restart += "; not needed here"
            lines.append(f"## {kind}{unit if unit not in kind else ''}{restart}.")
            lines.append(f"#{row.name} = {row.default or ''}".rstrip())
    return "\n".join(lines) + "\n"


def page() -> str:
    """The reference page of the documentation."""
    lines = [
        "# Configuration reference",
        "",
        "*For administrators: what each parameter means, its type, its default and the daemons that read it.*",
        "",
        "Every parameter, from the table that the daemons themselves go by. `condor_config_val -help NAME` shows the",
        "same at a terminal. `<WORD>` stands for a word of your own.",
    ]
    for section, rows in sections().items():
        lines += ["", f"## {section}"]
        for row in sorted(rows, key=lambda each: each.name):
            lines += ["", f"### {row.name.replace('<', '&lt;')}", "", row.doc.replace("<", "&lt;"), ""]
            lines += [f"* {title}: " + (f"`{text}`" if title == "default" else text) for title, text in facts(row)]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page() if sys.argv[1:] == ["page"] else sample())
