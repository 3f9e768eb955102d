"""The parts of a job's sampling parameters that every wire format needs."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from google.protobuf import json_format

from services.evaluator.providers.base import ProviderError
from touchstone.v1 import job_pb2


def extra(sampling: job_pb2.Sampling, written: Collection[str]) -> dict[str, Any]:
    """`Sampling.extra` as JSON fields. Whole numbers are sent as such: a protobuf Struct knows only floats, and
    servers refuse `"logprobs": 5.0`.

    Raises ProviderError when it would replace a field that is written here: what was recorded must be what was sent.
    """
    fields: dict[str, Any] = _whole(json_format.MessageToDict(sampling.extra))
    taken = sorted(set(fields) & set(written))
    if taken:
        raise ProviderError(f"sampling.extra may not set {', '.join(taken)}; Touchstone writes it itself.", fatal=True)
    return fields


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
