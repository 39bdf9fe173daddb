"""The requests by which a member of a gang meets the others: values and channels.

=========================  ==============================================  ===========================================
request                    behind it                                       answer, when it is good
=========================  ==============================================  ===========================================
``gang_put KEY LENGTH``    the value                                       ``0``
``gang_get KEY``           –                                               its length, ``MEMBER KEY``, the value
``gang_wait KEY``          –                                               the same, when it is there
``gang_send NAME LENGTH``  the message                                     ``0``, when another member has it
``gang_recv NAMES``        –                                               its length, ``MEMBER NAME``, the message
=========================  ==============================================  ===========================================

``NAMES`` is one word, with blanks between the names of channels.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import attrs

from condor_actors.cores.chirp_protocol import PIECE_BYTES, ChirpError
from condor_actors.cores.starter.chirp_verbs import Row, Say, Take, Verb, line_of, skip
from condor_actors.messages.run import GANG_DATA_BYTES, GANG_NAMES, GangResult

__all__ = ["GANG_VERBS", "Meet"]


@attrs.frozen
class Meet:
    """Ask the gang; ``answered`` gets the result, maybe a long time later."""

    verb: str
    names: tuple[str, ...]
    data: bytes = b""


def _body(length: int) -> Generator[Any, Any, bytes | None]:
    """The bytes behind a request; None: they are too many, and have been passed over."""
    if not 0 <= length <= GANG_DATA_BYTES:
        yield from skip(length)
        return None
    data = bytearray()
    while len(data) < length:
        data += yield Take(min(length - len(data), PIECE_BYTES))
    return bytes(data)


def _giving(verb: str) -> Any:
    def act(_: Any, name: str, length: int) -> Verb:
        data = yield from _body(length)
        if data is None:
            yield Say(line_of(ChirpError.TOO_BIG if length > 0 else ChirpError.INVALID_REQUEST))
            return
        result: GangResult = yield Meet(verb, (name,), data)
        yield Say(line_of(result.value))

    return act


def _taking(verb: str) -> Any:
    def act(_: Any, words: str) -> Verb:
        names = tuple(words.split(" "))
        if len(names) > (GANG_NAMES if verb == "recv" else 1):
            yield Say(line_of(ChirpError.INVALID_REQUEST))
            return
        result: GangResult = yield Meet(verb, names)
        if result.value < 0:
            yield Say(line_of(result.value))
        else:
            yield Say(line_of(len(result.data)) + f"{result.member} {result.name or names[0]}\n".encode() + result.data)

    return act


GANG_VERBS: Mapping[str, Row] = {
    "gang_put": Row("gang", "sd", _giving("put"), 1), "gang_get": Row("gang", "s", _taking("get")),
    "gang_wait": Row("gang", "s", _taking("wait")), "gang_send": Row("gang", "sd", _giving("send"), 1),
    "gang_recv": Row("gang", "s", _taking("recv")),
}
