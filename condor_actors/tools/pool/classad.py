"""``condor_classad``: evaluate, match, explain, convert and check ClassAds from the command line.

====================================================  ===============================================
``condor_classad eval [-my AD] [-target AD] EXPR…``   the value of each expression
``condor_classad match AD AD``                        whether they accept each other, and their ranks
``condor_classad explain AD AD``                      clause by clause, and what would satisfy it
``condor_classad format [-to FORM] [FILE…]``          any form to any form
``condor_classad lint [FILE…] [-expr EXPR]``          what does not parse, and what looks wrong
``condor_classad --jsonl``                            ``{"expr", "my", "target"}`` in, unparsed result out
====================================================  ===============================================

An AD is a file, ``-`` for the standard input, or the ad itself (``[ a = 1 ]`` or ``{"a": 1}``).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from typing import Any

from condor_actors.classads import ClassAd, ClassAdSyntaxError, match_ads, parse_expression, rank, unparse
from condor_actors.classads.evaluation.running import evaluate_raw
from condor_actors.classads.forms.any_form import FORMS, ad_of, iter_ads, recognise, write_ads
from condor_actors.classads.language.lint import lint, lint_ad
from condor_actors.classads.matching.explain import Clause, explain, explain_many
from condor_actors.tools.lib.command import framed
from condor_actors.tools.manual.described_parser import DescribedParser
from condor_actors.written_text import read_written


class _Refused(Exception):
    """A mistake of the caller, told in one message."""


def _text_of(source: str) -> str:
    if source == "-":
        return sys.stdin.read()
    if source.lstrip()[:1] in ("[", "{", "<"):
        return source
    try:
        return read_written(source)
    except OSError as why:
        raise _Refused(f"cannot read {source}: {why.strerror}; give a file, '-' or an ad like '[ a = 1 ]'") from None


def _ads(source: str, form: Any = None) -> list[ClassAd]:
    text = _text_of(source)
    try:
        return list(iter_ads(text, form))
    except ClassAdSyntaxError as why:
        shown = source if text is not source else "the ad given"
        raise _Refused(f"{shown}: {why}") from None


def _first(source: str | None) -> ClassAd | None:
    if source is None:
        return None
    for ad in _ads(source):
        return ad
    raise _Refused(f"{source} holds no ad")


def _expression(text: str, library_numbers: bool = False) -> Any:
    try:
        return parse_expression(text, library_numbers=library_numbers)
    except ClassAdSyntaxError as why:
        raise _Refused(str(why)) from None


def _eval(options: argparse.Namespace) -> int:
    my, target = _first(options.my), _first(options.target)
    for text in options.expression:
        node = _expression(text, options.library_numbers)
        ads = _ads(options.each) if options.each else [my]
        for ad in ads:
            print(unparse(evaluate_raw(node, ad, target, options.now)))
    return 0


def _match(options: argparse.Namespace) -> int:
    left, right = _first(options.left), _first(options.right)
    assert left is not None
    assert right is not None
    matched = match_ads(left, right, options.now)
    print("match" if matched else "no match")
    print(f"rank of the right ad for the left one: {rank(left, right, options.now):g}")
    print(f"rank of the left ad for the right one: {rank(right, left, options.now):g}")
    return 0 if matched else 1


def _print_clause(clause: Clause) -> None:
    print(f"  {'+' if clause.holds else '-'} {clause.text}")
    if clause.holds:
        return
    print(f"      is {unparse(clause.value)}")
    for name, value in clause.facts:
        print(f"      {name} is {value}")
    if clause.remedy:
        print(f"      would pass if {clause.remedy}")


def _explain(options: argparse.Namespace) -> int:
    left = _first(options.left)
    others = _ads(options.right)
    if left is None or not others:
        raise _Refused(f"{options.right} holds no ad")
    if len(others) > 1:
        return _explain_many(left, others, options.attribute)
    right = others[0]
    bad = 0
    for title, my, target in (("left", left, right), ("right", right, left)):
        clauses = explain(my, target, options.attribute, options.now)
        print(f"{options.attribute} of the {title} ad:")
        for clause in clauses:
            _print_clause(clause)
        bad += sum(not clause.holds for clause in clauses)
    print("they match" if not bad else f"they do not match: {bad} clause{'s' if bad > 1 else ''} failed")
    return 1 if bad else 0


def _explain_many(my: ClassAd, others: list[ClassAd], attribute: str) -> int:
    tallies = explain_many(my, others, attribute)
    print(f"{attribute} against {len(others)} ads:")
    print("  accepts   left  if dropped  clause")
    for tally in tallies:
        print(f"  {tally.accepted:7} {tally.left:6} {tally.without:11}  {tally.text}")
        if tally.remedy and tally.accepted < len(others):
            print(f"                              the nearest refused ad would pass if {tally.remedy}")
    matched = tallies[-1].left if tallies else 0
    print(f"{matched} accepted")
    return 0 if matched else 1


def _format(options: argparse.Namespace) -> int:
    for source in options.source or ["-"]:
        text = _text_of(source)
        form = options.source_form or recognise(text)
        try:
            for piece in write_ads(iter_ads(text, form), options.to):
                sys.stdout.write(piece)
        except ClassAdSyntaxError as why:
            raise _Refused(f"{source}: {why}") from None
    return 0


def _lint(options: argparse.Namespace) -> int:
    count = 0
    for text in options.expr or []:
        for remark in lint(_expression(text)):
            print(f"{remark.text}: {remark.message}")
            count += 1
    sources = options.source or ([] if options.expr else ["-"])
    for source in sources:
        for number, ad in enumerate(_ads(source), 1):
            for remark in lint_ad(ad):
                print(f"{source}: ad {number}: {remark.place}: {remark.text}: {remark.message}")
                count += 1
    return 1 if count else 0


def answer(line: str) -> str:
    """Answer one line of the line mode.

    Args:
        line: a JSON object with ``expr`` and, optionally, ``my``, ``target`` (text of any form, or an object) and
            ``now``.

    Returns:
        the unparsed result, or ``!`` and what is wrong, on one line.
    """
    try:
        asked = json.loads(line)
        if not isinstance(asked, dict) or not isinstance(asked.get("expr"), str):
            return '!bad request: expected an object with a string "expr"'
        target = asked.get("target")
        now = asked.get("now")
        return unparse(
            evaluate_raw(
                parse_expression(asked["expr"]),
                ad_of(asked.get("my")),
                None if target is None else ad_of(target),
                now if isinstance(now, (int, float)) else None,
            )
        )
    except ClassAdSyntaxError as why:
        return f"!syntax error: {why.reason} (line {why.line}, column {why.column})"
    except (ValueError, TypeError, RecursionError) as why:
        return f"!bad request: {why}".replace("\n", " ")


def _lines() -> int:
    for line in sys.stdin:
        if line.strip():
            print(answer(line), flush=True)
    return 0


def command_parser() -> argparse.ArgumentParser:
    """The reader of its words."""
    parser = DescribedParser(prog="condor_classad")
    parser.add_argument("-jsonl", "--jsonl", action="store_true", help="answer JSON lines from the standard input")
    commands = parser.add_subparsers(dest="command")

    command = commands.add_parser("eval", help="evaluate expressions")
    command.add_argument("-my", "--my", metavar="AD", help="the ad whose names come first")
    command.add_argument("-target", "--target", metavar="AD", help="the other ad")
    command.add_argument("-each", "--each", metavar="ADS", help="evaluate against every ad of a file")
    command.add_argument(
        "-library-numbers", "--library-numbers", action="store_true", help="read 010 and 0x10 as the bare library does"
    )
    command.add_argument("expression", nargs="+")
    command.set_defaults(run=_eval)

    command = commands.add_parser("match", help="say whether two ads accept each other")
    command.add_argument("left", metavar="AD")
    command.add_argument("right", metavar="AD")
    command.set_defaults(run=_match)

    command = commands.add_parser("explain", help="say which clause fails and what would satisfy it")
    command.add_argument("-attribute", "--attribute", default="Requirements", help="default: Requirements")
    command.add_argument("left", metavar="AD")
    command.add_argument("right", metavar="AD", help="one ad, or many: then a table")
    command.set_defaults(run=_explain)

    command = commands.add_parser("format", help="convert between the forms")
    command.add_argument("-to", "--to", choices=FORMS, default="long",
                         help="the form of the result (default: long)")
    command.add_argument("-from", "--from", dest="source_form", choices=FORMS, help="default: recognised")
    command.add_argument("source", nargs="*", metavar="FILE")
    command.set_defaults(run=_format)

    command = commands.add_parser("lint", help="point at what does not parse or looks wrong")
    command.add_argument("-expr", "--expr", action="append", metavar="EXPR", help="an expression instead of a file")
    command.add_argument("source", nargs="*", metavar="FILE")
    command.set_defaults(run=_lint)

    for command in commands.choices.values():
        command.add_argument("-now", "--now", type=float, metavar="SECONDS", help="what time() gives (since 1970)")
    return parser


@framed
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        arguments: what stands behind the command's name; the process's own by default.

    Returns:
        0 for success, a match or nothing found; 1 otherwise; 2 for a wrong call.
    """
    parser = command_parser()
    options = parser.parse_args(arguments)
    if options.jsonl:
        return _lines()
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    try:
        status: int = options.run(options)
    except _Refused as why:
        print(f"condor_classad: {why}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
