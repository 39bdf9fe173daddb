"""What Prometheus reads: the actors of a daemon and the numbers of its own ad, on a port of loopback.

Off unless ``METRICS_PORT`` is set.  Numbers are taken when asked for; nothing is counted in advance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector
from prometheus_client.twisted import MetricsResource
from twisted.internet.interfaces import IListeningPort
from twisted.web.resource import Resource
from twisted.web.server import Site

from condor_actors.actors import Daemon


class DaemonCollector(Collector):
    """Turns ``system.inspect()`` and the daemon's ad into metrics named ``condor_*``."""

    def __init__(self, name: str, daemon: Daemon) -> None:
        self._name = name
        self._daemon = daemon

    def collect(self) -> Iterator[Any]:
        """One scrape."""
        waiting = GaugeMetricFamily("condor_actor_inbox", "Messages waiting", labels=["daemon", "kind"])
        turns = CounterMetricFamily("condor_actor_turns", "Turns taken", labels=["daemon", "kind"])
        restarts = CounterMetricFamily("condor_actor_restarts", "Rebuilds after a crash", labels=["daemon", "kind"])
        alive = GaugeMetricFamily("condor_actors", "Living actors", labels=["daemon", "kind"])
        sums: dict[str, list[int]] = {}
        for actor in self._daemon.system.inspect():
            row = sums.setdefault(actor.kind, [0, 0, 0, 0])
            for place, value in enumerate((actor.waiting, actor.turns, actor.restarts, 1)):
                row[place] += value
        families: tuple[Any, ...] = (waiting, turns, restarts, alive)
        for kind, row in sums.items():
            for family, value in zip(families, row, strict=True):
                family.add_metric([self._name, kind], value)
        yield from families
        slow = self._daemon.system.loop.slow
        if slow is not None:
            count = CounterMetricFamily("condor_slow_edges", "Times the reactor was kept long", labels=["daemon"])
            count.add_metric([self._name], slow.count)
            spent = CounterMetricFamily("condor_slow_edges_seconds", "How long in all", labels=["daemon"])
            spent.add_metric([self._name], slow.total_s)
            longest = GaugeMetricFamily("condor_slowest_edge_seconds", "The longest of them", labels=["daemon"])
            longest.add_metric([self._name], slow.longest_s)
            yield from (count, spent, longest)
        numbers = GaugeMetricFamily("condor_ad", "Numbers of the daemon's own ad", labels=["daemon", "attribute"])
        ad = self._daemon.ad()
        for attribute in ad:
            value = ad.evaluate(attribute)
            if isinstance(value, int | float):
                numbers.add_metric([self._name, attribute], float(value))
        yield numbers


def open_metrics(port: int, name: str, daemon: Daemon, reactor: Any) -> IListeningPort:
    """Serve ``/metrics`` on a port of loopback.

    Raises:
        twisted.internet.error.CannotListenError: the port is taken.
    """
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    registry.register(DaemonCollector(name, daemon))
    resource: Any = MetricsResource  # untyped, like the site
    root = Resource()
    root.putChild(b"metrics", resource(registry))
    listening: IListeningPort = reactor.listenTCP(port, Site(root), interface="127.0.0.1")
    return listening
