"""Editing a configuration file so that a mistake never gets into force, and checking files beforehand.

`edit` works on a copy and puts it in place only when the whole configuration can be used with it. `check` is
``condor_config check [FILE…]``: it judges, and tells which daemons a change would restart.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from condor_actors.config import Config, ConfigError, load_config
from condor_actors.config.parameters.not_in_force import NOT_IN_FORCE
from condor_actors.durable import fresh_name
from condor_actors.tools.lib.command import framed, help_of, reminder_of

__all__ = ["check", "edit", "main"]



@framed
def main(words: Sequence[str] | None = None) -> int:
    """Entry of ``condor_config``; the exit status."""
    given = list(sys.argv[1:] if words is None else words)
    if {"-h", "-help", "--help"} & set(given):
        print(help_of("condor_config"))
        return 0
    if given[:1] != ["check"]:
        if given:
            print(f"condor_config: {given[0]} is nothing that it can do", file=sys.stderr)
        print(reminder_of("condor_config"), file=sys.stderr)
        return 1
    try:
        return check([Path(word) for word in given[1:]])
    except ConfigError as error:
        print(error, file=sys.stderr)
        return 1


def check(files: Sequence[Path]) -> int:
    """Judge the configuration of this machine with further files; 1 when it cannot be used."""
    present = load_config()
    wanted = with_files(files) if files else present
    problems = wanted.problems()
    for problem in problems:
        print(f"error: {problem}")
    for slip in wanted.slips():
        print(f"warning: {slip}")
    for definition in wanted.macros:
        if definition.name.upper() in NOT_IN_FORCE:
            print(f"warning: {definition.source.file}, line {definition.source.line}: {definition.name} has"
                  f" no effect: {NOT_IN_FORCE[definition.name.upper()]}")
    if files:
        tell_changes(present, wanted)
    if problems:
        print(f"{len(problems)} value{'s' if len(problems) > 1 else ''} cannot be used.")
        return 1
    print(f"The configuration can be used ({len(wanted.sources)} files).")
    return 0


def with_files(files: Sequence[Path]) -> Config:
    """The configuration of this machine as it would be with more files at its end."""
    return load_config(last=[file.absolute() for file in files])


def tell_changes(present: Config, wanted: Config) -> None:
    """Say which values change, and what has to restart for it."""
    for name, parameter in present.changed(wanted):
        if parameter is None:
            continue
        readers = ", ".join(parameter.read_by) or "every daemon"
        effect = "takes effect on condor_reconfig" if parameter.change == "live" else f"needs a restart of {readers}"
        print(f"change: {name} = {wanted.text(name) or ''} (was {present.text(name) or 'empty'}); {effect}")


def edit(name: str) -> int:
    """Open a configuration file in an editor; keep the result only if it can be used."""
    target = Path(name)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    copy = Path(tempfile.mkdtemp(prefix="condor_config.")) / target.name
    try:
        if target.exists():
            shutil.copy2(target, copy)
        else:
            copy.touch()
        before = copy.read_bytes()
        if subprocess.run([*editor.split(), str(copy)], check=False).returncode != 0:
            print(f"{editor} failed; {target} stays as it was", file=sys.stderr)
            return 1
        if copy.read_bytes() == before:
            print(f"{target} was not changed")
            return 0
        problems = with_files([copy]).problems()
        if problems:
            for problem in problems:
                print(problem, file=sys.stderr)
            print(f"{target} stays as it was", file=sys.stderr)
            return 1
        fresh = target.with_name(fresh_name(target.name))
        shutil.copy2(copy, fresh)
        fresh.replace(target)
    except (OSError, ConfigError) as error:
        print(f"{error}; {target} stays as it was", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(copy.parent, ignore_errors=True)
    print(f"{target} was changed; condor_reconfig puts it into force")
    return 0


if __name__ == "__main__":
    sys.exit(main())
