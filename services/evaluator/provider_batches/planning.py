"""How the rows of a job are cut into batches. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from services.errors import InvalidRequestError
from services.evaluator.endpoints.batch_options import KINDS, BatchOptions
from services.evaluator.items.task import Message
from services.words import chat, refusals
from touchstone.v1 import job_pb2

_ROW_BYTES = 1024
"""Bytes around the messages of a line: its id, address, model, parameters and stop strings."""
_MESSAGE_BYTES = 64
_BUDGET_SHARE = 0.1
"""The share of a budget that a batch may reserve: it reserves the most for each row, which answers seldom cost."""


def check(spec: job_pb2.JobSpec, kind: str) -> None:
    """Raises InvalidRequestError for a job that cannot use its endpoint's batch API."""
    if kind not in KINDS:
        raise InvalidRequestError(refusals.no_batch_api(spec.endpoint, kind, KINDS), "provider_batch")


def line_bytes(messages: Sequence[Message], sampling: job_pb2.Sampling) -> int:
    """The least bytes that a row takes as a line of a batch."""
    texts = sum(len(json.dumps(message.content)) + _MESSAGE_BYTES for message in messages)
    texts += sum(len(json.dumps(chat.written(message.more))) for message in messages if message.more is not None)
    return texts + sampling.ByteSize() + len(json.dumps(sampling.extra_json)) + _ROW_BYTES


def unit_rows(sizes: Sequence[int], options: BatchOptions) -> int:
    """The most rows per unit such that no unit of that many consecutive rows is too large."""
    rows = max(1, min(options.rows, len(sizes)))
    while rows > 1:
        largest = max(sum(sizes[start : start + rows]) for start in range(0, len(sizes), rows))
        if largest <= options.most_bytes:
            break
        rows = max(1, min(rows - 1, rows * options.most_bytes // largest))
    return rows


def affordable_rows(rows: int, budget_usd: float, most_usd: float) -> int:
    """The number of rows that a part of the budget pays at their highest cost."""
    return max(1, min(rows, int(_BUDGET_SHARE * budget_usd / most_usd))) if most_usd else rows
