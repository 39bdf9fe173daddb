"""DAEMON_SHUTDOWN and DAEMON_SHUTDOWN_FAST: a daemon that stops itself once an expression over its ad is true."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall

from condor_actors.actors import Daemon
from condor_actors.classads import is_true
from condor_actors.config import Config

__all__ = ["NOT_AGAIN", "ShutdownExpression"]

NOT_AGAIN = 99
"""The exit status by which a daemon tells its master not to start it again."""

WISHES = (("DAEMON_SHUTDOWN_FAST", "fast"), ("DAEMON_SHUTDOWN", "graceful"))


class ShutdownExpression:
    """Looks at the expressions from time to time.

    Args:
        config: the configuration in force.
        daemon: whose ad they are about.
        stop: called once, with how.
    """

    def __init__(self, config: Callable[[], Config], daemon: Daemon, stop: Callable[[str], None]) -> None:
        self._config = config
        self._daemon = daemon
        self._stop = stop
        self._checking = LoopingCall(self.check)

    def start(self, clock: IReactorTime) -> None:
        """Check now and every UPDATE_INTERVAL; nothing is done while neither expression is set."""
        self._checking.clock = clock
        self._checking.start(self._config().integer("UPDATE_INTERVAL"), now=False)

    def check(self) -> None:
        """Stop the daemon when one of its wishes has come true."""
        for name, how in WISHES:
            wish = self._config().expression(name)
            if wish is not None and is_true(wish.evaluate(self._daemon.ad())):
                self.end()
                self._stop(how)
                return

    def end(self) -> None:
        """Look no more."""
        if self._checking.running:
            self._checking.stop()
