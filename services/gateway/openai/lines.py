"""Rows of a dataset as lines of an OpenAI batch: those of an uploaded batch file read back give the same rows."""

from __future__ import annotations

import json
from typing import Any

from services import further
from services.gateway.openai.objects import CHAT
from touchstone.v1 import dataset_pb2


def batch_line(row: dataset_pb2.DatasetRow, model: str) -> str:
    """The row's request, with "reference" and "metadata" beside it where it has them. `model` is what the lines name,
    "" where that is not known: it is left out."""
    body: dict[str, Any] = {"model": model} if model else {}
    body["messages"] = [{"role": message.role, "content": message.content} for message in row.messages]
    for field, value in row.sampling.ListFields():
        if field.name not in further.FIELDS:
            body[field.name] = value
    body |= further.fields(row.sampling)
    if row.stop:
        body["stop"] = list(row.stop)
    line: dict[str, Any] = {"custom_id": row.custom_id, "method": "POST", "url": CHAT, "body": body}
    for name, text in (("reference", row.reference), ("metadata", row.metadata)):
        if text:
            line[name] = json.loads(text)
    return json.dumps(line, ensure_ascii=False)
