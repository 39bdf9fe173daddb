"""``$$(Attribute)`` in a job: replaced by what the slot that was matched says.

``$$(Name)`` is the slot's attribute, ``$$(Name:default)`` has a default, ``$$([expression])`` is evaluated with the job
as MY and the slot as TARGET.

**Source**: the manual's section on substitution with ``$$()`` in submit descriptions.
"""

from __future__ import annotations

import re
from functools import partial

from condor_actors.classads import ERROR, UNDEFINED, ClassAd, ClassAdSyntaxError, parse_expression, unparse

__all__ = ["CannotExpand", "expand_slot_references"]

_REFERENCE = re.compile(
    r"\$\$\((?:\[(?P<expression>.*?)\]|(?P<name>[A-Za-z_][A-Za-z0-9_.]*)(?::(?P<default>[^)]*))?)\)"
)


class CannotExpand(ValueError):
    """A reference that the slot does not answer: names attribute and reference."""


def expand_slot_references(job: ClassAd, slot: ClassAd) -> dict[str, str]:
    """Replace the references in all strings of the job; returns what was replaced, by attribute.

    Raises:
        CannotExpand: the slot has no such attribute and there is no default.
    """
    changed: dict[str, str] = {}
    for name, value in list(job.stored_items()):
        if isinstance(value, str) and "$$(" in value:
            text = _REFERENCE.sub(partial(_value, attribute=name, job=job, slot=slot), value)
            if text != value:
                changed[name] = text
    for name, text in changed.items():
        job[name] = text
    return changed


def _value(match: re.Match[str], attribute: str, job: ClassAd, slot: ClassAd) -> str:
    if match["expression"] is not None:
        try:
            value = parse_expression(match["expression"]).evaluate(job, slot)
        except ClassAdSyntaxError as error:
            raise CannotExpand(f"Cannot expand {match[0]} in {attribute}: {error}") from None
    else:
        value = slot.evaluate(match["name"].rpartition(".")[2], job)
    if value is UNDEFINED or value is ERROR:
        if match["default"] is not None:
            return match["default"]
        raise CannotExpand(f"Cannot expand {match[0]} in {attribute}: the matched slot does not define it")
    return value if isinstance(value, str) else unparse(value, style="tools")
