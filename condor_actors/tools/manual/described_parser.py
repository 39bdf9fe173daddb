"""argparse, with the help that is made of a command's description."""

from __future__ import annotations

import argparse
from typing import Any


class DescribedParser(argparse.ArgumentParser):
    """A parser whose ``prog`` is a command, or a command and its verb, that is described.

    It prints help for ``-help``, as all commands do, besides argparse's own ``-h`` and ``--help``.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **(options | {"add_help": False}))
        self.add_argument("-h", "-help", "--help", action="help", help="print this and end")

    def format_help(self) -> str:
        """What ``-help`` prints."""
        from condor_actors.tools.manual.help_text import help_text

        return help_text(self.prog) + "\n"
