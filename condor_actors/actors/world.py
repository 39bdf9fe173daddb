"""The edges of a daemon as one value.

Theory: whatever a daemon touches that is not its own memory comes in through a :class:`World`.  ``services/`` builds
the real one, tests and the simulation theirs; a daemon never imports a reactor, opens a file by a global, or reads
the clock.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from condor_actors.actors.post import NoPost, Post
from condor_actors.actors.supervision import exit_process
from condor_actors.actors.system import ActorSystem
from condor_actors.actors.witness import Witness
from condor_actors.messages.envelope import Identity, Level

if TYPE_CHECKING:
    from condor_actors.classads import ClassAd
    from condor_actors.config import Config


def make_secret() -> str:
    """128 bits that nobody can guess, in hexadecimal."""
    return secrets.token_hex(16)


def trust_everybody(identity: Identity, level: Level) -> bool:
    """The authorisation of unit tests and of processes that nobody can reach."""
    return True


def leave_it() -> None:
    """The collector goes on as always."""


@attrs.frozen(kw_only=True)
class World:
    """The edges of a daemon.

    Attributes:
        reactor_time: timers.
        wall_clock: seconds since 1970, for ads, logs and stored dates.
        random: the only source of chance.
        new_secret: 128 bits that nobody can guess, in hexadecimal.
        stopwatch: seconds, for how long a decision took.
        uid, pid: as whom the process runs, and its number.
        post: the network.
        log: where notes go.
        authorize: whether an identity has a level.
        witness: sees what becomes of the messages of others; None: nobody does.
        tell_span: takes the spans of jobs' traces; None: there are none.
        exhausted: called with the name of an actor that crashed too often; ends the process.
        set_aside: has Python's cyclic collector pass over all that is there now, which will stay for long.
        processes, readings, stores, blobs, mail, host, programs, power: providers of floor 3, each with the Protocol of
            its package; None where a daemon does not need it.
    """

    reactor_time: IReactorTime
    wall_clock: Callable[[], float] = time.time
    random: Random = attrs.field(factory=Random)
    new_secret: Callable[[], str] = make_secret
    stopwatch: Callable[[], float] = time.perf_counter
    uid: int = attrs.field(factory=os.getuid)
    pid: int = attrs.field(factory=os.getpid)
    post: Post = attrs.field(factory=NoPost)
    log: Logger = attrs.field(factory=lambda: Logger("condor"))
    authorize: Callable[[Identity, Level], bool] = trust_everybody
    witness: Witness | None = None
    tell_span: Callable[[Any], None] | None = None
    set_aside: Callable[[], None] = leave_it
    exhausted: Callable[[str], None] = exit_process
    processes: Any = None
    readings: Any = None
    stores: Any = None
    blobs: Any = None
    mail: Any = None
    host: Any = None
    programs: Any = None
    power: Any = None

    def make_system(self, *, commit: Callable[[Sequence[Any]], None] | None = None,
                    encode_every: int = 0) -> ActorSystem:
        """An actor system on these edges.

        Args:
            commit: makes a batch of persisted operations durable, all or none; None when nothing is persisted.
            encode_every: one local message in so many goes through the codec (tests); 0: none.
        """
        return ActorSystem(
            clock=self.reactor_time, wall_clock=self.wall_clock, post=self.post, authorize=self.authorize,
            commit=commit, random=self.random, log=self.log, exhausted=self.exhausted, encode_every=encode_every,
            witness=self.witness,
        )


class Daemon(Protocol):
    """What ``make_daemon(config, world)`` of every module in ``daemons/`` returns.

    One that has jobs to let finish (``condor_off -peaceful``) also has ``rest_peacefully(done)``: it begins nothing
    new, goes on until what runs has finished, however long that takes, and then calls ``done``.
    """

    system: ActorSystem
    name: str

    def start(self) -> None:
        """Spawn the actors; called once the process listens."""

    def stop(self, graceful: bool) -> Deferred[None]:
        """Come to rest; the Deferred fires when the process may end."""

    def reconfigure(self, config: Config) -> None:
        """Take a new configuration that was already validated."""

    def ad(self) -> ClassAd:
        """The daemon's own ad."""
