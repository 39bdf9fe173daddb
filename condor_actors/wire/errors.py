"""What can go wrong on a link, with texts for people.  Imports nothing: the tools load it first."""

from __future__ import annotations


class WireError(Exception):
    """A daemon could not be asked, or said no."""


class Unreachable(WireError):
    """Nobody answers at the node: not running, wrong address, no such socket."""


class TimedOut(WireError):
    """The daemon did not answer in time; whether it carried out the request is unknown."""


class LinkLost(WireError):
    """The connection broke before the answer; whether the request was carried out is unknown."""


class NotTrusted(WireError):
    """The other side has no certificate of this pool, or not the name it was dialled by; or it refused ours."""


class ProtocolError(WireError):
    """The other side does not speak our protocol."""


class RequestRefused(WireError):
    """The daemon answered ``Refused``.

    Attributes:
        code: as in ``Refused``: ``denied busy not-found invalid …``.
        retry_after_s: when to try again; 0: not said.
        incident: names the line in the daemon's log; empty: none.
    """

    def __init__(self, code: str, text: str, retry_after_s: float = 0.0, incident: str = "") -> None:
        super().__init__(f"{text} (incident {incident})" if incident else text)
        self.code = code
        self.retry_after_s = retry_after_s
        self.incident = incident
