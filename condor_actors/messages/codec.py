"""Messages to bytes and back, strictly.

Theory: a message is a frozen class of fields (`condor_actors.records`, or attrs) that declares ``KIND`` and
``VERSION``.  Its fields cross the wire as one MessagePack map ``{field name: value}``, so that Perspective Broker sees
a single byte string (a dict of fifty attributes costs it twenty times more).  Encoders and decoders are compiled once
per class from the field's annotations: an unknown field, a missing one, or a value of another type is refused, never
coerced.  So is a text with a NUL, which no ad, path or environment can hold: a reason with one, kept in a job's ad,
would make that unreadable.

A field that has its default is left out.  So a process of an older release, which does not know a newer field, takes
every message in which that says nothing, and refuses by name the one in which it does.  What a default means never
changes; a message that means something else gets another VERSION.

Allowed field types: ``bool int float str bytes``, :data:`FileName`, ``T | None``, ``tuple[T, ...]``, fixed tuples,
enums, and nested classes of fields registered with :func:`part`.

A text that names a file is a :data:`FileName`: a name is bytes, and the process that opens it must get those meant.
One that is UTF-8 crosses as text; any other as a byte string, which Python has with lone surrogates
(``surrogateescape``).  Of every other text, what is not UTF-8 crosses as ``?`` where a daemon says it to people (a
reason, a name), and is refused where a command says it (an expression, a name to be looked for).
"""

from __future__ import annotations

import enum
import math
import operator
import os
import sys
from collections.abc import Callable, Iterable

import msgpack

from condor_actors import records

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Annotated, Any, ClassVar, Protocol, TypeVar

    _C = TypeVar("_C", bound=type)
    _P = TypeVar("_P")
    FileName = Annotated[str, "file name"]

    class Message(Protocol):
        """What every wire message has: fields, a ``KIND`` and a ``VERSION``."""

        KIND: ClassVar[str]
        VERSION: ClassVar[int]
        LEVEL: ClassVar[str]
else:
    Any = Message = object

    class FileName:
        """A path or a word that is opened or executed: bytes that are not UTF-8 cross as they are."""

MAX_BODY_BYTES = 512 * 1024
"""The largest encoded body that may be sent; more is paged by cursor or goes over the bulk channel."""

PAGE_BYTES = 400 * 1024
"""How much of it a page of ads takes, so that there is room for the rest."""

CONVERSATIONS = (
    "admin", "advertise", "claim", "credentials", "flock", "interactive", "negotiate", "owner", "pool", "queue", "run",
    "shadow_host", "spool", "submission", "tokens", "watch")
"""The modules of this package that hold messages; ``condor.<conversation>.<Name>`` is defined in one of them."""

_FIXED = frozenset({type(None), bool, int, float, str, bytes, tuple})
"""Types of defaults that are the same each time."""
_UNION = type(int | None)
Encoder = Callable[[Any], Any]
Decoder = Callable[[Any], Any]


class MalformedMessage(ValueError):
    """A body that is not what its kind says: names the kind, the field and what was expected."""


class OversizedMessage(ValueError):
    """A message over :data:`MAX_BODY_BYTES`; its sender should have paged it."""


class NotText(ValueError):
    """A message of a command with bytes in a text that are not UTF-8; names the text."""


class _Mismatch(ValueError):
    """What is wrong, and in which field of which field; becomes a :class:`MalformedMessage` at the door."""

    def __init__(self, text: str, *path: str) -> None:
        super().__init__(text)
        self.path = list(path)


@records.frozen
class _Shape:
    """The compiled form of one class of fields.

    Attributes:
        order: field names; ``values_of`` gives their values in that order.
        encoders: functions for the fields that do not cross as they are.
        exact: the fields that must arrive with just this type; decoders: functions that check the others.
        required: fields without a default; names: all.
        defaults: of the others, where they are the same each time.
    """

    order: tuple[str, ...]
    values_of: Callable[[Any], tuple[Any, ...]]
    encoders: tuple[tuple[str, Encoder], ...]
    exact: tuple[tuple[str, type], ...]
    decoders: tuple[tuple[str, Decoder], ...]
    required: frozenset[str]
    names: frozenset[str]
    defaults: tuple[tuple[str, Any], ...]


