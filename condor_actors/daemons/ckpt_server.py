"""The checkpoint server: keeps checkpoints of standard-universe jobs, so that submit machines need no room for them.

Theory: it takes, gives and forgets (:mod:`condor_actors.machine.standard.checkpoint_keeping`) and decides nothing.
Who a shadow is its certificate says; what nobody has used within CKPT_SERVER_LEASE goes, and no owner has more than
his quota.
"""

from __future__ import annotations

import os

from twisted.internet.defer import Deferred, succeed

from condor_actors.actors import Actor, World
from condor_actors.classads import ClassAd
from condor_actors.config import Config
from condor_actors.machine.standard.checkpoint_keeping import CHECKPOINT_LINE, CheckpointArchive, ServerEnd
from condor_actors.messages.envelope import Delivery, Identity, TimerFired

__all__ = ["CHECKPOINT_LINE", "CheckpointServer", "make_daemon"]

SWEEP_S = 3600.0


class _Sweeper(Actor):
    """Removes what nobody has used for long."""

    def __init__(self, server: CheckpointServer) -> None:
        self._server = server

    def started(self) -> None:
        """Now, and every hour."""
        self._sweep()

    def receive(self, delivery: Delivery) -> None:
        """An hour is over."""
        if isinstance(delivery.message, TimerFired):
            self._sweep()

    def _sweep(self) -> None:
        gone = self._server.archive.sweep(self.context.now_s())
        if gone:
            self.context.log.info("the checkpoints of {count} jobs are gone: nobody has used them", count=gone)
        self.context.set_timer("sweep", min(SWEEP_S, self._server.archive.lease_s))


class CheckpointServer:
    """The daemon; see ``Daemon``.

    Args:
        config, world: as for every daemon.

    Raises:
        OSError: CKPT_SERVER_DIR cannot be made.
    """

    name = "ckpt_server"

    def __init__(self, config: Config, world: World) -> None:
        self._world = world
        self.system = world.make_system()
        folder = config.path("CKPT_SERVER_DIR")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.archive = CheckpointArchive(folder, lease_s=0.0)
        self.reconfigure(config)

    def stream(self, identity: Identity) -> ServerEnd:
        """A peer's stream."""
        owner = identity.name if not identity.host else f"{identity.name} {identity.host}"
        return ServerEnd(self._world.reactor_time, self.archive, owner,
                         lambda text: self._world.log.info("{text}", text=text))

    # ---- Daemon

    def start(self) -> None:
        """Sweep, now and then."""
        self.system.spawn("sweeper", lambda: _Sweeper(self))

    def stop(self, graceful: bool) -> Deferred[None]:
        """Nothing is under way that cannot be begun anew."""
        return succeed(None)

    def reconfigure(self, config: Config) -> None:
        """Lease and quotas."""
        self.archive.lease_s = config.seconds("CKPT_SERVER_LEASE")
        self.archive.quota_bytes = config.integer("CKPT_SERVER_QUOTA") << 20
        self.archive.total_bytes = config.integer("CKPT_SERVER_SIZE") << 20

    def ad(self) -> ClassAd:
        """For ``condor_ping`` and its like."""
        return ClassAd({"MyType": "CkptServer", "Name": "ckpt_server", "MyAddress": self._world.post.public_node})


def make_daemon(config: Config, world: World) -> CheckpointServer:
    """The checkpoint server, not started.

    Raises:
        OSError: its folder cannot be made.
    """
    return CheckpointServer(config, world)
