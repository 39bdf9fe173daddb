"""Results that are plain data, read without trusting who made them.

Theory: a pickle is a program.  This one may only build numbers, texts, bytes, and lists, tuples, dicts and sets of
these: whatever refers to a class, a function or an extension is refused.  Eight bytes of a pickle can make the fast
reader of the library reserve gigabytes (an entry of its memory with a large number), and one byte makes an object of
two hundred; so a result goes there only where it is short and cannot say such a number.  All others are read by the
slow reader, which keeps its memory in a dict, with its containers counted.  Tuples in tuples are bounded, for a very
deep one that is a key ends the program: its hash has the stack overflow.
"""

from __future__ import annotations

import io
import pickle
import struct
from typing import Any

__all__ = ["MOST_CONTAINERS", "read"]

MOST_CONTAINERS = 2_000_000
DEEPEST = 500
SHORT_BYTES = 2 << 10
_SLOW_ONLY = (b"r", b"p", b"\x96")
"""Instructions that keep an object under a number of more than a byte (LONG_BINPUT, PUT), or make an array of as many
bytes as they say (BYTEARRAY8): where these do not come, the fast reader frees the array while it is in use."""
_ALLOWED = frozenset(
    getattr(pickle, name)[0] for name in (
        "PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2",
        "LONG1", "LONG4", "BINFLOAT", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINBYTES", "BINBYTES",
        "BINBYTES8", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE",
        "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_SET", "ADDITEMS", "FROZENSET", "MEMOIZE", "BINGET", "LONG_BINGET",
        "BINPUT", "LONG_BINPUT"))
_CONTAINERS = frozenset(
    getattr(pickle, name)[0] for name in (
        "MARK", "EMPTY_LIST", "TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "EMPTY_DICT", "EMPTY_SET", "FROZENSET"))
_HASHED = frozenset(getattr(pickle, name)[0] for name in ("TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "FROZENSET"))
_SLOW: Any = pickle._Unpickler  # noqa: SLF001 - the library's own, in Python


def _refuse(module: str, name: str) -> object:
    raise pickle.UnpicklingError(f"{module}.{name} is no plain data; the executor takes no more (results=\"data\")")


class _Short(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        return _refuse(module, name)


def _steps() -> dict[int, Any]:
    """The slow reader's instructions, of which those that are allowed do something."""
    def counted(step: Any) -> Any:
        def do(reader: Any) -> None:
            reader.containers += 1
            if reader.containers > MOST_CONTAINERS:
                raise pickle.UnpicklingError(f"a result has more than {MOST_CONTAINERS} lists, tuples, dicts and sets")
            step(reader)
        return do

    def measured(step: Any) -> Any:
        def do(reader: Any) -> None:
            step(reader)
            made = reader.stack[-1]
            depth = 1 + max((reader.depths.get(id(each), 0) for each in made if type(each) in (tuple, frozenset)),
                            default=0)
            if depth > DEEPEST:
                raise pickle.UnpicklingError(f"a result has tuples in tuples in tuples, more than {DEEPEST} deep")
            reader.depths[id(made)] = depth
        return do

    def other(code: int) -> Any:
        def do(reader: Any) -> None:
            raise pickle.UnpicklingError(f"instruction {code} makes no plain data; the executor takes no more "
                                         "(results=\"data\")")
        return do

    found: dict[int, Any] = {}
    for code, step in _SLOW.dispatch.items():
        allowed = step if code in _ALLOWED else other(code)
        allowed = measured(allowed) if code in _HASHED else allowed
        found[code] = counted(allowed) if code in _CONTAINERS else allowed
    return found


class _Slow(_SLOW):  # type: ignore[misc]
    dispatch = _steps()

    def __init__(self, body: bytes) -> None:
        super().__init__(io.BytesIO(body))
        self.containers = 0
        self.depths: dict[int, int] = {}

    def find_class(self, module: str, name: str) -> object:
        """Nothing is found."""
        return _refuse(module, name)


def read(body: bytes) -> Any:
    """The value of a pickle of plain data.

    Raises:
        pickle.UnpicklingError: it is none, or damaged.
        MemoryError: it does not fit.
    """
    try:
        if len(body) <= SHORT_BYTES and not any(each in body for each in _SLOW_ONLY):
            return _Short(io.BytesIO(body)).load()
        return _Slow(body).load()
    except (ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError,
            struct.error) as error:
        raise pickle.UnpicklingError(f"a result is damaged: {error!r:.200}") from None