_registry: dict[tuple[str, int], type] = {}
_shapes: dict[type, _Shape] = {}


def message(cls: _C) -> _C:
    """Register a message class; use as the outermost decorator of an ``@records.frozen(kw_only=True)`` class.

    A message without ``LEVEL`` may only be sent by daemons of the pool (level DAEMON).
    """
    found: Any = cls
    key = (found.KIND, found.VERSION)
    if key in _registry:
        raise TypeError(f"two messages are called {key[0]} version {key[1]}: {_registry[key].__name__}, {cls.__name__}")
    if not hasattr(found, "LEVEL"):
        found.LEVEL = "DAEMON"
    _registry[key] = cls
    return cls


def kinds() -> frozenset[tuple[str, int]]:
    """Every (kind, version) this process understands: what ``hello`` offers to a peer."""
    import importlib

    for conversation in CONVERSATIONS:
        importlib.import_module(f"condor_actors.messages.{conversation}")
    return frozenset(_registry)


def message_class(kind: str, version: int) -> type | None:
    """The class of a kind, None when this process does not know it."""
    cls = _registry.get((kind, version))
    if cls is None:
        _, _, rest = kind.partition(".")
        conversation, dot, _ = rest.partition(".")
        if dot and conversation in CONVERSATIONS:
            import importlib

            importlib.import_module(f"condor_actors.messages.{conversation}")
            cls = _registry.get((kind, version))
    return cls


def versions_of(kind: str, known: Iterable[tuple[str, int]]) -> str:
    """Which versions of a kind are among those that a process knows, for people."""
    versions = sorted(version for name, version in known if name == kind)
    return f"version {', '.join(map(str, versions))}" if versions else "no such message"


def unknown_message(kind: str, version: int) -> str:
    """What is said of a message that this process does not know."""
    return f"unknown message {kind!r} version {version!r}: this process knows {versions_of(kind, _registry)}"


def encode(value: Any, *, exactly: bool = False) -> bytes:
    """The body of a message.

    Args:
        value: the message.
        exactly: no ``?`` stands for what is no text but in its ``reason``, for a daemon acts on what it says.

    Raises:
        OversizedMessage: it takes more than :data:`MAX_BODY_BYTES`.
        NotText: ``exactly``, and a text of it is none.
    """
    plain = _unstructure(value)
    body = _packed_exactly(plain) if exactly else _packed(plain)
    if len(body) > MAX_BODY_BYTES:
        raise OversizedMessage(f"{value.KIND} takes {len(body)} bytes, more than {MAX_BODY_BYTES}")
    return body


def _packed(plain: Any) -> bytes:
    """MessagePack; ``?`` stands for what is no text in users' words: bytes of an ad, half letters of JSON."""
    try:
        packed: bytes = msgpack.packb(plain, use_bin_type=True)
    except UnicodeEncodeError:
        packed = msgpack.packb(plain, use_bin_type=True, unicode_errors="replace")
    return packed


def _packed_exactly(plain: dict[str, Any]) -> bytes:
    if isinstance(plain.get("reason"), str):
        plain["reason"] = plain["reason"].encode(errors="replace").decode()
    try:
        packed: bytes = msgpack.packb(plain, use_bin_type=True)
    except UnicodeEncodeError as error:
        shown = error.object.encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
        try:
            shown = os.fsencode(error.object).decode("utf-8", "backslashreplace")
        except UnicodeEncodeError:
            pass
        raise NotText(f"'{shown[:200]}' is not UTF-8, and only UTF-8 can be asked for: name it in another way (a job "
                      "by its id)") from None
    return packed


def decode(kind: str, version: int, body: bytes) -> Any:
    """The message that ``body`` holds.

    Raises:
        MalformedMessage: unknown kind or version, bytes that are not MessagePack, a wrong, missing or unknown field.
    """
    cls = message_class(kind, version)
    if cls is None:
        raise MalformedMessage(unknown_message(kind, version))
    if len(body) > MAX_BODY_BYTES:
        raise MalformedMessage(f"{kind}: {len(body)} bytes, more than {MAX_BODY_BYTES}")
    try:
        raw = msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise MalformedMessage(f"{kind}: not MessagePack ({error})") from None
    try:
        return _structure(cls, raw)
    except _Mismatch as mismatch:
        raise MalformedMessage(f"{'.'.join([kind, *mismatch.path])}: {mismatch}") from None


