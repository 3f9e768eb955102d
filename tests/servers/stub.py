"""A loopback HTTP server that plays a model provider: what it answers, how it misbehaves, and what it was asked."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from aiohttp import web
from aiohttp.typedefs import Handler


@dataclass(frozen=True, slots=True)
class Fault:
    """One misbehaviour. `kind`: a status such as "500", or "hang", "reset", "truncated", "garbled", "empty", or
    "broken": a streamed answer that ends in its middle.

    `retry_after` becomes the header of that name; `message` and `code` the error's text and code, `details` what some
    formats add to them.
    """

    kind: str
    retry_after: str = ""
    message: str = ""
    code: str = ""
    details: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class Record:
    """One request to generate, as it arrived."""

    at: float
    path: str
    body: dict[str, Any]
    headers: dict[str, str]


@dataclass
class Behaviour:
    """What the server does. `answer` turns the prompt (message contents joined by blank lines) into the text, or
    into a fault of this prompt alone.

    Each call first takes one of `faults`; when none is left, `always` holds if set. `piece_s` passes before each piece
    of a streamed answer.
    """

    answer: Callable[[str], str | Fault] = lambda prompt: "no answer"
    latency_s: float = 0.0
    piece_s: float = 0.0
    faults: deque[Fault] = field(default_factory=deque)
    always: Fault | None = None
    models: Sequence[str] = ("stub",)
    api_key: str = ""


def by_mapping(answers: Mapping[str, str], otherwise: str = "no answer") -> Callable[[str], str | Fault]:
    """Answers known prompts from a mapping."""
    return lambda prompt: answers.get(prompt, otherwise)


ARGUMENTS = '{"city": "Rom", "days": 2.0}'
"""With which a stub calls the first of the tools that it is offered, unless the last message is a tool's result."""


