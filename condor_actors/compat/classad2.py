"""HTCondor's ``classad2``, on this system's ClassAds: the same names, signatures and answers.

What differs is listed in docs/python-api.md; a test holds every name and signature against the real module.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, MutableMapping
from datetime import UTC, datetime
from typing import IO, Any

from condor_actors import classads
from condor_actors.classads import ERROR, UNDEFINED, AbsoluteTime, ClassAdSyntaxError, Expr, RelativeTime, unparse
from condor_actors.classads.forms.any_form import iter_ads, recognise
from condor_actors.classads.language.expressions import Call, ListExpr, Literal, RecordExpr, Reference, SpanLiteral
from condor_actors.classads.language.parser import parse_records
from condor_actors.compat.operators import Operators

__all__ = [
    "ClassAd", "ClassAdException", "ExprTree", "Parser", "ParserType", "Value", "lastError", "parseAds", "parseNext",
    "parseOne", "quote", "unquote", "version",
]  # fmt: skip

VERSION = "25.14.1"
"""Of the module whose interface this is."""
_NO_AD = "Unable to parse string into a ClassAd."
_NOTHING: Any = object()


class ClassAdException(Exception):
    """A text or value that is no ClassAd and no expression."""


class Value(enum.IntEnum):
    """The two values that Python has no word for."""

    Error = 1
    Undefined = 2


class ParserType(enum.IntEnum):
    """The forms in which ads are read."""

    Auto = -1
    Old = 0
    XML = 1
    JSON = 2
    New = 3
    FileAuto = 4


Parser = ParserType
_problem = ""


def _fail(text: str, cause: Exception | None = None) -> ClassAdException:
    global _problem
    _problem = str(cause) if cause is not None else text
    return ClassAdException(text)


class ExprTree(Operators):
    """An expression.

    Args:
        expr: its text, another expression, or None for ``undefined``.
    """

    __slots__ = ("_node",)

    def __init__(self, expr: str | ExprTree | None = None) -> None:
        if isinstance(expr, ExprTree):
            self._node: Expr = expr._node
            return
        try:
            self._node = classads.parse_expression("undefined" if expr is None else str(expr))
        except ClassAdSyntaxError as error:
            raise _fail(_NO_AD, error) from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExprTree) and self._node == other._node

    __hash__ = None  # type: ignore[assignment]  # as the original's

    def __str__(self) -> str:
        return _pretty(self._node, 0)

    def __repr__(self) -> str:
        return unparse(self._node)

    def eval(self, scope: ClassAd | None = None, target: ClassAd | None = None) -> Any:
        """The value, in the scope of an ad and beside another."""
        return _python(self._value(scope, target), scope)

    def simplify(self, scope: ClassAd | None = None, target: ClassAd | None = None) -> ExprTree:
        """The value, as an expression."""
        return _tree(classads.as_expr(self._value(scope, target)))

    def _value(self, scope: ClassAd | None, target: ClassAd | None) -> Any:
        for name, ad in (("scope", scope), ("target", target)):
            if ad is not None and not isinstance(ad, ClassAd):
                raise TypeError(f"{name} must be a ClassAd")
        if isinstance(self._node, (ListExpr, RecordExpr)):
            return self._node
        return self._node.evaluate(None if scope is None else scope._ad, None if target is None else target._ad)


class ClassAd(MutableMapping[str, Any]):
    """An ad: names, in any case, bound to values and expressions.

    Args:
        input: its text in the new form, or a mapping.
    """

    __slots__ = ("_ad",)

    def __init__(self, input: str | dict[str, Any] | None = None) -> None:  # noqa: A002 - the original's name
        if input is None:
            self._ad = classads.ClassAd()
        elif isinstance(input, str):
            self._ad = _first_record(input)
        elif isinstance(input, dict):
            self._ad = classads.ClassAd()
            for name, value in input.items():
                self[name] = value
        else:
            raise TypeError("input must be None, str, or dict")

    # -- the mapping

    def __len__(self) -> int:
        return len(self._ad)

    def __getitem__(self, key: str) -> Any:
        stored = self._stored(key)
        return _python(stored, self) if _is_value(stored) else _tree(stored)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError("ClassAd keys are strings")
        self._ad[key] = _stored_form(value)

    def __delitem__(self, key: str) -> None:
        if not isinstance(key, str):
            raise TypeError("ClassAd keys are strings")
        del self._ad[key]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._ad))

    def __contains__(self, key: object) -> bool:
        return key in self._ad

    def __eq__(self, other: object) -> Any:
        return self._ad == other._ad if type(self) is type(other) and isinstance(other, ClassAd) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # an ad changes

    def _stored(self, key: str) -> Any:
        if not isinstance(key, str):
            raise TypeError("ClassAd keys are strings")
        stored = self._ad.find(key.lower())
        if stored is None:
            raise KeyError(key)
        return stored

    # -- expressions

    def eval(self, attr: str) -> Any:
        """The value of an attribute.

        Raises:
            KeyError: there is none.
        """
        stored = self._stored(attr)
        if isinstance(stored, (ListExpr, RecordExpr)):
            return _python(stored, self)
        return _python(self._ad.evaluate(attr), self)

    def lookup(self, attr: str) -> ExprTree:
        """An attribute as an expression, whatever it is.

        Raises:
            KeyError: there is none.
        """
        return _tree(classads.as_expr(self._stored(attr)))

    def flatten(self, expr: ExprTree) -> Any:
        """An expression with what this ad has put in; its value where nothing else is needed."""
        flat = _expression(expr)._node.flatten(self._ad)
        if isinstance(flat, (ListExpr, RecordExpr)):
            return _tree(flat)
        if isinstance(flat, Expr) and (any(flat.references()) or next(_inner(flat), None) is not None):
            return _tree(flat)
        return _python(flat, self)

    def externalRefs(self, expr: ExprTree) -> list[str]:
        """The names in an expression that this ad lacks."""
        return [name for name, is_own in _names(_expression(expr)._node, self._ad) if not is_own] or [""]

    def internalRefs(self, expr: ExprTree) -> list[str]:
        """The names in an expression that this ad has."""
        return [name for name, is_own in _names(_expression(expr)._node, self._ad) if is_own] or [""]

    def matches(self, ad: ClassAd) -> bool:
        """Whether the Requirements of another ad hold for this one."""
        if not isinstance(ad, ClassAd):
            raise TypeError("ad must be a ClassAd")
        result = ad._ad.evaluate("Requirements", self._ad)
        return isinstance(result, (bool, int, float)) and bool(result)

    def symmetricMatch(self, ad: ClassAd) -> bool:
        """Whether each one's Requirements hold for the other."""
        return self.matches(ad) and ad.matches(self)

    # -- forms

    def printJson(self) -> str:
        """As JSON."""
        return self._ad.to_json(indent=True)

    formatJson = printJson

    def printOld(self) -> str:
        """In the old form: a line each."""
        return self._ad.to_text()

    formatOld = printOld

    def __str__(self) -> str:
        return _pretty(classads.as_expr(self._ad), 0)

    def __repr__(self) -> str:
        return unparse(self._ad)


