"""OpenAI batch lines for tests: medical questions as chats, of the mirror's MedQA where there is one."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

_SPLIT = "GBaker/MedQA-USMLE-4-options/default/test.jsonl"
_SYSTEM = "You answer questions of a medical examination with the letter of the right option."


def lines(count: int, model: str, **body: Any) -> list[dict[str, Any]]:
    """So many lines, every prompt another: where the mirror has fewer questions they come round again under a new
    number. `body` is added to each request."""
    return [_line(number, row, model, body) for number, row in enumerate(islice(cycle(_rows()), count))]


def jsonl(batch: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in batch)


def prompt(line: dict[str, Any]) -> str:
    """As a stub server sees the line's messages."""
    return "\n\n".join(message["content"] for message in line["body"]["messages"])


def answer(text: str) -> str:
    """What the model of these tests says to a prompt: a letter that follows from it."""
    return f"Answer: {'ABCD'[hashlib.sha256(text.encode()).digest()[0] % 4]}"


def _line(number: int, row: dict[str, Any], model: str, body: dict[str, Any]) -> dict[str, Any]:
    options = "\n".join(f"{letter}. {text}" for letter, text in row["options"].items())
    question = f"Question {number + 1}: {row['question']}\n{options}\nEnd with one line, Answer: <letter>."
    messages = [{"role": "system", "content": _SYSTEM}, {"role": "user", "content": question}]
    return {
        "custom_id": f"candidate-{number + 1}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": model, "messages": messages, "temperature": 0, "max_tokens": 16} | body,
        "reference": row["answer_idx"],
    }


def _rows() -> Iterator[dict[str, Any]]:
    mirror = os.environ.get("TOUCHSTONE_DATA_DIR")
    path = Path(mirror) / _SPLIT if mirror else None
    if path is None or not path.exists():
        for number in range(400):
            options = {letter: f"{word} {number % 17}" for letter, word in zip("ABCD", _FINDINGS, strict=True)}
            yield {
                "question": f"Which finding fits case {number}?",
                "options": options,
                "answer_idx": "ABCD"[number % 4],
            }
        return
    with path.open() as file:
        yield from map(json.loads, file)


_FINDINGS = ("a murmur of grade", "a rash of type", "a fracture of class", "a fever of day")
