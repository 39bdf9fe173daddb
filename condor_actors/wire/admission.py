"""How many connections a process takes, in all and from each source.

Theory: a connection costs a descriptor and memory before anybody knows what it wants.  Its source is what the kernel
says at once: the uid on a UNIX socket, the address on TCP.  One source may have so many connections, and fewer that
have not yet said what they are for; when most of the room is taken, the rest is for those who have few.  The last of
the room is root's and the pool's account's, so that their tools and daemons get in whatever others do.
"""

from __future__ import annotations

import os
import resource

import attrs

__all__ = ["Admission"]

RESERVED_DESCRIPTORS = 256
"""Kept for files, sockets that we dial, and the accounts of our own."""

OWN_SHARE = 0.05
CROWDED = 0.75
FEW = 16
"""A source that has no more than this is let in as long as there is room at all."""


@attrs.define(eq=False)
class _Source:
    """The connections of one source, and those among them that have not said what they are for."""

    links: int = 0
    silent: int = 0


class Admission:
    """Counts connections and says who may come in.

    Args:
        most: in all (SEC_MAX_LINKS).
        most_of_one: of one source (SEC_MAX_LINKS_PER_SOURCE).
        most_silent: of one source, that have not said what they are for (SEC_MAX_SILENT_LINKS).
        own_uids: accounts that the rest is kept for; None: root's and this process's.
    """

    def __init__(self, most: int, most_of_one: int, most_silent: int, own_uids: frozenset[int] | None = None) -> None:
        self._most = min(most, max(resource.getrlimit(resource.RLIMIT_NOFILE)[0] - RESERVED_DESCRIPTORS, FEW))
        self._most_of_one = most_of_one
        self._most_silent = most_silent
        self._own = {f"uid {uid}" for uid in (own_uids if own_uids is not None else (0, os.getuid()))}
        self._sources: dict[str, _Source] = {}
        self.links = 0

    def enter(self, source: str) -> bool:
        """A connection comes in; False: it is to be closed, and is not counted."""
        if not self._has_room(source):
            return False
        known = self._sources.setdefault(source, _Source())
        known.links += 1
        known.silent += 1
        self.links += 1
        return True

    def _has_room(self, source: str) -> bool:
        if source in self._own:
            return self.links < self._most
        if self.links >= self._most * (1.0 - OWN_SHARE):
            return False
        known = self._sources.get(source)
        if known is None or known.links < FEW:
            return True
        if known.links >= self._most_of_one or known.silent >= self._most_silent:
            return False
        return self.links < self._most * CROWDED

    def spoke(self, source: str) -> None:
        """A connection has said what it is for."""
        self._sources[source].silent -= 1

    def leave(self, source: str, *, spoke: bool) -> None:
        """A connection is gone."""
        known = self._sources[source]
        known.links -= 1
        known.silent -= not spoke
        self.links -= 1
        if not known.links:
            del self._sources[source]
