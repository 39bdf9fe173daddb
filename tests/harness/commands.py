"""The commands that ``setup.cfg`` lists, whatever was installed last."""

from __future__ import annotations

from configparser import ConfigParser
from importlib.metadata import EntryPoint
from pathlib import Path

__all__ = ["COMMANDS", "program_of"]

GROUP = "condor_actors.commands"


def _listed() -> dict[str, EntryPoint]:
    setup = ConfigParser()
    setup.read(Path(__file__).resolve().parents[2] / "setup.cfg")
    lines = setup["options.entry_points"][GROUP].strip().split("\n")
    pairs = [line.split(" = ") for line in lines]
    return {name: EntryPoint(name, value, GROUP) for name, value in pairs}


COMMANDS = _listed()
"""The entry of each by its name."""


def program_of(name: str) -> str:
    """What ``python -c`` runs for a command; its name and its words follow."""
    entry = COMMANDS[name]
    return f"import sys; sys.argv.pop(0); from {entry.module} import {entry.attr} as main; sys.exit(main())"
