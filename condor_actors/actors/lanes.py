"""Whose turn it is: what waits in a mailbox, by who sent it.

Theory: each sender has a lane in each mailbox that it has sent something to, and lanes are served in turns, so that
nobody's messages wait for another's queue.  A lane is given :data:`QUANTUM_S` of the actor's time when its turn comes
and goes on as long as some is left; an expensive message makes it miss its next turns, up to :data:`DEBT_S`.  Within a
lane the order is that of arrival.  What the process itself has to say (timers, results, its other actors) goes before
all lanes, but for every :data:`OWN_RUN`-th turn, so that nothing of it makes the others starve either.

The ledger knows what waits of each sender in all mailboxes of the process, which is bounded by its readers; a sender of
whom nothing waits is not in it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import attrs

__all__ = ["OWN", "Lanes", "Ledger", "Turn"]

Turn = tuple[Callable[[Any], None] | None, Any, float]
"""What waits in a mailbox: (function, argument, expiry).  No function: the argument is a delivery for ``receive``."""

OWN = ""
"""The lane of the process itself."""

QUANTUM_S = 0.002
DEBT_S = 0.1
TURN_S = 0.0001
"""What a turn costs at least."""

OWN_RUN = 32


@attrs.define(eq=False)
class _Account:
    """What waits of one sender: messages, their bytes, and the lanes that they are in."""

    count: int = 0
    size_bytes: int = 0
    lanes: dict[_Lane, None] = attrs.field(factory=dict)


class Ledger:
    """What waits of each sender, in all mailboxes of a process."""

    def __init__(self) -> None:
        self._accounts: dict[str, _Account] = {}

    def __len__(self) -> int:
        """Senders of whom something waits."""
        return len(self._accounts)

    def waiting(self, sender: str) -> tuple[int, int]:
        """How many messages wait, and their bytes."""
        account = self._accounts.get(sender)
        return (account.count, account.size_bytes) if account is not None else (0, 0)

    def drop(self, sender: str, unwanted: Callable[[Turn], bool]) -> list[Turn]:
        """Forget what nobody waits for any more, and return it."""
        account = self._accounts.get(sender)
        return [turn for lane in tuple(account.lanes) for turn in lane.drop(unwanted)] if account is not None else []

    def _add(self, lane: _Lane, size_bytes: int) -> None:
        account = self._accounts.get(lane.sender)
        if account is None:
            account = self._accounts[lane.sender] = _Account()
        account.count += 1
        account.size_bytes += size_bytes
        account.lanes[lane] = None

    def _take(self, lane: _Lane, size_bytes: int, count: int = 1) -> None:
        account = self._accounts[lane.sender]
        account.count -= count
        account.size_bytes -= size_bytes
        if not lane.turns:
            account.lanes.pop(lane, None)
            if not account.count:
                del self._accounts[lane.sender]


@attrs.define(eq=False)
class _Lane:
    """What waits of one sender in one mailbox; ``credit_s`` is what it may still use before the next one's turn."""

    sender: str
    ledger: Ledger
    mailbox: Lanes
    turns: deque[tuple[Turn, int]] = attrs.field(factory=deque)
    credit_s: float = 0.0

    def drop(self, unwanted: Callable[[Turn], bool]) -> list[Turn]:
        """Forget turns, and return them."""
        kept, dropped = deque[tuple[Turn, int]](), list[tuple[Turn, int]]()
        for entry in self.turns:
            (dropped if unwanted(entry[0]) else kept).append(entry)
        if dropped:
            self.turns = kept
            self.mailbox.count -= len(dropped)
            self.ledger._take(self, sum(size for _, size in dropped), len(dropped))
        return [turn for turn, _ in dropped]


class Lanes:
    """A mailbox.

    Args:
        ledger: of the process.

    Attributes:
        count: how many turns wait.
    """

    __slots__ = ("_lanes", "_ledger", "_order", "_own", "_own_run", "_served", "count")

    def __init__(self, ledger: Ledger) -> None:
        self.count = 0
        self._ledger = ledger
        self._own: deque[Turn] = deque()
        self._lanes: dict[str, _Lane] = {}
        self._order: deque[_Lane] = deque()
        self._own_run = 0
        self._served: _Lane | None = None

    def __len__(self) -> int:
        """How many turns wait."""
        return self.count

    def __iter__(self) -> Iterator[Turn]:
        """All that wait; the process's own first."""
        yield from self._own
        for lane in self._order:
            for turn, _ in lane.turns:
                yield turn

    def add(self, turn: Turn, sender: str = OWN, size_bytes: int = 0) -> None:
        """Put a turn behind what waits of its sender."""
        self.count += 1
        if sender == OWN:
            self._own.append(turn)
            return
        lane = self._lanes.get(sender)
        if lane is None:
            lane = self._lanes[sender] = _Lane(sender, self._ledger, self)
            self._order.append(lane)
        lane.turns.append((turn, size_bytes))
        self._ledger._add(lane, size_bytes)

    def add_again(self, turn: Turn) -> None:
        """Put the rest of the turn that was taken last behind what waits of the same sender."""
        lane = self._served
        if lane is None:
            self.add(turn)
            return
        self.count += 1
        lane.turns.append((turn, 0))
        self._ledger._add(lane, 0)

    def add_first(self, turn: Turn) -> None:
        """Put a turn before all others."""
        self.count += 1
        self._own.appendleft(turn)

    def take(self) -> Turn:
        """The next turn; there must be one."""
        self.count -= 1
        if self._own and (self._own_run < OWN_RUN or not self._order):
            self._own_run += 1
            self._served = None
            return self._own.popleft()
        self._own_run = 0
        lane = self._next_lane()
        if lane is None:
            return self._own.popleft()
        turn, size_bytes = lane.turns.popleft()
        self._ledger._take(lane, size_bytes)
        self._served = lane
        return turn

    def _next_lane(self) -> _Lane | None:
        """Whose turn it is."""
        order = self._order
        while order:
            lane = order[0]
            if not lane.turns:
                self._close(order.popleft())
            elif lane.credit_s > 0.0 or len(order) == 1:
                return lane
            else:
                lane.credit_s += QUANTUM_S
                order.rotate(-1)
        return None

    def charge(self, cost_s: float) -> None:
        """What the turn that was taken last has cost."""
        lane, self._served = self._served, None
        if lane is None:
            return
        lane.credit_s = max(lane.credit_s - max(cost_s, TURN_S), -DEBT_S)
        if not lane.turns and self._order and self._order[0] is lane:
            self._close(self._order.popleft())

    def _close(self, lane: _Lane) -> None:
        if self._lanes.get(lane.sender) is lane:
            del self._lanes[lane.sender]

    def clear(self) -> None:
        """Forget all."""
        self._own.clear()
        for lane in self._order:
            lane.drop(lambda turn: True)
        self._order.clear()
        self._lanes.clear()
        self.count = 0
