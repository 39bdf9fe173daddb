"""Makes the C tables and the documentation page from syscalls.tbl.

``generate.py TABLE header OUT``  -> calls.h, included by the runtime and by the shadow
``generate.py TABLE page OUT``    -> the table of system calls as Markdown
"""

from __future__ import annotations

import errno
import os
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

OPTIONS = ("new", "here", "there", "waits")
SIZED = re.compile(r"(in|out|io)([=@])(\w+)$")


@dataclass
class Call:
    """One line of the table."""

    number: int
    name: str
    how: str
    arguments: list[str] = field(default_factory=list)
    options: set[str] = field(default_factory=set)
    text: str = ""
    target: str = ""


class TableError(ValueError):
    """A line of the table that says nothing sensible."""


def parse_line(line: str) -> Call:
    """Return the call that LINE describes; raise TableError otherwise."""
    statement, _, note = line.partition(";")
    number, name, how, *rest = statement.split()
    call = Call(int(number), name, how, text=note.strip())
    if how in ("local", "runtime"):
        if rest:
            raise TableError(f"{name}: nothing may follow '{how}'")
    elif how == "remote":
        call.options = {word for word in rest if word in OPTIONS}
        call.arguments = [word for word in rest if word not in OPTIONS]
        for word in call.arguments:
            if word not in ("i", "fd", "at", "path") and not SIZED.match(word):
                raise TableError(f"{name}: unknown argument '{word}'")
    elif how == "as":
        call.target, *call.arguments = rest
    elif how == "refused":
        call.target = rest[0]
        call.text = " ".join(rest[1:])
        if not hasattr(errno, call.target):
            raise TableError(f"{name}: '{call.target}' is no errno")
    else:
        raise TableError(f"{name}: unknown disposition '{how}'")
    return call


def parse(path: Path) -> list[Call]:
    """Return all calls of the table at PATH in order of their numbers."""
    calls = []
    for line_number, line in enumerate(path.read_text().splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            try:
                calls.append(parse_line(line))
            except (TableError, ValueError) as error:
                raise SystemExit(f"{path}:{line_number}: {error}") from error
    names = {call.name for call in calls}
    for call in calls:
        if call.how == "as" and call.target not in names:
            raise SystemExit(f"{path}: {call.name} stands for {call.target}, which is not in the table")
    return sorted(calls, key=lambda call: call.number)


def argument(word: str) -> str:
    """Return the C initialiser for one argument of a remote call."""
    plain = {"i": "ARG_NUMBER", "fd": "ARG_FD", "at": "ARG_AT", "path": "ARG_PATH"}
    if word in plain:
        return f"{{{plain[word]}, 0}}"
    match = SIZED.match(word)
    assert match
    kind = {"in": "ARG_IN", "out": "ARG_OUT", "io": "ARG_IO"}[match[1]]
    return f"{{{kind}{'_COUNTED' if match[2] == '@' else ''}, {match[3]}}}"


def value(word: str) -> str:
    """Return the C initialiser for one value of an "as" line."""
    if word.startswith("$"):
        return f"{{VALUE_ARGUMENT, {word[1:]}}}"
    return {"cwd": "{VALUE_CWD, 0}", "empty": "{VALUE_EMPTY, 0}"}.get(word, f"{{VALUE_NUMBER, {word}}}")


def row(call: Call) -> str:
    """Return the C table row of CALL."""
    if call.how == "remote":
        flags = " | ".join(f"CALL_{option.upper()}" for option in sorted(call.options)) or "0"
        arguments = ", ".join(argument(word) for word in call.arguments)
        body = f".how = HOW_REMOTE, .flags = {flags}, .arguments = {{{arguments}}}"
    elif call.how == "as":
        values = ", ".join(value(word) for word in call.arguments)
        body = f".how = HOW_AS, .target = __NR_{call.target}, .values = {{{values}}}"
    elif call.how == "refused":
        body = f".how = HOW_REFUSED, .target = {getattr(errno, call.target)}"
    else:
        body = f".how = HOW_{call.how.upper()}"
    return f'    [{call.number}] = {{.name = "{call.name}", {body}}},'


def header(calls: list[Call]) -> str:
    """Return the text of calls.h."""
    here = [c.name for c in calls if c.how == "runtime" or "here" in c.options]
    there = [c.name for c in calls if "there" in c.options]
    lines = ["/* Made by generate.py from syscalls.tbl; do not edit. */", "#ifdef WANT_CALL_TABLE"]
    lines += ["static const struct call calls[CALL_COUNT] = {", *map(row, calls), "};", "#endif"]
    lines += [f"#define CALLS_DONE_HERE(X) {' '.join(f'X({name})' for name in here)}"]
    lines += [f"#define CALLS_SERVED_THERE(X) {' '.join(f'X({name})' for name in there)}"]
    local = [str(call.number) for call in calls if call.how == "local"]
    lines += [f"#define LOCAL_CALLS {', '.join(local)}"]
    lines += [f"#define CALL_COUNT_NEEDED {calls[-1].number + 1}"]
    return "\n".join(lines) + "\n"


def page(calls: list[Call]) -> str:
    """Return the documentation page."""
    lines = [
        "# System calls of the standard universe",
        "",
        "*For users and developers: what becomes of each system call of a program in the standard universe.*",
        "",
        "Generated from `native/syscalls.tbl`. *Local*: the execute machine's kernel handles the call. *Emulated*: the",
        "runtime handles it inside the process. *Remote*: the shadow makes the call on the submit machine, as the",
        "job's owner. *Refused*: the call fails with the error shown.",
        "",
        "| number | call | done | remarks |",
        "|---:|---|---|---|",
    ]
    by_name = {call.name: call for call in calls}
    for call in calls:
        shown = by_name[call.target] if call.how == "as" else call
        how = {"runtime": "emulated"}.get(shown.how, shown.how)
        remark = shown.text or (f"as `{call.target}`" if call.how == "as" else "")
        if shown.how == "refused":
            how = f"refused ({shown.target})"
        elif shown.text:
            how, remark = f"{how}, in part", shown.text
        lines.append(f"| {call.number} | `{call.name}` | {how} | {remark} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    """Write what the command line asks for."""
    table, what, out = arguments
    calls = parse(Path(table))
    fresh = Path(f"{out}.{os.getpid()}")
    fresh.write_text({"header": header, "page": page}[what](calls))
    fresh.replace(out)  # another build may be reading it


if __name__ == "__main__":
    main(sys.argv[1:])
