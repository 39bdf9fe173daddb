"""ClassAd: names, each bound to a value or an expression.

Attributes lie in a dictionary by lower-case name. Spellings live apart: one table for the whole process keeps the
first spelling seen of every name, an ad keeps only those of its own that differ. An ad can be chained to another (a job
to its cluster): what it does not have itself it shows from there, at the price of an empty dictionary.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final

from condor_actors.classads.evaluation import PLAIN, State
from condor_actors.classads.expr import Expr, ListExpr, Literal, RecordExpr, as_expr, stored
from condor_actors.classads.native import connect
from condor_actors.classads.nodes import late
from condor_actors.classads.parser import parse_expression
from condor_actors.classads.running import plain, run_attribute
from condor_actors.classads.spellings import first_spelling, lower_name
from condor_actors.classads.values import INT_MAX, INT_MIN, UNDEFINED, ListValue, Value, wrap

_ALL_FIRST: Final[Mapping[str, str]] = {}


def checked(value: Value) -> Value:
    """Bring a Python value into the language.

    :param value: what is to be stored.
    :returns: what an ad stores: None as UNDEFINED, integers within 64 bits, lists as expressions.
    :raises TypeError: for what the language has no value for.
    :raises ValueError: for a string with a NUL.
    """
    kind = type(value)
    if kind is int:
        return wrap(value)
    if kind is str:
        if "\0" in value:
            raise ValueError("a ClassAd string cannot hold a NUL character")
        return value
    if kind in PLAIN:
        return value
    if value is None:
        return UNDEFINED
    if isinstance(value, Expr):
        return stored(value)
    if isinstance(value, ClassAd):
        return value
    if isinstance(value, (list, tuple)):
        return as_expr(list(value))
    if isinstance(value, Mapping):
        return ClassAd(value)
    if isinstance(value, bool):
        return bool(value)
    if isinstance(value, int):
        return wrap(int(value))
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return checked(str.__str__(value))
    raise TypeError(f"a ClassAd cannot hold a {kind.__name__} ({value!r:.60})")


_MAX_NAMES: Final = 20_000
_fit_names: Final[dict[str, str]] = {}
"""Names that were given before and are fit to be stored under, with their keys."""


def _fit_key(name: str) -> str:
    """The key of an attribute name.

    :param name: as spelled.
    :returns: in lower case.
    :raises ValueError: for a name that no attribute can have.
    """
    if not isinstance(name, str) or not name or "\0" in name or "\n" in name:
        raise ValueError(f"not an attribute name: {name!r}")
    key = lower_name(name)
    if len(_fit_names) < _MAX_NAMES:
        _fit_names[name] = key
    return key


_NOTHING: Final[dict[str, Any]] = {}
"""What every ad without own attributes has; never written to."""


class ClassAd(MutableMapping[str, Any]):
    """An ad, or a record inside one.

    :param mapping: attributes to begin with.
    :param parent: the ad it is chained to; lookups fall through to it, changes never reach it.
    :ivar own: its own attributes by lower-case name.
    :ivar scope: the record around it, whose names its expressions see too.
    """

    __slots__ = ("own", "parent", "scope", "spellings")

    own: dict[str, Any]
    parent: ClassAd | None
    scope: ClassAd | None
    spellings: dict[str, str] | None

    def __init__(
        self, mapping: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, parent: ClassAd | None = None
    ) -> None:
        self.own = _NOTHING
        self.parent = parent
        self.scope = None
        self.spellings = None
        if mapping:
            self.update(mapping)

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, Expr]], scope: ClassAd | None = None) -> ClassAd:
        """Build an ad from parsed pairs.

        :param pairs: spelling and expression; of equal names the last counts.
        :param scope: the record around it.
        :returns: the ad.
        """
        ad = cls()
        ad.scope = scope
        for name, node in pairs:
            ad.store(name, node.value if type(node) is Literal else node)
        return ad

    # -- the bare store, for this package's hot paths

    def find(self, key: str) -> Value:
        """What is stored under a lower-case name, here or along the chain.

        :param key: the name in lower case.
        :returns: value or expression, None when there is none.
        """
        value = self.own.get(key)
        if value is None:
            parent = self.parent
            while parent is not None:
                value = parent.own.get(key)
                if value is not None:
                    return None if value is _DELETED else value
                parent = parent.parent
        elif value is _DELETED:
            return None
        return value

    def store(self, name: str, value: Value) -> None:
        """Keep a value that is known to be fit.

        :param name: as spelled.
        :param value: as `checked` gives it.
        """
        key = lower_name(name)
        if self.own is _NOTHING:
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
            if value is _DELETED:
                merged.pop(key, None)
            else:
                merged[key] = value
        return merged

    def within(self, scope: ClassAd) -> ClassAd:
        """This record as a value found inside another.

        :param scope: the record it was found in.
        :returns: itself when that is known already, else a view that shares its attributes.
        """
        if self.scope is scope:
            return self
        view = ClassAd()
        view.own = self.own
        view.parent = self.parent
        view.spellings = self.spellings
        view.scope = scope
        return view

    # -- the mapping

    def __getitem__(self, name: str) -> Value:
        value = self.find(name.lower())
        if value is None:
            raise KeyError(name)
        return _shown(value) if type(value) is ListExpr or type(value) is RecordExpr else value

    def __setitem__(self, name: str, value: Value) -> None:
        key = _fit_names.get(name)
        if key is None:
            key = _fit_key(name)
        kind = value.__class__
        if kind is int:
            if not INT_MIN <= value <= INT_MAX:
                value = wrap(value)
        elif kind is str:
            if "\0" in value:
                value = checked(value)
        elif kind is not float and kind is not bool:
            value = checked(value)
        if self.own is _NOTHING:
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
            self.own = {**self.own, key: _DELETED}

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
        if not isinstance(other, ClassAd):
            return NotImplemented
        return _comparable(self) == _comparable(other)

    __hash__ = None  # type: ignore[assignment]  # an ad changes

    def __repr__(self) -> str:
        from condor_actors.classads.unparse import unparse

        return f"ClassAd.from_new({unparse(self)!r})"

    def __str__(self) -> str:
        from condor_actors.classads.unparse import unparse

        return unparse(self)

    # -- expressions and evaluation

    def insert_text(self, name: str, text: str) -> None:
        """Bind a name to an expression given as text.

        :param name: the attribute.
        :param text: the expression in the new form.
        :raises ClassAdSyntaxError: when it is none.
        """
        self[name] = parse_expression(text)

    def expression(self, name: str) -> Expr | None:
        """What is stored under a name, as an expression whatever it is.

        :param name: the attribute.
        :returns: the expression, None when there is no such attribute.
        """
        value = self.find(name.lower())
        return None if value is None else as_expr(value)

    def evaluate(self, name: str, target: ClassAd | None = None, *, now_s: float | None = None) -> Value:
        """Evaluate an attribute.

        :param name: the attribute.
        :param target: the other ad.
        :param now_s: seconds since 1970 that ``time()`` gives; the clock's by default.
        :returns: its value as in `values`; UNDEFINED when it is missing.
        """
        key = name.lower()
        value = self.own.get(key)
        if value.__class__ in PLAIN:
            return value
        if value is None or value is _DELETED:
            value = self.find(key)
            if value is None:
                return UNDEFINED
            if value.__class__ in PLAIN:
                return value
        if not isinstance(value, Expr):
            return value.within(self)
        result = run_attribute(value, self, target, now_s)
        return plain(result, State(self, target, now_s)) if result.__class__ is ListValue else result

    def get_int(self, name: str, default: int = 0, target: ClassAd | None = None) -> int:
        """Evaluate to an integer.

        :param name: the attribute.
        :param default: given for what is neither number nor boolean.
        :param target: the other ad.
        :returns: the integer; a real is truncated.
        """
        value = self.evaluate(name, target)
        if type(value) is int:
            return value
        if isinstance(value, (bool, float)) and value - value == 0:
            return int(value)
        return default

    def get_float(self, name: str, default: float = 0.0, target: ClassAd | None = None) -> float:
        """Evaluate to a real.

        :param name: the attribute.
        :param default: given for what is neither number nor boolean.
        :param target: the other ad.
        :returns: the real.
        """
        value = self.evaluate(name, target)
        return float(value) if isinstance(value, (int, float)) else default

    def get_str(self, name: str, default: str = "", target: ClassAd | None = None) -> str:
        """Evaluate to a string.

        :param name: the attribute.
        :param default: given for what is no string.
        :param target: the other ad.
        :returns: the string.
        """
        value = self.evaluate(name, target)
        return value if isinstance(value, str) else default

    def get_bool(self, name: str, default: bool = False, target: ClassAd | None = None) -> bool:
        """Evaluate to a truth value.

        :param name: the attribute.
        :param default: given for what is neither boolean nor number.
        :param target: the other ad.
        :returns: the truth value; numbers other than zero are true.
        """
        value = self.evaluate(name, target)
        return value != 0 if isinstance(value, (int, float)) else default

    # -- whole ads

    def copy(self) -> ClassAd:
        """Copy this ad: the same attributes, the same parent; expressions are shared."""
        ad = ClassAd(parent=self.parent)
        ad.own = dict(self.own) if self.own else _NOTHING
        ad.scope = self.scope
        ad.spellings = dict(self.spellings) if self.spellings else None
        return ad

    __copy__ = copy

    def flat(self) -> ClassAd:
        """Merge the chain into an ad of its own with everything this one shows."""
        ad = ClassAd()
        for name, value in self.stored_items():
            ad.store(name, value)
        return ad

    def project(self, names: Iterable[str]) -> ClassAd:
        """Take some attributes.

        :param names: the attributes wanted, in any case.
        :returns: a new ad with those of them that exist, in the order asked.
        """
        ad = ClassAd()
        for name in names:
            key = name.lower()
            value = self.find(key)
            if value is not None:
                ad.store(self.spelling(key), value)
        return ad

    # -- forms

    def to_text(self) -> str:
        """Write the long form, as the tools show it.

        :returns: one ``Name = expression`` a line, each ended by a newline.
        """
        from condor_actors.classads.text_form import write_long

        return write_long(self)

    @classmethod
    def from_text(cls, text: str | bytes) -> ClassAd:
        """Read the long form.

        :param text: one ``Name = expression`` a line; blank lines and lines starting with ``#`` are skipped.
        :returns: the ad.
        :raises ClassAdSyntaxError: naming the line.
        """
        from condor_actors.classads.text_form import read_long

        return read_long(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))

    def to_bytes(self) -> bytes:
        """Write what crosses the wire: the long form with every escape and digit, in UTF-8.

        :returns: the bytes; `from_bytes` gives an equal ad.
        """
        from condor_actors.classads.text_form import write_wire

        return write_wire(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ClassAd:
        """Read what `to_bytes` wrote.

        :param data: the bytes.
        :returns: the ad.
        :raises ClassAdSyntaxError: naming the line.
        """
        from condor_actors.classads.text_form import read_wire

        return read_wire(data)

    def to_new(self) -> str:
        """Write the new form: ``[ a = 1; b = 2 ]`` on one line."""
        from condor_actors.classads.unparse import unparse

        return unparse(self)

    @classmethod
    def from_new(cls, text: str) -> ClassAd:
        """Read the new form.

        :param text: one record.
        :returns: the ad.
        :raises ClassAdSyntaxError: with line and column.
        """
        from condor_actors.classads.parser import parse_record

        return cls.from_pairs(parse_record(text).pairs)

    def to_json(self, *, indent: bool = True) -> str:
        """Write JSON.

        :param indent: one attribute a line, or all on one.
        :returns: an object; expressions as ``"/Expr(...)/"`` strings.
        """
        from condor_actors.classads.json_form import write_json

        return write_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> ClassAd:
        """Read JSON.

        :param text: one object.
        :returns: the ad.
        :raises ClassAdSyntaxError: when it is no ad.
        """
        from condor_actors.classads.json_form import read_json

        return read_json(text)

    def to_xml(self) -> str:
        """Write XML: one ``<c>`` element."""
        from condor_actors.classads.xml_form import write_xml

        return write_xml(self)

    @classmethod
    def from_xml(cls, text: str | bytes) -> ClassAd:
        """Read XML.

        :param text: one ``<c>`` element, alone or inside ``<classads>``.
        :returns: the ad.
        :raises ClassAdSyntaxError: when it is no ad.
        """
        from condor_actors.classads.xml_form import read_xml

        return read_xml(text)


late["ClassAd"] = ClassAd


class _Deleted:
    """Marks an attribute of the parent that a chained ad does not show."""

    __slots__ = ()


_DELETED: Final = _Deleted()
connect(ClassAd, _DELETED)


def _shown(value: ListExpr | RecordExpr) -> Value:
    """A list or record without open expressions, as Python values; the expression otherwise."""
    if isinstance(value, RecordExpr):
        return ClassAd.from_pairs(value.pairs)
    items = []
    for item in value.elements:
        if isinstance(item, Literal):
            items.append(item.value)
        elif isinstance(item, (ListExpr, RecordExpr)):
            items.append(_shown(item))
        else:
            return value
    return items


def _comparable(ad: ClassAd) -> dict[str, str]:
    from condor_actors.classads.unparse import unparse

    return {key: unparse(value, style="wire") for key, value in ad._merged().items()}


__all__ = ["ClassAd", "checked", "lower_name"]
