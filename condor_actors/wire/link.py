"""One connection between two processes that carries envelopes both ways.

Theory: what is queued within one reactor iteration leaves as one batch, one ``deliver``, one write.  Nobody answers a
``deliver``; each batch carries how many envelopes its sender has taken so far, so an acknowledgement costs nothing
while traffic flows both ways, and one frame after half a second when it does not.  The count is also the credit: no
more than the peer's window is under way, the rest waits here.

=========  =====================================================  ===================
state      on                                                     next
=========  =====================================================  ===================
greeting   a ``HELLO`` that suits us                              up
greeting   anything else; 20 s without it                         closed
up         ``BATCH``, ``ACK``                                     up
up         ``BYE``, 90 s of silence, a bad frame, lost            closed
=========  =====================================================  ===================
"""

from __future__ import annotations

from collections import deque
from typing import Any, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime

from condor_actors.messages.codec import versions_of
from condor_actors.messages.envelope import TOOL, Envelope, Identity
from condor_actors.wire import frames
from condor_actors.wire.broker import LinkBroker

GREETING_S = 20.0
SIGN_OF_LIFE_S = 40.0
SILENCE_S = 90.0
SAME_MOMENT_S = 0.001
ACK_DELAY_S = 0.5
CONGESTED_S = 0.05
MAX_QUEUED = 50_000
MAX_QUEUED_BYTES = 256 << 20
MAX_QUEUED_TOOL_BYTES = 16 << 20
"""How much waits for a peer that does not read, and for a command, which asks for one page after the other."""


class LinkOwner(Protocol):
    """The post office around a link."""

    def congested(self, link: Link) -> bool:
        """Whether our actors have more of the peer's to do than they should; it then gets no further credit."""

    def identify(self, link: Link, transport: Any) -> bool:
        """Find out who is at the other end, before we say anything; False: nobody we trust."""

    def link_ready(self, link: Link) -> None:
        """Both sides said hello."""

    def link_received(self, link: Link, envelopes: list[Envelope]) -> None:
        """Envelopes came in."""

    def link_closed(self, link: Link, reason: str) -> None:
        """The link is gone; ``link.unsent`` and ``link.under_way`` hold what was not acknowledged."""


