"""Reading a configuration: which files, in which order, and what their statements do.

The first file is ``$CONDOR_CONFIG``, else ``~/.condor/condor_config``, ``/etc/condor/condor_config``,
``/usr/local/etc/condor_config``, ``~condor/condor_config``, and last the caller's own personal pool. What it names as
LOCAL_CONFIG_DIR and LOCAL_CONFIG_FILE follows, then the user's file, what condor_config_val -set kept, and
``_CONDOR_NAME`` in the environment. Later wins. ``CONDOR_CONFIG=ONLY_ENV`` reads no file.

Source: HTCondor manual, Introduction to Configuration, "Ordered Evaluation to Set the Configuration".
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from condor_actors import accounts
from condor_actors.config.conditions import Conditions
from condor_actors.config.config import Config
from condor_actors.config.detected import Detected, home_of_condor
from condor_actors.config.errors import ConfigError
from condor_actors.config.functions import ConfigFunctions
from condor_actors.config.lines import LogicalLine, logical_lines
from condor_actors.config.macros import MacroSet, Source
from condor_actors.config.parameters import default_text
from condor_actors.config.templates import template_statements
from condor_actors.patterns import late
from condor_actors.written_text import NotText, printed_text, read_written

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from pathlib import Path
    from typing import Final

__all__ = ["find_root_file", "load_config", "own_home"]

DEEPEST_INCLUDE: Final = 10
"""How many files may include one another; HTCondor stops there too."""
MOST_FILE_BYTES: Final = 64 << 20
COMMAND_S: Final = 60.0
"""How long a command may take whose output is included."""

_ASSIGNMENT: Final = late(r"((?:[A-Za-z_]|\$\([^()]*\))(?:[\w.]|\$\([^()]*\))*)\s*(\+?=|:)\s*(.*)", "s")
_INCLUDE: Final = late(
    r"@?include\b\s*(?P<ifexist>ifexist\b)?\s*(?P<command>command\b)?\s*(?:into\s+(?P<into>[^:]+?))?\s*:\s*(?P<what>.*)",
    "is",
)
_USE: Final = late(r"@?use\s+(?P<category>\w+)\s*:\s*(?P<templates>.*)", "is")
_MESSAGE: Final = late(r"@?(?P<kind>warning|error)\s*:\s*(?P<text>.*)", "is")
_TEMPLATE: Final = late(r"\s*+,?\s*+(?P<name>[\w.]+)\s*")
_BETWEEN: Final = late(r"[,\s]+")
_NAME: Final = late(r"[A-Za-z_][\w.]*")

ENVIRONMENT: Final = "<Environment>"


def load_config(
    *,
    subsystem: str = "TOOL",
    local_name: str | None = None,
    environ: Mapping[str, str] | None = None,
    files: Sequence[Path] | None = None,
    last: Sequence[Path] = (),
    overrides: Mapping[str, str] | None = None,
    reads_user_file: bool = True,
) -> Config:
    """Read the configuration as one program sees it.

    Args:
        subsystem: of the program; ``SUBSYSTEM.NAME`` then sets NAME for it alone.
        local_name: of one among several daemons of a kind (``-local-name``).
        environ: where CONDOR_CONFIG and ``_CONDOR_NAME`` are looked for; by default this process's.
        files: read these first instead of searching for the first file.
        last: files read after all others, as if they stood at the end of LOCAL_CONFIG_DIR.
        overrides: set last of all, as if on the command line.
        reads_user_file: False: not what an ordinary user has below his home.

    Returns:
        The configuration. Values are not judged yet; see `Config.problems`.

    Raises:
        ConfigError: a file that cannot be read, or a statement that is none.
    """
    loader = Loader(subsystem, local_name, os.environ if environ is None else environ, reads_user_file)
    return loader.load(files, last, overrides or {})


def own_home() -> Path | None:
    """The caller's home folder as the user database has it, whatever ``HOME`` says."""
    from pathlib import Path

    home = _own_home()
    return Path(home) if home else None


def _own_home() -> str:
    try:
        found = accounts.numbered(os.geteuid())
    except accounts.NotYet:
        return ""
    return found.home if found is not None else ""


