"""The interface of providers' batch APIs, and what all units of one endpoint's batch API share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from services.bus import Bus
from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.endpoints.kinds import KINDS
from services.evaluator.items.task import Item, Response
from services.evaluator.providers.protocol import usage
from services.evaluator.providers.protocol.provider import ProviderError, Request
from services.evaluator.providers.protocol.transport import Reply
from services.evaluator.settings import Settings
from services.evaluator.stored.responses import KnownAnswers
from services.evaluator.units.doubts import Doubts
from services.evaluator.units.unit_loader import Loaded, Loader
from touchstone.v1 import endpoint_pb2, unit_pb2

SEND_S = 60.0
"""Most time for the call that begins a batch."""
UPLOAD_S = 600.0
DOWNLOAD_S = 1800.0
ASK_S = 30.0
MOST_ROWS = 10_000_000
"""The most that a provider may count in one batch."""
MOST_PAGES = 50
"""Batches per page of a provider's list, the newest first."""


class GoneError(ProviderError):
    """The provider no longer knows the batch."""


@dataclass(frozen=True, slots=True)
class Line:
    """One request of a batch. The id on the wire is the position, so that a row's own id never matters."""

    position: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as the provider reports it. For an ended one, `missing` says why a row has no answer; `refused` says why
    the batch did not begin at all, and `full` that it may begin once others have ended. `output` is the provider's
    own."""

    batch_id: str
    ended: bool = False
    done: int = 0
    failed: int = 0
    missing: str = ""
    refused: str = ""
    full: bool = False
    output: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one line: a reply as from a single call, or why there is none."""

    position: int
    reply: Reply | None
    error: str = ""


Take = Callable[[Answer], Awaitable[None]]


class BatchApi(Protocol):
    """One endpoint's batch API. `label` is its provider's name to users. Everything raises ProviderError."""

    label: str

    async def written(self, request: Request) -> tuple[dict[str, Any], str]:
        """A line's body, and the part of it that is recorded with the answer."""
        ...

    async def upload(self, mark: str, lines: Sequence[Line]) -> Any:
        """Prepares the lines of a batch; the result goes to `create`. Free of charge."""
        ...

    async def create(self, model: str, mark: str, prepared: Any) -> str:
        """Begins the batch, which from then on is paid, and returns its id. After an error that is neither `free` nor
        final, the batch may have begun."""
        ...

    async def find(self, mark: str) -> list[str]:
        """Ids of batches with this mark, the oldest first."""
        ...

    async def state(self, batch_id: str) -> Batch:
        """Raises GoneError."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ends a batch; one that has already ended stays so."""
        ...

    async def answers(self, batch: Batch, take: Take) -> None:
        """Everything that the ended batch answered, each line at least once, answers before errors."""
        ...

    def read(self, reply: Reply, model: str, parameters: str, of_job: endpoint_pb2.Prices | None) -> Response:
        """A line's reply, at the batch API's share of the job's prices."""
        ...

    async def close(self) -> None: ...


def request(unit: unit_pb2.Unit, loaded: Loaded, item: Item, repeat: int) -> Request:
    """The parameters of a single call; a batch is never streamed."""
    sampling = unit.spec.sampling if item.sampling is None else item.sampling
    return Request(unit.spec.model, sampling, loaded.task, item, repeat=repeat)


def label(endpoint: Endpoint) -> str:
    """The provider's own name if the endpoint is named after its kind."""
    return KINDS[endpoint.kind].label if endpoint.name == endpoint.kind else endpoint.name


def no_batch_api(endpoint: Endpoint) -> ProviderError:
    return ProviderError(
        f"{endpoint.name} has no batch API at {endpoint.address}. Run the job without provider_batch.", fatal=True
    )


def is_unclear(error: ProviderError) -> bool:
    """Whether the request may have taken effect all the same."""
    return error.retryable and not error.free


def missing(name: str, state: str) -> str:
    """Why a row of an ended batch has no answer."""
    how = {
        "expired": f"The batch of {name} expired before this row was answered.",
        "cancelled": f"The batch was cancelled at {name} before this row was answered.",
    }
    return how.get(state, f"{name} ended the batch without an answer to this row.") + " A retry asks for it again."


def parsed(line: bytes) -> dict[str, Any]:
    """A line of JSON; empty for anything else."""
    found = usage.parsed(line.decode("utf-8", "replace"))
    return found if isinstance(found, dict) else {}


def position(value: object) -> int:
    """The position in an id on the wire; -1 for one that is not ours."""
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10 else -1


@dataclass(frozen=True, slots=True)
class Tools:
    """The API, and the source and target of units, rows and answers."""

    api: BatchApi
    bus: Bus
    loader: Loader
    answers: KnownAnswers
    settings: Settings
    doubts: Doubts = field(default_factory=Doubts)