# ---- between Python and the language


def wrapped(ad: classads.ClassAd) -> ClassAd:
    """An ad of this system as one of this module; they share what they hold."""
    made = ClassAd()
    made._ad = ad
    return made


def own_ad(ad: ClassAd) -> classads.ClassAd:
    """The ad of this system that is in one of this module."""
    return ad._ad


def own_expression(tree: ExprTree) -> Expr:
    """The expression of this system that is in one of this module."""
    return tree._node


def _tree(node: Expr) -> ExprTree:
    made = ExprTree.__new__(ExprTree)
    made._node = node
    return made


def _expression(expr: Any) -> ExprTree:
    if not isinstance(expr, ExprTree):
        raise TypeError("expr must be an ExprTree")
    return expr


def _is_value(stored: Any) -> bool:
    """Whether it is shown as a value: a literal, a list or a record, but no expression."""
    return not isinstance(stored, Expr) or isinstance(stored, (Literal, ListExpr, RecordExpr, SpanLiteral)) or (
        isinstance(stored, Call) and stored.name.lower() == "abstime" and all(
            isinstance(each, Literal) for each in stored.children()))


def _python(value: Any, scope: ClassAd | None) -> Any:
    """A value of the language as one of Python's."""
    if isinstance(value, Literal):
        value = value.value
    if value is UNDEFINED:
        return Value.Undefined
    if value is ERROR:
        return Value.Error
    if isinstance(value, AbsoluteTime):
        return datetime.fromtimestamp(value.epoch_s, tz=UTC)
    if isinstance(value, RelativeTime):
        return float(value.span_s)
    if isinstance(value, ListExpr):
        return [_python(each, scope) if _is_value(each) else _tree(each) for each in value.elements]
    if isinstance(value, list):
        return [_python(each, scope) if _is_value(each) else _tree(each) for each in value]
    if isinstance(value, RecordExpr):
        return wrapped(classads.ClassAd.from_pairs(value.pairs))
    if isinstance(value, classads.ClassAd):
        return wrapped(value)
    if isinstance(value, Expr):
        return _python(value.evaluate(None if scope is None else scope._ad), scope)
    return value


