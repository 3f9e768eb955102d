"""What request handlers need, in one place: `of(request)` returns it, `caller(request)` the caller."""

from __future__ import annotations

from dataclasses import dataclass

from jinja2 import Environment
from starlette.requests import HTTPConnection

from services import rpc
from services.bus import Bus
from services.gateway.access.auth import Caller, ClosedAccess, LocalAccess, TokenAccess
from services.gateway.access.limits import SlidingWindow, Streams
from services.gateway.access.oidc import Provider
from services.gateway.backend import Backend
from services.gateway.reads.catalogue import Catalogue
from services.gateway.reads.pulse import Pulse
from services.gateway.settings import Settings


@dataclass(slots=True)
class Context:
    """The gateway's parts. It holds no state of jobs, so several gateways may run at the same time. In token mode
    `access` changes once, when NATS is reached; `bus` is None before that. `provider` is None where browsers log in
    with tokens only."""

    settings: Settings
    backend: Backend
    catalogue: Catalogue
    pulse: Pulse
    access: LocalAccess | ClosedAccess | TokenAccess
    window: SlidingWindow
    streams: Streams
    waits: Streams
    uploads: Streams
    calls: Streams
    templates: Environment
    provider: Provider | None = None
    bus: Bus | None = None


def of(connection: HTTPConnection) -> Context:
    context = connection.app.state.context
    assert isinstance(context, Context)
    return context


def caller(connection: HTTPConnection) -> Caller:
    """The caller. Only routes that need no identity may be called without one."""
    known = connection.scope["state"]["caller"]
    assert isinstance(known, Caller)
    return known


def identity(connection: HTTPConnection) -> rpc.Identity:
    return caller(connection).identity
