"""Chat messages of a row, as requests to chat models hold them."""

from __future__ import annotations

from typing import Any

from services.results.datasets.reading.faults import WrongRowError, quoted
from touchstone.v1.dataset_pb2 import DatasetRow

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_MESSAGES = 1000
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def ask(row: DatasetRow, prompt: Any) -> None:
    """Adds the prompt as one user message. Raises WrongRowError."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise WrongRowError('"prompt" is no text, or an empty one. Write the question as a text, or give "messages".')
    row.messages.add(role="user", content=prompt)


def converse(row: DatasetRow, messages: Any) -> None:
    """Adds messages: role and content, of which parts are joined by line ends. Raises WrongRowError."""
    if not isinstance(messages, list) or not messages:
        raise WrongRowError('"messages" is no array, or an empty one. Give objects with "role" and "content" in it.')
    if len(messages) > MOST_MESSAGES:
        raise WrongRowError(f"There are {len(messages):,} messages; it may be {MOST_MESSAGES:,}. Leave some out.")
    blank = True
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            raise WrongRowError(f'Message {place} is no object. Give it "role" and "content".')
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise WrongRowError(f"Message {place} has the role {quoted(role)}; it may be {', '.join(ROLES)}.")
        if not isinstance(content, str):
            content = _joined(content, place)
        if len(message) > 2:
            _nothing_else(message, place)
        row.messages.add(role=role, content=content)
        blank = blank and not content.strip()
    if blank:
        raise WrongRowError("The messages hold no text. Write what is to be asked.")


def _joined(parts: Any, place: int) -> str:
    if not isinstance(parts, list) or not parts:
        raise WrongRowError(f"The content of message {place} is no text. Write it as a text or as text parts.")
    texts: list[str] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if kind == "text" else None
        if not isinstance(text, str):
            what = f"a part of type {quoted(kind)}" if isinstance(kind, str) and kind != "text" else "a part of no text"
            raise WrongRowError(f"Message {place} has {what}. Models are asked texts alone: leave it out.")
        texts.append(text)
    return "\n".join(texts)


def _nothing_else(message: dict[str, Any], place: int) -> None:
    """Leaving out what a message also holds would ask something else."""
    for name, value in message.items():
        if name not in ("role", "content") and value not in _EMPTY:
            why = "Tools are not called." if name.startswith(("tool", "function")) else "It would not be sent."
            raise WrongRowError(f"Message {place} has {quoted(name)}. {why} Leave it out.")
