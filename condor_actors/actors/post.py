"""The edge between the actors of a process and the network.

Theory: an :class:`~condor_actors.actors.system.ActorSystem` hands envelopes to a :class:`Post` and is told what
arrives and which links come and go.  ``wire.PostOffice`` is the real one; tests and the simulation have theirs.  The
promises of a Post:

* envelopes to one node arrive in the order they were sent, or not at all;
* an envelope is reported ``undeliverable`` when it certainly was not delivered;
* ``link_down`` is reported once for each link that was up; asks sent over it may or may not have been carried out;
* an envelope may arrive twice (sent again over a new link); its ``message_id`` tells.
"""

from __future__ import annotations

from typing import Protocol

from condor_actors.messages.envelope import Address, Envelope, Identity


class PostReceiver(Protocol):
    """What a :class:`Post` talks back to: the actor system."""

    def congested(self, node: str) -> bool:
        """Whether so much from the peer at ``node`` waits in the mailboxes that a Post should slow it down."""

    def arrived(self, node: str, identity: Identity, envelope: Envelope) -> None:
        """An envelope came in over the link to ``node`` from ``identity``."""

    def undeliverable(self, node: str, envelope: Envelope, reason: str, text: str) -> None:
        """An envelope for ``node`` was not delivered; ``reason`` is one of :class:`AskFailed`'s."""

    def link_up(self, node: str, identity: Identity, process: str = "") -> None:
        """The link to ``node`` is up: both sides said hello; the peer calls itself ``process``."""

    def reidentified(self, node: str, identity: Identity) -> None:
        """The peer of the link to ``node``, which is up, is another user from now on."""

    def link_down(self, node: str, reason: str) -> None:
        """The link to ``node`` was lost, or a watched node could not be reached."""


class Post(Protocol):
    """The network as the actors of one process see it."""

    @property
    def public_node(self) -> str:
        """The node at which others reach this process, ``<host:port>``; empty when it does not listen."""

    def attach(self, receiver: PostReceiver) -> None:
        """Deliver to ``receiver`` from now on."""

    def send(self, to: Address, envelope: Envelope) -> None:
        """Send an envelope; never raises, failures come back as ``undeliverable``."""

    def flush(self) -> None:
        """Let go of what was sent since the last time; called at the end of each turn of the loop."""

    def watch(self, node: str) -> None:
        """Keep a link to ``node`` (dialling again as needed) and report when it comes and goes."""

    def unwatch(self, node: str) -> None:
        """Stop keeping a link to ``node`` for its own sake."""


class NoPost:
    """The Post of a process without a network: everything sent to another node is undeliverable."""

    public_node = ""

    def __init__(self) -> None:
        self._receiver: PostReceiver | None = None

    def attach(self, receiver: PostReceiver) -> None:
        """Deliver to ``receiver`` from now on."""
        self._receiver = receiver

    def send(self, to: Address, envelope: Envelope) -> None:
        """Report the envelope as undeliverable."""
        if self._receiver is not None:
            self._receiver.undeliverable(to.node, envelope, "unreachable", "this process has no network")

    def flush(self) -> None:
        """Nothing waits."""

    def watch(self, node: str) -> None:
        """Report the node as down."""
        if self._receiver is not None:
            self._receiver.link_down(node, "this process has no network")

    def unwatch(self, node: str) -> None:
        """Nothing to stop."""
