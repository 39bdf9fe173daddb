"""One connection of a job to the starter: lines in, answers out, and the requests to the shadow in between.

Theory: a request is a line, some with bytes behind it, and the next one is read when it is answered.  Each verb is a
generator that says what it needs: bytes of the request (:class:`Take`), something of the shadow (:class:`Call`), a
change of the attributes that wait here (:class:`Delay`, :class:`Look`), and what the client gets (:class:`Say`).  The
descriptors that the client holds are this session's: path, flags and position; the shadow is told them with each call,
so a descriptor outlives a shadow.

**Source**: HTCondor's ``io_proxy_handler.cpp`` for the requests and what follows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from condor_actors.classads import ClassAd
from condor_actors.config.settings import setting
from condor_actors.cores.chirp_protocol import LINE_BYTES, PIECE_BYTES, ChirpError, words_of
from condor_actors.cores.starter.chirp_verbs import (
    VERBS,
    Call,
    ChirpVerbs,
    HangUp,
    Row,
    Say,
    Step,
    Take,
    Verb,
    fail,
    line_of,
    skip,
)
from condor_actors.cores.starter.gang_verbs import GANG_VERBS, Meet
from condor_actors.messages.codes import Universe

__all__ = ["ChirpRights", "ChirpSession", "ChirpSettings"]


@attrs.frozen(kw_only=True)
class ChirpRights:
    """What the job may ask for: its submit machine's files, attributes and events of itself, delayed attributes, and
    the other members of its gang."""

    files: bool = False
    updates: bool = False
    delayed: bool = False
    gang: bool = False

    def __bool__(self) -> bool:
        return self.files or self.updates or self.delayed or self.gang


@attrs.frozen(kw_only=True)
class ChirpSettings:
    """The machine's part.

    Attributes:
        enabled, files, updates, delays: ENABLE_CHIRP, and of it ENABLE_CHIRP_IO, _UPDATES and _DELAYED.
        delayed: CHIRP_DELAYED_UPDATE_PREFIX; most_delayed: CHIRP_DELAYED_UPDATE_MAX_ATTRS.
    """

    enabled: bool = setting("ENABLE_CHIRP")
    files: bool = setting("ENABLE_CHIRP_IO")
    updates: bool = setting("ENABLE_CHIRP_UPDATES")
    delays: bool = setting("ENABLE_CHIRP_DELAYED")
    delayed: tuple[str, ...] = ("Chirp*",)
    most_delayed: int = setting("CHIRP_DELAYED_UPDATE_MAX_ATTRS")

    def rights_of(self, job: ClassAd) -> ChirpRights:
        """What of it a job wants."""
        if not self.enabled:
            return ChirpRights()
        files = self.files and job.get_bool("WantIOProxy")
        return ChirpRights(files=files, updates=self.updates and job.get_bool("WantRemoteUpdates", files),
                           delayed=self.delays and job.get_bool("WantDelayedUpdates", True),
                           gang=job.get_int("JobUniverse") == Universe.PARALLEL)


class ChirpSession:
    """Decides what follows from the bytes of one client that has shown its cookie.

    Args:
        rights: of the job.
        handles: numbers that no other session of the run uses for its files.
    """

    def __init__(self, rights: ChirpRights, handles: Iterator[int]) -> None:
        self.rights = rights
        self._verbs = ChirpVerbs(handles)
        self._unread = bytearray()
        self._verb: Verb | None = None
        self._take: Take | None = None
        self._waits = False
        self._meets = False
        self._over = False

    @property
    def has_enough(self) -> bool:
        """Whether nothing more should be read of the client now."""
        return (self._waits and not self._meets) or len(self._unread) >= PIECE_BYTES

    def received(self, data: bytes) -> list[Step]:
        """The client has sent bytes."""
        if self._over:
            return []
        self._unread += data
        return [] if self._waits else self._go_on(None)

    def answered(self, result: Any) -> list[Step]:
        """The answer to a Call, Delay or Look, or that a Say is on its way."""
        if self._over or not self._waits:
            return []
        self._waits = False
        return self._go_on(result)

    def lost(self) -> list[Call]:
        """The client is gone: what it had open is closed."""
        self._over = True
        return self._verbs.close_all()

    def _go_on(self, value: Any) -> list[Step]:
        """Until something is waited for."""
        while not self._over:
            if self._take is not None:
                if not self._unread:
                    return []
                value = bytes(self._unread[: self._take.most])
                del self._unread[: len(value)]
                self._take = None
            if self._verb is None:
                self._verb = self._next()
                value = None
                if self._verb is None:
                    return [] if not self._over else [Say(line_of(ChirpError.TOO_BIG)), HangUp()]
            try:
                step = self._verb.send(value)
            except StopIteration:
                self._verb = None
                continue
            value = None
            if isinstance(step, Take):
                self._take = step
            elif isinstance(step, HangUp):
                self._over = True
                return [step]
            else:
                self._waits, self._meets = True, isinstance(step, Meet)
                return [step]
        return []

    def _next(self) -> Verb | None:
        """The next request, when its line is here."""
        end, start = self._unread.find(b"\n"), 0
        while end > 0 and _is_escaped(self._unread, end):
            start = end + 1
            end = self._unread.find(b"\n", start)
        if end < 0 or end >= LINE_BYTES:
            self._over = end >= 0 or len(self._unread) >= LINE_BYTES
            return None
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return self._request(line)

    def _request(self, line: bytes) -> Verb:
        words = words_of(line)
        row = _ROWS.get(words[0].decode("ascii", "replace") if words else "")
        if row is None:
            return fail(ChirpError.INVALID_REQUEST)
        arguments = _arguments(row.takes, words[1:])
        if arguments is None:
            return fail(ChirpError.INVALID_REQUEST)
        if not getattr(self.rights, row.needs):
            return self._refuse(row, arguments)
        return row.act(self._verbs, *arguments)

    def _refuse(self, row: Row, arguments: list[Any]) -> Verb:
        """What the client sends behind the line is read all the same."""
        if row.body >= 0:
            yield from skip(arguments[row.body])
        yield Say(line_of(ChirpError.NOT_AUTHORIZED))


_ROWS = {**VERBS, **GANG_VERBS}


def _is_escaped(data: bytearray, at: int) -> bool:
    """Whether an odd number of backslashes stands before a byte."""
    count = 0
    while at - count > 0 and data[at - count - 1] == 0x5C:
        count += 1
    return count % 2 == 1


def _arguments(takes: str, words: list[bytes]) -> list[Any] | None:
    """The words as ``s`` and ``d`` say; None: they are not so."""
    if takes.endswith("*"):
        return []
    if len(words) != len(takes):
        return None
    found: list[Any] = []
    for kind, word in zip(takes, words, strict=True):
        try:
            found.append(int(word.decode("ascii")) if kind == "d" else word.decode())
        except ValueError:
            return None
        if kind == "d" and not -(1 << 62) < found[-1] < 1 << 62:
            return None
        if kind == "s" and "\0" in found[-1]:
            return None
    return found
