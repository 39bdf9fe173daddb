"""One shadow host: a process that runs the shadows of one owner, or waits for an owner.

Theory: a host is *starting* (a process was asked for), *spare* (it said hello and belongs to nobody), *ready* (it is an
owner's), *lost* (its link broke; its process may live) or *gone*.  The schedd dies and comes back without its hosts
noticing more than a broken link, so a schedd that begins finds them lost, and waits for their hello.  What every event
does in every state is the table at the end.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import attrs

from condor_actors.cores.schedd.queue_operations import DropHost, SaveHost
from condor_actors.cores.state_table import EventKey, InvariantBroken, event_key, ignore, total_table
from condor_actors.effects import Effect, Note, Persist, Send, SetTimer
from condor_actors.messages.envelope import Address, TimerFired
from condor_actors.messages.shadow_host import DismissHost

__all__ = ["ROWS", "TABLE", "AssignHost", "CheckHost", "CredentialDue", "EndHost", "Host", "HostChecked",
           "HostIntroduced", "HostLinkLost", "HostStarted", "HostState", "IdleCheck", "OwnerWants", "ScheddStarted",
           "StartHost"]

START_PATIENCE_S = 30.0
RETURN_PATIENCE_S = 20.0
CHECK_S = 0.5
IDLE_S = 1200.0


class HostState(enum.Enum):
    """Where a host is; see the module."""

    STARTING = "starting"
    SPARE = "spare"
    READY = "ready"
    LOST = "lost"
    GONE = "gone"


# ---- what the daemon is to do, and what it says


@attrs.frozen
class StartHost(Effect):
    """Start a shadow host process with this id; it belongs to ``owner``, or is a spare when that is empty."""

    host_id: str
    owner: str


@attrs.frozen
class AssignHost(Effect):
    """Make the host at ``address`` the owner's: user id, credential, spool."""

    host_id: str
    owner: str
    address: Address


@attrs.frozen
class CheckHost(Effect):
    """Is the process alive?  Comes back as :class:`HostChecked`."""

    host_id: str
    pid: int
    birth: str


@attrs.frozen
class EndHost(Effect):
    """Kill the process, if it is still the same."""

    host_id: str
    pid: int
    birth: str


@attrs.frozen
class HostStarted:
    """Event: the process of a starting host, as the schedd made it; ``birth`` tells it from later ones of its pid."""

    host_id: str
    pid: int
    birth: str


@attrs.frozen
class HostChecked:
    """Event: whether the process of a lost host lives."""

    host_id: str
    alive: bool


# ---- what the other hosts and the schedd mean for it


@attrs.frozen
class HostIntroduced:
    """Event: the process said hello from ``address``; ``owner`` is whose it is already, empty: nobody's."""

    address: Address
    owner: str


@attrs.frozen
class HostLinkLost:
    """Event: its link broke."""


@attrs.frozen
class OwnerWants:
    """Event: an owner without a host takes this one, which belongs to nobody."""

    owner: str


@attrs.frozen
class ScheddStarted:
    """Event: the schedd begins; hosts of its former life may live."""


@attrs.frozen
class IdleCheck:
    """Event: whether its owner has runs or notices now."""

    busy: bool


@attrs.frozen
class CredentialDue:
    """Event: owners' hosts get their next credential."""


