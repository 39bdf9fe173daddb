"""Which actors watch which nodes, and which links are up."""

from __future__ import annotations

from condor_actors.actors.cell import Cell
from condor_actors.actors.lanes import OWN
from condor_actors.actors.mailboxes import Mailboxes
from condor_actors.actors.post import Post
from condor_actors.messages.envelope import Identity, PeerDown, PeerUp

__all__ = ["Watches"]


class Watches:
    """Tells actors of the links to the nodes that they watch.

    Args:
        post: keeps a link to a watched node.
        mailboxes: get the events.
    """

    def __init__(self, post: Post, mailboxes: Mailboxes) -> None:
        self._post = post
        self._mailboxes = mailboxes
        self._up: dict[str, tuple[Identity, str]] = {}
        self._watchers: dict[str, dict[str, None]] = {}

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes that are watched."""
        return tuple(self._watchers)

    def link_up(self, node: str, identity: Identity, lane: str = OWN) -> None:
        """A link is up."""
        self._up[node] = identity, lane
        for name in tuple(self._watchers.get(node, ())):
            self._mailboxes.notify(name, PeerUp(node=node, identity=identity), lane)

    def reidentified(self, node: str, identity: Identity, lane: str) -> None:
        """The peer of a link is another user from now on."""
        self._up[node] = identity, lane

    def link_down(self, node: str, reason: str, lane: str = OWN) -> None:
        """A link was lost, behind what came over it; one that the other side had dialled is gone for good."""
        self._up.pop(node, None)
        for name in tuple(self._watchers.get(node, ())):
            self._mailboxes.notify(name, PeerDown(node=node, reason=reason), lane)
        if node.startswith("in:"):
            for name in self._watchers.pop(node, ()):
                cell = self._mailboxes.get(name)
                if cell is not None:
                    cell.watches.discard(node)

    def watch(self, cell: Cell, node: str) -> None:
        """Have an actor told of the node's links; at once when there is one."""
        if node in cell.watches:
            return
        cell.watches.add(node)
        watchers = self._watchers.setdefault(node, {})
        watchers[cell.name] = None
        if node in self._up:
            identity, lane = self._up[node]
            self._mailboxes.notify(cell.name, PeerUp(node=node, identity=identity), lane)
        if len(watchers) == 1:
            self._post.watch(node)

    def unwatch(self, cell: Cell, node: str) -> None:
        """Stop telling an actor."""
        if node not in cell.watches:
            return
        cell.watches.discard(node)
        watchers = self._watchers.get(node, {})
        watchers.pop(cell.name, None)
        if not watchers:
            self._watchers.pop(node, None)
            self._post.unwatch(node)

    def forget(self, cell: Cell) -> None:
        """Stop telling an actor of anything."""
        for node in tuple(cell.watches):
            self.unwatch(cell, node)