class Link:
    """One connection between two processes that carries envelopes both ways.

    Attributes:
        node: what this process calls the other.
        identity: who that is, as the transport proved it.
        peer: its hello; None before it came.
        unsent, under_way: envelopes that wait here, and that were sent without an acknowledgement yet.
        unsent_bytes: of the former; full: the connection takes no more for now.
    """

    def __init__(self, owner: LinkOwner, node: str, identity: Identity, clock: IReactorTime, hello: frames.Hello, *,
                 is_client: bool) -> None:
        self.node = node
        self.identity = identity
        self.is_client = is_client
        self.peer: frames.Hello | None = None
        self.up = self.was_up = False
        self.closed = False
        self.unsent: deque[Envelope] = deque()
        self.unsent_bytes = 0
        self.full = False
        self.under_way: deque[Envelope] = deque()
        self.sent = 0
        self.received = 0
        self._owner = owner
        self.broker = self.make_broker(is_client)
        self._clock = clock
        self._hello = hello
        self._told = 0
        self._acknowledged = 0
        self._farewell = ""
        self._heard_s = self._spoke_s = clock.seconds()
        self._ack_call: IDelayedCall | None = None
        self._flush_call: IDelayedCall | None = None
        self._watch_call: IDelayedCall | None = clock.callLater(GREETING_S, self._no_greeting)

    def make_broker(self, is_client: bool) -> LinkBroker:
        """The end of the connection; the simulation has its own."""
        return LinkBroker(self, is_client=is_client)

    # ---- sending

    def send(self, envelope: Envelope) -> bool:
        """Queue an envelope for the end of the iteration; False when too much waits already."""
        if len(self.unsent) >= MAX_QUEUED:
            return False
        self.unsent.append(envelope)
        self.unsent_bytes += len(envelope.body)
        if self.unsent_bytes > self._most_bytes:
            self.abort(f"{self.unsent_bytes} bytes wait for it, and it does not read")
            return True
        if self._flush_call is None and self.up:
            self._flush_call = self._clock.callLater(0.0, self._flush_later)
        return True

    def _flush_later(self) -> None:
        self._flush_call = None
        self.flush()

    def flush(self) -> None:
        """Send what waits, as far as the peer's window allows."""
        if self._flush_call is not None:
            self._flush_call.cancel()
            self._flush_call = None
        peer, unsent = self.peer, self.unsent
        if not self.up or peer is None:
            return
        while unsent and not self.full:
            room = min(peer.window, frames.WINDOW) - (self.sent - self._acknowledged)
            if room <= 0:
                return
            self._send_batch(room)

    def _send_batch(self, room: int) -> None:
        batch: list[Envelope] = []
        size = 0
        while self.unsent and len(batch) < room:
            length = len(self.unsent[0].body) + frames.ENVELOPE_OVERHEAD_BYTES // 8
            if batch and size + length > frames.MAX_BATCH_BYTES:
                break
            size += length
            batch.append(self.unsent.popleft())
            self.unsent_bytes -= len(batch[-1].body)
        self.sent += len(batch)
        self.under_way.extend(batch)
        self._frame(frames.pack_batch(self._grant(), batch))

    @property
    def _most_bytes(self) -> int:
        is_tool = not self.is_client and self.peer is not None and self.peer.process == TOOL
        return MAX_QUEUED_TOOL_BYTES if is_tool else MAX_QUEUED_BYTES

    def filled(self, full: bool) -> None:
        """The connection takes no more for now, or takes more again."""
        self.full = full
        if not full and self.unsent and self._flush_call is None and not self.closed:
            self._flush_call = self._clock.callLater(0.0, self._flush_later)

    def _grant(self) -> int:
        """How many envelopes we say we have taken: while our actors cannot keep up, no more than last time."""
        if not self._owner.congested(self):
            self._told = self.received
        return self._told

    def _frame(self, frame: bytes) -> None:
        self._spoke_s = self._clock.seconds()
        if self._ack_call is not None:
            self._ack_call.cancel()
            self._ack_call = None
        self.broker.deliver(frame)

    def _send_ack(self) -> None:
        if self._ack_call is not None and self._ack_call.active():
            self._ack_call.cancel()
        self._ack_call = None
        if not self.closed:
            self._frame(frames.pack_ack(self._grant()))
            if self._told < self.received:
                self._ack_call = self._clock.callLater(CONGESTED_S, self._send_ack)

    # ---- receiving

    def broker_ready(self) -> None:
        """Say hello, to someone we trust."""
        if self._owner.identify(self, self.broker.transport):
            self.broker.deliver(frames.pack_hello(self._hello))

    def frame_received(self, frame: bytes) -> None:
        """Take a frame.

        Raises:
            BadFrame: the connection is to be ended.
        """
        if self.closed:
            return
        fields = frames.unpack(frame)
        self._heard_s = self._clock.seconds()
        number = fields[0]
        if number == frames.HELLO:
            self._greeted(fields[1])
        elif number == frames.BYE:
            self._farewell = fields[2]
            self.broker.hang_up()
        elif not self.up:
            raise frames.BadFrame("envelopes before the hello")
        else:
            self._acknowledge(fields[1])
            if number == frames.BATCH:
                self._take(fields[2])

    def _take(self, envelopes: list[Envelope]) -> None:
        self.received += len(envelopes)
        waiting = self.received - self._told
        if waiting > 2 * frames.WINDOW:
            raise frames.BadFrame("more envelopes than we granted")
        self._owner.link_received(self, envelopes)
        if self.closed:
            return
        if waiting >= frames.WINDOW // 4 and not self._owner.congested(self):
            self._send_ack()
        elif self._ack_call is None and self._told < self.received:
            delay_s = CONGESTED_S if waiting >= frames.WINDOW // 4 else ACK_DELAY_S
            self._ack_call = self._clock.callLater(delay_s, self._send_ack)

    def _acknowledge(self, count: int) -> None:
        if not self._acknowledged <= count <= self.sent:
            raise frames.BadFrame("an acknowledgement of what was not sent")
        for _ in range(count - self._acknowledged):
            self.under_way.popleft()
        self._acknowledged = count
        if self.unsent and self._flush_call is None:
            self._flush_call = self._clock.callLater(0.0, self._flush_later)

    def _greeted(self, hello: frames.Hello) -> None:
        if self.peer is not None:
            raise frames.BadFrame("a second hello")
        self.peer = hello
        objection = frames.check_hello(hello)
        if objection:
            self.close("protocol", objection)
            return
        self.up = self.was_up = True
        if self._watch_call is not None:
            self._watch_call.cancel()
        self._watch_call = self._clock.callLater(SIGN_OF_LIFE_S, self._check_silence)
        self._owner.link_ready(self)
        self.flush()

    def understands(self, envelope: Envelope) -> bool:
        """Whether the peer knows this kind of message."""
        kinds = self.peer.kinds if self.peer is not None else ()
        return not kinds or (envelope.kind, envelope.version) in kinds

    def unknown(self, envelope: Envelope) -> str:
        """Why the peer is not sent this, for people."""
        assert self.peer is not None
        return (f"{self.peer.process} at {self.node} has another release: it knows "
                f"{versions_of(envelope.kind, self.peer.kinds)}, not {envelope.kind} version {envelope.version}")

    # ---- life

    def _no_greeting(self) -> None:
        self._watch_call = None
        self._farewell = f"no hello within {GREETING_S:g} s"
        self.broker.violated(self._farewell)

    def _check_silence(self) -> None:
        """When we, or the other side, may have said nothing for too long: is it alive, and does it know that we are?"""
        now_s = self._clock.seconds()
        silent_s = now_s - self._heard_s
        if silent_s >= SILENCE_S:
            self._watch_call = None
            self.broker.violated(f"{silent_s:.0f} s of silence")
            return
        if now_s - self._spoke_s >= SIGN_OF_LIFE_S - SAME_MOMENT_S:
            self._frame(frames.pack_ack(self._grant()))
        rest_s = min(self._spoke_s + SIGN_OF_LIFE_S - now_s, SILENCE_S - silent_s)
        self._watch_call = self._clock.callLater(max(rest_s, SAME_MOMENT_S), self._check_silence)

    def close(self, code: str, text: str) -> None:
        """Say why and hang up, after what was sent."""
        if not self.closed and self.broker.transport is not None:
            self._farewell = self._farewell or text
            self.full = False
            self.flush()
            if self.broker.currentDialect == b"pb":
                self.broker.deliver(frames.pack_bye(code, text))
            self.broker.hang_up()

    def abort(self, reason: str) -> None:
        """Cut the connection."""
        if not self.closed:
            self.broker.violated(reason)

    def broker_lost(self, reason: str) -> None:
        """The connection is gone."""
        if self.closed:
            return
        self.closed, self.up = True, False
        for call in (self._ack_call, self._flush_call, self._watch_call):
            if call is not None and call.active():
                call.cancel()
        self._ack_call = self._flush_call = self._watch_call = None
        self._owner.link_closed(self, self._farewell or reason)
