"""The options of the words of ``condor_checkpoint``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import NoReturn

from condor_actors.tools.manual.described_parser import DescribedParser

__all__ = ["PARSERS", "BadCall"]


class BadCall(Exception):
    """A mistake of the caller, told in one message."""


class _Parser(DescribedParser):
    def error(self, message: str) -> NoReturn:
        raise BadCall(f"{self.prog.partition(' ')[2]}: {message}; see {self.prog} --help")


def _parser(command: str, purpose: str) -> _Parser:
    return _Parser(prog=f"condor_checkpoint {command}", description=purpose, allow_abbrev=False)


def _parser_of_runs(command: str, purpose: str, image: str) -> _Parser:
    """What ``run`` and ``restart`` have in common; IMAGE says where checkpoints go."""
    parser = _parser(command, purpose)
    parser.add_argument("--every", metavar="TIME", help="checkpoints on a timer: 60, 60s, 10m, 1h")
    parser.add_argument("--image", metavar="FILE", help=f"where checkpoints go (default: {image})")
    parser.add_argument("--job-root", metavar="DIR", help="the program uses no files but those below DIR, and reads "
                                                          "those that every program needs")
    parser.add_argument("--statistics", action="store_true", help="tell at the end what was done")
    return parser


def _run() -> _Parser:
    parser = _parser_of_runs("run", "run a program under the runtime", "the program's name with .ckpt")
    parser.add_argument("words", nargs=argparse.REMAINDER, metavar="-- PROGRAM ARGUMENTS")
    return parser


def _now() -> _Parser:
    parser = _parser("now", "have a program that runs under condor_checkpoint write a checkpoint now")
    parser.add_argument("pid", metavar="PID", help="of condor_checkpoint, or of the program itself")
    return parser


def _restart() -> _Parser:
    parser = _parser_of_runs("restart", "continue a program from a checkpoint", "FILE itself")
    parser.add_argument("file", metavar="FILE")
    return parser


def _info() -> _Parser:
    parser = _parser("info", "show what is in a checkpoint")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser


def _verify() -> _Parser:
    parser = _parser("verify", "look whether a checkpoint is whole")
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser


def _core() -> _Parser:
    parser = _parser("core", "make a core file of a checkpoint, for gdb")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("core", metavar="CORE", nargs="?", default="core", help="where it is to go (default: core)")
    return parser


def _preflight() -> _Parser:
    parser = _parser("preflight", "tell whether and where a program can run, and which of its calls would be refused")
    parser.add_argument("programs", nargs="+", metavar="PROGRAM")
    return parser


PARSERS: Mapping[str, Callable[[], argparse.ArgumentParser]] = {
    "run": _run, "now": _now, "restart": _restart, "info": _info, "verify": _verify, "core": _core,
    "preflight": _preflight,
}  # fmt: skip
"""The makers of their parsers; those of ``job`` are of `condor_actors.tools.lib.job_actions`."""