def encode_parts(values: Iterable[Any]) -> bytes:
    """Values of classes of fields as they cross inside messages, as one list (a manifest kept as a blob)."""
    return _packed([_unstructure(value) for value in values])


def decode_parts(cls: type[_P], data: bytes) -> tuple[_P, ...]:
    """The values that :func:`encode_parts` wrote.

    Raises:
        MalformedMessage: they are not.
    """
    try:
        raw = msgpack.unpackb(data, raw=False, strict_map_key=True)
        if type(raw) is not list:
            raise MalformedMessage(f"a list of {cls.__name__} was expected")
        return tuple(_structure(cls, item) for item in raw)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise MalformedMessage(f"a list of {cls.__name__}: {error}") from None


def _unstructure(value: Any) -> dict[str, Any]:
    shape = _shapes.get(type(value)) or _shape(type(value))
    out = dict(zip(shape.order, shape.values_of(value), strict=True))
    for name, default in shape.defaults:
        item = out[name]
        if item is default or (item == default and type(item) is type(default)):
            del out[name]
    for name, encoder in shape.encoders:
        item = out.get(name)
        if item is not None:
            out[name] = encoder(item)
    return out


def _structure(cls: type, raw: Any) -> Any:
    shape = _shapes.get(cls) or _shape(cls)
    if type(raw) is not dict:
        raise _Mismatch(f"expected fields, got {type(raw).__name__}")
    if len(raw) != len(shape.order) or not raw.keys() <= shape.names:
        if not raw.keys() <= shape.names:
            raise _Mismatch(f"unknown field {min(str(name) for name in raw.keys() - shape.names)!r}: who says this has "
                            "another release, and wants something that this one cannot do")
        if not shape.required <= raw.keys():
            raise _Mismatch(f"field {min(shape.required - raw.keys())!r} is missing")
    for name, exact in shape.exact:
        if name in raw and type(raw[name]) is not exact:
            raise _Mismatch(f"expected {exact.__name__}, got {type(raw[name]).__name__}", name)
        if exact is str and name in raw and "\0" in raw[name]:
            raise _Mismatch("a text has no NUL", name)
    for name, decoder in shape.decoders:
        if name in raw:
            try:
                raw[name] = decoder(raw[name])
            except _Mismatch as mismatch:
                mismatch.path.insert(0, name)
                raise
    try:
        return cls(**raw)
    except (ValueError, TypeError) as error:
        raise _Mismatch(str(error)) from None


def _shape(cls: type) -> _Shape:
    """The compiled form of a class: which of its fields cross as they are, and functions for the others."""
    fields = records.fields_of(cls)
    codecs = {field.name: _codec(_hint(cls, field.annotation)) for field in fields}
    order = tuple(codecs)
    getter = operator.attrgetter(*order) if order else lambda value: ()
    shape = _shapes[cls] = _Shape(
        order=order,
        values_of=getter if len(order) != 1 else lambda value: (getter(value),),
        encoders=tuple((name, codec.encode) for name, codec in codecs.items() if codec.encode is not None),
        exact=tuple((name, codec.exact) for name, codec in codecs.items() if codec.exact is not None),
        decoders=tuple((name, codec.decode) for name, codec in codecs.items() if codec.exact is None),
        required=frozenset(field.name for field in fields if field.is_required),
        names=frozenset(order),
        defaults=tuple((field.name, field.default) for field in fields
                       if not field.is_required and field.factory is None and type(field.default) in _FIXED),
    )
    return shape


def _hint(cls: type, annotation: Any) -> Any:
    """What an annotation of a message's field stands for."""
    if type(annotation) is not str:
        return annotation
    return eval(annotation, vars(sys.modules[cls.__module__]))  # noqa: S307 - a word of our own code


@records.frozen
class _Codec:
    """How one annotation crosses: ``encode`` None: as it is; ``exact``: it has just this type when it arrives."""

    encode: Encoder | None
    decode: Decoder
    exact: type | None = None


