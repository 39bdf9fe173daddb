"""The shadow hosts of a schedd: one process per owner of jobs, and a spare that is warm.

Theory: what one host goes through is the table of :mod:`condor_actors.cores.schedd.shadow_host_table`; here is which
host is whose.  What is to be said to an owner's host waits until there is one.  After a crash of the schedd the hosts
say hello again with the runs that are alive in them; only what no host has is taken up by a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import attrs

from condor_actors.cores.schedd.queue_operations import SaveHost
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.cores.schedd.shadow_host_table import (
    IDLE_S,
    START_PATIENCE_S,
    CredentialDue,
    Host,
    HostChecked,
    HostIntroduced,
    HostLinkLost,
    HostStarted,
    HostState,
    IdleCheck,
    OwnerWants,
    ScheddStarted,
    StartHost,
)
from condor_actors.cores.state_table import InvariantBroken
from condor_actors.messages.envelope import Address, Delivery, TimerFired
from condor_actors.messages.shadow_host import DismissHost, HostOrders, ShadowHostHello

__all__ = ["ShadowHosts", "take_some"]

YOUNG_S = 30.0
"""A host that died sooner after its hello counts as one that does not start."""


_T = TypeVar("_T")

ORDER_BYTES = 150_000
"""Of each kind in one :class:`HostOrders`."""


def take_some(items: list[_T], size: Callable[[_T], int]) -> list[_T]:
    """Take items off the front of a list until they fill a message."""
    count = total = 0
    while count < len(items) and (count == 0 or total < ORDER_BYTES):
        total += size(items[count]) + 200
        count += 1
    taken = items[:count]
    del items[:count]
    return taken


class ShadowHosts:
    """Starts, assigns, watches and dismisses the shadow hosts of a schedd."""

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self.hosts: dict[str, Host] = {}
        self.by_owner: dict[str, Host] = {}
        self._by_node: dict[str, Host] = {}
        self._waiting: dict[str, list[Any]] = {}
        self._bereft: set[str] = set()
        self._failures = 0

    def restore(self, rows: Iterable[SaveHost]) -> None:
        """Hosts that were alive when the schedd died are lost until they say hello."""
        for row in rows:
            host = Host(row.host_id, row.owner, HostState.LOST, None, row.pid, row.birth, assigned=True)
            self.hosts[row.host_id] = host
            self.by_owner[row.owner] = host

    def started(self) -> None:
        """The schedd runs: find out which hosts live, and warm up a spare."""
        for host in tuple(self.hosts.values()):
            self._give(host, ScheddStarted())
        self._context.timer(("idle-hosts",), IDLE_S / 4)
        self.keep_spares()

    def keep_spares(self) -> None:
        """Start spares until there are enough."""
        spare = sum(1 for host in self.hosts.values() if not host.owner)
        while spare < self._context.settings.spare_hosts:
            self._start("")
            spare += 1

    def _start(self, owner: str) -> Host:
        host = Host(f"{self._context.random.getrandbits(96):024x}", owner)
        self.hosts[host.host_id] = host
        if owner:
            self.by_owner[owner] = host
        self._context.out.append(StartHost(host.host_id, owner))
        self._context.timer(("host-start", host.host_id), START_PATIENCE_S)
        return host

    def _give(self, host: Host, event: Any) -> None:
        self._context.out += host.handle(event, self._context.now_s)

    def process_started(self, event: HostStarted) -> None:
        """The process of a starting host is there; it is to say hello."""
        host = self.hosts.get(event.host_id)
        if host is not None:
            self._give(host, event)

    def lives_or_dies(self, host_id: str, event: HostChecked | TimerFired) -> str:
        """Its process was looked at, or its time is up; returns its owner when it is gone and had one."""
        host = self.hosts.get(host_id)
        if host is None:
            return ""
        self._give(host, event)
        if host.state is not HostState.GONE:
            return ""
        del self.hosts[host_id]
        if not host.owner:
            self._spare_failed()
            return ""
        self._failures = 0 if self._context.now_s - host.hello_s > YOUNG_S else self._failures + 1
        if self.by_owner.get(host.owner) is host:
            del self.by_owner[host.owner]
        return host.owner

    def _spare_failed(self) -> None:
        """A spare is gone: start another, later and later."""
        self._failures += 1
        self._context.timer(("spares",), min(60.0, 0.5 * 2.0 ** self._failures))

    # ---- speaking to an owner's host

    def want(self, owner: str) -> None:
        """See to it that the owner has a host, or will have one."""
        if owner in self.by_owner:
            return
        for host in self.hosts.values():
            if not host.owner:
                self.by_owner[owner] = host
                self._give(host, OwnerWants(owner))
                if host.state is HostState.READY:
                    self._flush(host)
                break
        else:
            self._start(owner)
        self.keep_spares()

    def tell(self, owner: str, message: Any) -> None:
        """Tell the owner's host, as soon as there is one; in place of a dead one, when it takes up what that left."""
        if owner in self._bereft:
            self._waiting.setdefault(owner, []).append(message)
            return
        self.want(owner)
        host = self.by_owner[owner]
        if host.state is HostState.READY and host.address is not None:
            host.busy_s = self._context.now_s
            self._context.tell(host.address, message)
        else:
            self._waiting.setdefault(owner, []).append(message)

    def tell_first(self, owner: str, messages: Iterable[Any]) -> None:
        """Tell the owner's next host, before what waits for it already: orders about runs it does not know yet.

        Notices that wait are dropped: all that nobody has confirmed are told again behind this, in their order.
        """
        self._bereft.discard(owner)
        waiting = [attrs.evolve(each, notices=()) if isinstance(each, HostOrders) else each
                   for each in self._waiting.get(owner, ())]
        self._waiting[owner] = [*messages, *waiting]
        self.want(owner)
        host = self.by_owner[owner]
        if host.state is HostState.READY:
            self._flush(host)

    def untold(self, owner: str) -> set[str]:
        """Names of runs whose order waits for the owner's next host."""
        return {start.run_id for message in self._waiting.get(owner, ()) if isinstance(message, HostOrders)
                for start in message.starts}

    def _flush(self, host: Host) -> None:
        assert host.address is not None
        for message in self._waiting.pop(host.owner, ()):
            self._context.tell(host.address, message)

    def replace(self, owner: str) -> None:
        """The owner's host died: start another, later and later when they die young."""
        self._bereft.add(owner)
        self._context.timer(("host-again", owner), min(60.0, 0.1 * 2.0 ** min(self._failures, 10)))

    def ready_address(self, owner: str) -> Address | None:
        """Where the owner's host is, when it is there now."""
        host = self.by_owner.get(owner)
        return host.address if host is not None and host.state is HostState.READY else None

    def owner_of(self, host_id: str) -> str:
        """Whose a host is, or is to be; empty: nobody's."""
        host = self.hosts.get(host_id)
        return host.owner if host is not None else ""

    def owner_at(self, node: str) -> str:
        """Whose host is at the other end of this link; empty when it is none."""
        host = self._by_node.get(node)
        return host.owner if host is not None else ""

    # ---- what happens to them

    def hello(self, message: ShadowHostHello, delivery: Delivery, birth: str) -> Host | None:
        """A host says hello; returns it when it is (or has become) an owner's, None when it is a spare or a stranger.

        A host is the process that the schedd started, by its pid and time of birth as the kernel knows them; what the
        message says of them counts for nothing.  What waits for an owner's host is told by :meth:`tell_first`, behind
        the runs that it is to take up.
        """
        host = self.hosts.get(message.host_id)
        if host is not None and (host.pid, host.birth) != (message.pid, birth):
            self._context.note(f"process {message.pid} says it is shadow host {message.host_id}, which is process "
                               f"{host.pid}", "warn")
            return None
        if host is None or (message.owner and message.owner != host.owner):
            self._context.note(f"a shadow host of nobody said hello: {message.host_id} ({message.owner})", "warn")
            if not message.owner:  # a spare that was forgotten
                self._context.tell(Address(delivery.sender.node, delivery.sender.actor), DismissHost())
            return None
        self._by_node[delivery.sender.node] = host
        self._give(host, HostIntroduced(Address(delivery.sender.node, delivery.sender.actor), message.owner))
        return host if host.owner else None

    def renew(self) -> None:
        """Give every owner's host its next credential."""
        for host in self.hosts.values():
            self._give(host, CredentialDue())

    def link_lost(self, node: str) -> None:
        """A link broke."""
        host = self._by_node.pop(node, None)
        if host is None or host.address is None or host.address.node != node:
            return
        self._give(host, HostLinkLost())
        if host.state is HostState.GONE:
            del self.hosts[host.host_id]
            self._spare_failed()

    def dismiss_idle(self, busy: set[str]) -> None:
        """End the hosts of owners who have had nothing to do for :data:`IDLE_S`.

        Args:
            busy: owners with runs or notices now.
        """
        for host in tuple(self.hosts.values()):
            node = host.address.node if host.address is not None else ""
            self._give(host, IdleCheck(host.owner in busy))
            if host.state is HostState.GONE:
                self._by_node.pop(node, None)
                del self.hosts[host.host_id], self.by_owner[host.owner]
        self._context.timer(("idle-hosts",), IDLE_S / 4)

    def validate(self) -> None:
        """Check what holds between two turns, of each host and of whose it is.

        Raises:
            InvariantBroken: something does not hold; says what.
        """
        for host_id, host in self.hosts.items():
            host.validate()
            if host.state is HostState.GONE or host.host_id != host_id:
                raise InvariantBroken(f"the shadow host {host.host_id} is kept as {host_id}, {host.state.value}")
            if host.owner and self.by_owner.get(host.owner) is not host:
                raise InvariantBroken(f"{host.owner} has another shadow host than {host_id}")
        for owner, host in self.by_owner.items():
            if host.owner != owner or self.hosts.get(host.host_id) is not host:
                raise InvariantBroken(f"the shadow host {host.host_id} of {owner} is not here, or {host.owner}'s")
        for owner in self._waiting:
            mine = self.by_owner.get(owner)
            if mine is not None and mine.state is HostState.READY and self._waiting[owner]:
                raise InvariantBroken(f"the shadow host of {owner} is ready, and what it is to hear waits")
