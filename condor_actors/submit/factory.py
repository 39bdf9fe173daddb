"""Jobs that a schedd makes as they are needed: what is sent of them.

Theory: the schedd is sent the common ad and, for each job, what differs.  Where the jobs of one queue statement differ
by their number alone, all these texts are one text with holes.  It is found by making jobs whose numbers are unlikely,
and replacing the numbers in what comes out; it is believed when it says of a sample of real jobs what making them says.
A macro function that does more with the number than write it down, or a check of a file that is not there, is found so,
and then every job is made here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from condor_actors.submit.build_context import BuildContext
from condor_actors.submit.errors import SubmitError
from condor_actors.submit.itemdata import Itemdata

__all__ = ["Repeated", "limits", "repeated"]

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import overload

FEW = 200
"""Jobs that are made one by one sooner than they are guessed."""
_UNLIKELY = ((739184625, 518273946), (846273915, 627384951))
_SAMPLE = (0, 1, 2, 7, 9, 10, 11, 42, 99, 100, 101, 128, 255, 256, 511, 512, 999, 1000, 1001, 1023, 1024, 4095, 4096,
           9999, 10_000, 10_001, 32_768, 65_535, 65_536, 99_999, 100_000, 123_456, 999_999)


class Repeated(Sequence[bytes]):
    """The texts of jobs that differ by their number alone.

    Attributes:
        text: of them all; ``\\0P`` stands for the ProcId and ``\\0S`` for the step.
    """

    def __init__(self, text: bytes, count: int) -> None:
        self.text = text
        self._count = count

    def __len__(self) -> int:
        return self._count

    if TYPE_CHECKING:
        @overload
        def __getitem__(self, index: int) -> bytes: ...

        @overload
        def __getitem__(self, index: slice) -> Sequence[bytes]: ...

    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(self._count))]
        number = index + self._count if index < 0 else index
        if not 0 <= number < self._count:
            raise IndexError(index)
        return self.text.replace(b"\0P", b"%d" % number).replace(b"\0S", b"%d" % number)

    def __iter__(self) -> Iterator[bytes]:
        return (self[number] for number in range(self._count))


def repeated(rows: Itemdata, text_of: Callable[[], bytes | None], common: bytes, warnings: list[str]
             ) -> Repeated | None:
    """The one text of all jobs of a statement that begins a cluster; None: they have to be made one by one.

    Args:
        rows: sets the numbers.
        text_of: makes the job whose numbers are set; None: it cannot be made from the first one.
        common: the text of the cluster's ad; it says of the first job what the text says of the others.
        warnings: of the description; guesses add none.
    """
    count = rows.jobs_of_one_item
    if count < FEW:
        return None
    told = len(warnings)
    try:
        found = {_with_holes(rows, text_of, proc, step) for proc, step in _UNLIKELY}
        text = found.pop()
        if found or text is None:
            return None
        whole, lines = Repeated(text, count), frozenset(common.splitlines(keepends=True))
        for number in {*(each for each in _SAMPLE if each < count), count // 2, count - 1}:
            rows.place(number, number)
            said = whole[number]
            if not number:
                said = b"".join(line for line in said.splitlines(keepends=True) if line not in lines)
            if text_of() != said:
                return None
        return whole
    except SubmitError:
        return None
    finally:
        del warnings[told:]


def _with_holes(rows: Itemdata, text_of: Callable[[], bytes | None], proc: int, step: int) -> bytes | None:
    rows.place(proc, step)
    text = text_of()
    if text is None or b"\0" in text:
        return None
    return text.replace(b"%d" % proc, b"\0P").replace(b"%d" % step, b"\0S")


def limits(context: BuildContext) -> None:
    """JobMaterializeLimit, JobMaterializeMaxIdle.

    Raises:
        SubmitError: one is no number.
    """
    for attribute, *commands in (("JobMaterializeLimit", "max_materialize"),
                                 ("JobMaterializeMaxIdle", "max_idle", "materialize_max_idle")):
        number = context.integer(*commands) if context.is_factory else None
        if number is not None and number < 0:
            raise SubmitError(f"{commands[0]}={number} is invalid, expected 0 or more.", command=commands[0])
        if number is not None:
            context.set(attribute, number)
