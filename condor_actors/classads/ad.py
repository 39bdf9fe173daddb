"""ClassAd: names, each bound to a value or an expression, that can be evaluated, matched, read and written."""

from __future__ import annotations

import math
from collections.abc import Iterable

from condor_actors.classads.attribute_map import DELETED, NOTHING, AttributeMap
from condor_actors.classads.evaluation.running import plain, run_attribute
from condor_actors.classads.evaluation.state import PLAIN, State
from condor_actors.classads.language.expressions import Expr, Literal, as_expr
from condor_actors.classads.language.parser import parse_expression
from condor_actors.classads.language.python_nodes import late
from condor_actors.classads.language.spellings import lower_of
from condor_actors.classads.native import connect
from condor_actors.classads.values import UNDEFINED, ListValue, Value
from condor_actors.numerals import whole


class ClassAd(AttributeMap):
    """An ad, or a record inside one: attributes that can be evaluated, and their forms as text.

    Args:
        mapping: Attributes to begin with.
        parent: The ad it is chained to; lookups fall through to it, changes never reach it.

    Attributes:
        own: Its own attributes by lower-case name.
        parent: The ad it is chained to.
        scope: The record around it, whose names its expressions see too.
    """

    __slots__ = ()

    @classmethod
    def from_pairs(cls, pairs: Iterable[tuple[str, Expr]], scope: ClassAd | None = None) -> ClassAd:
        """Build an ad from parsed pairs.

        Args:
            pairs: Spelling and expression; of equal names the first spelling and the last expression count.
            scope: The record around it.

        Returns:
            The ad.
        """
        ad = cls()
        ad.scope = scope
        for name, node in pairs:
            value = node.value if type(node) is Literal else node
            key = name.lower()
            if key in ad.own:
                ad.own[key] = value
            else:
                ad.store(name, value)
        return ad

    def within(self, scope: ClassAd) -> ClassAd:
        """This record as a value found inside another.

        Args:
            scope: The record it was found in.

        Returns:
            Itself when that is known already, else a view that shares its attributes.
        """
        if self.scope is scope:
            return self
        view = ClassAd()
        view.own = self.own
        view.parent = self.parent
        view.spellings = self.spellings
        view.scope = scope
        return view

    def __repr__(self) -> str:
        from condor_actors.classads.language.unparse import unparse

        return f"ClassAd.from_new({unparse(self)!r})"

    def __str__(self) -> str:
        from condor_actors.classads.language.unparse import unparse

        return unparse(self)

    # -- expressions and evaluation

    def insert_text(self, name: str, text: str) -> None:
        """Bind a name to an expression given as text.

        Args:
            name: The attribute.
            text: The expression in the new form.

        Raises:
            ClassAdSyntaxError: When it is none.
        """
        self[name] = parse_expression(text)

    def expression(self, name: str) -> Expr | None:
        """What is stored under a name, as an expression whatever it is.

        Args:
            name: The attribute.

        Returns:
            The expression, None when there is no such attribute.
        """
        value = self.find(name.lower())
        return None if value is None else as_expr(value)

    def evaluate(self, name: str, target: ClassAd | None = None, *, now_s: float | None = None) -> Value:
        """Evaluate an attribute.

        Args:
            name: The attribute.
            target: The other ad.
            now_s: Seconds since 1970 that ``time()`` gives; the clock's by default.

        Returns:
            Its value as in `values`; UNDEFINED when it is missing.
        """
        key = name.lower()
        value = self.own.get(key)
        if value.__class__ in PLAIN:
            return value
        if value is None or value is DELETED:
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

        Args:
            name: The attribute.
            default: Given for what is neither number nor boolean.
            target: The other ad.

        Returns:
            The integer of 64 bits; a real is truncated.
        """
        value = self.evaluate(name, target)
        if type(value) is int:
            return value
        return whole(value, default)

    def get_float(self, name: str, default: float = 0.0, target: ClassAd | None = None) -> float:
        """Evaluate to a real.

        Args:
            name: The attribute.
            default: Given for what is neither number nor boolean, and for a real that is not a number.
            target: The other ad.

        Returns:
            The real.
        """
        value = self.evaluate(name, target)
        return float(value) if isinstance(value, (int, float)) and not math.isnan(value) else default

    def get_str(self, name: str, default: str = "", target: ClassAd | None = None) -> str:
        """Evaluate to a string.

        Args:
            name: The attribute.
            default: Given for what is no string.
            target: The other ad.

        Returns:
            The string.
        """
        value = self.evaluate(name, target)
        return value if isinstance(value, str) else default

    def get_bool(self, name: str, default: bool = False, target: ClassAd | None = None) -> bool:
        """Evaluate to a truth value.

        Args:
            name: The attribute.
            default: Given for what is neither boolean nor number.
            target: The other ad.

        Returns:
            The truth value; numbers other than zero are true.
        """
        value = self.evaluate(name, target)
        return value != 0 if isinstance(value, (int, float)) else default

    # -- whole ads

    def copy(self) -> ClassAd:
        """Copy this ad: the same attributes, the same parent; expressions are shared."""
        ad = ClassAd(parent=self.parent)
        ad.own = dict(self.own) if self.own else NOTHING
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

        Args:
            names: The attributes wanted, in any case.

        Returns:
            A new ad with those of them that exist, in the order asked.
        """
        chain = [self]
        while (above := chain[-1].parent) is not None:
            chain.append(above)
        values: dict[str, Value] = {}
        spellings: dict[str, str] = {}
        for name in names:
            key = lower_of.get(name) or name.lower()
            for link in chain:
                value = link.own.get(key)
                if value is not None:
                    if value is not DELETED:
                        values[key] = value
                        if link.spellings is not None and key in link.spellings:
                            spellings[key] = link.spellings[key]
                    break
        ad = ClassAd()
        ad.own = values or NOTHING
        ad.spellings = spellings or None
        return ad

    # -- forms

    def to_text(self) -> str:
        """Write the long form, as the tools show it.

        Returns:
            One ``Name = expression`` a line, each ended by a newline.
        """
        from condor_actors.classads.forms.long_form import write_long

        return write_long(self)

    @classmethod
    def from_text(cls, text: str | bytes) -> ClassAd:
        """Read the long form.

        Args:
            text: One ``Name = expression`` a line; blank lines and lines starting with ``#`` are skipped.

        Returns:
            The ad.

        Raises:
            ClassAdSyntaxError: Naming the line.
        """
        from condor_actors.classads.forms.long_form import read_long

        return read_long(text if isinstance(text, str) else text.decode("utf-8", "surrogateescape"))

    def to_bytes(self) -> bytes:
        """Write what crosses the wire: the long form with every escape and digit, in UTF-8.

        Returns:
            The bytes; `from_bytes` gives an equal ad.
        """
        from condor_actors.classads.forms.long_form import write_wire

        return write_wire(self)

    @classmethod
    def from_bytes(cls, data: bytes) -> ClassAd:
        """Read what `to_bytes` wrote.

        Args:
            data: The bytes.

        Returns:
            The ad.

        Raises:
            ClassAdSyntaxError: Naming the line.
        """
        from condor_actors.classads.forms.long_form import read_wire

        return read_wire(data)

    @classmethod
    def from_new(cls, text: str) -> ClassAd:
        """Read the new form.

        Args:
            text: One record.

        Returns:
            The ad.

        Raises:
            ClassAdSyntaxError: With line and column.
        """
        from condor_actors.classads.language.parser import parse_record

        return cls.from_pairs(parse_record(text).pairs)

    def to_json(self, *, indent: bool = True) -> str:
        """Write JSON.

        Args:
            indent: One attribute a line, or all on one.

        Returns:
            An object; expressions as ``"/Expr(...)/"`` strings.
        """
        from condor_actors.classads.forms.json_form import write_json

        return write_json(self, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> ClassAd:
        """Read JSON.

        Args:
            text: One object.

        Returns:
            The ad.

        Raises:
            ClassAdSyntaxError: When it is no ad.
        """
        from condor_actors.classads.forms.json_form import read_json

        return read_json(text)

    def to_xml(self) -> str:
        """Write XML: one ``<c>`` element."""
        from condor_actors.classads.forms.xml_form import write_xml

        return write_xml(self)

    @classmethod
    def from_xml(cls, text: str | bytes) -> ClassAd:
        """Read XML.

        Args:
            text: One ``<c>`` element, alone or inside ``<classads>``.

        Returns:
            The ad.

        Raises:
            ClassAdSyntaxError: When it is no ad.
        """
        from condor_actors.classads.forms.xml_form import read_xml

        return read_xml(text)


late["ClassAd"] = ClassAd
connect(ClassAd, DELETED)

__all__ = ["ClassAd"]