def _stored_form(value: Any) -> Any:
    """A value of Python's as an ad keeps it.

    Raises:
        ClassAdException: the language has none like it.
        OverflowError: an integer of more than 64 bits.
    """
    if isinstance(value, Value) or value is None:
        return ERROR if value is Value.Error else UNDEFINED
    if isinstance(value, ExprTree):
        return value._node
    if isinstance(value, ClassAd):
        return value._ad.copy()
    if isinstance(value, (bool, float, str)):
        return value
    if isinstance(value, int):
        if not -(1 << 63) <= value < 1 << 63:
            raise OverflowError("int too big to convert")
        return int(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, datetime):
        aware = value if value.tzinfo is not None else value.astimezone()
        return AbsoluteTime(int(aware.timestamp()), 0)
    if isinstance(value, dict):
        return ClassAd(value)._ad
    if isinstance(value, Iterable):
        return ListExpr(tuple(classads.as_expr(_stored_form(each)) for each in value))
    raise _fail("Unable to convert Python object to a ClassAd expression.")


def _names(node: Expr, my: classads.ClassAd) -> list[tuple[str, bool]]:
    """The names in an expression as it spells them, each once, and whether the ad has them."""
    found: dict[str, tuple[str, bool]] = {}
    waiting: list[Expr] = [node]
    while waiting:
        current = waiting.pop()
        if not isinstance(current, Reference):
            waiting.extend(current.children())
            continue
        shown, is_own = current.name, current.name in my
        if isinstance(current.scope, Reference) and current.scope.scope is None:
            scope = current.scope.name
            if scope.lower() not in ("my", "self"):
                shown, is_own = f"{scope}.{current.name}", scope in my
                shown = scope if is_own else shown
        elif current.scope is not None:
            waiting.append(current.scope)
            continue
        found.setdefault(shown.lower(), (shown, is_own))
    return [found[key] for key in sorted(found)]


# ---- text


def _pretty(node: Expr, indent: int) -> str:
    """An expression over several lines, as the original prints lists and records."""
    if isinstance(node, RecordExpr):
        margin = " " * (indent + 4)
        rows = [f"{margin}    {name} = {_pretty(value, indent + 8)}" for name, value in node.pairs]
        return f"\n{margin}[\n" + "; \n".join(rows) + ("\n" if rows else "") + f"{margin}]"
    if isinstance(node, ListExpr):
        margin = " " * (indent + 3)
        rows = [f"{margin}   {_pretty(each, indent + 6)}" for each in node.elements]
        return f"\n{margin}{{\n" + ",\n".join(rows) + ("\n" if rows else "") + f"{margin}}}"
    text, shown, position = unparse(node), "", 0
    for part in _inner(node):
        flat = unparse(part)
        found = text.index(flat, position)
        shown += text[position:found] + _pretty(part, indent)
        position = found + len(flat)
    return shown + text[position:]


