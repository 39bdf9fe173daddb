"""The flags that condor_submit_dag and condor_dagman share, and what they come to.

A flag that a SUBDAG's run has to have too is passed on from one to the other: `inherited_words`.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from condor_actors.tools.lib.command import ToolError
from condor_actors.tools.lib.flags import Flag, Given

__all__ = ["SHARED", "DagOptions", "inherited_words", "options_of"]

SHARED = (
    Flag("help", 1),
    Flag("version", 4),
    Flag("force", 1),
    Flag("verbose", 4),
    Flag("v", 1, alias="verbose"),
    Flag("dagman", 6, 1),
    Flag("notification", 3, 1),
    Flag("outfile_dir", 3, 1),
    Flag("update_submit", 2),
    Flag("import_env", 3),
    Flag("include_env", 3, 1),
    Flag("insert_env", 8, 1),
    Flag("usedagdir", 2),
    Flag("autorescue", 2, 1),
    Flag("dorescuefrom", 5, 1),
    Flag("dorecovery", 5),
    Flag("rescuefile", 7, 1),
    Flag("load_save", 1, 1),
    Flag("allowversionmismatch", 3, idle="both commands are of one version"),
    Flag("maxidle", 4, 1),
    Flag("maxjobs", 4, 1),
    Flag("maxpre", 5, 1),
    Flag("maxpost", 5, 1),
    Flag("maxhold", 4, 1),
    Flag("debug", 2, 1),
    Flag("lockfile", 2, 1),
    Flag("priority", 2, 1),
    Flag("batch-name", 3, 1),
    Flag("submitmethod", 2, 1, idle="jobs go straight to the schedd"),
    Flag("suppress_notification", 3),
    Flag("dont_suppress_notification", 6),
    Flag("alwaysrunpost", 2),
    Flag("dontalwaysrunpost", 5),
)
_NUMBERS = ("maxidle", "maxjobs", "maxpre", "maxpost", "maxhold", "priority", "dorescuefrom", "debug")


@attrs.define
class DagOptions:
    """What the flags say.

    Attributes:
        numbers: of those flags that take one, where they are given.
        texts: of the others that take a word.
        switches: those that are given and take nothing.
        environment_names, environment: of -include_env and -insert_env.
        files: the DAG files.
    """

    numbers: dict[str, int] = attrs.Factory(dict)
    texts: dict[str, str] = attrs.Factory(dict)
    switches: set[str] = attrs.Factory(set)
    environment_names: list[str] = attrs.Factory(list)
    environment: list[str] = attrs.Factory(list)
    files: list[str] = attrs.Factory(list)

    @property
    def primary(self) -> str:
        """The first DAG file."""
        return self.files[0]

    @property
    def always_post(self) -> bool | None:
        """Whether POST scripts always run; None: as configured."""
        if "dontalwaysrunpost" in self.switches:
            return False
        return True if "alwaysrunpost" in self.switches else None

    @property
    def auto_rescue(self) -> bool | None:
        """Whether the newest rescue file is used; None: as configured."""
        word = self.texts.get("autorescue")
        return None if word is None else word != "0"


def options_of(given: Sequence[Given]) -> DagOptions:
    """The options of a command line.

    Raises:
        ToolError: a number is none, or two flags each name a state to go on from.
    """
    options = DagOptions()
    for item in given:
        value = item.values[0] if item.values else ""
        if not item.name or item.name == "dag":
            options.files.append(value)
        elif item.name in _NUMBERS:
            if not (value.lstrip("-").isdecimal() and value.isascii()):
                raise ToolError(f"ERROR: {item.word} {value}: expected an integer")
            options.numbers[item.name] = int(value)
            if int(value) < 0 and item.name != "priority":
                raise ToolError(f"ERROR: {item.word} value must be non-negative; aborting.")
        elif item.name == "include_env":
            options.environment_names += [name for name in value.split(",") if name]
        elif item.name == "insert_env":
            options.environment.append(value)
        elif item.values:
            options.texts[item.name] = value
        else:
            options.switches.add(item.name)
        _refuse_conflict(options, item)
    return options


def _refuse_conflict(options: DagOptions, item: Given) -> None:
    """A flag that names a state to go on from, and those before it."""
    given = {*options.numbers, *options.texts, *options.switches}
    others = [_SPELLED[name] for name in _CONFLICTS.get(item.name, ()) if name in given]
    if others:
        raise ToolError(f"ERROR: {_SPELLED[item.name]} can not be used with the following flag"
                        f"{'s' if len(others) > 1 else ''}: {','.join(others)}: each names a state to go on from; "
                        "give one of them")


def inherited_words(options: DagOptions) -> list[str]:
    """The flags that a SUBDAG has too, as words of a command line."""
    words: list[str] = []
    for name in ("verbose", "force", "usedagdir", "update_submit", "import_env", "suppress_notification",
                 "dont_suppress_notification", "alwaysrunpost", "dontalwaysrunpost", "allowversionmismatch"):
        if name in options.switches:
            words.append(_SPELLED.get(name, f"-{name}"))
    for name in ("notification", "dagman", "outfile_dir", "autorescue", "batch-name"):
        if name in options.texts:
            words += [_SPELLED.get(name, f"-{name}"), options.texts[name]]
    if "maxhold" in options.numbers:
        words += ["-MaxHold", str(options.numbers["maxhold"])]
    if options.environment_names:
        words += ["-include_env", ",".join(options.environment_names)]
    for text in options.environment:
        words += ["-insert_env", text]
    return words


_SPELLED = {
    "verbose": "-Verbose", "force": "-Force", "usedagdir": "-UseDagDir", "suppress_notification":
    "-Suppress_notification", "dont_suppress_notification": "-Dont_Suppress_notification", "notification":
    "-Notification", "dagman": "-Dagman", "autorescue": "-AutoRescue", "batch-name": "-Batch-Name",
    "alwaysrunpost": "-AlwaysRunPost", "dontalwaysrunpost": "-DontAlwaysRunPost", "update_submit": "-Update_submit",
    "import_env": "-Import_env", "allowversionmismatch": "-AllowVersionMismatch", "dorecovery": "-DoRecovery",
    "dorescuefrom": "-DoRescueFrom", "rescuefile": "-RescueFile", "load_save": "-load_save",
}  # fmt: skip
_CONFLICTS = {
    "dorescuefrom": ("load_save", "rescuefile"), "rescuefile": ("load_save", "dorescuefrom"),
    "load_save": ("dorecovery", "dorescuefrom", "rescuefile"), "dorecovery": ("load_save",),
}
"""Flags of which one run can have one only."""
