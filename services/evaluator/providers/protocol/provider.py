"""What a provider is: one wire protocol, spoken to one configured endpoint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from services.evaluator.items.task import Item, Response
from services.words import sentences
from touchstone.v1 import endpoint_pb2, job_pb2

if TYPE_CHECKING:  # Providers are also used where nothing that reads datasets is installed, as by the parity check.
    from services.evaluator.datasets.task import AnyTask


class ProviderError(Exception):
    """A call failed. It is never scored.

    `message` is the sentence that a user reads, with what to do. `retryable`: the same call may work later.
    `fatal`: no call of this job can work (wrong key, unknown model), so the job should fail now.
    `unreachable`: the endpoint as a whole does not answer. `retry_after_s`: what the provider asked for, or None.
    `of_endpoint`: what is too much is too much for the endpoint as a whole, whichever model is called.
    `free`: the call surely cost nothing, as a refused one does; one that broke off may be charged.
    `detail`: more for the job's page, such as the end of an engine's log; at most 4,000 bytes.
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
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.fatal = fatal
        self.unreachable = unreachable
        self.rate_limited = rate_limited
        self.of_endpoint = of_endpoint
        self.retry_after_s = retry_after_s
        self.free = free or rate_limited
        self.detail = detail


def no_loglikelihood(name: str) -> ProviderError:
    """The refusal of an endpoint whose protocol has no log-likelihoods of given texts."""
    return ProviderError(sentences.no_loglikelihood(name), fatal=True)


@dataclass(frozen=True, slots=True)
class Listing:
    """What an endpoint offers. `server` is its product and version when it tells."""

    models: tuple[endpoint_pb2.Model, ...]
    server: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One answer to ask for. `repeat` counts the answers to one item from 0: with a seed set, repeat r is asked with
    seed + r. `repeats` is how many are asked for in all: with more than one an absent temperature is left to the
    provider. `stream` asks for the time to the first token. `prices` are those of the job; None leaves them to the
    endpoint.
    """

    model: str
    sampling: job_pb2.Sampling
    task: AnyTask
    item: Item
    repeat: int = 0
    stream: bool = False
    repeats: int = 1
    prices: endpoint_pb2.Prices | None = None


class Provider(Protocol):
    """One endpoint. Safe for concurrent calls; makes one attempt a call and leaves retrying to the worker."""

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
    """What a provider offers besides when it loads models itself, one at a time."""

    @property
    def resident_model(self) -> str:
        """The model in memory; empty when none is."""
        ...

    async def ready(self, model: str) -> None:
        """Returns once the model is in memory, which may take minutes: such a wait is no call that takes long.

        Another may be there again when the call is made, which then waits for itself. Raises ProviderError.
        """
        ...
