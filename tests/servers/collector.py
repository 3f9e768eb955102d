"""An OpenTelemetry collector: keeps the spans that it is sent over OTLP/HTTP."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status


@dataclass(frozen=True)
class Received:
    """A span and the service that sent it. Ids are hexadecimal; a parent is empty for none."""

    service: str
    span: Span

    @property
    def name(self) -> str:
        return self.span.name

    @property
    def trace(self) -> str:
        return self.span.trace_id.hex()

    @property
    def id(self) -> str:
        return self.span.span_id.hex()

    @property
    def parent(self) -> str:
        return self.span.parent_span_id.hex()

    @property
    def failed(self) -> bool:
        return self.span.status.code == Status.STATUS_CODE_ERROR

    @property
    def attributes(self) -> dict[str, str | int | float | bool]:
        return {one.key: _plain(one.value) for one in self.span.attributes}


def _plain(value: AnyValue) -> str | int | float | bool:
    plain: str | int | float | bool = getattr(value, str(value.WhichOneof("value")))
    return plain


@dataclass
class Collector:
    """`paths` are those that were asked for. `status` is what it answers."""

    url: str = ""
    status: int = 200
    paths: list[str] = field(default_factory=list)
    spans: list[Received] = field(default_factory=list)


@contextmanager
def collector() -> Iterator[Collector]:
    """One at a free port of loopback, in threads."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.paths.append(self.path)
            if kept.status == 200:
                for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                    told = {one.key: one.value.string_value for one in resource.resource.attributes}
                    spans = [span for scope in resource.scope_spans for span in scope.spans]
                    kept.spans += [Received(told["service.name"], span) for span in spans]
            self.send_response(kept.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    kept.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield kept
    finally:
        server.shutdown()
        server.server_close()
