"""Counts calls of providers for metrics, those of jobs and those of users."""

from __future__ import annotations

import time
from collections.abc import Awaitable

from services.evaluator.items.task import Response
from services.evaluator.providers.protocol.provider import ProviderError
from services.telemetry import metrics


async def measured(endpoint: str, call: Awaitable[Response]) -> Response:
    """The answer of a call, which is counted."""
    began = time.monotonic()
    try:
        response = await call
    except ProviderError as error:
        count_failure(endpoint, error)
        raise
    metrics.CALL_SECONDS.observe(time.monotonic() - began, endpoint)
    count_tokens(endpoint, response)
    return response


def count_tokens(endpoint: str, response: Response) -> None:
    metrics.TOKENS.add(endpoint, metrics.INPUT, by=response.input_tokens or 0)
    metrics.TOKENS.add(endpoint, metrics.OUTPUT, by=response.output_tokens or 0)


def count_failure(endpoint: str, error: ProviderError | None) -> None:
    """None is an answer that cannot be used."""
    metrics.CALL_ERRORS.add(endpoint, metrics.FAILED if error is None else _kind_of(error))


def _kind_of(error: ProviderError) -> str:
    if error.rate_limited:
        return metrics.RATE_LIMITED
    if error.of_key:
        return metrics.KEY_REFUSED
    if error.unreachable:
        return metrics.UNREACHABLE
    return metrics.CALL_REFUSED if error.fatal else metrics.FAILED
