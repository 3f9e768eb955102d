"""Counts calls of providers for metrics, those of jobs and those of users, and traces those of jobs."""

from __future__ import annotations

import time
from collections.abc import Awaitable

from services.evaluator.endpoint_calls import ItemCall
from services.evaluator.items.task import Response
from services.evaluator.providers.protocol.provider import ProviderError
from services.telemetry import metrics, traces


async def measured(endpoint: str, call: Awaitable[Response], item: ItemCall) -> Response:
    """The answer of a call of an item, which is counted and may be traced."""
    began = time.monotonic()
    try:
        response = await call
    except ProviderError as error:
        count_failure(endpoint, error)
        _trace(item, endpoint, time.monotonic() - began, None, _kind_of(error))
        raise
    took_s = time.monotonic() - began
    metrics.CALL_SECONDS.observe(took_s, endpoint)
    count_tokens(endpoint, response)
    _trace(item, endpoint, took_s, response)
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


def _trace(call: ItemCall, endpoint: str, took_s: float, response: Response | None, failed: str = "") -> None:
    """The span of a call that has just ended, if those of its item are chosen."""
    held = call.unit.held
    told = held.unit
    if not traces.chosen(told.job_id, told.task, call.position, call.repeat):
        return
    ended = time.time()
    attributes: dict[str, str | int] = {
        "touchstone.endpoint": endpoint,
        "touchstone.task": told.task,
        "touchstone.position": call.position,
        "touchstone.try": call.tries.calls,
        "gen_ai.request.model": told.spec.model,
    }
    if response is not None:
        attributes["gen_ai.usage.input_tokens"] = response.input_tokens or 0
        attributes["gen_ai.usage.output_tokens"] = response.output_tokens or 0
    under = traces.unit(told.unit, held.delivery)
    traces.add(
        "call",
        told.job_id,
        told.attempt,
        ended - took_s,
        ended,
        attributes,
        under=under,
        kind=traces.CLIENT,
        failed=failed,
    )
