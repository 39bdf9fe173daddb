"""Names bound to values: the mapping under an ad.

Attributes lie in a dictionary by lower-case name. Spellings live apart: one table for the whole process keeps the
first spelling seen of every name, an ad keeps only those of its own that differ. An ad can be chained to another (a job
to its cluster): what it does not have itself it shows from there, at the price of an empty dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping

from condor_actors.classads.language.expressions import ListExpr, RecordExpr
from condor_actors.classads.language.spellings import first_spelling, lower_name
from condor_actors.classads.stored_values import checked, fit_key, fit_names, shown
from condor_actors.classads.values import INT_MAX, INT_MIN, Value, wrap

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final

    from condor_actors.classads.ad import ClassAd
else:
    Any = object

_ALL_FIRST: Final[Mapping[str, str]] = {}

NOTHING: Final[dict[str, Any]] = {}
"""What every ad without own attributes has; never written to."""


class Deleted:
    """Marks an attribute of the parent that a chained ad does not show."""

    __slots__ = ()


DELETED: Final = Deleted()


class AttributeMap(MutableMapping[str, Any]):
    """The attributes of an ad: a mapping that ignores case and keeps spelling and order.

    Args:
        mapping: Attributes to begin with.
        parent: The ad it is chained to; lookups fall through to it, changes never reach it.

    Attributes:
        own: Its own attributes by lower-case name.
        parent: The ad it is chained to.
        scope: The record around it, whose names its expressions see too.
        spellings: Its own attributes that are spelled differently from when first seen, by lower-case name.
    """

    __slots__ = ("own", "parent", "scope", "spellings")

    own: dict[str, Any]
    parent: ClassAd | None
    scope: ClassAd | None
    spellings: dict[str, str] | None

    def __init__(
        self, mapping: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, parent: ClassAd | None = None
    ) -> None:
        self.own = NOTHING
        self.parent = parent
        self.scope = None
        self.spellings = None
        if mapping:
            self.update(mapping)

    # -- the bare store, for this package's hot paths

    def find(self, key: str) -> Value:
        """What is stored under a lower-case name, here or along the chain.

        Args:
            key: The name in lower case.

        Returns:
            Value or expression, None when there is none.
        """
        value = self.own.get(key)
        if value is None:
            parent = self.parent
            while parent is not None:
                value = parent.own.get(key)
                if value is not None:
                    return None if value is DELETED else value
                parent = parent.parent
        elif value is DELETED:
            return None
        return value

    def store(self, name: str, value: Value) -> None:
        """Keep a value that is known to be fit.

        Args:
            name: As spelled.
            value: As `checked` gives it.
        """
        key = lower_name(name)
        if self.own is NOTHING:
            self.own = {key: value}
        else:
            self.own[key] = value
        if first_spelling.get(key) != name:
            if self.spellings is None:
                self.spellings = {}
            self.spellings[key] = name
        elif self.spellings is not None:
            self.spellings.pop(key, None)

    def spelling(self, key: str) -> str:
        """How a name, given in lower case, is spelled here."""
        if self.spellings is not None:
            name = self.spellings.get(key)
            if name is not None:
                return name
        if self.parent is not None and key not in self.own:
            return self.parent.spelling(key)
        return first_spelling.get(key, key)

    def stored_items(self) -> Iterator[tuple[str, Value]]:
        """Spelling and stored value of every attribute, the chained ones first."""
        values, spelled = self.merged()
        for key, value in values.items():
            yield spelled.get(key) or first_spelling.get(key, key), value

    def merged(self) -> tuple[Mapping[str, Value], Mapping[str, str]]:
        """What is stored here and along the chain by lower-case name, and the spellings that are not the first seen."""
        parent, own = self.parent, self.spellings
        if parent is None:
            return self.own, own or _ALL_FIRST
        _, above = parent.merged() if parent.parent is not None else (None, parent.spellings)
        if above:
            own = {**{key: name for key, name in above.items() if key not in self.own}, **(own or {})}
        return self._merged(), own or _ALL_FIRST

    def _merged(self) -> dict[str, Any]:
        if self.parent is None:
            return self.own
        merged = dict(self.parent._merged())
        for key, value in self.own.items():
            if value is DELETED:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged

    # -- the mapping

    def __getitem__(self, name: str) -> Value:
        value = self.find(name.lower())
        if value is None:
            raise KeyError(name)
        return shown(value) if type(value) is ListExpr or type(value) is RecordExpr else value

    def __setitem__(self, name: str, value: Value) -> None:
        key = fit_names.get(name)
        if key is None:
            key = fit_key(name)
        kind = value.__class__
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                value = wrap(value)
        elif kind is str:
            if "\0" in value:
                value = checked(value)
        elif kind is not float and kind is not bool:
            value = checked(value)
        if self.own is NOTHING:
            self.own = {key: value}
        else:
            self.own[key] = value
        if first_spelling.get(key) != name:
            if self.spellings is None:
                self.spellings = {}
            self.spellings[key] = name
        elif self.spellings is not None:
            self.spellings.pop(key, None)

    def __delitem__(self, name: str) -> None:
        key = name.lower()
        if self.find(key) is None:
            raise KeyError(name)
        self.own.pop(key, None)
        if self.spellings is not None:
            self.spellings.pop(key, None)
        if self.parent is not None and self.parent.find(key) is not None:
            self.own = {**self.own, key: DELETED}

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.find(name.lower()) is not None

    def __iter__(self) -> Iterator[str]:
        for key in self._merged():
            yield self.spelling(key)

    def __len__(self) -> int:
        return len(self._merged())

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, AttributeMap):
            return NotImplemented
        return _comparable(self) == _comparable(other)

    __hash__ = None  # type: ignore[assignment]  # an ad changes


def _comparable(ad: AttributeMap) -> dict[str, str]:
    from condor_actors.classads.language.unparse import unparse

    return {key: unparse(value, style="wire") for key, value in ad._merged().items()}
