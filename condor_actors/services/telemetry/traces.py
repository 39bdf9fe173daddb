"""Spans of jobs' traces go to an OpenTelemetry collector, by OTLP over HTTP.

Off unless ``TRACES_ENDPOINT`` is set; needs the packages of ``condor-actors[traces]``.  ``TRACES_SAMPLE`` is the share
of jobs that are traced: whether one is follows from its trace's number, so all daemons choose the same ones.

Theory: a trace is a help, and no job waits for it.  A daemon's thread puts a span into a bounded queue, which costs
microseconds, and another thread encodes and sends what has gathered.  What finds the queue full, or is not taken by the
collector within the library's own attempts, is lost and counted.  The queue ends with its process: what waits is sent
for :data:`END_S` at most.
"""

from __future__ import annotations

import importlib
import logging
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger

from condor_actors.config import Config
from condor_actors.cores.trace_spans import Span

__all__ = ["SpanSender", "span_sender"]

GATHER_S = 1.0
"""How long spans gather before they are sent."""
BATCH = 512
SEND_S = 10.0
"""How long the library tries to bring a batch to the collector."""
END_S = 3.0
LAST_S = 9e9
"""The last time that is sent, since 1970; later ones would not fit into a span."""
WARN_S = 60.0
"""Between two lines of the log about lost spans."""
_DIRECTORY = "opentelemetry"


def span_sender(config: Config, name: str, reactor: Any) -> SpanSender | None:
    """What sends a daemon's spans; None: none are wanted.

    Args:
        config: of the daemon.
        name: its service's.
        reactor: Twisted's.

    Raises:
        ConfigError: TRACES_ENDPOINT is no address of HTTP, or the library is missing.
    """
    endpoint = (config.text("TRACES_ENDPOINT") or "").strip()
    if not endpoint:
        return None
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise config.unusable("TRACES_ENDPOINT", f"{endpoint[:200]!r} is no address of HTTP",
                              "such as http://127.0.0.1:4318/v1/traces")
    try:
        exporter = _exporter(endpoint)
    except ImportError as error:
        if name == "shadow-host":  # its owner may not read where the library lies
            Logger("condor").warn("traces of jobs lack this process: {error}", error=error)
            return None
        raise config.unusable("TRACES_ENDPOINT", f"traces need OpenTelemetry, which is not installed ({error})",
                              "pip install 'condor-actors[traces]', or no TRACES_ENDPOINT") from None
    return SpanSender(exporter, _Encoder(f"condor-{name}", config.full_hostname), config.integer("TRACES_QUEUE"),
                      config.real("TRACES_SAMPLE"), reactor)


def _exporter(endpoint: str) -> Any:
    """The library's: no proxy, no netrc and no variable of the account has a say."""
    logger = logging.getLogger(_DIRECTORY)
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    session = importlib.import_module("requests").Session()
    session.trust_env = False
    library = importlib.import_module(f"{_DIRECTORY}.exporter.otlp.proto.http.trace_exporter")
    return library.OTLPSpanExporter(endpoint=endpoint, headers={}, timeout=SEND_S, session=session)


def _sendable(text: str) -> str:
    """A text that users may have written, in letters that can be sent: one that cannot would cost its whole batch."""
    return text.encode(errors="replace").decode()


def _nanoseconds(time_s: float) -> int:
    """A time since 1970, likewise."""
    return int(min(time_s, LAST_S) * 1e9) if time_s > 0 else 0  # what is no number is 0, too


