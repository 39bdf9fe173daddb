"""What a job is to have at the schedd that it is handed to: ``remote_universe`` and ``remote_ATTRIBUTE``.

**Source**: the manual, "The Grid Universe", Condor-C.
"""

from __future__ import annotations

from condor_actors.messages.codes import Universe
from condor_actors.messages.references.grid_resources import (
    REMOTE,
    REMOTE_UNIVERSES,
    is_remote,
    remote_problem,
    schedd_of,
)
from condor_actors.numerals import numeral
from condor_actors.submit.build_context import BuildContext
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.keywords import KNOWN

__all__ = ["remote_attributes"]

_UNIVERSE = "remote_universe"
_ATTRIBUTE = "Remote_"


def remote_attributes(context: BuildContext) -> None:
    """``Remote_…`` of a job that is handed to another schedd."""
    if context.universe != Universe.GRID or schedd_of(context.get("GridResource")) is None:
        return
    for key in list(context.scope.assigned):
        if key.startswith("my.") and is_remote(key[3:]):
            _check(context, key, key[3:], "")
        elif is_remote(key) and key not in KNOWN:
            text = (context.text(key) or "").strip()
            if key == _UNIVERSE:
                if text.lower() not in REMOTE_UNIVERSES:
                    raise SubmitError(f"remote_universe = {text}: the other schedd is given jobs of the universes "
                                      f"{', '.join(REMOTE_UNIVERSES)}", command=key)
                context.set(f"{_ATTRIBUTE}JobUniverse", int(REMOTE_UNIVERSES[text.lower()]))
            elif text:
                name = _ATTRIBUTE + context.scope.spellings.get(key, key)[len(REMOTE):]
                _check(context, key, name, text)
                context.set_expression(name, text, key)


def _check(context: BuildContext, key: str, name: str, text: str) -> None:
    value = (text or context.scope.expand(context.scope.raw(key) or "")).strip()
    number = numeral(value)
    problem = remote_problem(name, value if number is None else number)
    if problem:
        raise SubmitError(f"{context.scope.spellings.get(key, key)} = {value}: {problem}", command=key)
