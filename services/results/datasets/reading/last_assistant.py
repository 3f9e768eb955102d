"""Rows that end with a message of the assistant, which may be their answer."""

from __future__ import annotations

from services.chat_requests.faults import RefusedError, WrongRowError
from services.chat_requests.messages import asks
from services.results.datasets.reading.scoring import References
from services.words import chat
from touchstone.v1.dataset_pb2 import DatasetRow
from touchstone.v1.job_pb2 import (
    LAST_ASSISTANT_PREFILL,
    LAST_ASSISTANT_REFERENCE,
    LAST_ASSISTANT_REFUSE,
    LAST_ASSISTANT_UNSPECIFIED,
    LastAssistant,
)

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
        as_calls = self._references.are_calls and self._choice == LAST_ASSISTANT_REFERENCE
        if row.messages[-1].tool_calls and not as_calls:
            raise WrongRowError(
                "The assistant's last message calls tools, which are a reference for the scorer tool_calls only, and "
                "never the start of an answer. Remove it, or add the tools' results."
            )
        self.rows += 1
        if self._choice == LAST_ASSISTANT_PREFILL:
            return
        if row.reference:
            raise WrongRowError("The row has both a reference and a last message of the assistant. Keep one of them.")
        last = row.messages.pop()
        if row.has_parts:
            row.has_parts = not all(map(chat.is_plain, row.messages))
        if not asks(row):
            raise WrongRowError("Without the assistant's last message, no question is left.")
        row.reference = self._references.of(chat.calls(last.tool_calls) if as_calls else last.content, row)
