"""condor_config_val: what the configuration says, where it says so, and what a daemon of the pool goes by.

Values come from this machine's files, or with a location option from a living daemon, where ``-set`` and the like also
change them. Words and exit codes are those of HTCondor's manual page; ``-help NAME`` and ``-unused`` without a daemon
are ours.
"""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import attrs

from condor_actors.config import Config, ConfigError, all_parameters, find_parameter, load_config, nearest_word
from condor_actors.tools.lib.command import framed, help_of, reminder_of
from condor_actors.tools.lib.flags import NO_DEBUG, Flag, Given, MissingValue, RefusedFlag, UnknownFlag, parse

if TYPE_CHECKING:
    from condor_actors.config.macros import Definition

__all__ = ["main"]

DAEMONS: Final = ("master", "schedd", "startd", "collector", "negotiator")
FLAGS: Final = (
    Flag("help"),
    Flag("version", 4),
    Flag("dump", 1),
    Flag("default", 3),
    Flag("debug", 2, colon=True, idle=NO_DEBUG),
    Flag("expanded", 2, alias="expand"),
    Flag("raw", 2),
    Flag("verbose", 1),
    Flag("summary", 3, colon=True),
    Flag("unset", 3, takes=1),
    Flag("unused", 4),
    Flag("used", 2),
    Flag("evaluate", 2),
    Flag("config", 2),
    Flag("writeconfig", 2, takes=1, colon=True),
    Flag("macro", 3, colon=True),
    Flag("mixedcase", 2),
    Flag("local-name", 2, takes=1),
    Flag("subsystem", 3, takes=1),
    Flag("address", 1, takes=1),
    Flag("pool", takes=1),
    Flag("name", takes=1),
    Flag("root-config", 3, takes=1),
    Flag("rset", 2, takes=1),
    Flag("runset", 2, takes=1),
    Flag("set", 2, takes=1),
    Flag("edit", 4),
    Flag("host", 4, takes=1, alias="name"),
    Flag("tilde"),
    Flag("owner"),
    Flag("trace", 2, idle="-verbose shows where a value comes from"),
    *(Flag(name, 2 if name[0] in "ms" else 3) for name in DAEMONS),
)


class Complaint(Exception):
    """A sentence for standard error; the exit status is 1."""


@attrs.frozen(kw_only=True)
class Wishes:
    """What the command line asks for."""

    given: tuple[Given, ...]
    words: tuple[str, ...]

    def has(self, name: str) -> bool:
        """Whether a flag was given."""
        return any(item.name == name for item in self.given)

    def value(self, name: str) -> str:
        """What followed a flag; empty without it."""
        return next((item.values[0] for item in reversed(self.given) if item.name == name and item.values), "")

    def qualifier(self, name: str) -> str:
        """What followed the colon of a flag."""
        return next((item.qualifier for item in reversed(self.given) if item.name == name), "")


@framed
def main(arguments: Sequence[str] | None = None) -> int:
    """Entry of ``condor_config_val``; the exit status."""
    try:
        given = parse(sys.argv[1:] if arguments is None else arguments, FLAGS)
        wishes = Wishes(given=tuple(given), words=tuple(item.values[0] for item in given if not item.name))
        for item in given:
            if item.idle:
                print(f"Note: {item.word} has no effect: {item.idle}", file=sys.stderr)
        return _do(wishes)
    except UnknownFlag as error:
        print(f"{error.word} is not a valid argument\n{reminder_of('condor_config_val')}", file=sys.stderr)
    except MissingValue as error:
        print(f"{error.word} requires an argument", file=sys.stderr)
    except (Complaint, ConfigError, RefusedFlag) as error:
        print(str(error), file=sys.stderr)
    return 1


def _do(wishes: Wishes) -> int:
    if wishes.has("help"):
        return _help(wishes.words)
    if wishes.has("version"):
        from condor_actors.tools.pool.version import platform_line, version_line

        print(version_line(), platform_line(), sep="\n")
        return 0
    if wishes.words[:1] and wishes.words[0].lower() == "use":
        return _use(wishes)
    if any(wishes.has(name) for name in ("name", "address", "pool", *DAEMONS)) or any(
        wishes.has(name) for name in ("set", "unset", "rset", "runset")
    ):
        from condor_actors.tools.lib.config_remote import remote

        return remote(wishes)
    return _local(wishes)


