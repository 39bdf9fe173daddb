"""JSON: a record is an object, a list an array, undefined null; what JSON has no word for is ``"/Expr(...)/"``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator

from condor_actors.classads.ad import ClassAd
from condor_actors.classads.errors import ClassAdSyntaxError
from condor_actors.classads.language.expressions import Expr, ListExpr, Literal, RecordExpr, as_expr
from condor_actors.classads.language.parser import parse_expression
from condor_actors.classads.language.unparse import real_text, unparse
from condor_actors.classads.values import UNDEFINED, Value, wrap

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

_MAX_DEPTH = 100


def write_json(ad: ClassAd, *, indent: bool = True) -> str:
    """Write an ad.

    Args:
        ad: The ad.
        indent: One attribute a line, or all on one.

    Returns:
        A JSON object.
    """
    return _object(list(ad.stored_items()), 0 if indent else None)


def _object(pairs: list[tuple[str, Value]], level: int | None) -> str:
    latest = {name.lower(): (name, value) for name, value in pairs}
    deeper = None if level is None else level + 1
    parts = [f"{_string(name)}: {_value(value, deeper)}" for name, value in latest.values()]
    return _enclosed(parts, "{", "}", level)


def _enclosed(parts: list[str], left: str, right: str, level: int | None) -> str:
    if level is None:
        return f"{left} {', '.join(parts)} {right}" if parts else f"{left} {right}"
    pad = "  " * level
    inner = ",\n".join(f"{pad}  {part}" for part in parts)
    return f"{left}\n{inner}\n{pad}{right}" if parts else f"{left}\n{pad}{right}"


def _string(text: str) -> str:
    clean = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return json.dumps(clean, ensure_ascii=False)


def _value(value: Any, level: int | None) -> str:
    if isinstance(value, Literal):
        value = value.value
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, float) and math.isfinite(value):
        return real_text(value, "tools")
    if value is UNDEFINED:
        return "null"
    if isinstance(value, RecordExpr):
        return _object(list(value.pairs), level)
    if isinstance(value, ClassAd):
        return _object(list(value.stored_items()), level)
    if isinstance(value, ListExpr):
        value = value.elements
    if isinstance(value, (list, tuple)):
        deeper = None if level is None else level + 1
        return _enclosed([_value(item, deeper) for item in value], "[", "]", level)
    return _string(f"/Expr({unparse(value)})/").replace("/Expr(", "\\/Expr(", 1)[:-2] + '\\/"'


def read_json(text: str | bytes) -> ClassAd:
    """Read one ad.

    Args:
        text: One object.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: When it is no object, or an expression in it is none.
    """
    source = text if isinstance(text, str) else text.decode("utf-8", "surrogateescape")
    try:
        found = json.loads(source)
    except json.JSONDecodeError as why:
        raise ClassAdSyntaxError(why.msg, source, why.pos) from None
    except RecursionError:
        raise ClassAdSyntaxError("nested too deep", source, 0) from None
    except ValueError:
        raise ClassAdSyntaxError("an integer of too many digits", source, 0) from None
    if not isinstance(found, dict):
        raise ClassAdSyntaxError("expected a JSON object", source, 0)
    return ad_of_object(found)


def ad_of_object(found: dict[str, Any]) -> ClassAd:
    """Make an ad of a decoded JSON object.

    Args:
        found: The object.

    Returns:
        The ad.

    Raises:
        ClassAdSyntaxError: When an expression in it is none.
    """
    ad = ClassAd()
    for name, value in found.items():
        try:
            ad[name] = _read(value, 0)
        except ClassAdSyntaxError:
            raise
        except ValueError as why:
            raise ClassAdSyntaxError(str(why), repr(name), 0) from None
    return ad


def _read(value: Any, depth: int) -> Any:
    if depth > _MAX_DEPTH:
        raise ClassAdSyntaxError(f"nested more than {_MAX_DEPTH} levels deep", "", 0)
    if isinstance(value, str):
        if value.startswith("/Expr(") and value.endswith(")/"):
            return parse_expression(value[6:-2])
        return value
    if value is None:
        return UNDEFINED
    if isinstance(value, dict):
        pairs = tuple((name, as_expr(_read(item, depth + 1))) for name, item in value.items())
        return RecordExpr(pairs)
    if isinstance(value, list):
        return ListExpr(tuple(as_expr(_read(item, depth + 1)) for item in value))
    if type(value) is int:
        return wrap(value)
    return value


def iter_json(text: str) -> Iterator[ClassAd]:
    """Read ads from an array of objects, or from objects that follow one another.

    Args:
        text: The JSON text.

    Returns:
        An iterator of ads.

    Raises:
        ClassAdSyntaxError: When the faulty ad is reached.
    """
    decoder = json.JSONDecoder()
    position, size = 0, len(text)
    while True:
        while position < size and text[position] in " \t\r\n[],":
            position += 1
        if position >= size:
            return
        try:
            found, position = decoder.raw_decode(text, position)
        except json.JSONDecodeError as why:
            raise ClassAdSyntaxError(why.msg, text, why.pos) from None
        except RecursionError:
            raise ClassAdSyntaxError("nested too deep", text, position) from None
        if not isinstance(found, dict):
            raise ClassAdSyntaxError("expected a JSON object", text, position)
        yield ad_of_object(found)


def write_json_list(ads: Iterable[ClassAd]) -> Iterator[str]:
    """Write an array of ads piece by piece.

    Args:
        ads: The ads.

    Returns:
        An iterator of pieces that joined make the array.
    """
    yield "[\n"
    first = True
    for ad in ads:
        if not first:
            yield ",\n"
        first = False
        yield write_json(ad)
    yield "\n]\n"


__all__ = ["Expr", "iter_json", "read_json", "write_json", "write_json_list"]
