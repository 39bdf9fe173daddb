"""``$$(Attribute)`` in a job: replaced by what the slot that was matched says.

``$$(Name)`` is the slot's attribute, ``$$(Name:default)`` has a default, ``$$([expression])`` is evaluated with the job
as MY and the slot as TARGET.

Theory: what the slot says is a machine's word, and the job's ad says which files of its owner are read and written at
home.  So a value is one word of the kind that stands where the reference stood: no control characters anywhere; in the
environment no variable that the job does not name; and elsewhere, but in arguments, nothing that could lead to another
file or begin another item of a list.  What the owner has written, a default or a string in the expression, is as it is.

**Source**: the manual's section on substitution with ``$$()`` in submit descriptions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial

import attrs

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, ClassAdSyntaxError, parse_expression, unparse
from condor_actors.cores.argument_quoting import UnbalancedQuote, split_raw
from condor_actors.messages.codes import Universe

__all__ = ["CannotExpand", "expand_slot_references"]

_BEGINS = "$$("
MOST_MISSED = 1000
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,255}")


@attrs.frozen
class _Reference:
    """One in a text.

    Attributes:
        text: all of it; end: where it ends.
        name, default: of the first form; default None: it has none.
        expression: of the other one; None: it is of the first.
    """

    text: str
    end: int
    name: str = ""
    default: str | None = None
    expression: str | None = None


def _reference_at(text: str, start: int) -> _Reference | None:
    """The reference that begins here; None: there is none."""
    inner = start + len(_BEGINS)
    if text.startswith("[", inner):
        end = text.find("])", inner)
        return None if end < 0 else _Reference(text[start:end + 2], end + 2, expression=text[inner + 1:end])
    named = _NAME.match(text, inner)
    if named is None:
        return None
    if text.startswith(")", named.end()):
        return _Reference(text[start:named.end() + 1], named.end() + 1, named[0])
    end = text.find(")", named.end()) if text.startswith(":", named.end()) else -1
    return None if end < 0 else _Reference(text[start:end + 1], end + 1, named[0], text[named.end() + 1:end])


def _replaced(text: str, value: Callable[[_Reference], str]) -> str:
    """The text with each reference replaced.  What has no end is looked for a limited number of times."""
    found: list[str] = []
    done, start, missed = 0, text.find(_BEGINS), 0
    while start >= 0 and missed < MOST_MISSED:
        reference = _reference_at(text, start)
        if reference is None:
            missed += 1
            start = text.find(_BEGINS, start + 1)
            continue
        found += text[done:start], value(reference)
        done = reference.end
        start = text.find(_BEGINS, done)
    return "".join((*found, text[done:]))


_WORDS = frozenset({"arguments", "args"})
_VARIABLES = frozenset({"environment", "env"})
_LEADS_ELSEWHERE = frozenset("/,;='\"\\")
_PLACE = "_"
"""Stands for a value of the slot where the names of variables are looked at."""


class CannotExpand(ValueError):
    """A reference that the slot does not answer, or not with a word that may stand there: names attribute and
    reference."""


def expand_slot_references(job: ClassAd, slot: ClassAd) -> dict[str, str]:
    """Replace the references in all strings of the job; returns what was replaced, by attribute.

    Raises:
        CannotExpand: the slot has no such attribute and there is no default.
    """
    changed: dict[str, str] = {}
    for name, value in list(job.stored_items()):
        if isinstance(value, str) and "$$(" in value:
            text = _replaced(value, partial(_value, attribute=name, job=job, slot=slot))
            if text != value:
                changed[name] = text
                meant = _replaced(value, lambda _: _PLACE) if name.lower() in _VARIABLES else ""
                if name.lower() in _VARIABLES and _names(name, text) != _names(name, meant):
                    raise CannotExpand(f"Cannot expand {value} in {name}: what the matched slot says would set other "
                                       "variables than the job names; put single quotes around NAME=$$(...)")
    for name, text in changed.items():
        job[name] = text
    return changed


def _value(match: _Reference, attribute: str, job: ClassAd, slot: ClassAd) -> str:
    if match.expression is not None:
        try:
            value = parse_expression(match.expression).evaluate(job, slot)
        except ClassAdSyntaxError as error:
            raise CannotExpand(f"Cannot expand {match.text} in {attribute}: {error}") from None
    else:
        value = slot.evaluate(match.name.rpartition(".")[2], job)
    if value is UNDEFINED or value is ERROR:
        if match.default is not None:
            return match.default
        raise CannotExpand(f"Cannot expand {match.text} in {attribute}: the matched slot does not define it")
    text = value if isinstance(value, str) else unparse(value, style="tools")
    if f'"{text}"' not in (match.expression or ""):
        _check_word(text, match.text, attribute, job)
    return text


def _check_word(text: str, reference: str, attribute: str, job: ClassAd) -> None:
    """Refuse a machine's word that could mean more than itself where it is to stand."""
    key = attribute.lower()
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in text):
        raise CannotExpand(f"Cannot expand {reference} in {attribute}: what the matched slot says, {text[:80]!r}, has "
                           "control characters")
    if key in _WORDS or key in _VARIABLES or (key == "cmd" and _is_of_machine(job)):
        return
    if text in (".", "..") or not _LEADS_ELSEWHERE.isdisjoint(text):
        raise CannotExpand(f"Cannot expand {reference} in {attribute}: what the matched slot says, {text[:80]!r}, "
                           "could lead to another file; a machine names files of its own in arguments and environment, "
                           "or in an executable with transfer_executable = false")


def _is_of_machine(job: ClassAd) -> bool:
    """Whether the executable is a file of the machine that runs it."""
    return not job.get_bool("TransferExecutable", True) and job.get_int("JobUniverse") != Universe.STANDARD


def _names(attribute: str, text: str) -> list[str]:
    """The variables that an environment sets."""
    try:
        entries = split_raw(text) if attribute.lower() == "environment" else text.split(";")
    except UnbalancedQuote:
        return []
    return [entry.partition("=")[0] for entry in entries]
