"""The pool for asyncio: every question is awaited, and runs in a thread of the loop's own.

Use::

    schedd = condor.aio.Schedd()
    submitted = await schedd.submit({"executable": "/bin/sleep", "arguments": "10", "log": "job.log"})
    async for event in condor.JobEventLog("job.log"):
        ...

A question that is cancelled is not waited for any more; what it asked may still be done.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from condor_actors.api import collector, credd, negotiator, schedd, startd
from condor_actors.api.event_log import JobEventLog

_P = ParamSpec("_P")
_T = TypeVar("_T")

__all__ = ["Collector", "Credd", "JobEventLog", "Negotiator", "Schedd", "Startd"]


def awaited(method: Callable[Concatenate[Any, _P], _T]) -> Callable[Concatenate[Any, _P], Coroutine[Any, Any, _T]]:
    """A method that asks and waits, as a coroutine method of a face."""

    @functools.wraps(method)
    async def ask(self: Any, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return await asyncio.to_thread(method, self.blocking, *args, **kwargs)

    return ask


class Schedd:
    """`condor_actors.api.schedd.Schedd`, awaited.

    Attributes:
        blocking: the one that waits.
    """

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self.blocking = schedd.Schedd(name, pool=pool, address=address)

    submit = awaited(schedd.Schedd.submit)
    spool = awaited(schedd.Schedd.spool)
    retrieve = awaited(schedd.Schedd.retrieve)
    query = awaited(schedd.Schedd.query)
    history = awaited(schedd.Schedd.history)
    epochs = awaited(schedd.Schedd.epochs)
    transfers = awaited(schedd.Schedd.transfers)
    daemon_history = awaited(schedd.Schedd.daemon_history)
    autoclusters = awaited(schedd.Schedd.autoclusters)
    act = awaited(schedd.Schedd.act)
    remove = awaited(schedd.Schedd.remove)
    hold = awaited(schedd.Schedd.hold)
    release = awaited(schedd.Schedd.release)
    edit = awaited(schedd.Schedd.edit)
    reschedule = awaited(schedd.Schedd.reschedule)


class Collector:
    """`condor_actors.api.collector.Collector`, awaited."""

    def __init__(self, pool: str = "") -> None:
        self.blocking = collector.Collector(pool)

    query = awaited(collector.Collector.query)
    locate = awaited(collector.Collector.locate)
    advertise = awaited(collector.Collector.advertise)


class Negotiator:
    """`condor_actors.api.negotiator.Negotiator`, awaited."""

    def __init__(self, name: str = "", *, pool: str = "") -> None:
        self.blocking = negotiator.Negotiator(name, pool=pool)

    priorities = awaited(negotiator.Negotiator.priorities)
    resources = awaited(negotiator.Negotiator.resources)
    set = awaited(negotiator.Negotiator.set)
    reset = awaited(negotiator.Negotiator.reset)
    reset_all = awaited(negotiator.Negotiator.reset_all)
    delete = awaited(negotiator.Negotiator.delete)


class Startd:
    """`condor_actors.api.startd.Startd`, awaited."""

    def __init__(self, name: str = "", *, pool: str = "", address: str = "") -> None:
        self.blocking = startd.Startd(name, pool=pool, address=address)

    drain = awaited(startd.Startd.drain)
    cancel_drain = awaited(startd.Startd.cancel_drain)
    vacate = awaited(startd.Startd.vacate)
    history = awaited(startd.Startd.history)


class Credd:
    """`condor_actors.api.credd.Credd`, awaited."""

    def __init__(self, address: str = "") -> None:
        self.blocking = credd.Credd(address)

    store = awaited(credd.Credd.store)
    delete = awaited(credd.Credd.delete)
    credentials = awaited(credd.Credd.credentials)
    check = awaited(credd.Credd.check)
    token = awaited(credd.Credd.token)
