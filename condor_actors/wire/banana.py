"""The bytes of Perspective Broker, for the one call that our links make.

Theory: a link carries a single kind of Perspective Broker expression beside its greeting::

    ["message", request, "link", "deliver", answer?, ["tuple", FRAME], ["dictionary"]]

so its encoding is a constant around two numbers and a byte string, and its decoding one regular expression.  All else
goes through a small strict decoder with limits on size, depth and count.  Nothing here imports Twisted: the tools'
blocking client speaks with the same code.
"""

from __future__ import annotations

from condor_actors.patterns import late

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any

MAX_STRING_BYTES = 640 * 1024
"""Banana's own limit for one string, and so for one frame."""

MAX_GREETING_BYTES = 16 * 1024
"""The largest expression that is not a call of ``deliver``."""

MAX_DEPTH = 8
MAX_ITEMS = 256

DIALECT = b"pb"
GREETING_DIALECTS = b"\x02\x80\x02\x82pb\x04\x82none"
CHOSEN_DIALECT = b"\x02\x82pb"
VERSION = b"\x02\x80\x13\x87\x06\x81"
"""``["version", 6]`` in the pb dialect."""

VOCABULARY = (
    b"", b"None", b"class", b"dereference", b"reference", b"dictionary", b"function", b"instance", b"list", b"module",
    b"persistent", b"tuple", b"unpersistable", b"copy", b"cache", b"cached", b"remote", b"local", b"lcache",
    b"version", b"login", b"password", b"challenge", b"logged_in", b"not_logged_in", b"cachemessage", b"message",
    b"answer", b"error", b"decref", b"decache", b"uncache",
)

_CALL = late(
    rb"\x07\x80\x1a\x87([\x00-\x7f]{1,9})\x81\x04\x82link\x07\x82deliver([\x00\x01])\x81"
    rb"\x02\x80\x0b\x87([\x00-\x7f]{1,4})\x82"
)
_BEFORE_REQUEST = b"\x07\x80\x1a\x87"
_AFTER_REQUEST = b"\x81\x04\x82link\x07\x82deliver\x00\x81\x02\x80\x0b\x87"
_AFTER_FRAME = b"\x01\x80\x05\x87"
_CALL_PREFIX_BYTES = 64


class BadBanana(ValueError):
    """Bytes that no honest peer sends."""


class _Incomplete(Exception):
    """More bytes are needed."""


def _number(value: int) -> bytes:
    """Base 128, least digit first."""
    if value < 128:
        return bytes((value,))
    digits = bytearray()
    while value:
        digits.append(value & 0x7F)
        value >>= 7
    return bytes(digits)


def _value(digits: bytes) -> int:
    value = 0
    for digit in reversed(digits):
        value = value << 7 | digit
    return value


def encode_call(request: int, frame: bytes) -> bytes:
    """The expression that delivers ``frame``; no answer is wanted."""
    return b"".join(
        (_BEFORE_REQUEST, _number(request), _AFTER_REQUEST, _number(len(frame)), b"\x82", frame, _AFTER_FRAME)
    )


Call = tuple[int, bool, bytes]
"""A decoded call: (request, answer wanted, frame)."""


class Decoder:
    """Turns chunks of bytes into expressions."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Call | list[Any] | bytes | int]:
        """Complete expressions in ``data`` and what was left before; calls of ``deliver`` come as tuples.

        Raises:
            BadBanana: over a limit, or not Banana.
        """
        buffer = self._rest + data if self._rest else data
        position, size = 0, len(buffer)
        found: list[Call | list[Any] | bytes | int] = []
        while position < size:
            call = _CALL.match(buffer, position)
            if call is not None:
                start = call.end()
                end = start + _value(call[3])
                if end - start > MAX_STRING_BYTES:
                    raise BadBanana(f"a string of {end - start} bytes")
                if size < end + 4:
                    break
                if buffer[end : end + 4] != _AFTER_FRAME:
                    raise BadBanana("deliver takes one argument")
                found.append((_value(call[1]), call[2] == b"\x01", buffer[start:end]))
                position = end + 4
                continue
            try:
                item, position = _parse(buffer, position, 0, [MAX_ITEMS])
            except _Incomplete:
                if size - position > MAX_GREETING_BYTES:
                    raise BadBanana(f"an expression of more than {MAX_GREETING_BYTES} bytes") from None
                break
            found.append(item)
        self._rest = buffer[position:] if position else buffer
        return found


def _parse(buffer: bytes, position: int, depth: int, left: list[int]) -> tuple[Any, int]:
    """One expression from ``position``, and where it ends."""
    left[0] -= 1
    if depth > MAX_DEPTH or left[0] < 0:
        raise BadBanana("an expression too deep or too long")
    digits_end = position
    size = len(buffer)
    while digits_end < size and buffer[digits_end] < 0x80:
        digits_end += 1
    if digits_end - position > 9:
        raise BadBanana("a number of more than nine digits")
    if digits_end == size:
        raise _Incomplete
    value = _value(buffer[position:digits_end])
    kind, position = buffer[digits_end], digits_end + 1
    if kind == 0x80:
        return _parse_list(buffer, position, depth, left, value)
    if kind == 0x81:
        return value, position
    if kind == 0x82:
        if value > MAX_GREETING_BYTES:
            raise BadBanana(f"a string of {value} bytes")
        if size < position + value:
            raise _Incomplete
        return buffer[position : position + value], position + value
    if kind == 0x83:
        return -value, position
    if kind == 0x87 and 0 < value < len(VOCABULARY):
        return VOCABULARY[value], position
    raise BadBanana(f"type byte {kind:#x}")


def _parse_list(buffer: bytes, position: int, depth: int, left: list[int], count: int) -> tuple[list[Any], int]:
    if count > MAX_ITEMS:
        raise BadBanana(f"a list of {count}")
    items = []
    for _ in range(count):
        item, position = _parse(buffer, position, depth + 1, left)
        items.append(item)
    return items, position
