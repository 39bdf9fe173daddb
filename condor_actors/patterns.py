"""Regular expressions that are compiled when they are first used.

Theory: Python compiles them slower than it loads modules, and a command needs a few of those that its modules have.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    import re
    from typing import Any, AnyStr

__all__ = ["late"]


class _Late:
    """Looks like what ``re.compile`` returns; each of its methods is looked up once."""

    def __init__(self, text: Any, flags: str) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        import re

        found = getattr(re.compile(self._text, _flags_of(self._flags)), name)
        setattr(self, name, found)
        return found


def _flags_of(letters: str) -> int:
    import re

    return sum(int(re.RegexFlag[letter.upper()]) for letter in letters)


def late(text: AnyStr, flags: str = "") -> re.Pattern[AnyStr]:
    """A pattern; a mistake in it is found by its first use.

    Args:
        text: of the pattern.
        flags: the letters that could stand at its beginning, as in ``(?is)``.
    """
    made: Any = _Late(text, flags)
    return made  # type: ignore[no-any-return]