def texts(content: Any) -> list[str]:
    """The texts of a message's content: a text, parts of any wire, or nothing."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [text for part in parts for text in texts(part.get("text") or part.get("content"))]


class StubServer:
    """The part that all wire formats share. Subclasses give routes, answers and errors their form."""

    stream_type = "text/event-stream"

    def __init__(self, behaviour: Behaviour | None = None) -> None:
        self.behaviour = behaviour or Behaviour()
        self.records: list[Record] = []
        self.in_flight = 0
        self.most_in_flight = 0
        self.aborted = 0
        self.log: IO[str] | None = None
        self.raw: list[bytes] | None = None
        """Where a list, the bytes of every JSON body go there as they came."""
        self._runner: web.AppRunner | None = None
        self.host, self.port = "127.0.0.1", 0

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def routes(self) -> list[web.RouteDef]:
        raise NotImplementedError

    def answer(self, body: dict[str, Any], text: str) -> dict[str, Any]:
        raise NotImplementedError

    def error(self, fault: Fault) -> dict[str, Any]:
        raise NotImplementedError

    def empty(self, body: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    async def body(self, request: web.Request) -> dict[str, Any]:
        return dict(await request.json())

    def authorized(self, request: web.Request) -> bool:
        key = self.behaviour.api_key
        return not key or request.headers.get("Authorization") == f"Bearer {key}"

    def bad_key(self) -> Fault:
        return Fault("401", message="bad key", code="invalid_api_key")

    def model(self, request: web.Request, body: dict[str, Any]) -> str:
        return str(body.get("model"))

    def missing_model(self, model: str) -> Fault:
        return Fault("404", message=f"The model `{model}` does not exist.", code="model_not_found")

    def prompt(self, body: dict[str, Any]) -> str:
        return "\n\n".join(text for message in body["messages"] for text in texts(message["content"]))

    def events(self, request: web.Request, body: dict[str, Any], text: str) -> list[str] | None:
        """The pieces of a streamed answer as they stand on the wire, or None when the whole is asked for."""
        return None

    async def start(self, port: int = 0, host: str = "127.0.0.1") -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024, middlewares=[self._keep_raw])
        app.add_routes(self.routes())
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, host, port)
        await site.start()
        self.host, self.port = self._runner.addresses[0][:2]

    @web.middleware
    async def _keep_raw(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.raw is not None and request.content_type == "application/json":
            self.raw.append(await request.read())
        return await handler(request)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = await self.body(request)
        record = Record(time.monotonic(), request.path, body, dict(request.headers))
        self.records.append(record)
        if self.log is not None:
            self.log.write(json.dumps(asdict(record) | {"at": time.time()}) + "\n")
            self.log.flush()
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            return await self._respond(request, body)
        except asyncio.CancelledError:
            self.aborted += 1
            raise
        finally:
            self.in_flight -= 1

    async def _respond(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        behaviour = self.behaviour
        if not self.authorized(request):
            return self.failure(self.bad_key())
        fault = behaviour.faults.popleft() if behaviour.faults else behaviour.always
        model = self.model(request, body)
        if fault is None and model not in behaviour.models:
            return self.failure(self.missing_model(model))
        if behaviour.latency_s and (fault is None or fault.kind.isdigit()):
            await asyncio.sleep(behaviour.latency_s)
        if fault is None:
            text = behaviour.answer(self.prompt(body))
            if isinstance(text, str):
                events = self.events(request, body, text)
                if events is not None:
                    return await self._stream(request, events)
                return web.json_response(self.answer(body, text))
            fault = text
        match fault.kind:
            case "hang":
                await asyncio.sleep(3600)
                raise AssertionError("nobody waits an hour")
            case "reset":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
            case "broken":
                events = self.events(request, body, "one two three four") or []
                return await self._stream(request, events[: len(events) // 2])
            case "truncated":
                whole = json.dumps(self.answer(body, "cut"))
                return web.Response(text=whole[: len(whole) // 2], content_type="application/json")
            case "garbled":
                return web.Response(text="<html>It works.</html>", content_type="text/html")
            case "empty":
                return web.json_response(self.empty(body))
            case _:
                return self.failure(fault)

    def failure(self, fault: Fault) -> web.Response:
        headers = {"Retry-After": fault.retry_after} if fault.retry_after else {}
        return web.json_response(self.error(fault), status=int(fault.kind), headers=headers)

    async def _stream(self, request: web.Request, events: Sequence[str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": self.stream_type})
        await response.prepare(request)
        for event in events:
            await asyncio.sleep(self.behaviour.piece_s)
            await response.write(event.encode())
        await response.write_eof()
        return response


def arguments(description: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--host", default="127.0.0.1", help="the address at which it listens")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one, which is printed")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--models", default="stub", help="comma-separated model ids")
    parser.add_argument("--api-key", default="", help="refuse other keys")
    parser.add_argument("--answers", type=Path, help="JSON object from prompt to answer")
    parser.add_argument("--otherwise", default="no answer", help="answer to prompts that are not in --answers")
    parser.add_argument("--fault", action="append", default=[], help="one fault, e.g. 500 or hang; may be repeated")
    parser.add_argument("--always", default="", help="fault of every further call")
    parser.add_argument("--retry-after", default="", help="Retry-After of the faults")
    parser.add_argument("--log", type=Path, help="append each request as a line of JSON")
    return parser


def run(server: StubServer, options: argparse.Namespace) -> None:
    """Serves until killed; prints the address first."""
    answers = json.loads(options.answers.read_text()) if options.answers else {}
    server.behaviour = Behaviour(
        answer=by_mapping(answers, options.otherwise),
        latency_s=options.latency,
        models=options.models.split(","),
        api_key=options.api_key,
        faults=deque(Fault(kind, options.retry_after) for kind in options.fault),
        always=Fault(options.always, options.retry_after) if options.always else None,
    )

    async def serve() -> None:
        if options.log:
            server.log = options.log.open("a")
        await server.start(options.port, options.host)
        print(server.url, flush=True)
        await asyncio.Event().wait()

    asyncio.run(serve())
