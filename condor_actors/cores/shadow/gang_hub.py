"""Where the members of a gang meet: values that one puts and others wait for, and channels between them.

Theory: values are written once, by one member, who alone may replace his own.  A channel has no room: a message goes
from one sender to one receiver at the moment when both are there, and both go on after that (C. A. R. Hoare,
"Communicating sequential processes", 1978); a receiver may listen on several channels and takes the first message
there is on any.

The hub's memory is the members': it dies with its process, and each member then joins the next one, telling the values
that it has put and the messages that it received last.  Until all have joined, or GRACE_S has passed, nobody is told
that a value is not there and no message changes hands, so that a message whose receipt the last hub had not yet
confirmed is not given to another.

============  =======================================================  ==========================================
wish          it is answered                                           asked again (no answer came)
============  =======================================================  ==========================================
put           at once                                                  the same
get           at once, with DOESNT_EXIST where there is none           the same
wait          when the value is there, else TRY_AGAIN after a while    the same
send          when the message was taken, else TRY_AGAIN               it keeps its place
recv          with a message, else TRY_AGAIN                           with the message that it was given
took          at once: the receiver has the message                    the same
cancel        at once: who wished is gone; what it was given and has   the same
              not taken goes back
============  =======================================================  ==========================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import attrs

from condor_actors.cores.chirp_protocol import ChirpError
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.run import (
    GANG_DATA_BYTES,
    GANG_KEPT,
    GANG_KEPT_BYTES,
    GANG_NAME_BYTES,
    GANG_TAKEN,
    NOT_JOINED,
    GangCall,
    GangResult,
    gang_value_bytes,
)

__all__ = ["GRACE_S", "PATIENCE_S", "GangHub"]

GRACE_S = 10.0
PATIENCE_S = 30.0
"""How long a wish stays unanswered; then it has to be asked again."""
MOST_WISHES = 64
"""Of one member at a time."""

Key = tuple[int, int]
"""A member and the number of a wish of his."""


@attrs.define(eq=False)
class _Wish:
    """Something that is waited for.

    Attributes:
        key: whose; call: what.
        ticket: how it is answered; None: it was, or nobody waits.
        since_s: when it was asked for.
        partner: of a send, the receiver that has got the message; of a recv, the sender of what it has got.
    """

    key: Key
    call: GangCall
    ticket: Any
    since_s: float
    partner: Key | None = None


@attrs.define
class _Kept:
    """What is known of a member, also when its run is over: how much it has put, and which messages were received."""

    values: int = 0
    size_bytes: int = 0
    sent: dict[int, None] = attrs.field(factory=dict)

    def note_sent(self, number: int) -> None:
        """A message of its was received."""
        self.sent[number] = None
        if len(self.sent) > GANG_TAKEN:
            del self.sent[next(iter(self.sent))]


class GangHub:
    """One gang's.

    Args:
        size: how many members there are.
        now_s: it begins.
        answer: called with a ticket and the result that it waits for.
    """

    def __init__(self, size: int, now_s: float, answer: Callable[[Any, GangResult], None]) -> None:
        self._size = size
        self._born_s = now_s
        self._answer = answer
        self._members: set[int] = set()
        self._gone: set[int] = set()
        self._kept = [_Kept() for _ in range(size)]
        self._values: dict[str, tuple[int, bytes]] = {}
        self._wishes: dict[Key, _Wish] = {}

    @property
    def is_empty(self) -> bool:
        """Whether all have left."""
        return not self._members

    @property
    def is_waited_for(self) -> bool:
        """Whether a node waits for an answer."""
        return any(wish.ticket is not None for wish in self._wishes.values())

    def handle(self, node: int, call: GangCall, ticket: Any, now_s: float) -> None:
        """A member wants something."""
        if not 0 <= node < self._size:
            self._answer(ticket, GangResult(value=ChirpError.NOT_AUTHORIZED))
            return
        if call.verb == "join":
            self._join(node, call)
            self._answer(ticket, GangResult(value=0))
        else:
            value: int | None = NOT_JOINED if node not in self._members else _problem(call)
            if not value:
                value = self._wished(node, call, ticket, now_s)
            if value is not None:
                self._answer(ticket, GangResult(value=value))
        self._go_on(now_s)

    def leave(self, node: int) -> None:
        """A member's run is over; what it has put stays."""
        self._members.discard(node)
        self._gone.add(node)
        for key in [key for key in self._wishes if key[0] == node]:
            wish = self._wishes.get(key)
            if wish is not None:
                self._cancel(wish)

    def tick(self, now_s: float) -> None:
        """A while has passed: who has waited long is told to ask again."""
        self._go_on(now_s)
        for wish in list(self._wishes.values()):
            if wish.ticket is not None and now_s - wish.since_s >= PATIENCE_S:
                self._say(wish, GangResult(value=ChirpError.TRY_AGAIN))
                if wish.call.verb in ("get", "wait"):
                    del self._wishes[wish.key]

    def validate(self) -> None:
        """Check what holds between two turns.

        Raises:
            InvariantBroken: it does not; says what.
        """
        for key, wish in self._wishes.items():
            other = self._wishes.get(wish.partner) if wish.partner is not None else None
            if key[0] not in self._members or (wish.partner is not None and (other is None or other.partner != key)):
                raise InvariantBroken(f"wish {key} of a gang: {wish.call.verb} with {wish.partner}, {other}")
        for node, kept in enumerate(self._kept):
            mine = {name: data for name, (owner, data) in self._values.items() if owner == node}
            if (len(mine), sum(gang_value_bytes(*item) for item in mine.items())) != (kept.values, kept.size_bytes):
                raise InvariantBroken(f"member {node} of a gang counts {kept.values} values, and has {len(mine)}")

    # ---- members and values

    def _join(self, node: int, call: GangCall) -> None:
        self._members.add(node)
        self._gone.discard(node)
        for name, data in call.kept:
            self._put(node, name, data)
        for sender, number in call.taken:
            if 0 <= sender < self._size:
                self._received((sender, number))

    def _received(self, key: Key) -> None:
        """A message was received: its sender goes on."""
        self._kept[key[0]].note_sent(key[1])
        wish = self._wishes.get(key)
        if wish is not None and wish.call.verb == "send":
            del self._wishes[key]
            self._say(wish, GangResult(value=0))
            other = self._wishes.pop(wish.partner, None) if wish.partner is not None else None
            if other is not None:  # it says that it has received what it still waits for
                self._say(other, GangResult(value=ChirpError.TRY_AGAIN))

    def _put(self, node: int, name: str, data: bytes) -> int:
        owner, old = self._values.get(name, (node, None))
        if owner != node:
            return ChirpError.ALREADY_EXISTS
        kept = self._kept[node]
        size = kept.size_bytes + gang_value_bytes(name, data) - (gang_value_bytes(name, old) if old is not None else 0)
        count = kept.values + (old is None)
        if not _is_name(name) or count > GANG_KEPT or size > GANG_KEPT_BYTES:
            return ChirpError.NO_SPACE
        kept.values, kept.size_bytes = count, size
        self._values[name] = node, data
        return 0

    # ---- wishes

    def _wished(self, node: int, call: GangCall, ticket: Any, now_s: float) -> int | None:
        """What to answer at once; None: later."""
        known = self._wishes.get((node, call.number))
        if call.verb == "put":
            return self._put(node, call.names[0], call.data)
        if call.verb == "took":
            if known is not None and known.partner is not None and known.call.verb == "recv":
                del self._wishes[known.key]
                self._received(known.partner)
            return 0
        if call.verb == "cancel":
            if known is not None:
                self._cancel(known)
            return 0
        if call.verb == "send" and call.number in self._kept[node].sent:
            return 0
        if known is not None:
            known.ticket, known.since_s = ticket, now_s
            if known.call.verb == "recv" and known.partner is not None:
                self._hand(known, self._wishes[known.partner])
            return None
        if sum(key[0] == node for key in self._wishes) >= MOST_WISHES:
            return ChirpError.BUSY
        self._wishes[(node, call.number)] = _Wish((node, call.number), call, ticket, now_s)
        return None

    def _cancel(self, wish: _Wish) -> None:
        """Who wished is gone.  A message that it has sent and that is on its way arrives all the same."""
        if wish.call.verb == "send" and wish.partner is not None and wish.key[0] in self._members:
            wish.ticket = None
            return
        del self._wishes[wish.key]
        other = self._wishes.get(wish.partner) if wish.partner is not None else None
        if other is not None and wish.call.verb == "recv":
            other.partner = None
        elif other is not None:
            del self._wishes[other.key]  # the receiver has it, or is told the same again by nobody
            self._say(other, GangResult(value=ChirpError.TRY_AGAIN))

    def _say(self, wish: _Wish, result: GangResult) -> None:
        ticket, wish.ticket = wish.ticket, None
        if ticket is not None:
            self._answer(ticket, result)

    def _hand(self, receiver: _Wish, sender: _Wish) -> None:
        node, number = sender.key
        self._say(receiver, GangResult(value=0, name=sender.call.names[0], member=node, number=number,
                                       data=sender.call.data))

    def _go_on(self, now_s: float) -> None:
        """Whatever can be answered now."""
        is_whole = len(self._members | self._gone) >= self._size or now_s - self._born_s >= GRACE_S
        free: dict[str, deque[_Wish]] = {}
        for wish in self._wishes.values():
            if wish.call.verb == "send" and wish.partner is None:
                free.setdefault(wish.call.names[0], deque()).append(wish)
        for wish in list(self._wishes.values()):
            if wish.call.verb in ("get", "wait"):
                found = self._values.get(wish.call.names[0])
                if found is not None or (is_whole and wish.call.verb == "get"):
                    del self._wishes[wish.key]
                    self._say(wish, GangResult(value=ChirpError.DOESNT_EXIST) if found is None
                              else GangResult(value=0, member=found[0], data=found[1]))
            elif is_whole and wish.call.verb == "recv" and wish.partner is None and wish.ticket is not None:
                name = next((each for each in wish.call.names if free.get(each)), None)
                if name is not None:
                    sender = free[name].popleft()
                    wish.partner, sender.partner = sender.key, wish.key
                    self._hand(wish, sender)


def _is_name(name: str) -> bool:
    return 0 < len(name) <= GANG_NAME_BYTES and name.isprintable() and " " not in name


def _problem(call: GangCall) -> int:
    """What is wrong with a call; 0: nothing."""
    most = {"recv": len(call.names), "took": 0, "cancel": 0}.get(call.verb, 1)
    if len(call.names) != most or (call.verb == "recv" and not most) or not all(map(_is_name, call.names)):
        return ChirpError.INVALID_REQUEST
    return ChirpError.TOO_BIG if len(call.data) > GANG_DATA_BYTES else 0