def load(wishes: Wishes) -> Config:
    """The configuration of this machine as the wishes say."""
    environ = dict(os.environ)
    if not environ.get("CONDOR_CONFIG"):
        beside = os.path.join(sys.prefix, "etc/condor/condor_config")
        if os.path.isfile(beside):
            environ["CONDOR_CONFIG"] = beside
    if wishes.has("root-config"):
        environ["CONDOR_CONFIG"] = wishes.value("root-config")
    config = load_config(
        subsystem=wishes.value("subsystem") or "TOOL", local_name=wishes.value("local-name") or None, environ=environ
    )
    for warning in config.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    return config


def _local(wishes: Wishes) -> int:
    if wishes.has("used") or wishes.has("evaluate"):
        raise Complaint("-used and -evaluate ask a living daemon: say which one (-schedd, -name HOST …)")
    config = load(wishes)
    views: tuple[tuple[str, Callable[[Config, Wishes], int]], ...] = (
        ("tilde", _tilde), ("owner", _owner), ("dump", _dump), ("summary", _summary), ("unused", _unused),
        ("writeconfig", _write), ("macro", _macro), ("edit", _edit),
    )  # fmt: skip
    for flag, view in views:
        if wishes.has(flag):
            return view(config, wishes)
    if wishes.has("config"):
        _sources(config)
    if not wishes.words:
        if wishes.has("config"):
            return 0
        print(reminder_of("condor_config_val"), file=sys.stderr)
        return 1
    status = 0
    for name in wishes.words:
        if not _show(config, name, wishes):
            print(f"Not defined: {name.upper()}", file=sys.stderr, flush=True)
            status = 1
    return status


# ---- single names


def _show(config: Config, name: str, wishes: Wishes) -> bool:
    """Print one name's value; False when it has none."""
    raw = config.raw(name)
    parameter = find_parameter(name)
    if wishes.has("default"):
        default = parameter.default if parameter else None
        if default is None:
            return False
        print(default if wishes.has("raw") else config.expand(default))
        return True
    if raw is None or (not raw and parameter is None and config.macros.find(name) is None):
        return False
    shown = raw if wishes.has("raw") else config.expand(raw).strip()
    if not shown and config.macros.find(name) is None:
        return False
    if wishes.has("verbose"):
        _verbose(config, name, shown)
    else:
        print(shown)
    return True


def _verbose(config: Config, name: str, shown: str) -> None:
    definition = config.macros.find(name)
    title = name.upper()
    print(f"{title} {as_written(shown)}")
    print(f" # at: {place(config, name)}")
    print(f" # raw: {definition.name if definition else title} {as_written(config.raw(name) or '')}")
    parameter = find_parameter(name)
    if parameter is not None and parameter.default is not None:
        print(f" # default: {parameter.default}")
    print()


def place(config: Config, name: str) -> str:
    """Where a name was set, for people."""
    source = config.source(name)
    template = f", use {source.template}" if source.template else ""
    return f"{source.file}, line {source.line}{template}" if source.line else source.file


def as_written(value: str) -> str:
    """``= value``, or over several lines ``@=end … @end``."""
    return f"@=end\n{value}\n@end" if "\n" in value else f"= {value}".rstrip()


# ---- all names


def _dump(config: Config, wishes: Wishes) -> int:
    print(f"# Configuration from machine: {config.text('FULL_HOSTNAME')}")
    for pattern in wishes.words or ("",):
        if pattern:
            print(f"\n# Parameters with names that match {pattern}:")
        for name in _matching(config, pattern):
            parameter = find_parameter(name)
            if parameter is not None and parameter.sensitive:
                continue
            value = (parameter.default if parameter else None) if wishes.has("default") else config.raw(name)
            value = value or ""
            if wishes.has("expand"):
                value = config.expand(value)
            if wishes.has("verbose"):
                _verbose(config, name, config.expand(value))
            else:
                definition = config.macros.find(name)
                title = definition.name if definition and wishes.has("mixedcase") else name
                print(f"{title} {as_written(value)}")
    print("# Contributing configuration file(s):")
    for source in config.sources:
        print(f"#\t{source}")
    return 0


def _matching(config: Config, pattern: str) -> Iterator[str]:
    """Names that a pattern fits: a regular expression found anywhere, or a shell pattern when it has a ``*``."""
    text = fnmatch.translate(pattern) if "*" in pattern and ".*" not in pattern else pattern
    try:
        wanted = re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise Complaint(f"{pattern} is no pattern: {error}") from None
    return (name for name in config.names() if wanted.search(name))


