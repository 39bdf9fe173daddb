"""Messages to bytes and back, strictly.

Theory: a message is a frozen attrs class that declares ``KIND`` and ``VERSION``.  Its fields cross the wire as one
MessagePack map ``{field name: value}``, so that Perspective Broker sees a single byte string (a dict of fifty
attributes costs it twenty times more).  Encoders and decoders are compiled once per class from the field's
annotations: an unknown field, a missing one, or a value of another type is refused, never coerced.

Allowed field types: ``bool int float str bytes``, ``T | None``, ``tuple[T, ...]``, fixed tuples, enums, and nested
attrs classes registered with :func:`part`.
"""

from __future__ import annotations

import enum
import importlib
import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

import attrs
import msgpack

MAX_BODY_BYTES = 512 * 1024
"""The largest encoded body that may be sent; more is paged by cursor or goes over the bulk channel."""

CONVERSATIONS = ("admin", "advertise", "claim", "negotiate", "pool", "queue", "run")
"""The modules of this package that hold messages; ``condor.<conversation>.<Name>`` is defined in one of them."""

Encoder = Callable[[Any], Any]
Decoder = Callable[[Any, str], Any]


class Message(Protocol):
    """What every wire message has: attrs fields, a ``KIND`` and a ``VERSION``."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int]
    LEVEL: ClassVar[str]


class MalformedMessage(ValueError):
    """A body that is not what its kind says: names the kind, the field and what was expected."""


class OversizedMessage(ValueError):
    """A message over :data:`MAX_BODY_BYTES`; its sender should have paged it."""


@attrs.frozen
class _Shape:
    """The compiled form of one attrs class."""

    fields: tuple[tuple[str, Encoder | None, Decoder], ...]
    required: frozenset[str]
    names: frozenset[str]


_C = TypeVar("_C", bound=type)
_registry: dict[tuple[str, int], type] = {}
_shapes: dict[type, _Shape] = {}


def message(cls: _C) -> _C:
    """Register a message class; use as the outermost decorator of an ``@attrs.frozen(kw_only=True)`` class.

    A message without ``LEVEL`` may only be sent by daemons of the pool (level DAEMON).
    """
    key = (cls.KIND, cls.VERSION)
    if key in _registry:
        raise TypeError(f"two messages are called {key[0]} version {key[1]}: {_registry[key].__name__}, {cls.__name__}")
    if not hasattr(cls, "LEVEL"):
        cls.LEVEL = "DAEMON"
    _registry[key] = cls
    return cls


def kinds() -> frozenset[tuple[str, int]]:
    """Every (kind, version) this process understands: what ``hello`` offers to a peer."""
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
            importlib.import_module(f"condor_actors.messages.{conversation}")
            cls = _registry.get((kind, version))
    return cls


def encode(value: Any) -> bytes:
    """The body of a message.

    Raises:
        OversizedMessage: it takes more than :data:`MAX_BODY_BYTES`.
    """
    body: bytes = msgpack.packb(_unstructure(value), use_bin_type=True)
    if len(body) > MAX_BODY_BYTES:
        raise OversizedMessage(f"{value.KIND} takes {len(body)} bytes, more than {MAX_BODY_BYTES}")
    return body


def decode(kind: str, version: int, body: bytes) -> Any:
    """The message that ``body`` holds.

    Raises:
        MalformedMessage: unknown kind or version, bytes that are not MessagePack, a wrong, missing or unknown field.
    """
    cls = message_class(kind, version)
    if cls is None:
        raise MalformedMessage(f"unknown message {kind!r} version {version!r}")
    if len(body) > MAX_BODY_BYTES:
        raise MalformedMessage(f"{kind}: {len(body)} bytes, more than {MAX_BODY_BYTES}")
    try:
        raw = msgpack.unpackb(body, raw=False, strict_map_key=True)
    except (ValueError, msgpack.UnpackException, RecursionError) as error:
        raise MalformedMessage(f"{kind}: not MessagePack ({error})") from None
    return _structure(cls, raw, kind)


def _unstructure(value: Any) -> dict[str, Any]:
    out = {}
    for name, encoder, _ in _shape(type(value)).fields:
        item = getattr(value, name)
        out[name] = item if encoder is None or item is None else encoder(item)
    return out


def _structure(cls: type, raw: Any, where: str) -> Any:
    if not isinstance(raw, dict):
        raise MalformedMessage(f"{where}: expected fields, got {type(raw).__name__}")
    shape = _shape(cls)
    if not raw.keys() <= shape.names:
        unknown = sorted(str(name) for name in raw.keys() - shape.names)
        raise MalformedMessage(f"{where}: unknown field {unknown[0]!r}")
    if not shape.required <= raw.keys():
        raise MalformedMessage(f"{where}: field {min(shape.required - raw.keys())!r} is missing")
    values = {
        name: decoder(raw[name], f"{where}.{name}") for name, _, decoder in shape.fields if name in raw
    }
    try:
        return cls(**values)
    except (ValueError, TypeError) as error:
        raise MalformedMessage(f"{where}: {error}") from None


def _shape(cls: type) -> _Shape:
    shape = _shapes.get(cls)
    if shape is None:
        hints = typing.get_type_hints(cls)
        fields = []
        for field in attrs.fields(cls):
            encoder, decoder = _codec(hints[field.name])
            fields.append((field.name, encoder, decoder))
        required = frozenset(f.name for f in attrs.fields(cls) if f.default is attrs.NOTHING)
        shape = _shapes[cls] = _Shape(tuple(fields), required, frozenset(name for name, _, _ in fields))
    return shape


def _codec(hint: Any) -> tuple[Encoder | None, Decoder]:
    """An encoder (None: the value crosses as it is) and a strict decoder for one annotation."""
    if hint in (bool, int, str, bytes):
        return None, _exactly(hint)
    if hint is float:
        return None, _number
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return (lambda item: item.value), _enumeration(hint)
    if isinstance(hint, type) and attrs.has(hint):
        return _unstructure, lambda raw, where: _structure(hint, raw, where)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType) and len(arguments) == 2 and type(None) in arguments:
        inner = next(argument for argument in arguments if argument is not type(None))
        encoder, decoder = _codec(inner)
        return encoder, lambda raw, where: None if raw is None else decoder(raw, where)
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _sequence(arguments[0])
    if origin is tuple:
        return _fixed(arguments)
    raise TypeError(f"a message field cannot be {hint!r}")


def _exactly(kind: type) -> Decoder:
    def decoder(raw: Any, where: str) -> Any:
        if type(raw) is not kind:
            raise MalformedMessage(f"{where}: expected {kind.__name__}, got {type(raw).__name__}")
        return raw

    return decoder


def _number(raw: Any, where: str) -> float:
    if type(raw) not in (int, float):
        raise MalformedMessage(f"{where}: expected a number, got {type(raw).__name__}")
    return float(raw)


def _enumeration(kind: type[enum.Enum]) -> Decoder:
    def decoder(raw: Any, where: str) -> Any:
        try:
            return kind(raw)
        except ValueError:
            raise MalformedMessage(f"{where}: {raw!r} is not one of {[e.value for e in kind]}") from None

    return decoder


def _sequence(inner: Any) -> tuple[Encoder | None, Decoder]:
    encoder, decoder = _codec(inner)

    def decode_all(raw: Any, where: str) -> tuple[Any, ...]:
        if type(raw) is not list:
            raise MalformedMessage(f"{where}: expected a list, got {type(raw).__name__}")
        return tuple([decoder(item, where) for item in raw])

    if encoder is None:
        return None, decode_all
    inner_encoder = encoder
    return (lambda items: [None if item is None else inner_encoder(item) for item in items]), decode_all


def _fixed(inner: tuple[Any, ...]) -> tuple[Encoder | None, Decoder]:
    codecs = [_codec(hint) for hint in inner]

    def encode_all(items: Any) -> list[Any]:
        return [
            item if encoder is None or item is None else encoder(item)
            for item, (encoder, _) in zip(items, codecs, strict=True)
        ]

    def decode_all(raw: Any, where: str) -> tuple[Any, ...]:
        if type(raw) is not list or len(raw) != len(codecs):
            raise MalformedMessage(f"{where}: expected a list of {len(codecs)}")
        return tuple(decoder(item, where) for item, (_, decoder) in zip(raw, codecs, strict=True))

    return encode_all, decode_all
