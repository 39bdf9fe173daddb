"""Reading a job event log, text or XML, as far as tools need it: number, job, and the text of each event.

A text event begins ``EEE (CCC.PPP.SSS) DATE TIME …`` and ends with a line ``...``; an XML event is a ``<c>`` element.
What is not yet complete stays behind for the next call.
"""

from __future__ import annotations

from collections.abc import Iterator

from condor_actors import records
from condor_actors.patterns import late

_HEAD = late(rb"(\d{3}) \((-?\d{1,18})\.(-?\d{1,18})\.(-?\d{1,18})\) ")
_BEGINNING = late(rb"\d{3} \(|\d{0,3}\Z|\d{3} \Z")
_XML_BEGINNINGS = (b"<?xml", b"<!DOCTYPE", b"<eventlog", b"<classads", b"<c>")
_SHOWN_BYTES = 60
_ENDING = b"\n...\n"
_TAG = late(rb"</?c>")
_XML_NUMBER = late(rb'<a n="(Cluster|Proc|Subproc|EventTypeNumber)">\s*<i>(-?\d{1,18})</i>')


@records.frozen
class Event:
    """One event of one job."""

    number: int
    cluster: int
    proc: int
    subproc: int
    text: str


class EventReader:
    """Cuts bytes into events.

    Attributes:
        is_xml: whether the log turned out to be XML.
    """

    def __init__(self) -> None:
        self.is_xml = False
        self._rest = b""
        self._skipped = b""
        self._found = False

    @property
    def has_rest(self) -> bool:
        """Whether there is more than blanks that has not become an event."""
        return bool(self._rest.strip())

    @property
    def rest_bytes(self) -> int:
        """How many bytes have not become an event."""
        return len(self._rest)

    @property
    def stranger(self) -> str:
        """The first line of a file that is no event log; empty as long as it may be one: it has an event, or nothing
        but the beginning of one."""
        first = (self._skipped or self._rest).lstrip()
        if self._found or not first or not (self._skipped or _is_foreign(first)):
            return ""
        return first.split(b"\n", 1)[0][:_SHOWN_BYTES].decode("utf-8", "replace")

    def feed(self, data: bytes) -> Iterator[Event]:
        """The events that are complete now."""
        self._rest += data
        if not self.is_xml and self._rest.lstrip().startswith(b"<"):
            self.is_xml = True
        # once: what is left is not copied anew for every event
        pieces, self._rest = _elements(self._rest) if self.is_xml else _blocks(self._rest)
        cut = _xml if self.is_xml else _text
        events = []
        for piece in pieces:
            event = cut(piece)
            if event is not None:
                self._found = True
                events.append(event)
            else:
                self._skipped = self._skipped or piece
        return iter(events)


def _blocks(data: bytes) -> tuple[list[bytes], bytes]:
    """The complete blocks of a text log, and the rest."""
    *pieces, rest = data.split(_ENDING)
    return [piece + _ENDING for piece in pieces], rest


def _elements(data: bytes) -> tuple[list[bytes], bytes]:
    """The complete elements of an XML log, and the rest.

    Elements may have others in them.  One at the beginning of a line is an event of its own, also behind one
    that was never finished.
    """
    pieces, begin, depth = [], 0, 0
    for tag in _TAG.finditer(data):
        if tag[0] != b"</c>":
            first = tag.start() == 0 or data[tag.start() - 1 : tag.start()] == b"\n"
            depth = 1 if first else depth + 1
            continue
        depth = max(0, depth - 1)
        if depth == 0:
            pieces.append(data[begin : tag.end()])
            begin = tag.end()
    return pieces, data[begin:]


def _is_foreign(first: bytes) -> bool:
    """Whether no event log begins so."""
    if first.startswith(b"<"):
        return not any(first.startswith(each[: len(first)]) for each in _XML_BEGINNINGS)
    return _BEGINNING.match(first) is None


def _text(piece: bytes) -> Event | None:
    head = _HEAD.search(piece)
    if head is None:
        return None
    number, cluster, proc, subproc = (int(part) for part in head.groups())
    return Event(number, cluster, proc, subproc, piece[head.start() :].decode("utf-8", "replace"))


def _xml(piece: bytes) -> Event | None:
    found: dict[str, int] = {}
    for name, value in _XML_NUMBER.findall(piece[max(0, piece.rfind(b"\n<c>")) :]):
        found.setdefault(name.decode(), int(value))  # what is in an inner element comes later
    if "EventTypeNumber" not in found:
        return None
    return Event(
        found["EventTypeNumber"], found.get("Cluster", -1), found.get("Proc", -1), found.get("Subproc", 0),
        piece.decode("utf-8", "replace").lstrip(),
    )  # fmt: skip