def _summary(config: Config, wishes: Wishes) -> int:
    from condor_actors.tools.pool.version import version_line

    print(f"# condor_config_val {version_line()}")
    last = ""
    for definition in config.macros:
        parameter = find_parameter(definition.name.rpartition(".")[2])
        if parameter is not None and (parameter.sensitive or parameter.default == definition.raw):
            continue
        if definition.source.file != last:
            last = definition.source.file
            print(f"\n#\n# from {last}\n#")
        print(f"{definition.name} {as_written(definition.raw)}")
    if wishes.qualifier("summary") == "detected":
        print("\n#\n# from <Detected>\n#")
        for name in config.macros.detected_names():
            print(f"{name} = {config.raw(name)}")
    return 0


def _unused(config: Config, wishes: Wishes) -> int:
    for slip in config.slips():
        near = f"   # did you mean {slip.nearest}?" if slip.nearest else ""
        became = f"   # {slip.elsewhere}" if slip.elsewhere is not None else near
        print(f"{slip.name}   # {slip.source.file}, line {slip.source.line}{became}")
    return 0


def _sources(config: Config) -> None:
    print("Configuration source:", file=sys.stderr)
    for index, source in enumerate(config.sources):
        if index == 1:
            print("Local configuration sources:" if len(config.sources) > 2 else "Local configuration source:",
                  file=sys.stderr)
        sys.stderr.flush()
        print(f"\t{source}", flush=True)


def _write(config: Config, wishes: Wishes) -> int:
    target = wishes.value("writeconfig")
    upgrade = wishes.qualifier("writeconfig").startswith("up")
    lines = list(_written(config, upgrade))
    if target == "-":
        print("\n".join(lines))
        return 0
    try:
        with open(target, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join(lines) + "\n")
    except OSError as error:
        raise Complaint(f"cannot write {target}: {error.strerror}") from None
    return 0


def _written(config: Config, upgrade: bool) -> Iterator[str]:
    last = ""
    for definition in config.macros:
        same = _is_default(definition)
        if same and upgrade:
            continue
        if definition.source.file != last:
            last = definition.source.file
            yield f"#\n# from {last}\n#"
        yield f"{'#' if same else ''}{definition.name} {as_written(definition.raw)}"


def _is_default(definition: Definition) -> bool:
    parameter = find_parameter(definition.name)
    return parameter is not None and parameter.default == definition.raw


# ---- the rest


def _macro(config: Config, wishes: Wishes) -> int:
    for word in wishes.words:
        text = config.expand(word)
        print(os.path.realpath(text) if wishes.qualifier("macro") == "path" else text)
    return 0


def _tilde(config: Config, wishes: Wishes) -> int:
    home = config.text("TILDE")
    if home is None:
        raise Complaint("Error: Specified -tilde but can't find condor's home directory")
    print(home)
    return 0


def _owner(config: Config, wishes: Wishes) -> int:
    print("condor")
    return 0


def _use(wishes: Wishes) -> int:
    from condor_actors.config.templates import categories, template_names, template_statements, template_text

    if len(wishes.words) < 2:
        print("use accepts\n  " + "\n  ".join(categories()))
        return 0
    category, _, name = wishes.words[1].partition(":")
    if category.upper() not in categories():
        near = nearest_word(category, categories())
        raise Complaint(f"{category} is not a category of templates" + (f"; did you mean {near}?" if near else ""))
    if not name:
        print(f"use {category.upper()} accepts\n  " + "\n  ".join(template_names(category)))
        return 0
    text = template_text(category, name)
    if text is None:
        near = nearest_word(name, template_names(category))
        raise Complaint(f"{category.upper()} has no template {name}" + (f"; did you mean {near}?" if near else ""))
    if wishes.has("expand"):
        text = load(wishes).expand(template_statements(category, name, None) or "")
    print(f"use {category.upper()}:{name} is\n{text.rstrip()}")
    return 0


def _help(words: Sequence[str]) -> int:
    if not words:
        print(help_of("condor_config_val"))
        return 0
    from condor_actors.config.reference import described

    for word in words:
        parameter = find_parameter(word)
        if parameter is None:
            known = [each.name for each in all_parameters() if not each.is_pattern]
            near = nearest_word(word, known)
            raise Complaint(f"{word} is not known" + (f"; did you mean {near}?" if near else ""))
        print(described(parameter))
    return 0


def _edit(config: Config, wishes: Wishes) -> int:
    from condor_actors.tools.admin.config_edit import edit

    if not config.sources:
        raise Complaint("no configuration file was read, so there is none to edit")
    return edit(wishes.words[0] if wishes.words else config.sources[-1])


if __name__ == "__main__":
    sys.exit(main())
