"""Texts of logs, bounded as the results service requires."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from touchstone.v1.results_service_pb2 import ImportedAnswer

RESPONSE_BYTES = 256 * 1024 - 5
PROMPT_BYTES = ROW_BYTES = 128 * 1024


def clean(text: str) -> str:
    """A message does not accept a lone surrogate, which JSON's escapes can produce."""
    return text.encode("utf-8", "replace").decode()


def conversation(messages: Iterable[tuple[str, str]]) -> str:
    """Roles and contents as Touchstone shows a prompt."""
    return "\n\n".join(f"{role}:\n{content}" for role, content in messages)


def put(answer: ImportedAnswer, *, prompt: str, response: str, row: Mapping[str, Any]) -> None:
    """Sets the texts. A response that is too long to be stored whole counts as missing: its end may be the answer."""
    answer.prompt = clean(prompt).encode()[:PROMPT_BYTES].decode(errors="ignore")
    answer.response = clean(response)
    size = len(answer.response.encode())
    if size > RESPONSE_BYTES:
        answer.response = ""
        answer.error = f"The answer has {size:,} bytes; at most {RESPONSE_BYTES:,} can be stored and scored."
    written = clean(json.dumps(row, ensure_ascii=False, default=str)) if row else ""
    answer.row = written if len(written.encode()) <= ROW_BYTES else ""
