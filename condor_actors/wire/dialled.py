"""A node that this process dials: its link, what waits for it, and when to try again.

Theory (after Twisted's ``ClientService``, with demand added):

===========  ==========================================  =============================================
state        on                                          does
===========  ==========================================  =============================================
idle         ``send``, ``watch``                         dial → dialling
dialling     link ready                                  everything that waits goes out → up
dialling     failed                                      what waits is undeliverable; watched: wait a
                                                         jittered, growing time → resting; else → idle
resting      ``send`` (half a second after a failure)    dial → dialling
resting      the time is over                            dial → dialling
up           link lost                                   questions fail; told messages without an
                                                         acknowledgement wait → dialling (if any, or
                                                         watched), else → idle
===========  ==========================================  =============================================

A message that was told and not acknowledged is sent again only to the same incarnation of the peer (its boot id):
that one keeps a table of message ids, so it acts once.  A peer that was restarted may have acted already, before it
died; then the message is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IDelayedCall, IProtocol
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure

from condor_actors.messages.envelope import Envelope

if TYPE_CHECKING:
    from condor_actors.wire.link import Link
    from condor_actors.wire.post_office import PostOffice

FIRST_DELAY_S = 0.1
MAX_DELAY_S = 30.0
DEMAND_S = 0.5
MAX_WAITING = 50_000


class Dialled:
    """Keeps one outgoing link: dials it, and dials again with backoff when it breaks."""

    def __init__(self, office: PostOffice, node: str) -> None:
        self.node = node
        self.link: Link | None = None
        self.watched = False
        self._office = office
        self._waiting: deque[Envelope] = deque()
        self._attempt: Deferred[IProtocol] | None = None
        self._retry: IDelayedCall | None = None
        self._failures = 0
        self._failed_s = float("-inf")
        self._why = ""
        self._boot_id = ""
        self._again: list[Envelope] = []
        self._reported_down = False

    @property
    def idle(self) -> bool:
        """Whether nothing is under way and nobody watches."""
        return self.link is None and self._attempt is None and self._retry is None and not self.watched

    def send(self, envelope: Envelope) -> None:
        """Send, or keep until the link is up."""
        link = self.link
        if link is not None and link.up:
            self._office.send_over(link, envelope)
            return
        if len(self._waiting) >= MAX_WAITING:
            self._office.undeliverable(self.node, envelope, "unreachable", f"too much waits for {self.node}")
            return
        if link is None and self._attempt is None:
            resting_s = self._office.clock.seconds() - self._failed_s
            if self._failures and resting_s < DEMAND_S:
                self._office.undeliverable(self.node, envelope, "unreachable", self._why)
                return
            self._waiting.append(envelope)
            self._dial()
            return
        self._waiting.append(envelope)

    def watch(self) -> None:
        """Keep a link from now on."""
        self.watched = True
        self._reported_down = False
        if self.link is None and self._attempt is None:
            self._dial()

    def unwatch(self) -> None:
        """Keep no link for its own sake."""
        self.watched = False
        if self._retry is not None and not self._waiting and not self._again:
            self._retry.cancel()
            self._retry = None

    def _dial(self) -> None:
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._office.stopped:
            return
        self._attempt = self._office.connect(self.node)
        self._attempt.addCallbacks(self._connected, self._failed)

    def _connected(self, protocol: object) -> None:
        self._attempt = None

    def made(self, link: Link) -> None:
        """A connection exists; its greeting is under way."""
        self.link = link

    def _failed(self, failure: Failure) -> None:
        self._attempt = None
        error = failure.value
        text = str(error) if isinstance(error, ConnectError | OSError) else failure.getErrorMessage()
        self._not_up(f"nobody answers at {self.node}: {text}")

    def _not_up(self, why: str) -> None:
        office = self._office
        self._failures += 1
        self._failed_s = office.clock.seconds()
        self._why = why
        waiting, self._waiting = self._waiting, deque()
        for envelope in (*self._again, *waiting):
            office.undeliverable(self.node, envelope, "unreachable", why)
        self._again = []
        if self.watched:
            if not self._reported_down:
                self._reported_down = True
                office.report_down(self.node, why)
            if not office.stopped:
                self._retry = office.clock.callLater(self._delay_s(), self._try_again)

    def _delay_s(self) -> float:
        delay_s = min(MAX_DELAY_S, FIRST_DELAY_S * 2.0 ** min(self._failures - 1, 12))
        return delay_s * self._office.random.uniform(0.5, 1.0)

    def _try_again(self) -> None:
        self._retry = None
        self._dial()

    def ready(self, link: Link) -> None:
        """The greeting is over: send what waits."""
        assert link.peer is not None
        self._failures = 0
        self._reported_down = False
        same = link.peer.boot_id == self._boot_id
        self._boot_id = link.peer.boot_id
        again, self._again = self._again, []
        for envelope in again if same else ():
            self._office.send_over(link, envelope)
        waiting, self._waiting = self._waiting, deque()
        for envelope in waiting:
            self._office.send_over(link, envelope)

    def lost(self, link: Link, reason: str) -> None:
        """The link broke, or its greeting failed."""
        self.link = None
        if not link.was_up:
            self._not_up(f"{self.node}: {reason}")
            return
        office = self._office
        for envelope in (*link.under_way, *link.unsent):
            if envelope.deadline_s > 0.0:
                office.undeliverable(self.node, envelope, "link-lost", reason)
        self._again = [each for each in link.under_way if not each.deadline_s and not each.in_reply_to]
        self._waiting.extendleft(
            reversed([each for each in link.unsent if not each.deadline_s and not each.in_reply_to])
        )
        self._reported_down = True
        office.report_down(self.node, reason)
        if office.stopped:
            return
        if self.watched or self._again or self._waiting:
            self._retry = office.clock.callLater(FIRST_DELAY_S * office.random.uniform(0.5, 1.0), self._try_again)
        else:
            office.forget(self)

    def stop(self) -> None:
        """Dial no more."""
        self.watched = False
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        if self._attempt is not None:
            self._attempt.cancel()


class LinkFactory(Factory):
    """Makes the broker of a connection that this process has dialled."""

    noisy = False

    def __init__(self, make_link: Callable[[], Link]) -> None:
        self._make_link = make_link

    def buildProtocol(self, addr: object) -> Any:  # noqa: N802 - Twisted's
        """A link's broker."""
        return self._make_link().broker
