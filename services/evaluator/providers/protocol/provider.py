"""The interface of providers: one wire protocol for one configured endpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from services.errors import sendable
from services.evaluator.items.task import Item, Response
from services.words import refusals
from touchstone.v1 import endpoint_pb2, job_pb2

if TYPE_CHECKING:  # Providers are also used without the packages that read datasets, for instance by the parity check.
    from services.evaluator.datasets.task import AnyTask


class ProviderError(Exception):
    """A call failed. It is never scored.

    `message` is the sentence that a user reads, with what to do. `retryable`: the same call may work later. `fatal`: no
    call of this job can work (wrong key, unknown model), so the job should fail now. `unreachable`: the endpoint as a
    whole does not answer. `retry_after_s`: what the provider asked for, or None. `of_endpoint`: a limit that applies to
    the whole endpoint, whichever model is called. `free`: the call certainly cost nothing, such as a refused one; an
    interrupted call may be charged. `of_key`: the endpoint refused the key, for this model at least. `detail`: more for
    the job's page, such as the end of an engine's log; at most 4,000 bytes. `status`: that of HTTP for a user who makes
    a single call, where the other facts do not tell it.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = False,
        fatal: bool = False,
        unreachable: bool = False,
        rate_limited: bool = False,
        of_endpoint: bool = False,
        retry_after_s: float | None = None,
        free: bool = False,
        of_key: bool = False,
        detail: str = "",
        status: int = 0,
    ) -> None:
        message = sendable(message)
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.fatal = fatal
        self.unreachable = unreachable
        self.rate_limited = rate_limited
        self.of_endpoint = of_endpoint
        self.retry_after_s = retry_after_s
        self.free = free or rate_limited
        self.of_key = of_key
        self.detail = sendable(detail)
        self.status = status


def no_loglikelihood(name: str) -> ProviderError:
    """The refusal of an endpoint whose protocol has no log-likelihoods of given texts."""
    return ProviderError(refusals.no_loglikelihood(name), fatal=True)


Heard = Callable[[Any], Awaitable[None]]
"""Takes the events of a streamed answer as they come, each as JSON; while it waits, so does the provider."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What an endpoint offers. `server` is its product and version if it gives them."""

    models: tuple[endpoint_pb2.Model, ...]
    server: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to ask for. `repeat` counts the answers to one item from 0: with a seed set, repeat r is asked with
    seed + r. `repeats` is their total number: with more than one, an absent temperature is left to the provider.
    `stream` measures the time to the first token, and `heard` takes what comes meanwhile. `prices` are those of the
    job; None leaves them to the endpoint.
    """

    model: str
    sampling: job_pb2.Sampling
    task: AnyTask
    item: Item
    repeat: int = 0
    stream: bool = False
    repeats: int = 1
    prices: endpoint_pb2.Prices | None = None
    heard: Heard | None = None


class Provider(Protocol):
    """One endpoint. Safe for concurrent calls; makes one attempt per call and leaves retrying to the worker."""

    async def list_models(self) -> Listing:
        """Raises ProviderError when the endpoint does not answer or refuses the key."""
        ...

    async def generate(self, request: Request) -> Response:
        """One answer to the item's messages. Raises ProviderError; cancelling it closes the connection."""
        ...

    async def loglikelihoods(self, request: Request) -> Response:
        """The item's choices scored as continuations of its context, in one call.

        Raises a fatal ProviderError where the endpoint cannot do this or has not proved that it does it right.
        """
        ...

    async def close(self) -> None: ...


@runtime_checkable
class LoadingProvider(Protocol):
    """What a provider that loads models itself, one at a time, offers in addition."""

    @property
    def resident_model(self) -> str:
        """The model in memory; empty when none is."""
        ...

    async def ready(self, model: str) -> None:
        """Returns once the model is in memory, which may take minutes: this wait does not count as a long call.

        Another model may be in memory again at the time of the call, which then waits. Raises ProviderError.
        """
        ...
