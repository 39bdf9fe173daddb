"""The shadow hosts of a schedd: one process per owner of jobs, and a spare that is warm.

Theory: a host is *starting* (a process was asked for), *spare* (it said hello and belongs to nobody), *ready* (it is an
owner's), or *lost* (its link broke; its process may live).  What is to be said to an owner's host waits until there is
one.  The schedd dies and comes back without the hosts noticing more than a broken link: they say hello again with the
runs that are alive in them, and only what no host has is taken up by a new one.

============ ==================================== ===================================================
state        hello                                link lost
============ ==================================== ===================================================
starting     ready, or spare                      –
spare        –                                    forget it, start another
ready        –                                    is the process alive? wait for hello : replace it
(idle)       –                                    it was dismissed: nothing
lost         ready again                          –
============ ==================================== ===================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from condor_actors.cores.schedd.queue_operations import DropHost, SaveHost
from condor_actors.cores.schedd.schedd_context import ScheddContext
from condor_actors.effects import Effect
from condor_actors.messages.envelope import Address, Delivery
from condor_actors.messages.run import DismissHost, HostOrders, ShadowHostHello

__all__ = ["AssignHost", "CheckHost", "EndHost", "HostChecked", "ShadowHosts", "StartHost"]

START_PATIENCE_S = 30.0
RETURN_PATIENCE_S = 20.0
CHECK_S = 0.5
YOUNG_S = 30.0
IDLE_S = 1200.0


@attrs.frozen
class StartHost(Effect):
    """Start a shadow host process with this id; it belongs to ``owner``, or is a spare when that is empty."""

    host_id: str
    owner: str


@attrs.frozen
class AssignHost(Effect):
    """Make the spare at ``address`` the owner's: user id, credential, spool."""

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
class HostChecked:
    """Event: whether the process of a lost host lives."""

    host_id: str
    alive: bool


@attrs.frozen
class EndHost(Effect):
    """Kill the process, if it is still the same."""

    host_id: str
    pid: int
    birth: str


@attrs.define(eq=False)
class Host:
    """One shadow host; see the module for ``state``."""

    host_id: str
    owner: str
    state: str
    address: Address | None = None
    pid: int = 0
    birth: str = ""
    assigned: bool = False
    hello_s: float = 0.0
    busy_s: float = 0.0


