"""Values of the ClassAd language that Python does not have, and the limits of those it has.

=============  ==========================================
ClassAd        Python
=============  ==========================================
undefined      ``UNDEFINED`` (``None`` is accepted)
error          ``ERROR``
boolean        ``bool``
integer        ``int``, always within 64 bits (wrapping)
real           ``float``
string         ``str`` (bytes that are not UTF-8 are kept as surrogate escapes)
absolute time  ``AbsoluteTime``
relative time  ``RelativeTime``
list           ``list`` (inside an evaluation: ``ListValue``, whose elements wait)
record         ``ClassAd``
=============  ==========================================
"""

from __future__ import annotations

from condor_actors import records

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, Final, final

    from condor_actors.classads.ad import ClassAd
else:
    Any = object

    def final(cls):
        return cls

INT_MIN: Final = -(1 << 63)
INT_MAX: Final = (1 << 63) - 1
_WRAP: Final = 1 << 64
MAX_STRING: Final = 4 * 1024 * 1024
"""Characters that a string made by a function may have; a longer one is ERROR."""


@final
class Undefined:
    """The type of `UNDEFINED`: the value of what is not there."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNDEFINED"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "UNDEFINED"

    def __copy__(self) -> Undefined:
        return self

    def __deepcopy__(self, memo: object) -> Undefined:
        return self


@final
class Error:
    """The type of `ERROR`: the value of what makes no sense."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "ERROR"

    def __bool__(self) -> bool:
        return False

    def __reduce__(self) -> str:
        return "ERROR"

    def __copy__(self) -> Error:
        return self

    def __deepcopy__(self, memo: object) -> Error:
        return self


UNDEFINED: Final = Undefined()
ERROR: Final = Error()


@records.frozen(slots=True, order=True)
class AbsoluteTime:
    """An instant: seconds since 1970 (UTC) and the offset, in seconds east of Greenwich, it is shown with."""

    epoch_s: int
    offset_s: int = records.field(default=0, order=False)


@records.frozen(slots=True, order=True)
class RelativeTime:
    """A span of time in seconds."""

    span_s: float


class ListValue:
    """A list inside an evaluation: elements not yet evaluated, and the record whose names they see.

    Attributes:
        made: Whether a function made it; ``is`` holds those for another type than lists written out.
    """

    __slots__ = ("ad", "elements", "made")

    def __init__(self, elements: tuple[Any, ...], ad: ClassAd | None, made: bool = False) -> None:
        self.elements = elements
        self.ad = ad
        self.made = made


Scalar = int | float | str | bool | AbsoluteTime | RelativeTime | Undefined | Error
"""A value that is neither list nor record."""

Value = Any
"""Any value of the table above; the language is dynamic, so mypy is told no more."""

Stored = "Scalar | Expr | ClassAd"
"""What an ad keeps under a name."""


def wrap(number: int) -> int:
    """Bring an integer back into 64 bits, as two's complement machines do.

    Args:
        number: Any integer.

    Returns:
        The number congruent to it modulo 2**64 within [-2**63, 2**63).
    """
    if INT_MIN <= number <= INT_MAX:
        return number
    return (number - INT_MIN) % _WRAP + INT_MIN


def is_true(value: object) -> bool:
    """Say whether a value counts as true where a decision is asked for, as in ``Requirements``.

    Args:
        value: An evaluated value.

    Returns:
        True for true and for numbers other than zero; False for everything else.
    """
    if value is True:
        return True
    return isinstance(value, (int, float)) and value != 0
