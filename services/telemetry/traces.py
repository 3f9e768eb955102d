"""Traces of jobs for OpenTelemetry, sent over OTLP/HTTP. Off unless TOUCHSTONE_TRACES_URL is set.

The trace of a job has the job's id, and the spans that others are under have ids computed from what they are about. So
every service adds to the same trace, and after a crash too, although none passes a context on to the next.

No span has a prompt, an answer, or the name of a user, nor a reason of a failure, which may quote one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import services
from services import environment
from services.errors import InvalidRequestError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Link, Span, SpanContext

log = logging.getLogger(__name__)

Attributes = Mapping[str, str | int | float | bool]

INTERNAL, SERVER, CLIENT, CONSUMER = "INTERNAL", "SERVER", "CLIENT", "CONSUMER"
"""Kinds of spans."""
WHOLE = ""
"""As `own` and `under` of `add`: the span of a whole attempt."""
_URL, _SHARE = "TOUCHSTONE_TRACES_URL", "TOUCHSTONE_TRACED_CALLS"
_PATH = "/v1/traces"
_CALLS = 0.01
_EVERY_MS, _EXPORT_S, _END_S = 1000, 5.0, 3.0
_MOST_WAITING = 8192
"""Spans. While the collector is away, the oldest are dropped."""
_NS = 1_000_000_000
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-[0-9a-f]{2}(-.*)?")


@dataclass(frozen=True, slots=True)
class Settings:
    """`url` is where spans are sent, empty for nowhere; `calls` is the share of provider calls that have a span."""

    url: str = ""
    calls: float = _CALLS

    @classmethod
    def from_env(cls) -> Settings:
        """A URL without a path gets the usual one. Raises InvalidRequestError for an invalid value."""
        given = environment.url(_URL, "", ("http", "https"))
        if "," in given:
            raise InvalidRequestError(f"{_URL} must be one URL, such as http://127.0.0.1:4318.")
        bare = given and not urlsplit(given).path.strip("/")
        return cls(given.rstrip("/") + _PATH if bare else given, environment.number(_SHARE, _CALLS, 0, 1))


class _Sender:
    """Makes spans with the ids that it is given, and hands them to the SDK, which sends them from a thread."""

    def __init__(self, service: str, settings: Settings) -> None:
        try:
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
            from opentelemetry.sdk.trace.sampling import ALWAYS_ON
        except ImportError as error:
            raise InvalidRequestError(
                f"{_URL} needs the packages of OpenTelemetry. Install those of requirements/image.txt, or clear it."
            ) from error

        class Given(IdGenerator):
            """The next ids, if they are given."""

            def __init__(self) -> None:
                self.span = self.trace = 0
                self._any = RandomIdGenerator()

            def generate_span_id(self) -> int:
                return self.span or self._any.generate_span_id()

            def generate_trace_id(self) -> int:
                return self.trace or self._any.generate_trace_id()

        self._api = trace
        self._ids = Given()
        self.calls = settings.calls
        made = {"service.name": f"touchstone-{service}", "service.version": services.__version__}
        self.provider: TracerProvider = TracerProvider(
            ALWAYS_ON, Resource.create(made), shutdown_on_exit=False, id_generator=self._ids
        )
        exporter = OTLPSpanExporter(settings.url, timeout=_EXPORT_S)
        self.provider.add_span_processor(BatchSpanProcessor(exporter, _MOST_WAITING, _EVERY_MS))
        self._tracer = self.provider.get_tracer("touchstone", services.__version__)

    def begin(
        self, name: str, ids: tuple[int, int, int], began_s: float, kind: str, attributes: Attributes, caller: str
    ) -> Span:
        """`ids` are of the trace, of the span (0 for any) and of its parent (0 for none)."""
        api = self._api
        self._ids.trace, self._ids.span, parent_id = ids
        above = api.NonRecordingSpan(self._context(self._ids.trace, parent_id)) if parent_id else api.INVALID_SPAN
        return self._tracer.start_span(
            name,
            api.set_span_in_context(above),
            api.SpanKind[kind],
            attributes,
            self._links(caller),
            int(began_s * _NS),
        )

    def end(self, span: Span, ended_s: float, failed: str) -> None:
        if failed:
            span.set_status(self._api.StatusCode.ERROR, failed)
        span.end(int(ended_s * _NS))

    def _context(self, trace_id: int, span_id: int) -> SpanContext:
        return self._api.SpanContext(trace_id, span_id, True, self._api.TraceFlags(self._api.TraceFlags.SAMPLED))

    def _links(self, caller: str) -> list[Link]:
        found = _TRACEPARENT.fullmatch(caller)
        return [self._api.Link(self._context(int(found[1], 16), int(found[2], 16)))] if found else []


_sender: _Sender | None = None


def on() -> bool:
    """Whether spans are sent. Ask before anything is worked out for one."""
    return _sender is not None


def chosen(job_id: str, task: str, position: int, repeat: int) -> bool:
    """Whether the calls of an item have spans: always the same ones."""
    if _sender is None or not _sender.calls:
        return False
    return _number_of(f"{job_id}/{task}/{position}/{repeat}") < _sender.calls * 2**64


def unit(number: int, delivery: int) -> str:
    """What the span of a unit is about, as `own` and `under` of `add`."""
    return f"unit/{number}/{delivery}"


def add(
    name: str,
    job_id: str,
    attempt: int,
    began_s: float,
    ended_s: float,
    attributes: Attributes,
    *,
    own: str | None = None,
    under: str | None = WHOLE,
    kind: str = INTERNAL,
    failed: str = "",
    caller: str = "",
) -> None:
    """Sends a span of a job's attempt. Times are seconds since 1970.

    Others can be under it if `own` says what it is about. `under` is the same of the span that it is under itself, by
    default that of the attempt; None for no span. `failed` is in a word how it failed, empty if it did not. `caller`
    is a request's header traceparent, whose span it is linked to.
    """
    if _sender is None or not (trace_id := _trace_of(job_id)):
        return
    ids = [0 if what is None else _span_of(job_id, attempt, what) for what in (own, under)]
    try:
        span = _sender.begin(name, (trace_id, ids[0], ids[1]), began_s, kind, attributes, caller)
        _sender.end(span, max(began_s, ended_s), failed)
    except Exception as error:  # A trace must never stop a job.
        log.warning("a span of %s was not sent: %s", name, error or type(error).__name__)


@asynccontextmanager
async def spanning(
    name: str, job_id: str, attempt: int, attributes: Attributes, *, own: str | None = None, kind: str = INTERNAL
) -> AsyncIterator[None]:
    """A span from the beginning of the context to its end, as of `add`. It failed if the context ends with an error,
    or is left before its end."""
    began, failed = time.time(), "stopped"
    try:
        yield
        failed = ""
    except Exception as error:
        failed = type(error).__name__
        raise
    finally:
        add(name, job_id, attempt, began, time.time(), attributes, own=own, kind=kind, failed=failed)


def _trace_of(job_id: str) -> int:
    """0 for what is not the id of a job."""
    try:
        return int(job_id.replace("-", ""), 16) % 2**128
    except ValueError:
        return 0


def _span_of(job_id: str, attempt: int, what: str) -> int:
    return _number_of(f"{job_id}/{attempt}/{what}") or 1


def _number_of(text: str) -> int:
    """Evenly spread over 64 bits."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


@asynccontextmanager
async def sending(service: str, settings: Settings) -> AsyncIterator[None]:
    """Spans of the process are sent inside the context. Raises InvalidRequestError if packages are missing."""
    global _sender
    if not settings.url:
        yield
        return
    sender = _sender = _Sender(service, settings)
    where = urlsplit(settings.url)
    log.info("traces are sent to %s", where._replace(netloc=where.netloc.rpartition("@")[2]).geturl())
    try:
        yield
    finally:
        _sender = None
        # In a thread that does not keep the process: a collector that hangs must not either.
        ending = threading.Thread(target=sender.provider.shutdown, daemon=True)
        ending.start()
        await asyncio.to_thread(ending.join, _END_S)
