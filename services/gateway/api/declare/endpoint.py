"""An endpoint of the REST API: declared once, with what it takes and answers; requests are checked by it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.protobuf.message import Message
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from services import rpc
from services.errors import NotFoundError
from services.gateway import context
from services.gateway.fields.checks import Check, parse
from services.gateway.fields.query import Parameter, read
from services.gateway.fields.schema import Schema
from services.gateway.reads import jobs

Q = TypeVar("Q", bound=Message)
R = TypeVar("R", bound=Message)

BASE = "/api/v1/benchmarking"
BENCH = "/api/bench"
"""The root of experiments."""
ADMIN = "/admin"
"""The root of datasets and the runs over them."""
OPENAI = "/v1"
"""The root of OpenAI's API, whose errors have their own form."""
JSON = "application/json"
MOST_IN_PATH = 200
"""Characters of a name in the path."""


@dataclass(frozen=True, slots=True)
class Call:
    """A request that its endpoint has checked. `query` has every declared parameter, `body` the given members."""

    request: Request
    query: Mapping[str, Any]
    body: Mapping[str, Any]

    @property
    def ctx(self) -> context.Context:
        return context.of(self.request)

    @property
    def caller(self) -> rpc.Identity:
        return context.identity(self.request)

    @property
    def path(self) -> Mapping[str, str]:
        return self.request.path_params

    @property
    def job_id(self) -> str:
        """The job in the path. Raises NotFoundError for an impossible id."""
        return jobs.checked_id(self.path.get("job_id") or self.path["benchmark_id"])

    @property
    def dataset_id(self) -> str:
        """The dataset in the path. Raises NotFoundError for an impossible id."""
        return jobs.checked_dataset(self.path["dataset_id"])

    async def ask(self, method: grpc.aio.UnaryUnaryMultiCallable[Q, R], request: Q) -> R:
        """One call to a service, as the caller. Raises its domain error."""
        return await self.ctx.backend.ask(method, request, self.caller)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path.

    `path` is below `base`. `name` is the operation's id, `about` its summary. `answer` is the schema of the 200 answer,
    whichever of `media` it comes in. `errors` are its statuses in addition to those that follow from what it takes (400
    and 422, for a body 413 and 415, for an id in the path 404) and those that every endpoint has. `body_needed` is
    false if the body may be left out. `gives` says where in the answer a path parameter of other endpoints is found, as
    JSON pointers. `streams` marks long answers, which have no HEAD. `reads` are the media types, with their schemas, of
    a body that the handler reads itself as it comes.
    """

    method: str
    path: str
    handler: Callable[[Call], Coroutine[Any, Any, Response]]
    name: str
    about: str
    answer: Schema = field(default_factory=dict)
    media: tuple[str, ...] = (JSON,)
    query: tuple[Parameter, ...] = ()
    body: Check | None = None
    body_needed: bool = True
    errors: tuple[int, ...] = ()
    gives: Mapping[str, str] = field(default_factory=dict)
    streams: bool = False
    base: str = BASE
    reads: Mapping[str, Schema] = field(default_factory=dict)

    @property
    def route(self) -> str:
        """The whole path, without the converters of its parameters."""
        return self.base + self.path.replace(":path}", "}")

    async def __call__(self, request: Request) -> Response:
        _require_readable(request.path_params)
        query = read(request.query_params, self.query)
        body: Mapping[str, Any] = {}
        if self.body is not None:
            sent = await request.body()
            if sent.strip() or self.body_needed:
                _require_json(request)
                body = parse(sent, self.body)
        work = self.handler(Call(request, query, body))
        # A sender may be slow: the server does not wait for it when it stops.
        return await (context.of(request).uploads.unless_stopped(work) if self.reads else work)


class Resource:
    """All endpoints of one path, as an ASGI application."""

    def __init__(self, endpoints: Sequence[Endpoint]) -> None:
        self._by_method = {endpoint.method: endpoint for endpoint in endpoints}
        offered = set(self._by_method) | {"OPTIONS"}
        if (read := self._by_method.get("GET")) and not read.streams:
            self._by_method["HEAD"] = read
            offered.add("HEAD")
        self._allow = ", ".join(sorted(offered))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises HTTPException 405 for a method that the path does not have."""
        method = scope["method"]
        if method == "OPTIONS":
            await Response(status_code=204, headers={"Allow": self._allow})(scope, receive, send)
            return
        if method not in self._by_method:
            raise HTTPException(405, f"{method[:20]} is not offered here. Use {self._allow}.", {"Allow": self._allow})
        response = await self._by_method[method](Request(scope, receive))
        await response(scope, receive, send)


def _require_readable(path: Mapping[str, str]) -> None:
    """Raises NotFoundError for impossible names in the path."""
    for value in path.values():
        if len(value) > MOST_IN_PATH or not value.isprintable():
            raise NotFoundError(
                f"{value[:80]!r} is not a valid name. Names have at most {MOST_IN_PATH} printable characters."
            )


def _require_json(request: Request) -> None:
    """Raises HTTPException 415 for a body of another type; a body without a type counts as JSON."""
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind != JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise HTTPException(415, f"The body's type is {kind[:80]!r}. Send JSON with Content-Type: {JSON}.")
