"""Regular expressions that are compiled when they are first used, or with the package (`condor_actors.tools.bundle`).

Theory: Python compiles them slower than it loads modules, a command needs a few of those that its modules have, and
the compiler alone takes as long to load as ten modules.  So the programs of expressions lie in one file, each found by
its text; only a Python of the release that wrote it reads it, and checks each program before it uses it.
"""

from __future__ import annotations

import marshal
import sys
from _frozen_importlib_external import MAGIC_NUMBER
from _sre import MAGIC as PROGRAM_MAGIC  # type: ignore[import-not-found]

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from collections.abc import Sequence
    from typing import Any, AnyStr

__all__ = ["PROGRAMS", "encoded_programs", "late"]

PROGRAMS = f"{__file__.rpartition('/')[0]}/__pycache__/patterns.{sys.implementation.cache_tag}.programs"
"""Where the programs of this installation are: the mark of the Python that wrote them, then a table of
`encoded_programs`."""
_MARK = MAGIC_NUMBER + PROGRAM_MAGIC.to_bytes(4, "little")
_FLAGS = {"a": 256, "i": 2, "m": 8, "s": 16, "x": 64}


class _Programs:
    """The table of programs, read when the first one is wanted."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, str], Any] | None = None

    def of(self, text: Any, flags: str) -> Any:
        """The pattern; None where there is no program for it."""
        if self._known is None:
            self._known = self._read()
        found = self._known.get((text, flags))
        if found is None:
            return None
        from _sre import compile as pattern_of

        known, code, groups, index, names = found
        return pattern_of(text, known, memoryview(code).cast("I").tolist(), groups, index, names)

    @staticmethod
    def _read() -> dict[tuple[Any, str], Any]:
        try:
            with open(PROGRAMS, "rb") as file:
                found = file.read()
        except OSError:
            return {}
        return marshal.loads(found[len(_MARK):]) if found.startswith(_MARK) else {}


_PROGRAMS = _Programs()


class _Late:
    """Looks like what ``re.compile`` returns; each of its methods is looked up once."""

    def __init__(self, text: Any, flags: str) -> None:
        self.text_, self.flags_ = text, flags

    def __getattr__(self, name: str) -> Any:
        pattern = _PROGRAMS.of(self.text_, self.flags_)
        if pattern is None:
            import re

            pattern = re.compile(self.text_, _flags_of(self.flags_))
        found = getattr(pattern, name)
        setattr(self, name, found)
        return found


def _flags_of(letters: str) -> int:
    return sum(_FLAGS[letter] for letter in letters)


def late(text: AnyStr, flags: str = "") -> re.Pattern[AnyStr]:
    """A pattern; a mistake in it is found by its first use.

    Args:
        text: of the pattern.
        flags: the letters that could stand at its beginning, as in ``(?is)``.
    """
    made: Any = _Late(text, flags)
    return made  # type: ignore[no-any-return]


def encoded_programs(others: Sequence[str]) -> bytes:
    """What `PROGRAMS` is to hold for the patterns of all modules that have been loaded, and for others.

    Nothing, where this Python's compiler has another form than is known here: patterns are compiled late then.
    """
    try:
        from re import _compiler, _parser  # type: ignore[attr-defined]
        _ = _compiler._code, _parser.parse
    except (ImportError, AttributeError):
        return b""

    table = {}
    modules = [vars(module) for module in sys.modules.values()]
    made = [value for names in modules for value in names.values() if type(value) is _Late]
    for one in (*made, *(_Late(text, "") for text in others)):
        flags = _flags_of(one.flags_)
        parsed = _parser.parse(one.text_, flags)
        code = _compiler._code(parsed, flags)
        index: dict[str, int] = parsed.state.groupdict
        names: list[str | None] = [None] * parsed.state.groups
        for name, number in index.items():
            names[number] = name
        packed = b"".join(each.to_bytes(4, sys.byteorder) for each in code)
        flags |= parsed.state.flags
        table[one.text_, one.flags_] = flags, packed, parsed.state.groups - 1, index, tuple(names)
    return bytes(_MARK) + marshal.dumps(table)
