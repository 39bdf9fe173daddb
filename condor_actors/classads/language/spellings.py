"""How attribute names are spelled: one table for the process, so that an ad need not remember what all agree on."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Final

_MAX_SPELLINGS: Final = 100_000
lower_of: dict[str, str] = {}
first_spelling: dict[str, str] = {}


def lower_name(name: str) -> str:
    """The key of an attribute name, remembering the first spelling seen.

    Args:
        name: As spelled.

    Returns:
        In lower case; equal names give the same object.
    """
    key = lower_of.get(name)
    if key is None:
        key = sys.intern(name.lower())
        if len(lower_of) < _MAX_SPELLINGS:
            first = first_spelling.setdefault(key, name)
            key = lower_of.setdefault(first, key)
            lower_of[name] = key
    return key
