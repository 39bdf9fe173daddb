"""What travels: an addressed, idempotent, dated wrapper around one message.

An :class:`Address` names an actor: ``node`` says which process, ``actor`` which mailbox in it.  Nodes are

========================  =========================================================================================
``""``                    this process
``<host:port>``           a daemon that listens for mutual TLS there (dialled when needed)
``unix:/path``            a daemon of this machine that listens on a UNIX socket (dialled when needed)
``in:N``                  the peer of our N-th inbound link; dead for good when that link is lost
========================  =========================================================================================

A peer cannot choose its ``in:N``, so nobody can steal another's messages by claiming its name.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

from condor_actors import records
from condor_actors.messages.codec import message

TYPE_CHECKING = False  # typing is not loaded
if TYPE_CHECKING:
    from typing import Any, ClassVar

TOOL = "tool"
"""What the process of a person's command calls itself in its hello."""


@records.frozen
class Address:
    """Where a message goes: a node and the name of an actor there."""

    node: str
    actor: str

    def __str__(self) -> str:
        return f"{self.actor}@{self.node}" if self.node else self.actor


class Level(str, enum.Enum):
    """The authorisation levels of HTCondor; ``ALLOW_<level>`` and ``DENY_<level>`` list who has them."""

    READ = "READ"
    WRITE = "WRITE"
    OWNER = "OWNER"
    ADMINISTRATOR = "ADMINISTRATOR"
    DAEMON = "DAEMON"
    NEGOTIATOR = "NEGOTIATOR"
    ADVERTISE_STARTD = "ADVERTISE_STARTD"
    ADVERTISE_SCHEDD = "ADVERTISE_SCHEDD"
    ADVERTISE_MASTER = "ADVERTISE_MASTER"
    CONFIG = "CONFIG"
    CLIENT = "CLIENT"
    """Anyone who could authenticate; the message proves its right itself (a claim's secret, say)."""


@records.frozen(kw_only=True)
class Evidence:
    """What an identity was proved with, so that it ends when that is revoked or runs out.

    Attributes:
        serials: of the certificates of its chain.
        token: the claims of its token; empty: none.
        ends_s: until when the token counts, seconds since 1970; 0: without end.
    """

    serials: frozenset[int] = frozenset()
    token: Mapping[str, Any] = records.field(factory=dict)
    ends_s: float = 0.0


_LENT_ROLES = frozenset({"user", "shadow"})
"""Of the proxy certificates that a machine signs for others."""


@records.frozen(kw_only=True)
class Identity:
    """Who is at the other end of a link, as the transport proved it.

    Attributes:
        name: ``user@domain`` (``alice@uid.domain`` for a local socket, ``condor@pool`` for a daemon).
        roles: roles from the certificate (``schedd``, ``startd``, ``shadow`` …); empty for people.
        host: host name from the certificate; empty for a local socket.
        method: ``local``, ``tls``, ``token`` or ``self`` (same process).
        uid: the peer's user id on a local socket, else None.
        pid: the peer's process id on a local socket as the kernel knows it, else None.
        hosts: every host name and address of the certificate, in small letters; empty for a local socket.
        address: the IP address at the other end of the link; empty for a local socket.
        realm: the other pool whose authority signed the certificate; empty: this pool's did.
        levels: the levels that a token is good for; None: whatever the identity has.
        evidence: what it was proved with; it makes no difference between identities.
    """

    name: str
    roles: frozenset[str] = frozenset()
    host: str = ""
    method: str = "self"
    uid: int | None = None
    pid: int | None = None
    hosts: frozenset[str] = frozenset()
    address: str = ""
    realm: str = ""
    levels: frozenset[str] | None = None
    evidence: Evidence = records.field(default=Evidence(), eq=False, repr=False)

    @property
    def is_local(self) -> bool:
        """Whether the peer is a process of this machine, known by its user id (or this process itself)."""
        return self.method in ("local", "self")

    @property
    def is_machine(self) -> bool:
        """Whether the peer has shown a machine's own certificate: no proxy of a user or a shadow, no token."""
        return self.method == "tls" and bool(self.roles) and not self.roles & _LENT_ROLES

    def speaks_for(self, host: str) -> bool:
        """Tell whether the peer may speak for the daemons of ``host``, a host name or address.

        A certificate names the hosts of its machine.  Local peers that got as far as this have been authorized as
        daemons of this machine by their user id.
        """
        return self.is_local or (bool(host) and host.lower() in (self.hosts or {self.host.lower()}))

    @property
    def bearer(self) -> tuple[str, str, str, int | None]:
        """What stays the same over all links of one machine, or of one user: two bearers are never mistaken for one
        another."""
        return self.name, self.host, self.method, self.uid

    @property
    def user(self) -> str:
        """The part before the ``@``."""
        return self.name.partition("@")[0]