class ShadowHosts:
    """Starts, assigns, watches and dismisses the shadow hosts of a schedd."""

    def __init__(self, context: ScheddContext) -> None:
        self._context = context
        self.hosts: dict[str, Host] = {}
        self.by_owner: dict[str, Host] = {}
        self._by_node: dict[str, Host] = {}
        self._waiting: dict[str, list[Any]] = {}
        self._failures = 0

    def restore(self, rows: Iterable[SaveHost]) -> None:
        """Hosts that were alive when the schedd died are lost until they say hello."""
        for row in rows:
            host = Host(row.host_id, row.owner, "lost", None, row.pid, row.birth, assigned=True)
            self.hosts[row.host_id] = host
            self.by_owner[row.owner] = host

    def started(self) -> None:
        """The schedd runs: look who is there, and warm up a spare."""
        for host in tuple(self.hosts.values()):
            if host.state == "lost":
                self._context.out.append(CheckHost(host.host_id, host.pid, host.birth))
                self._context.timer(("host-return", host.host_id), RETURN_PATIENCE_S)
        self._context.timer(("idle-hosts",), IDLE_S / 4)
        self.keep_spares()

    def keep_spares(self) -> None:
        """Start spares until there are enough."""
        spare = sum(1 for host in self.hosts.values() if not host.owner)
        while spare < self._context.settings.spare_hosts:
            self._start("")
            spare += 1

    def _start(self, owner: str) -> Host:
        host = Host(f"{self._context.random.getrandbits(96):024x}", owner, "starting")
        self.hosts[host.host_id] = host
        if owner:
            self.by_owner[owner] = host
        self._context.out.append(StartHost(host.host_id, owner))
        self._context.timer(("host-start", host.host_id), START_PATIENCE_S)
        return host

    def still_lost(self, host_id: str) -> None:
        """The process of a lost host lives: look again, until it says hello or the patience is at an end."""
        host = self.hosts.get(host_id)
        if host is not None and host.state == "lost":
            self._context.timer(("host-check", host_id), CHECK_S)

    def check(self, host_id: str) -> None:
        """Is the process of a lost host still there?"""
        host = self.hosts.get(host_id)
        if host is not None and host.state == "lost":
            self._context.out.append(CheckHost(host.host_id, host.pid, host.birth))

    # ---- speaking to an owner's host

    def want(self, owner: str) -> None:
        """See to it that the owner has a host, or will have one."""
        if owner in self.by_owner:
            return
        for host in self.hosts.values():
            if not host.owner:
                host.owner = owner
                self.by_owner[owner] = host
                if host.state == "spare":
                    self._assign(host)
                    self._flush(host)
                break
        else:
            self._start(owner)
        self.keep_spares()

    def tell(self, owner: str, message: Any) -> None:
        """Tell the owner's host, as soon as there is one."""
        self.want(owner)
        host = self.by_owner[owner]
        if host.state == "ready" and host.address is not None:
            host.busy_s = self._context.now_s
            self._context.tell(host.address, message)
        else:
            self._waiting.setdefault(owner, []).append(message)

    def tell_first(self, owner: str, messages: Iterable[Any]) -> None:
        """Tell the owner's next host, before what waits for it already: orders about runs it does not know yet."""
        self._waiting.setdefault(owner, [])[:0] = messages
        self.want(owner)
        host = self.by_owner[owner]
        if host.state == "ready":
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
        self._context.timer(("host-again", owner), min(60.0, 0.1 * 2.0 ** min(self._failures, 10)))

    def ready_address(self, owner: str) -> Address | None:
        """Where the owner's host is, when it is there now."""
        host = self.by_owner.get(owner)
        return host.address if host is not None and host.state == "ready" else None

    def owner_at(self, node: str) -> str:
        """Whose host is at the other end of this link; empty when it is none."""
        host = self._by_node.get(node)
        return host.owner if host is not None else ""

    # ---- what happens to them

    def hello(self, message: ShadowHostHello, delivery: Delivery, birth: str) -> Host | None:
        """A host says hello; returns it when it is (or has become) an owner's, None when it is a spare or a stranger.

        The id is what the schedd gave the process when it started it, so a stranger does not know one.  What waits for
        an owner's host is told by :meth:`tell_first`, behind the runs that it is to take up.
        """
        host = self.hosts.get(message.host_id)
        if host is None or (message.owner and message.owner != host.owner):
            self._context.note(f"a shadow host of nobody said hello: {message.host_id} ({message.owner})", "warn")
            if not message.owner:  # a spare that was forgotten
                self._context.tell(Address(delivery.sender.node, delivery.sender.actor), DismissHost())
            return None
        host.address = Address(delivery.sender.node, delivery.sender.actor)
        host.pid, host.birth = message.pid, birth
        host.hello_s = self._context.now_s
        self._by_node[delivery.sender.node] = host
        if not host.owner:
            host.state = "spare"
            return None
        if not message.owner:
            self._assign(host)
            return host
        self._ready(host)
        return host

    def _assign(self, host: Host) -> None:
        assert host.address is not None
        self._context.out.append(AssignHost(host.host_id, host.owner, host.address))
        self._ready(host)

    def _ready(self, host: Host) -> None:
        assert host.address is not None
        host.state = "ready"
        host.assigned = True
        self._context.persist(SaveHost(host.host_id, host.owner, host.pid, host.birth))

    def renew(self) -> None:
        """Give every owner's host its next credential."""
        for host in self.hosts.values():
            if host.state == "ready" and host.address is not None:
                self._context.out.append(AssignHost(host.host_id, host.owner, host.address))

    def link_lost(self, node: str) -> Host | None:
        """A link broke; returns the owner's host that was at it."""
        host = self._by_node.pop(node, None)
        if host is None or host.address is None or host.address.node != node:
            return None
        host.address = None
        if not host.owner:
            del self.hosts[host.host_id]
            self._failures += 1
            self._context.timer(("spares",), min(60.0, 0.5 * 2.0 ** self._failures))
            return None
        host.state = "lost"
        self._context.out.append(CheckHost(host.host_id, host.pid, host.birth))
        self._context.timer(("host-return", host.host_id), RETURN_PATIENCE_S)
        return host

    def dismiss_idle(self, busy: set[str]) -> None:
        """End the hosts of owners who have had nothing to do for :data:`IDLE_S`.

        Args:
            busy: owners with runs or notices now.
        """
        for host in [each for each in self.hosts.values() if each.state == "ready"]:
            if host.owner in busy:
                host.busy_s = self._context.now_s
            elif self._context.now_s - max(host.busy_s, host.hello_s) > IDLE_S and host.address is not None:
                self._context.tell(host.address, DismissHost())
                self._by_node.pop(host.address.node, None)
                del self.hosts[host.host_id], self.by_owner[host.owner]
                self._context.persist(DropHost(host.host_id))
        self._context.timer(("idle-hosts",), IDLE_S / 4)

    def gone(self, host_id: str, *, kill: bool) -> str:
        """A host will not come back; returns its owner when that has to be given another."""
        host = self.hosts.get(host_id)
        if host is None or host.state in ("ready", "spare"):
            return ""
        if kill and host.pid:
            self._context.out.append(EndHost(host.host_id, host.pid, host.birth))
        del self.hosts[host_id]
        if not host.owner:
            self._failures += 1
            self._context.timer(("spares",), min(60.0, 0.5 * 2.0 ** self._failures))
            return ""
        self._failures = 0 if self._context.now_s - host.hello_s > YOUNG_S else self._failures + 1
        if host.assigned:
            self._context.persist(DropHost(host_id))
        if self.by_owner.get(host.owner) is host:
            del self.by_owner[host.owner]
        return host.owner