@attrs.define(eq=False)
class Host:
    """One shadow host.

    Attributes:
        host_id: names it; pid, birth: its process.
        owner: whose it is; empty: nobody's.
        address: where it is reached; None: there is no link.
        assigned: whether it has ever been an owner's, and is in the store.
        hello_s: when it said hello last; busy_s: when its owner last had something for it to do.
    """

    host_id: str
    owner: str
    state: HostState = HostState.STARTING
    address: Address | None = None
    pid: int = 0
    birth: str = ""
    assigned: bool = False
    hello_s: float = 0.0
    busy_s: float = 0.0
    now_s: float = 0.0
    out: list[Effect] = attrs.field(factory=list)

    def handle(self, event: Any, now_s: float) -> tuple[Effect, ...]:
        """What follows from an event."""
        self.now_s, self.out = now_s, []
        step = TABLE.get((self.state, event_key(event)))
        if step is None:
            self.out.append(Note(f"{type(event).__name__} means nothing to a shadow host", "warn"))
        else:
            step(self, event)
        return tuple(self.out)

    def validate(self) -> None:
        """Check what holds between two turns.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        linked = self.state in (HostState.SPARE, HostState.READY)
        if linked != (self.address is not None):
            raise InvariantBroken(f"the shadow host {self.host_id} is {self.state.value}, its link is {self.address}")
        if self.state is HostState.SPARE and self.owner:
            raise InvariantBroken(f"the shadow host {self.host_id} is a spare, and {self.owner}'s")
        if self.state in (HostState.READY, HostState.LOST) and not (self.owner and self.assigned):
            raise InvariantBroken(f"the shadow host {self.host_id} is {self.state.value}, and nobody's")


# ---- the steps


def _note_process(host: Host, event: HostStarted) -> None:
    host.pid, host.birth = event.pid, event.birth


def _introduce(host: Host, event: HostIntroduced) -> None:
    host.address, host.hello_s = event.address, host.now_s
    if not host.owner:
        host.state = HostState.SPARE
    elif not event.owner:
        _assign(host)
    else:
        _ready(host)


def _assign(host: Host) -> None:
    assert host.address is not None
    host.out.append(AssignHost(host.host_id, host.owner, host.address))
    _ready(host)


def _ready(host: Host) -> None:
    host.state = HostState.READY
    host.assigned = True
    host.out.append(Persist(SaveHost(host.host_id, host.owner, host.pid, host.birth)))


def _promise(host: Host, event: OwnerWants) -> None:
    """It is the owner's as soon as it says hello; one that starts for another stays that one's."""
    host.owner = host.owner or event.owner


def _give_to(host: Host, event: OwnerWants) -> None:
    host.owner = event.owner
    _assign(host)


def _end_spare(host: Host, event: HostLinkLost) -> None:
    """It has nothing to lose, and another takes its place; a frozen one would not hear that it is dismissed."""
    host.out.append(EndHost(host.host_id, host.pid, host.birth))
    host.address = None
    host.state = HostState.GONE


def _lose(host: Host, event: HostLinkLost) -> None:
    host.address = None
    host.state = HostState.LOST
    _expect(host, event)


def _expect(host: Host, event: Any) -> None:
    """Is its process alive?  If it is it says hello soon."""
    host.out += (CheckHost(host.host_id, host.pid, host.birth),
                 SetTimer(("host-return", host.host_id), RETURN_PATIENCE_S))


def _check(host: Host, event: TimerFired) -> None:
    host.out.append(CheckHost(host.host_id, host.pid, host.birth))


def _start_failed(host: Host, event: HostChecked) -> None:
    if not event.alive:
        _gone(host)


def _checked(host: Host, event: HostChecked) -> None:
    if event.alive:
        host.out.append(SetTimer(("host-check", host.host_id), CHECK_S))
    else:
        _gone(host)


def _give_up(host: Host, event: TimerFired) -> None:
    """Its patience is at an end: it is killed, so that no run is in two hosts."""
    if host.pid:
        host.out.append(EndHost(host.host_id, host.pid, host.birth))
    _gone(host)


def _gone(host: Host) -> None:
    host.state = HostState.GONE
    if host.assigned:
        host.out.append(Persist(DropHost(host.host_id)))


def _dismiss_if_idle(host: Host, event: IdleCheck) -> None:
    if event.busy:
        host.busy_s = host.now_s
    elif host.now_s - max(host.busy_s, host.hello_s) > IDLE_S and host.address is not None:
        host.out.append(Send(host.address, DismissHost()))
        host.address = None
        _gone(host)


def _renew(host: Host, event: CredentialDue) -> None:
    assert host.address is not None
    host.out.append(AssignHost(host.host_id, host.owner, host.address))


# ---- the table

Step = Callable[[Host, Any], None]

_no_hello = ignore("it has not said hello")
_hello = ignore("it said hello in time")
_nobodys = ignore("it is nobody's")
_owned = ignore("it is an owner's already")
_linked = ignore("its link is up")
_unlinked = ignore("its link is down already")
_known = ignore("its process is known")
_new = ignore("it began in this life of the schedd")
_later = ignore("it gets one when it says hello")
_over = ignore("it is forgotten")

ROWS: dict[EventKey, Sequence[Step | ignore]] = {
    # starting, spare, ready, lost, gone
    HostStarted: (_note_process, _known, _known, _known, _over),
    "timer host-start": (_give_up, _hello, _hello, _hello, _over),
    HostIntroduced: (_introduce, _introduce, _introduce, _introduce, _over),
    OwnerWants: (_promise, _give_to, _owned, _owned, _over),
    HostLinkLost: (_no_hello, _end_spare, _lose, _unlinked, _over),
    ScheddStarted: (_new, _new, _new, _expect, _over),
    "timer host-check": (_no_hello, _linked, _linked, _check, _over),
    HostChecked: (_start_failed, _linked, _linked, _checked, _over),
    "timer host-return": (_no_hello, _linked, _linked, _give_up, _over),
    IdleCheck: (_no_hello, _nobodys, _dismiss_if_idle, _unlinked, _over),
    CredentialDue: (_later, _nobodys, _renew, _later, _over),
}

TABLE: dict[tuple[HostState, EventKey], Step | ignore] = total_table("a shadow host", HostState, ROWS)
