"""The pool for Twisted: every question is a Deferred, and runs in a thread of the reactor's pool.

Use::

    schedd = condor.tx.Schedd()
    submitted = await schedd.submit({"executable": "/bin/sleep", "arguments": "10", "log": "job.log"})
    log = condor.tx.JobEventLog("job.log")
    event = await log.next()
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

from twisted.internet import error
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorFDSet, IReactorTime, IReadDescriptor
from twisted.internet.threads import deferToThread
from twisted.python.failure import Failure
from zope.interface import implementer

from condor_actors.api import collector, credd, event_log, negotiator, schedd, startd
from condor_actors.api.event_log import JobEvent
from condor_actors.userlog.watch import FALLBACK_S

_P = ParamSpec("_P")
_T = TypeVar("_T")

__all__ = ["Collector", "Credd", "JobEventLog", "Negotiator", "Schedd", "Startd"]


def deferred(method: Callable[Concatenate[Any, _P], _T]) -> Callable[Concatenate[Any, _P], Deferred[_T]]:
    """A method that asks and waits, as one of a face that gives a Deferred."""

    @functools.wraps(method)
    def ask(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> Deferred[_T]:
        return deferToThread(method, self.blocking, *args, **kwargs)

    return ask


@implementer(IReadDescriptor)
class JobEventLog:
    """Follows a job event log in the reactor.

    Args:
        path: the log; it must exist.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._log = event_log.JobEventLog(path)
        self._waiting: Deferred[JobEvent] | None = None

    def next(self) -> Deferred[JobEvent]:
        """The next event, when it has come; one is asked for at a time, and may be cancelled."""
        if self._waiting is not None:
            raise RuntimeError("the event that was asked for before has not come yet")
        self._waiting = Deferred(self._cancelled)
        waiting = self._waiting
        if self._log.fileno() is None:
            self._look_again()
        else:
            _descriptors().addReader(self)
            self.doRead()
        return waiting

    def doRead(self) -> None:
        """The log may have grown."""
        self._log.forget()
        event = self._log.take()
        if event is not None:
            self._done().callback(event)

    def _look_again(self) -> None:
        """Where the kernel has no watch to give."""
        if self._waiting is not None:
            event = self._log.take()
            if event is not None:
                self._done().callback(event)
            else:
                cast(IReactorTime, _descriptors()).callLater(FALLBACK_S, self._look_again)

    def _done(self) -> Deferred[JobEvent]:
        waiting, self._waiting = self._waiting, None
        assert waiting is not None
        if self._log.fileno() is not None:
            _descriptors().removeReader(self)
        return waiting

    def _cancelled(self, _: Deferred[JobEvent]) -> None:
        self._done()

    def close(self) -> None:
        """End it; an event that is waited for does not come."""
        if self._waiting is not None:
            self._done().errback(Failure(error.ConnectionDone("the log was closed")))
        self._log.close()

    def fileno(self) -> int:
        """The descriptor that the reactor watches."""
        descriptor = self._log.fileno()
        return -1 if descriptor is None else descriptor

    def connectionLost(self, reason: Failure) -> None:
        """The reactor ends."""

    def logPrefix(self) -> str:
        """For the reactor's log."""
        return "JobEventLog"


def _descriptors() -> IReactorFDSet:
    from twisted.internet import reactor

    return cast(IReactorFDSet, reactor)


class Schedd:
    """`condor_actors.api.schedd.Schedd`, deferred.

    Attributes:
        blocking: the one that waits.
    """

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self.blocking = schedd.Schedd(name, pool=pool, address=address)

    submit = deferred(schedd.Schedd.submit)
    spool = deferred(schedd.Schedd.spool)
    retrieve = deferred(schedd.Schedd.retrieve)
    query = deferred(schedd.Schedd.query)
    history = deferred(schedd.Schedd.history)
    epochs = deferred(schedd.Schedd.epochs)
    transfers = deferred(schedd.Schedd.transfers)
    daemon_history = deferred(schedd.Schedd.daemon_history)
    autoclusters = deferred(schedd.Schedd.autoclusters)
    act = deferred(schedd.Schedd.act)
    remove = deferred(schedd.Schedd.remove)
    hold = deferred(schedd.Schedd.hold)
    release = deferred(schedd.Schedd.release)
    edit = deferred(schedd.Schedd.edit)
    reschedule = deferred(schedd.Schedd.reschedule)


class Collector:
    """`condor_actors.api.collector.Collector`, deferred."""

    def __init__(self, pool: str = "") -> None:
        self.blocking = collector.Collector(pool)

    query = deferred(collector.Collector.query)
    locate = deferred(collector.Collector.locate)
    advertise = deferred(collector.Collector.advertise)


class Negotiator:
    """`condor_actors.api.negotiator.Negotiator`, deferred."""

    def __init__(self, name: str = "", *, pool: str = "") -> None:
        self.blocking = negotiator.Negotiator(name, pool=pool)

    priorities = deferred(negotiator.Negotiator.priorities)
    resources = deferred(negotiator.Negotiator.resources)
    set = deferred(negotiator.Negotiator.set)
    reset = deferred(negotiator.Negotiator.reset)
    reset_all = deferred(negotiator.Negotiator.reset_all)
    delete = deferred(negotiator.Negotiator.delete)


class Startd:
    """`condor_actors.api.startd.Startd`, deferred."""

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self.blocking = startd.Startd(name, pool=pool, address=address)

    drain = deferred(startd.Startd.drain)
    cancel_drain = deferred(startd.Startd.cancel_drain)
    vacate = deferred(startd.Startd.vacate)
    history = deferred(startd.Startd.history)


class Credd:
    """`condor_actors.api.credd.Credd`, deferred."""

    def __init__(self, address: str = "") -> None:
        self.blocking = credd.Credd(address)

    store = deferred(credd.Credd.store)
    delete = deferred(credd.Credd.delete)
    credentials = deferred(credd.Credd.credentials)
    check = deferred(credd.Credd.check)
    token = deferred(credd.Credd.token)
