"""Chat messages of a row, as requests to chat models hold them."""

from __future__ import annotations

from typing import Any

from services.results.datasets.reading.faults import RefusedError, WrongRowError, quoted
from services.results.datasets.reading.scoring import References
from services.words import sentences
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import (
    LAST_ASSISTANT_PREFILL,
    LAST_ASSISTANT_REFUSE,
    LAST_ASSISTANT_UNSPECIFIED,
    LastAssistant,
)

ROLES = ("system", "developer", "user", "assistant", "tool")
MOST_MESSAGES = 1000
_EMPTY: tuple[Any, ...] = (None, "", [], {})


def ask(row: DatasetRow, prompt: Any) -> None:
    """Adds the prompt as one user message. Raises WrongRowError."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise WrongRowError('"prompt" must be a string that is not empty. Write the question there, or use "messages".')
    row.messages.add(role="user", content=prompt)


def converse(row: DatasetRow, messages: Any) -> None:
    """Adds messages: role and content, with its parts joined by line ends. Raises WrongRowError."""
    if not isinstance(messages, list) or not messages:
        raise WrongRowError('"messages" must be an array of objects with "role" and "content", and not empty.')
    if len(messages) > MOST_MESSAGES:
        raise WrongRowError(sentences.too_large("The row", len(messages), MOST_MESSAGES, "messages"))
    blank = True
    for place, message in enumerate(messages, start=1):
        if not isinstance(message, dict):
            raise WrongRowError(f'Message {place} must be an object with "role" and "content".')
        role, content = message.get("role"), message.get("content")
        if role not in ROLES:
            raise WrongRowError(f"The role of message {place} must be one of {', '.join(ROLES)}; it is {quoted(role)}.")
        if not isinstance(content, str):
            content = _joined(content, place)
        if len(message) > 2:
            _nothing_else(message, place)
        row.messages.add(role=role, content=content)
        blank = blank and not content.strip()
    if blank:
        raise WrongRowError("The messages contain no text. Write the question.")


def _joined(parts: Any, place: int) -> str:
    if not isinstance(parts, list) or not parts:
        raise WrongRowError(f"The content of message {place} must be a string or a list of text parts.")
    texts: list[str] = []
    for part in parts:
        kind = part.get("type") if isinstance(part, dict) else None
        text = part.get("text") if kind == "text" else None
        if not isinstance(text, str):
            what = (
                f"a part of type {quoted(kind)}"
                if isinstance(kind, str) and kind != "text"
                else "a text part without text"
            )
            raise WrongRowError(f"Message {place} has {what}. Models receive only text: leave it out.")
        texts.append(text)
    return "\n".join(texts)


def _nothing_else(message: dict[str, Any], place: int) -> None:
    """Leaving out other members of a message would change the question."""
    for name, value in message.items():
        if name not in ("role", "content") and value not in _EMPTY:
            why = "Tools are not called." if name.startswith(("tool", "function")) else "It would not be sent."
            raise WrongRowError(f"Message {place} has {quoted(name)}. {why} Leave it out.")


_ROLE = "assistant"
_FIELD = "last_assistant"


class LastMessages:
    """Treats such rows as the uploader chose. `rows` counts them."""

    def __init__(self, choice: LastAssistant, references: References) -> None:
        """Raises RefusedError for an unknown choice."""
        if choice not in LastAssistant.values():
            raise RefusedError(f"{_FIELD} must be reference, prefill or refuse.", _FIELD)
        self._choice = choice
        self._references = references
        self.rows = 0

    @property
    def done(self) -> LastAssistant:
        """How they were treated; unspecified without any."""
        return self._choice if self.rows else LAST_ASSISTANT_UNSPECIFIED

    def settle(self, row: DatasetRow, line: int) -> None:
        """Changes the row as chosen. Raises WrongRowError, and RefusedError without a choice."""
        if row.messages[-1].role != _ROLE:
            return
        if self._choice == LAST_ASSISTANT_UNSPECIFIED:
            raise RefusedError(
                f"The row on line {line:,} ends with a message of the assistant, which may be its answer. Set "
                f"{_FIELD}: reference removes such messages from the prompt and compares answers with them, prefill "
                "sends them as the start of the answer, refuse reports every such line.",
                _FIELD,
            )
        if self._choice == LAST_ASSISTANT_REFUSE:
            raise WrongRowError("The last message is the assistant's. Remove it, or make it the reference.")
        self.rows += 1
        if self._choice == LAST_ASSISTANT_PREFILL:
            return
        if row.reference:
            raise WrongRowError("The row has both a reference and a last message of the assistant. Keep one of them.")
        answer = row.messages.pop().content
        if not any(message.content.strip() for message in row.messages):
            raise WrongRowError("Without the assistant's last message, no question is left.")
        row.reference = self._references.of(answer)