class _Encoder:
    """Makes the library's spans of ours."""

    def __init__(self, service: str, host: str) -> None:
        self._api = importlib.import_module(f"{_DIRECTORY}.trace")
        self._sdk = importlib.import_module(f"{_DIRECTORY}.sdk.trace")
        resources = importlib.import_module(f"{_DIRECTORY}.sdk.resources")
        scopes = importlib.import_module(f"{_DIRECTORY}.sdk.util.instrumentation")
        self._resource = resources.Resource({"service.name": service, "service.namespace": "condor", "host.name": host})
        self._scope = scopes.InstrumentationScope("condor_actors")

    def __call__(self, span: Span) -> Any:
        codes, of = self._api.StatusCode, self._context
        status = self._api.Status(codes.ERROR, _sendable(span.failure)) if span.failure else \
            self._api.Status(codes.UNSET)
        facts = {name: _sendable(value) if isinstance(value, str) else value for name, value in span.facts.items()}
        return self._sdk.ReadableSpan(
            name=span.name, context=of(span.trace, span.number),
            parent=of(span.trace, span.parent) if span.parent else None, resource=self._resource,
            attributes=facts, status=status, start_time=_nanoseconds(span.begin_s),
            end_time=_nanoseconds(span.end_s), instrumentation_scope=self._scope)

    def _context(self, trace: int, number: int) -> Any:
        return self._api.SpanContext(trace, number, is_remote=False,
                                     trace_flags=self._api.TraceFlags(self._api.TraceFlags.SAMPLED))


class SpanSender:
    """Takes spans on the reactor's thread, and sends them on another.

    Args:
        exporter: sends a list of the library's spans (a ``SpanExporter``).
        encode: makes one of these.
        most: spans that may wait.
        share: of the jobs that are traced, from 0 to 1.
        reactor: Twisted's.

    Attributes:
        sent, lost: spans, since the process began.
    """

    def __init__(self, exporter: Any, encode: Any, most: int, share: float, reactor: Any) -> None:
        self._exporter = exporter
        self._encode = encode
        self._most = most
        self._below = int(share * (1 << 64))
        self._reactor = reactor
        self._waiting: deque[Span] = deque()
        self._wanted = threading.Event()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._over: Deferred[None] | None = None
        self._warned_s = 0.0
        self._told = 0
        self._log = Logger("condor")
        self.sent = self.lost = 0

    def __call__(self, span: Span) -> None:
        """Take a span; on the reactor's thread."""
        if (span.trace & 0xFFFF_FFFF_FFFF_FFFF) >= self._below:
            return
        if len(self._waiting) >= self._most or self._ending.is_set():
            self._lose(1)
            return
        self._waiting.append(span)
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._send_all, name="traces", daemon=True)
            self._thread.start()

    def close(self) -> Deferred[None]:
        """Send what waits; comes back when it is sent, or after :data:`END_S`."""
        self._ending.set()
        self._wanted.set()
        if self._thread is None or not self._thread.is_alive():
            return succeed(None)
        self._warned_s = 0.0
        over: Deferred[None] = Deferred()
        self._over = over
        over.addTimeout(END_S, self._reactor)
        over.addErrback(lambda _: None)
        return over

    # ---- on the other thread

    def _send_all(self) -> None:
        while not (self._ending.is_set() and not self._waiting):
            self._wanted.wait()
            self._wanted.clear()
            self._ending.wait(GATHER_S)
            while self._waiting:
                batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
                self._call(self._done, len(batch), self._send(batch))
        self._call(self._ended)

    def _send(self, batch: Sequence[Span]) -> bool:
        try:
            result = self._exporter.export([self._encode(span) for span in batch])
        except Exception as error:  # noqa: BLE001 - a library's, and no trace is worth a thread
            self._call(self._log.warn, "spans cannot be sent: {error}", error=error)
            return False
        return bool(result.name == "SUCCESS")

    def _call(self, function: Any, *arguments: Any, **named: Any) -> None:
        self._reactor.callFromThread(function, *arguments, **named)

    # ---- on the reactor's thread again

    def _done(self, count: int, taken: bool) -> None:
        if taken:
            self.sent += count
        else:
            self._lose(count)

    def _lose(self, count: int) -> None:
        self.lost += count
        now_s = self._reactor.seconds()
        if now_s >= self._warned_s + WARN_S or not self._warned_s:
            self._warned_s = now_s
            self._log.warn("{count} spans of traces are lost, {all} so far: the collector of TRACES_ENDPOINT does not "
                           "take them, or not fast enough for TRACES_QUEUE", count=self.lost - self._told,
                           all=self.lost)
            self._told = self.lost

    def _ended(self) -> None:
        over, self._over = self._over, None
        if over is not None and not over.called:
            over.callback(None)