def _codec(hint: Any) -> _Codec:
    if hint in (bool, int, str, bytes):
        return _Codec(None, _exactly(hint), hint)
    if hint is float:
        return _Codec(None, _number)
    if hint is FileName:
        return _Codec(_name_out, _name_in)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _Codec(lambda item: item.value, _enumeration(hint))
    if isinstance(hint, type) and "__attrs_attrs__" in vars(hint):
        return _Codec(_unstructure, lambda raw: _structure(hint, raw))
    origin: Any = getattr(hint, "__origin__", None)
    arguments: tuple[Any, ...] = getattr(hint, "__args__", ())
    if type(hint) is _UNION and len(arguments) == 2 and type(None) in arguments:
        inner = _codec(next(argument for argument in arguments if argument is not type(None)))
        decode_inner = inner.decode
        return _Codec(inner.encode, lambda raw: None if raw is None else decode_inner(raw))
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(_codec(arguments[0]))
    if origin is tuple:
        return _fixed([_codec(argument) for argument in arguments])
    raise TypeError(f"a message field cannot be {hint!r}")


def _exactly(kind: type) -> Decoder:
    def decoder(raw: Any) -> Any:
        if type(raw) is not kind:
            raise _Mismatch(f"expected {kind.__name__}, got {type(raw).__name__}")
        if isinstance(raw, str) and "\0" in raw:
            raise _Mismatch("a text has no NUL")
        return raw

    return decoder


def _name_out(name: str) -> str | bytes:
    """A file name as it crosses.  Half letters of JSON, which name no file, become bytes that name none either."""
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        try:
            return name.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return name.encode("utf-8", "surrogatepass")
    return name


def _name_in(raw: Any) -> str:
    if type(raw) is bytes:
        name = raw.decode("utf-8", "surrogateescape")
        if not any("\udc80" <= letter <= "\udcff" for letter in name):
            raise _Mismatch("a name that is UTF-8 crosses as text")
    elif type(raw) is str:
        name = raw
    else:
        raise _Mismatch(f"expected str, got {type(raw).__name__}")
    if "\0" in name:
        raise _Mismatch("a text has no NUL")
    return name


def _number(raw: Any) -> float:
    if type(raw) not in (float, int):
        raise _Mismatch(f"expected a number, got {type(raw).__name__}")
    if math.isnan(raw):
        raise _Mismatch("a number that is none")
    return float(raw)


def _enumeration(kind: type[enum.Enum]) -> Decoder:
    by_value = {member.value: member for member in kind}

    def decoder(raw: Any) -> Any:
        try:
            return by_value[raw]
        except (KeyError, TypeError):
            raise _Mismatch(f"{raw!r} is not one of {list(by_value)}") from None

    return decoder


def _sequence(inner: _Codec) -> _Codec:
    encode, decode_one, exact = inner.encode, inner.decode, inner.exact

    def decode_all(raw: Any) -> tuple[Any, ...]:
        if type(raw) is not list:
            raise _Mismatch(f"expected a list, got {type(raw).__name__}")
        if exact is not None:
            for item in raw:
                if type(item) is not exact:
                    raise _Mismatch(f"expected {exact.__name__}, got {type(item).__name__}")
                if isinstance(item, str) and "\0" in item:
                    raise _Mismatch("a text has no NUL")
            return tuple(raw)
        return tuple([decode_one(item) for item in raw])

    if encode is None:
        return _Codec(None, decode_all)
    encode_one = encode
    return _Codec(lambda items: [None if item is None else encode_one(item) for item in items], decode_all)


def _fixed(inner: list[_Codec]) -> _Codec:
    def encode_all(items: Any) -> list[Any]:
        return [
            item if codec.encode is None or item is None else codec.encode(item)
            for item, codec in zip(items, inner, strict=True)
        ]

    def decode_all(raw: Any) -> tuple[Any, ...]:
        if type(raw) is not list or len(raw) != len(inner):
            raise _Mismatch(f"expected a list of {len(inner)}")
        return tuple([codec.decode(item) for item, codec in zip(raw, inner, strict=True)])

    plain = all(codec.encode is None for codec in inner)
    return _Codec(None if plain else encode_all, decode_all)