def _inner(node: Expr) -> Iterator[Expr]:
    """The outermost lists and records within an expression, in order."""
    for child in node.children():
        if isinstance(child, (ListExpr, RecordExpr)):
            yield child
        else:
            yield from _inner(child)


def _first_record(text: str) -> classads.ClassAd:
    try:
        for record in parse_records(text):
            return classads.ClassAd.from_pairs(record.pairs)
    except ClassAdSyntaxError as error:
        raise _fail(_NO_AD, error) from None
    raise _fail(_NO_AD)


def _text(source: Any) -> str:
    return source if isinstance(source, str) else "".join(source)


def parseAds(input: str | IO[str], parser: ParserType = Parser.Auto) -> Iterator[ClassAd]:  # noqa: A002
    """Every ad of a text or file, one after another; what is no ad ends it."""
    text = _text(input)
    form: Any = {Parser.Old: "long", Parser.XML: "xml", Parser.JSON: "json", Parser.New: "new"}.get(parser)
    try:
        for ad in iter_ads(text, form or ("new" if recognise(text) == "new" else "long")):
            yield wrapped(ad)
    except ClassAdSyntaxError as error:
        _fail(_NO_AD, error)


def parseOne(input: str | Iterator[str], parser: ParserType = Parser.Auto) -> ClassAd:  # noqa: A002
    """All ads of a text, merged into one."""
    merged = ClassAd()
    for ad in parseAds(_text(input), parser):
        merged.update(ad)
    return merged


def parseNext(input: str | IO[str], parser: ParserType = Parser.Auto) -> ClassAd:  # noqa: A002
    """The first ad of a text, or the next one of a file."""
    if isinstance(input, str):
        return next(parseAds(input, parser), ClassAd())
    try:
        start = input.tell()
    except OSError as error:
        if parser == Parser.Auto:
            raise ClassAdException("Can not look ahead in stream; you must explicitly specify a parser.") from error
        return next(parseAds(input.read(), parser), ClassAd())
    text = input.read()
    ad = next(parseAds(text, parser), None)
    if ad is None:
        raise StopIteration
    input.seek(start + _length_of_first(text, parser))
    return ad


def _length_of_first(text: str, parser: ParserType) -> int:
    """How many characters the first ad of a text takes."""
    if parser == Parser.Old or (parser != Parser.New and recognise(text) != "new"):
        begun = len(text) - len(text.lstrip())
        end = text.find("\n\n", begun)
        return len(text) if end < 0 else end + 2
    depth, quote_sign, position = 0, "", 0
    while position < len(text):
        letter = text[position]
        position += 1
        if quote_sign:
            if letter == "\\":
                position += 1
            elif letter == quote_sign:
                quote_sign = ""
        elif letter in "\"'":
            quote_sign = letter
        elif letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if not depth:
                return position
    return len(text)


def quote(input: str) -> str:  # noqa: A002
    """A text as a string of the language."""
    return classads.quote(input)


def unquote(input: str) -> str:  # noqa: A002
    """What a string of the language says.

    Raises:
        ValueError: it is none.
    """
    try:
        node = classads.parse_expression(input)
    except ClassAdSyntaxError:
        node = None
    if not isinstance(node, Literal) or not isinstance(node.value, str):
        raise ValueError("String does not parse to a ClassAd literal")
    return node.value


def lastError() -> str:
    """What was wrong with the text that was refused last."""
    return _problem


def version() -> str:
    """The version of the module whose interface this is."""
    return VERSION
