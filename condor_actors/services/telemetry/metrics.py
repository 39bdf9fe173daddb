"""What Prometheus reads: each daemon writes its numbers when asked, the master shows those of its machine.

Off unless ``METRICS_PORT`` is set. Numbers are taken when asked for: one answer serves all requests that came
meanwhile, and at most twice a second, however many ask. Beyond loopback they are shown by HTTPS only, to those who
bring the token of ``METRICS_TOKEN_FILE``: they name users. How many connections there may be, and how long, says
:mod:`condor_actors.wire.http_room`.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import resource
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IDelayedCall, IListeningPort
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET

from condor_actors.actors import Daemon
from condor_actors.actors.turn_times import BOUNDS_S, Times
from condor_actors.config import Config
from condor_actors.daemons.measures import Measure
from condor_actors.services.telemetry.traces import SpanSender
from condor_actors.wire.http_room import BoundedSite, listen_http, tls_context
from condor_actors.written_text import read_plain

__all__ = ["DaemonCollector", "MetricsPage", "SharedAnswers", "exposition", "metrics_door", "open_metrics"]

CONNECTIONS = 128
CONNECTIONS_OF_SOURCE = 32
GAP_S = 0.5
"""Between two rounds of questions to the daemons."""
LONGEST_S = 15.0
"""How long one round may take; its answer is lost when the actor that gathers is rebuilt."""

Then = Callable[[str | None], None]


class DaemonCollector(Collector):
    """Turns what a daemon knows of itself into metrics named ``condor_*``."""

    def __init__(self, name: str, daemon: Daemon, started_s: float, spans: SpanSender | None = None) -> None:
        self._name = name
        self._spans = spans
        self._daemon = daemon
        self._started_s = started_s

    def collect(self) -> Iterator[Any]:
        """One scrape."""
        yield from self._actors()
        yield from self._edges()
        yield from self._process()
        yield from self._traces()
        measures = getattr(self._daemon, "measures", None)
        for measure in measures() if measures is not None else ():
            yield _family(measure)

    def _actors(self) -> Iterator[Any]:
        labels = ["daemon", "kind"]
        waiting = GaugeMetricFamily("condor_actor_inbox_messages", "Messages that wait for an actor", labels=labels)
        restarts = CounterMetricFamily("condor_actor_restarts", "Rebuilds after a crash", labels=labels)
        alive = GaugeMetricFamily("condor_actors", "Living actors", labels=labels)
        sums: dict[str, list[int]] = {}
        for actor in self._daemon.system.inspect():
            row = sums.setdefault(actor.kind, [0, 0, 0])
            for place, value in enumerate((actor.waiting, actor.restarts, 1)):
                row[place] += value
        families: tuple[Any, ...] = (waiting, restarts, alive)
        for kind, row in sums.items():
            for family, value in zip(families, row, strict=True):
                family.add_metric([self._name, kind], value)
        yield from families
        turns = HistogramMetricFamily("condor_turn_duration_seconds", "How long turns of actors took", labels=labels)
        by_kind: dict[str, list[Times]] = {}
        for (kind, _), times in self._daemon.system.loop.times.by_name().items():
            by_kind.setdefault(kind, []).append(times)
        for kind, group in by_kind.items():
            total, buckets = 0, []
            for index, bound in enumerate((*map(str, BOUNDS_S), "+Inf")):
                total += sum(each.classes[index] for each in group)
                buckets.append((bound, float(total)))
            turns.add_metric([self._name, kind], buckets, sum(each.total_s for each in group))
        yield turns

    def _edges(self) -> Iterator[Any]:
        slow = self._daemon.system.loop.slow
        if slow is None:
            return
        for made, name, doc, value in (
            (CounterMetricFamily, "condor_slow_edges", "Times the reactor was kept long", slow.count),
            (CounterMetricFamily, "condor_slow_edges_seconds", "How long it was kept in all", slow.total_s),
            (GaugeMetricFamily, "condor_slowest_edge_seconds", "The longest of them", slow.longest_s),
        ):
            family = made(name, doc, labels=["daemon"])
            family.add_metric([self._name], value)
            yield family

    def _traces(self) -> Iterator[Any]:
        if self._spans is None:
            return
        family = CounterMetricFamily("condor_trace_spans", "Spans of jobs' traces", labels=["daemon", "result"])
        family.add_metric([self._name, "sent"], self._spans.sent)
        family.add_metric([self._name, "lost"], self._spans.lost)
        yield family

    def _process(self) -> Iterator[Any]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        with open("/proc/self/statm", encoding="ascii") as file:
            resident = int(file.readline().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        for made, name, doc, value in (
            (CounterMetricFamily, "condor_process_cpu_seconds", "Processor time", usage.ru_utime + usage.ru_stime),
            (GaugeMetricFamily, "condor_process_resident_memory_bytes", "Resident memory", resident),
            (GaugeMetricFamily, "condor_process_open_fds", "Open descriptors", len(os.listdir("/proc/self/fd")) - 1),
            (GaugeMetricFamily, "condor_process_start_time_seconds", "When it began, since 1970", self._started_s),
        ):
            family = made(name, doc, labels=["daemon"])
            family.add_metric([self._name], value)
            yield family


def _family(measure: Measure) -> Any:
    made = CounterMetricFamily if measure.is_counter else GaugeMetricFamily
    family = made(measure.name, measure.doc, labels=list(measure.labels))
    for labels, value in measure.samples:
        family.add_metric(list(labels), value)
    return family


def exposition(name: str, daemon: Daemon, started_s: float, spans: SpanSender | None = None) -> str:
    """The metrics of a daemon, as Prometheus reads them; ``spans``: what sends its traces."""
    registry = CollectorRegistry()
    registry.register(DaemonCollector(name, daemon, started_s, spans))
    return generate_latest(registry).decode()


class SharedAnswers:
    """One round of questions at a time, for all who have asked before it began.

    Args:
        gather: asks the daemons, and calls back with what they say.
        reactor: Twisted's.
    """

    def __init__(self, gather: Callable[[Callable[[str], None]], None], reactor: Any) -> None:
        self._gather = gather
        self._reactor = reactor
        self._waiting: list[Then] = []
        self._round = 0
        self._clock: IDelayedCall | None = None

    def __call__(self, then: Then) -> None:
        """Call back with the text of the next round; None: it got no answer."""
        self._waiting.append(then)
        if self._clock is None:
            self._begin()

    def _begin(self) -> None:
        self._clock = None
        if not self._waiting:
            return
        asking, self._waiting = self._waiting, []
        self._round += 1
        number = self._round

        def answered(text: str | None) -> None:
            if number != self._round or not asking:
                return
            if self._clock is not None:
                self._clock.cancel()
            self._clock = self._reactor.callLater(GAP_S, self._begin)
            served = asking[:]
            asking.clear()
            for then in served:
                then(text)

        def overdue() -> None:
            self._clock = None
            answered(None)

        self._clock = self._reactor.callLater(LONGEST_S, overdue)
        self._gather(answered)


class MetricsPage(Resource):
    """``/metrics``: asks for all daemons, and answers."""

    isLeaf = True

    def __init__(self, gather: Callable[[Then], None], token: bytes) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # not typed in Twisted
        self._gather = gather
        self._token = token

    def render_GET(self, request: Any) -> Any:  # noqa: N802 - Twisted's name
        """One scrape."""
        given = request.getHeader(b"authorization") or b""
        if self._token and not hmac.compare_digest(given, b"Bearer " + self._token):
            request.setResponseCode(401)
            request.setHeader(b"www-authenticate", b"Bearer")
            return b"these metrics are for who brings the token of METRICS_TOKEN_FILE\n"
        gone: list[bool] = []
        request.notifyFinish().addErrback(lambda _: gone.append(True))

        def answer(text: str | None) -> None:
            if gone:
                return
            if text is None:
                request.setResponseCode(503)
                text = "the daemons were not asked in time; ask again\n"
            request.setHeader(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")
            request.write(text.encode())
            request.finish()

        self._gather(answer)
        return NOT_DONE_YET


def open_metrics(config: Config, gather: Callable[[Callable[[str], None]], None], reactor: Any) -> IListeningPort:
    """Serve ``/metrics`` of this machine.

    Raises:
        ConfigError: see `metrics_door`.
        OSError: the port is taken, or a file cannot be read.
    """
    interface, token, certificate = metrics_door(config)
    root = Resource()
    root.putChild(b"metrics", MetricsPage(SharedAnswers(gather, reactor), token))
    site = BoundedSite(root, lambda: CONNECTIONS, lambda: CONNECTIONS_OF_SOURCE, reactor)
    context = tls_context("METRICS_CERTIFICATE", certificate, certificate) if certificate else None
    try:
        listening: IListeningPort = listen_http(site, config.integer("METRICS_PORT"), interface, context, reactor)
    except CannotListenError as error:
        raise OSError(f"metrics cannot be shown: {error}") from None
    return listening


def metrics_door(config: Config) -> tuple[str, bytes, str]:
    """Where metrics are shown, the token that is asked for, and the certificate; empty: none.

    Raises:
        ConfigError: they would be shown beyond loopback without token and certificate; the interface is no address, or
            the token cannot be read.
    """
    interface, token_file = config.needed_text("METRICS_INTERFACE"), config.text("METRICS_TOKEN_FILE")
    certificate = config.text("METRICS_CERTIFICATE") or ""
    try:
        token = read_plain(token_file).strip() if token_file else b""
    except (OSError, ValueError) as error:
        raise config.unusable("METRICS_TOKEN_FILE", f"the token cannot be read: {error}", "a readable file") from None
    try:
        address = ipaddress.ip_address(interface)
    except ValueError:
        raise config.unusable("METRICS_INTERFACE", f"{interface[:200]!r} is no IP address",
                              "an IPv4 or IPv6 address of this machine") from None
    if not address.is_loopback and not (token and certificate):
        raise config.unusable("METRICS_INTERFACE",
                              "metrics name users: beyond loopback they are shown by HTTPS and with a token",
                              "127.0.0.1, or METRICS_CERTIFICATE and METRICS_TOKEN_FILE besides")
    return interface, token, certificate
