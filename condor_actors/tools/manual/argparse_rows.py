"""The options of a command, out of its argparse parser."""

from __future__ import annotations

import argparse

from condor_actors.tools.manual.description import Row, Undescribed, Verb

_COUNTS = {"?": "[{}]", "*": "[{} ...]", "+": "{} ...", argparse.REMAINDER: "{} ..."}


def verbs_in(parser: argparse.ArgumentParser) -> tuple[Verb, ...]:
    """The words that it takes first."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            texts = {each.dest: each.help or "" for each in action._choices_actions}
            return tuple(of_parser(name, each, texts.get(name, "")) for name, each in action.choices.items())
    return ()


def of_parser(name: str, parser: argparse.ArgumentParser, text: str = "") -> Verb:
    """One of those words, by the parser of what follows it."""
    return Verb(name=name, text=text or (parser.description or ""), synopsis=_synopsis(parser),
                rows=rows_of(parser))


def _synopsis(parser: argparse.ArgumentParser) -> str:
    words = []
    for action in parser._actions:
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            words.append(_COUNTS.get(str(action.nargs), "{}").format(_metavar(action)))
    return " ".join(words)


def rows_of(parser: argparse.ArgumentParser) -> tuple[Row, ...]:
    """Its options.

    Raises:
        Undescribed: one has no sentence.
    """
    rows = []
    for action in parser._actions:
        if not action.option_strings or isinstance(action, argparse._HelpAction):
            continue
        if not action.help:
            raise Undescribed(f"{parser.prog}: no sentence says what is the use of {action.option_strings[0]}")
        takes = "" if action.nargs == 0 else _metavar(action)
        rows.append(Row(tuple(action.option_strings), takes, parser._get_formatter()._expand_help(action),
                        choices=tuple(map(str, action.choices or ()))))
    return tuple(rows)


def _metavar(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
