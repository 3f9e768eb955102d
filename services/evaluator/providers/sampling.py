"""The parts of a job's sampling parameters that every wire format needs."""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format

from touchstone.v1 import job_pb2


def extra(sampling: job_pb2.Sampling) -> dict[str, Any]:
    """`Sampling.extra` as JSON fields. Whole numbers are sent as such: a protobuf Struct knows only floats, and
    servers refuse `"logprobs": 5.0`."""
    fields: dict[str, Any] = _whole(json_format.MessageToDict(sampling.extra))
    return fields


def _whole(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