SELF = Identity(name="self@localhost", roles=frozenset({"self"}))


@records.frozen(kw_only=True)
class Envelope:
    """One message on its way; the only thing (beside errors) that crosses a broker.

    Attributes:
        kind, version, body: the encoded message (:mod:`condor_actors.messages.codec`).
        message_id: unique per sender; receivers keep a table of those seen, so a repeat has no effect.
        to: name of the receiving actor.
        reply_to: name of the actor at the sender's node that takes answers; empty: nobody does.
        in_reply_to: the message_id that this answers; empty: none.
        deadline_s: seconds from sending after which the receiver need not act; 0: no deadline.
        trace_id: carried from a cause to its effects, for logs.
    """

    kind: str
    version: int
    body: bytes
    message_id: str
    to: str
    reply_to: str = ""
    in_reply_to: str = ""
    deadline_s: float = 0.0
    trace_id: str = ""


@records.frozen(kw_only=True)
class Delivery:
    """A message as an actor receives it.

    Attributes:
        message: the decoded message.
        sender: the actor that sent it, where an answer goes.
        identity: who sent it, as proved by the transport; :data:`SELF` within the process.
        message_id, in_reply_to, trace_id: as in the envelope.
        answerable: whether the sender asked; a reply to a message that was told goes nowhere.
    """

    message: Any
    sender: Address
    identity: Identity = SELF
    answerable: bool = True
    message_id: str = ""
    in_reply_to: str = ""
    trace_id: str = ""


@message
@records.frozen(kw_only=True)
class Refused:
    """The general "no" to any request: not allowed, unknown actor, malformed, over a limit, busy.

    ``code`` is one of ``denied unknown-actor malformed busy not-found invalid bad-job internal``; ``incident`` names
    the log line when the cause is ours.
    """

    KIND: ClassVar[str] = "condor.Refused"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    code: str
    text: str
    retry_after_s: float = 0.0
    incident: str = ""


@message
@records.frozen(kw_only=True)
class Done:
    """The general "yes" to a request that has nothing else to say."""

    KIND: ClassVar[str] = "condor.Done"
    VERSION: ClassVar[int] = 1
    LEVEL: ClassVar[str] = "CLIENT"

    text: str = ""


@records.frozen(kw_only=True)
class AskFailed:
    """Local event: an ask got no answer.  ``reason``: ``timeout``, ``unreachable`` or ``link-lost``.

    ``link-lost`` and ``timeout`` do not say whether the request was carried out.
    """

    reason: str
    text: str = ""
    question: Any = None

    @property
    def nobody_listens(self) -> bool:
        """Whether the machine that was asked answers, and refuses connections there: what listened is dead.

        A gateway on the way that refuses one, or whose own machine does, says nothing about that machine.
        """
        return self.reason == "unreachable" and REFUSED in self.text and THROUGH not in self.text


REFUSED, THROUGH = "Connection was refused", "through the gateway"
"""What the text of an :class:`AskFailed` says where a connection was refused, and where gateways were on the way."""


@records.frozen(kw_only=True)
class PeerUp:
    """Local event: a link to a watched node is up."""

    node: str
    identity: Identity


@records.frozen(kw_only=True)
class PeerDown:
    """Local event: the link to a watched node was lost, or could not be made (``reason``)."""

    node: str
    reason: str


@records.frozen(kw_only=True)
class TimerFired:
    """Local event: the timer ``key`` that the actor set has run out."""

    key: Any
