"""What an endpoint offers now: its models and whether it is usable, refreshed in the background."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence

from google.protobuf.timestamp_pb2 import Timestamp

from services.evaluator.endpoints.endpoint import Endpoint
from services.evaluator.listing.identity import setup_hash
from services.evaluator.pacing.pace import Paces
from services.evaluator.providers.protocol.capabilities import of_protocol
from services.evaluator.providers.protocol.provider import LoadingProvider, Provider, ProviderError
from touchstone.v1 import endpoint_pb2

log = logging.getLogger(__name__)

REFRESH_S = 30.0
REFRESH_DOWN_S = 5.0
TIMEOUT_S = 10.0


class EndpointListing:
    """The last model listing of one endpoint. A provider that hangs delays nothing but its own refresh."""

    def __init__(self, endpoint: Endpoint, provider: Provider, paces: Paces, changed: Callable[[], None]) -> None:
        self.endpoint = endpoint
        self.models: Sequence[endpoint_pb2.Model] = ()
        self.server = ""
        self.known = False
        self._provider = provider
        self._paces = paces
        self._changed = changed
        self._state = endpoint_pb2.Endpoint.STATE_UNSPECIFIED
        self._detail = ""
        self._refreshed_at = Timestamp()
        self._listing_ms = 0.0

    async def run(self) -> None:
        """Refreshes until cancelled."""
        while True:
            await self.refresh()
            reachable = self._state == endpoint_pb2.Endpoint.STATE_REACHABLE
            await asyncio.sleep(REFRESH_S if reachable or not self.endpoint.configured else REFRESH_DOWN_S)

    async def refresh(self) -> None:
        before = (self._state, self._detail, list(self.models))
        if self.endpoint.configured:
            await self._list()
        else:
            self._state = endpoint_pb2.Endpoint.STATE_NOT_CONFIGURED
            self._detail = (
                self.endpoint.problem or f"Set {self.endpoint.api_key_env} where the evaluator runs and restart it."
            )
        if before != (self._state, self._detail, list(self.models)):
            self._changed()

    async def _list(self) -> None:
        started = time.monotonic()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                listing = await self._provider.list_models()
        except (ProviderError, TimeoutError) as error:
            late = f"{self.endpoint.name} did not list its models within {TIMEOUT_S:.0f} s. Check its log."
            self._down(error.message if isinstance(error, ProviderError) else late)
            return
        except Exception:
            # An unexpected answer must not end the refreshing.
            log.exception("listing the models of %s failed", self.endpoint.name)
            self._down(f"{self.endpoint.name} sent a model list that cannot be read. See the evaluator's log.")
            return
        for model in listing.models:
            model.setup = setup_hash(self.endpoint, model.model)
        self.models = listing.models
        self.server = listing.server
        self.known = True
        self._state = endpoint_pb2.Endpoint.STATE_REACHABLE
        self._detail = ""
        self._listing_ms = (time.monotonic() - started) * 1000
        self._refreshed_at.GetCurrentTime()

    def _down(self, detail: str) -> None:
        self._state = endpoint_pb2.Endpoint.STATE_DOWN
        self._detail = detail

    def announcement(self, slots_busy: int) -> endpoint_pb2.Endpoint:
        """The endpoint as the EVALUATORS bucket shows it. It counts as down before the first listing."""
        state = self._state or endpoint_pb2.Endpoint.STATE_DOWN
        detail = self._detail if self._state else "Its models are being listed."
        limit = self._paces.detail(time.monotonic())
        if state == endpoint_pb2.Endpoint.STATE_REACHABLE and limit:
            state, detail = endpoint_pb2.Endpoint.STATE_LIMITED, limit
        endpoint = self.endpoint
        announced = endpoint_pb2.Endpoint(
            endpoint=endpoint.name,
            kind=endpoint.kind,
            state=state,
            detail=detail,
            server=self.server,
            concurrency=endpoint.concurrency,
            slots_busy=slots_busy,
            exclusive=endpoint.exclusive,
            requests_per_minute=endpoint.requests_per_minute,
            max_model_b=endpoint.max_model_b,
            models=self.models,
            listing_ms=self._listing_ms,
            baseline=endpoint.kind == "baseline",
            resident_model=self._provider.resident_model if isinstance(self._provider, LoadingProvider) else "",
            capabilities=of_protocol(endpoint),
        )
        if self.known:
            announced.refreshed_at.CopyFrom(self._refreshed_at)
        return announced