def find_root_file(environ: Mapping[str, str]) -> str | None:
    """The first configuration file, or None when there is none (or ``ONLY_ENV`` says so).

    CONDOR_CONFIG = /dev/null counts as not set: programs leave it to the tools that they call when they found no
    configuration themselves.

    Raises:
        ConfigError: CONDOR_CONFIG names a file that is not there.
    """
    named = environ.get("CONDOR_CONFIG", "").strip()
    if named.upper() == "ONLY_ENV":
        return None
    if named and named != os.devnull:
        if not named.endswith("|") and not os.path.isfile(named):
            raise ConfigError(
                f"CONDOR_CONFIG names {named}, which is not a file that can be read",
                name="CONDOR_CONFIG",
                value=named,
                expected="an existing file, or ONLY_ENV",
            )
        return named
    home = _own_home()
    condor = home_of_condor()
    places = [
        home and os.path.join(home, ".condor/condor_config"),
        "/etc/condor/condor_config",
        "/usr/local/etc/condor_config",
        condor and os.path.join(condor, "condor_config"),
        home and os.path.join(home, ".condor/personal/condor_config"),
    ]
    return next((place for place in places if place and os.access(place, os.R_OK)), None)


class Loader:
    """One reading of a configuration."""

    def __init__(self, subsystem: str, local_name: str | None, environ: Mapping[str, str],
                 reads_user_file: bool = True) -> None:
        self._reads_user_file = reads_user_file
        known = {"SUBSYSTEM": subsystem.upper(), "LOCALNAME": local_name or subsystem.upper()}
        self._environ = environ
        self._known = known
        self.macros = self._macro_set(subsystem, local_name)
        self.sources: list[str] = []
        self.warnings: list[str] = []

    def _macro_set(self, subsystem: str, local_name: str | None) -> MacroSet:
        self._detected = Detected(self._known)
        return MacroSet(
            subsystem,
            local_name,
            self._detected,
            lambda name: default_text(name, subsystem),
            ConfigFunctions(self._environ),
        )

    def load(self, files: Sequence[Path] | None, last: Sequence[Path], overrides: Mapping[str, str]) -> Config:
        """Read everything in order."""
        if files is None:
            root = find_root_file(self._environ)
            if root is not None:
                if not root.endswith("|"):
                    self._detected.add("CONFIG_ROOT", os.path.dirname(os.path.abspath(root)))
                self._read_listed(root)
                self._read_locals()
        else:
            for file in files:
                self._read_file(str(file), 0)
            if files:
                self._read_locals()
        for file in last:
            self._read_file(str(file), 0)
        self._read_settings()
        for name, value in self._environ.items():
            if name[:8].upper() == "_CONDOR_" and len(name) > 8:
                self.macros.define(name[8:], value, Source(ENVIRONMENT))
        for name, value in overrides.items():
            self.macros.define(name, value, Source("<Command Line>"))
        return Config(self.macros, tuple(self.sources), tuple(self.warnings))

    def _read_locals(self) -> None:
        folders = self._value("LOCAL_CONFIG_DIR")
        self._read_folders(folders)
        self._read_local_files()
        again = self._value("LOCAL_CONFIG_DIR")
        if again != folders:
            self._read_folders(again)
        self._read_user_file()

    def _read_local_files(self) -> None:
        """LOCAL_CONFIG_FILE, read again from the start of its new value when one of the files changes it."""
        done: set[str] = set()
        while True:
            listed = self._value("LOCAL_CONFIG_FILE")
            if listed.rstrip().endswith("|"):
                if listed not in done:
                    done.add(listed)
                    self._read_listed(listed)
                return
            names = [name for name in _BETWEEN.split(listed) if name and name not in done]
            if not names:
                return
            done.add(names[0])
            if os.path.exists(names[0]) or self._required():
                self._read_file(names[0], 0)

    def _required(self) -> bool:
        return (self._value("REQUIRE_LOCAL_CONFIG_FILE") or "true").upper() in ("TRUE", "YES", "1", "T")

    def _read_folders(self, folders: str) -> None:
        excluded = late(self._value("LOCAL_CONFIG_DIR_EXCLUDE_REGEXP") or r"(?!)")
        for folder in _BETWEEN.split(folders):
            if not folder:
                continue
            try:
                names = sorted(os.listdir(folder))
            except FileNotFoundError:
                continue
            except OSError as error:
                source = self.macros.find("LOCAL_CONFIG_DIR")
                raise ConfigError(f"LOCAL_CONFIG_DIR: {folder} cannot be read: {error.strerror}",
                                  file=source.source.file if source else None,
                                  line=source.source.line if source else None, name="LOCAL_CONFIG_DIR", value=folder,
                                  expected="a folder of configuration files") from None
            for name in names:
                path = os.path.join(folder, name)
                if not excluded.search(name) and os.path.isfile(path):
                    self._read_file(path, 0)

    def _read_settings(self) -> None:
        """What condor_config_val -set and -rset kept for this daemon, where its owner allows that.

        Root reads only what is root's: the daemons' account writes these files, and could make itself root by them.
        """
        for allowed, suffix in (("ENABLE_PERSISTENT_CONFIG", ""), ("ENABLE_RUNTIME_CONFIG", f".{os.getpid()}")):
            folder = self._value("PERSISTENT_CONFIG_DIR") or os.path.join(self._value("LOCAL_DIR"), "config")
            if self._value(allowed).upper() in ("TRUE", "YES", "1", "T"):
                path = os.path.join(folder, f".config.{self.macros.subsystem}{suffix}")
                from condor_actors.own_files import read_own

                if content := read_own(path, roots=True):
                    self._read_text(content.decode(errors="surrogateescape"), path, 0)

    def _read_user_file(self) -> None:
        """``~/.condor/user_config`` of an ordinary user; root's daemons do not look at homes."""
        if os.geteuid() == 0 or not self._reads_user_file:
            return
        name = self._value("USER_CONFIG_FILE")
        home = _own_home()
        if not name or not home:
            return
        path = os.path.join(home, ".condor", name)
        if os.path.isfile(path):
            self._read_file(path, 0)

    def _value(self, name: str) -> str:
        raw = self.macros.raw(name)
        return self.macros.expand(raw) if raw else ""

    def _read_listed(self, name: str) -> None:
        """A file, or with a bar at the end the output of a program."""
        if name.rstrip().endswith("|"):
            command = name.rstrip()[:-1].strip()
            self._read_text(self._output_of(command, None), f"{command} |", 0)
        else:
            self._read_file(name, 0)

    def _read_file(self, name: str, depth: int, includer: LogicalLine | None = None) -> None:
        try:
            content = read_written(name, most_bytes=MOST_FILE_BYTES).replace("\r\n", "\n")
        except NotText as error:
            raise ConfigError(error.problem, file=name, line=error.line) from None
        except OSError as error:
            raise ConfigError(
                f"cannot read the configuration file {name}: {error.strerror}",
                file=includer.file if includer else None,
                line=includer.line if includer else None,
                value=name,
            ) from None
        self._read_text(content, name, depth)

    def _read_text(self, content: str, name: str, depth: int, template: str = "") -> None:
        if depth > DEEPEST_INCLUDE:
            raise ConfigError(
                "files include one another without end", file=name, expected="at most ten levels"
            )
        if not template:
            self.sources.append(name)
        conditions = Conditions(self.macros)
        for line in logical_lines(content.replace("\r\n", "\n"), name):
            try:
                if not conditions.take(line) and conditions.open:
                    self._statement(line, depth, template)
            except ConfigError as error:
                if error.file is not None:
                    raise
                raise ConfigError(
                    error.problem,
                    file=line.file,
                    line=line.line,
                    name=error.name,
                    value=error.value,
                    expected=error.expected,
                    nearest=error.nearest,
                ) from None
        conditions.finish(name)

    def _statement(self, line: LogicalLine, depth: int, template: str) -> None:
        source = Source(line.file, line.line, template)
        if line.block is not None:
            self.macros.define(self._name(line.text, line), line.block, source)
            return
        text = line.text
        first = text.lstrip("@")[:8].lower()
        if first.startswith("include") and (match := _INCLUDE.fullmatch(text)):
            self._include(match, line, depth)
        elif first.startswith("use") and (match := _USE.fullmatch(text)):
            self._use(match["category"], match["templates"], line, depth)
        elif first.startswith(("warning", "error")) and (match := _MESSAGE.fullmatch(text)):
            self._message(match["kind"].lower(), self.macros.expand(match["text"]), line)
        elif match := _ASSIGNMENT.fullmatch(text):
            put = self.macros.append if match[2] == "+=" else self.macros.define
            put(self._name(match[1], line), match[3], source)
        elif not text.startswith("["):
            raise ConfigError(
                f"this line is no statement: {text[:80]}",
                file=line.file,
                line=line.line,
                value=text[:200],
                expected="NAME = value",
            )

    def _name(self, written: str, line: LogicalLine) -> str:
        """The name that a statement sets; macros in it are replaced at once."""
        if "$(" not in written:
            return written
        name = self.macros.expand(written).strip()
        if _NAME.fullmatch(name) is None:
            raise ConfigError(f"{written} stands for {name!r}, which is no name", file=line.file, line=line.line,
                              value=name, expected="a name of letters, digits, _ and .")
        return name

    def _message(self, kind: str, text: str, line: LogicalLine) -> None:
        if kind == "error":
            raise ConfigError(text, file=line.file, line=line.line)
        self.warnings.append(f"{line.file}, line {line.line}: {text}")

    def _include(self, match: re.Match[str], line: LogicalLine, depth: int) -> None:
        what = self.macros.expand(match["what"]).strip()
        optional = match["ifexist"] is not None
        piped = what.endswith("|")
        if not match["command"] and not piped:
            if not optional or os.path.exists(what):
                self._read_file(what, depth + 1, line)
            return
        command = what[:-1].strip() if piped else what
        cache = self.macros.expand(match["into"]).strip() if match["into"] else None
        if cache and os.path.isfile(cache):
            self._read_file(cache, depth + 1, line)
            return
        try:
            output = self._output_of(command, line)
        except ConfigError:
            if optional:
                return
            raise
        if cache:
            from pathlib import Path

            from condor_actors.durable import write_whole

            try:
                write_whole(Path(cache), output.encode("utf-8", "surrogateescape"), 0o644)
            except OSError as error:
                raise ConfigError(f"cannot keep what {command} prints: {error.strerror}", file=line.file,
                                  line=line.line, value=cache) from None
        self._read_text(output, cache or f"{command} |", depth + 1)

    def _output_of(self, command: str, line: LogicalLine | None) -> str:
        """What a program prints; any failure of it is an error of the configuration."""
        import shlex

        file, number = (line.file, line.line) if line else (None, None)
        try:
            if not (words := shlex.split(command)):
                raise ValueError("it names no command")
            return printed_text(words, most_bytes=MOST_FILE_BYTES, patience_s=COMMAND_S,
                                environ=dict(self._environ))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise ConfigError(f"cannot take what {command} prints: {why}", file=file, line=number,
                              value=command) from None

    def _use(self, category: str, wanted: str, line: LogicalLine, depth: int) -> None:
        for name, arguments in _templates_of(self.macros.expand(wanted), line):
            content = template_statements(category, name, arguments)
            if content is None:
                raise unknown_template(category, name, line)
            label = f"{category.upper()}:{name}"
            self._read_template(content, line, depth + 1, label)

    def _read_template(self, content: str, line: LogicalLine, depth: int, label: str) -> None:
        if depth > DEEPEST_INCLUDE:
            raise ConfigError("templates use one another without end", file=line.file, line=line.line)
        conditions = Conditions(self.macros)
        for inner in logical_lines(content, line.file):
            placed = LogicalLine(inner.text, line.file, line.line, inner.block)
            if not conditions.take(placed) and conditions.open:
                self._statement(placed, depth, label)


