"""A small receiver of OpenTelemetry traces: OTLP over HTTP, decoded by OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import http.server
import threading
from typing import Any

import attrs
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

__all__ = ["OtlpReceiver", "Received"]


@attrs.frozen
class Received:
    """A span that came.

    Attributes:
        service: who told it.
        trace, number, parent: in hexadecimal; parent empty: none.
        facts: its attributes.
        failure: the message of its status when that is an error.
    """

    service: str
    trace: str
    number: str
    parent: str
    name: str
    begin_s: float
    end_s: float
    facts: dict[str, Any]
    failure: str


def _value(given: Any) -> Any:
    return getattr(given, given.WhichOneof("value"))


def _facts(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


class OtlpReceiver:
    """Takes spans until it is told to refuse them.

    Attributes:
        spans: what came, in the order in which it came.
        refusal: an HTTP status that is answered instead; 0: none.
    """

    def __init__(self) -> None:
        self.spans: list[Received] = []
        self.refusal = 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:  # noqa: N802 - the base class's name
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                status = receiver.refusal or (200 if self.path == "/v1/traces" else 404)
                if status == 200:
                    receiver.take(body)
                self.send_response(status)
                self.send_header("Content-Type", "application/x-protobuf")
                self.end_headers()
                self.wfile.write(ExportTraceServiceResponse().SerializeToString())

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}/v1/traces"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def take(self, body: bytes) -> None:
        """Decode a request."""
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            service = _facts(resource.resource.attributes)["service.name"]
            for scope in resource.scope_spans:
                self.spans += [Received(
                    service, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), span.name,
                    span.start_time_unix_nano / 1e9, span.end_time_unix_nano / 1e9, _facts(span.attributes),
                    span.status.message if span.status.code == span.status.STATUS_CODE_ERROR else "")
                    for span in scope.spans]

    def of_trace(self, trace: str) -> list[Received]:
        """The spans of one trace."""
        return [span for span in self.spans if span.trace == trace]

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
