"""argparse, with the help that is made of a command's description."""

from __future__ import annotations

import argparse


class DescribedParser(argparse.ArgumentParser):
    """A parser whose ``prog`` is a command, or a command and its verb, that is described."""

    def format_help(self) -> str:
        """What ``--help`` prints."""
        from condor_actors.tools.manual.help_text import help_text

        return help_text(self.prog) + "\n"