def unknown_template(category: str, name: str, line: LogicalLine) -> ConfigError:
    """That no such template exists, with the nearest that does, or why it is refused."""
    from condor_actors.config.errors import nearest_word
    from condor_actors.config.templates import categories, template_names
    from condor_actors.config.templates_refused import why_refused

    why = why_refused(category, name)
    if why is not None:
        return ConfigError(f"{category.upper()}:{name} cannot be used: {why}", file=line.file, line=line.line)
    if category.upper() not in categories():
        return ConfigError(
            f"there is no category of templates called {category}",
            file=line.file,
            line=line.line,
            value=category,
            expected="one of " + ", ".join(categories()),
            nearest=nearest_word(category, categories()),
        )
    names = template_names(category)
    return ConfigError(
        f"there is no template {category.upper()}:{name}",
        file=line.file,
        line=line.line,
        value=name,
        expected="one of " + ", ".join(names),
        nearest=nearest_word(name, names),
    )


def _templates_of(text: str, line: LogicalLine) -> list[tuple[str, str | None]]:
    """``A, B(x, y) C`` as pairs of a name and the text of its arguments."""
    found: list[tuple[str, str | None]] = []
    at = 0
    while at < len(text.rstrip()):
        match = _TEMPLATE.match(text, at)
        if match is None:
            raise ConfigError(
                f"cannot read the templates {text!r}", file=line.file, line=line.line, value=text
            )
        at = match.end()
        arguments = None
        if at < len(text) and text[at] == "(":
            closed = _matching(text, at)
            if closed is None:
                raise ConfigError(
                    f"a parenthesis is not closed in {text!r}", file=line.file, line=line.line, value=text
                )
            arguments = text[at + 1 : closed]
            at = closed + 1
        found.append((match["name"], arguments))
    return found


def _matching(text: str, opened: int) -> int | None:
    level = 0
    for index in range(opened, len(text)):
        level += {"(": 1, ")": -1}.get(text[index], 0)
        if level == 0:
            return index
    return None
